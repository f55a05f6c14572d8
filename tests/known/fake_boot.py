"""A machine that is booted: a tree of files as its boot loader has it, and the commands that change it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from plimsoll.environment.boots import once
from plimsoll.environment.boots.once import SystemdBoot, Way, of_the_machine

OLD, NEW = "6.1.0-56-cloud-amd64", "6.12.113+deb12-cloud-amd64"
# As Debian's update-grub writes it: the default first, then a submenu with every kernel twice.
CONFIG = f"""
if [ -s $prefix/grubenv ]; then
  load_env
fi
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
function gfxmode {{
	set gfxpayload="${{1}}"
}}
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1234' {{
	linux	/boot/vmlinuz-{NEW} root=UUID=1234 ro  quiet
	initrd	/boot/initrd.img-{NEW}
}}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-1234' {{
	menuentry 'Debian GNU/Linux, with Linux {NEW}' --class debian $menuentry_id_option 'gnulinux-{NEW}-advanced-1234' {{
		if [ x$grub_platform = xxen ]; then insmod xzio; fi
		linux	/boot/vmlinuz-{NEW} root=UUID=1234 ro  quiet
	}}
	menuentry 'Debian, with Linux {OLD} (recovery mode)' $menuentry_id_option 'gnulinux-{OLD}-recovery-1234' {{
		linux	/boot/vmlinuz-{OLD} root=UUID=1234 ro single
	}}
	menuentry 'Debian GNU/Linux, with Linux {OLD}' --class debian $menuentry_id_option 'gnulinux-{OLD}-advanced-1234' {{
		linux	/boot/vmlinuz-{OLD} root=UUID=1234 ro  quiet
	}}
}}
"""
OLD_ENTRY = f"gnulinux-advanced-1234>gnulinux-{OLD}-advanced-1234"


class FakeMachine:
    """A tree of files, and the commands that change it as the real ones do. `boot` does what its boot loader does."""

    def __init__(self, root: Path, way: str) -> None:
        self.root, self.way, self.asked = root, way, list[str]()
        for release in (OLD, NEW):
            for name in ("vmlinuz", "initrd.img"):
                (root / "boot").mkdir(exist_ok=True)
                (root / f"boot/{name}-{release}").touch()
        (root / "proc").mkdir()
        (root / "proc/cmdline").write_text(f"BOOT_IMAGE=/boot/vmlinuz-{NEW} root=UUID=1234 ro quiet\n")
        if way == once.GRUB:
            (root / "boot/grub").mkdir()
            (root / "boot/grub/grub.cfg").write_text(CONFIG)
            self.grubenv({})
        elif way == once.SYSTEMD_BOOT:
            (root / "boot/loader/entries").mkdir(parents=True)
            for release in (OLD, NEW):
                text = f"title Debian\nversion {release}\nlinux /1234/{release}/linux\noptions ro\n"
                (root / f"boot/loader/entries/1234-{release}.conf").write_text(text)
            (root / once._EFI).mkdir(parents=True)
            SystemdBoot(root).variable("LoaderInfo").write_bytes(b"\6\0\0\0" + "systemd-boot 252\0".encode("utf-16-le"))
        else:
            (root / "sys/kernel").mkdir(parents=True)
            (root / "sys/kernel/kexec_loaded").write_text("0\n")

    def machine_way(self) -> Way:
        found = of_the_machine("kexec" if self.way == once.KEXEC else "boot loader", self.root)
        return type(found)(self.root, lambda _name: True)

    def grubenv(self, values: dict[str, str]) -> None:
        text = "# GRUB Environment Block\n" + "".join(f"{name}={value}\n" for name, value in values.items())
        (self.root / "boot/grub/grubenv").write_text(text.ljust(1024, "#"))

    def values(self) -> dict[str, str]:
        lines = (self.root / "boot/grub/grubenv").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines if "=" in line)

    def __call__(self, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked.append(" ".join(argv))
        variable = SystemdBoot(self.root).variable("LoaderEntryOneShot")
        loaded = self.root / "sys/kernel/kexec_loaded"
        match list(argv):
            case ["grub-reboot", where, entry]:
                assert where == f"--boot-directory={self.root}/boot"
                self.grubenv(self.values() | {"next_entry": entry})
            case ["grub-editenv", file, "unset", name]:
                assert file == str(self.root / "boot/grub/grubenv")
                self.grubenv({key: value for key, value in self.values().items() if key != name})
            case ["grub-editenv", _, "set", pair]:
                self.grubenv(self.values() | dict([pair.split("=", 1)]))
            case ["bootctl", "set-oneshot", ""]:
                variable.unlink(missing_ok=True)
            case ["bootctl", "set-oneshot", entry]:
                variable.write_bytes(b"\7\0\0\0" + f"{entry}\0".encode("utf-16-le"))
            case ["kexec", "-l", *_]:
                loaded.write_text("1\n")
            case ["kexec", "-u"]:
                loaded.write_text("0\n")
            case ["systemctl", "reboot" | "kexec"] | ["shutdown", "-r", _]:
                pass
            case other:
                return subprocess.CompletedProcess(argv, 1, "", f"{other}: not known here")
        return subprocess.CompletedProcess(argv, 0, "", "")

    def boot(self) -> str:
        """The release that it comes up with; what was for one boot is taken back, as the boot loader does it."""
        if self.way == once.GRUB:
            values = self.values()
            entry = values.pop("next_entry", "")
            self.grubenv(values)
            return OLD if entry == OLD_ENTRY else NEW
        if self.way == once.SYSTEMD_BOOT:
            variable = SystemdBoot(self.root).variable("LoaderEntryOneShot")
            entry = once.efi_text(variable)
            variable.unlink(missing_ok=True)
            return OLD if entry == f"1234-{OLD}.conf" else NEW
        loaded = self.root / "sys/kernel/kexec_loaded"
        was = loaded.read_text().strip()
        loaded.write_text("0\n")
        return OLD if was == "1" else NEW
