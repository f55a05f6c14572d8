"""A guest of QEMU: a kernel of a distribution's package, with KVM where the machine has it, and emulated elsewhere.

The constraint: that /dev/kvm opens tells nothing, since there are machines whose variant of it does not get a usual
kernel past the firmware. So KVM counts where the processor's own module is there, and the rest is emulated and says so.

The host's root is the guest's, by virtiofs: a view of it that is read-only on this side (read_only.py), whatever the
guest's own root does. The record's folder is a second one. What is needed to mount them is in an initramfs of our own:
busybox, and the kernel's modules in the order in which they load.
"""

from __future__ import annotations

import functools
import lzma
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from plimsoll.environment.boots.once import Wanted
from plimsoll.environment.fault import Fault
from plimsoll.environment.guest import read_only as read_only_view
from plimsoll.environment.guest.bootable import Bootable
from plimsoll.environment.guest.kernel import TOOLS, GuestKernel, parse
from plimsoll.environment.guest.machine import CONTAINED, DISK, Guest, GuestFolder
from plimsoll.environment.knob import AVAILABLE, Availability

PROGRAM: Final = "qemu-system-x86_64"
KVM, TCG = "kvm", "tcg"
VIRTIOFSD: Final = (Path("/usr/libexec/virtiofsd"), Path("/usr/lib/qemu/virtiofsd"))
NEEDED: Final = {
    PROGRAM: "qemu-system-x86", "busybox": "busybox-static", "modprobe": "kmod", "mkfs.ext4": "e2fsprogs",
    "setpriv": "util-linux", "unshare": "util-linux",
}  # fmt: skip
INSTALL: Final = "apt-get install qemu-system-x86 busybox-static kmod"
# Of modprobe: a path, in which blanks may be, and what the host's command line gives the module.
_INSMOD: Final = re.compile(r"^insmod (/.+?\.ko(?:\.\w+)?)(?:\s|$)", re.MULTILINE)
# Of the kernel, to find root and disk by; ext4 for the disk.
_MODULES: Final = ("virtio_pci", "virtio_blk", "virtio_console", "virtiofs", "ext4")
# virtiofsd locks a file there by its socket's name, which is the same in every guest's folder, and leaves it.
_LOCKS: Final = 'mkdir -p /run/virtiofsd && mount -t tmpfs locks /run/virtiofsd && exec "$@"'
_OWN_LOCKS: Final = ("unshare", "--mount", "sh", "-c", _LOCKS, "sh")
_SIGNS_OF_OPTIONS: Final = (",", "\\", "\n")  # after which virtiofsd reads another option, or another word
_SYS_MODULE = Path("/sys/module")
_DEV_KVM = Path("/dev/kvm")
_SHOWN_TRIES = 1200  # of 50 ms, for virtiofsd to have its sockets
_BOOT_SECONDS: Final = {KVM: 120.0, TCG: 1800.0}
# Words that the kernel does not know are its arguments and environment, which the next one is asked for.
_FIRST: Final = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
exec </dev/console >/dev/console 2>&1
for module in /modules/*; do /bin/busybox insmod "$module" || /bin/busybox echo "init: $module was not loaded"; done
/bin/busybox mount -t virtiofs -o ro root /new || /bin/busybox echo "init: the host's root could not be mounted"
/bin/busybox mount --move /dev /new/dev
exec /bin/busybox switch_root /new "$PLIMSOLL_GUEST/init" "$@"
"""


def has_kvm() -> bool:
    """Whether the processor's virtualisation is there to be used, not a variant of it in software."""
    real = any((_SYS_MODULE / name).is_dir() for name in ("kvm_intel", "kvm_amd"))
    return real and not (_SYS_MODULE / "kvm_pvm").is_dir() and os.access(_DEV_KVM, os.R_OK | os.W_OK)


def virtiofsd() -> Path | None:
    """The program that shows folders of the host; of QEMU's own package up to Debian 12, then of its own."""
    return next((path for path in VIRTIOFSD if path.exists()), None)


def available() -> Availability:
    """Whether a guest of QEMU can be had here, and the one thing to do where it cannot."""
    if platform.machine() != "x86_64":
        return Availability(False, f"guests of QEMU are for x86-64, and this is {platform.machine()}", "use the host")
    for tool, package in NEEDED.items():
        if shutil.which(tool, path=TOOLS["PATH"]) is None:
            return Availability(False, f"{tool} is not installed", f"`{INSTALL}` (package {package})")
    if virtiofsd() is None:
        return Availability(False, "virtiofsd is not installed", f"`{INSTALL}`; from Debian 13 on virtiofsd, too")
    if os.geteuid() != 0:
        return Availability(False, "a guest needs root, whose server's user it keeps", "run as root")
    return AVAILABLE


def why_not(wanted: Wanted) -> str | None:
    """Why a kernel cannot be booted in one, with the remedy; None where it can."""
    if not wanted.image.exists():
        return f"{wanted.image} is not there; unpack the kernel's package there: dpkg-deb -x PACKAGE.deb FOLDER"
    if not (wanted.folder / "boot" / f"config-{wanted.release}").exists():
        return f"{wanted.folder}/boot/config-{wanted.release} is not there; unpack the kernel's whole package"
    if not (wanted.modules / "modules.dep").exists():
        return f"{wanted.modules}/modules.dep is not there; make it: depmod -b {wanted.folder} {wanted.release}"
    return None


@functools.cache
def kernel_of(wanted: Wanted) -> GuestKernel:
    """One that can be booted, as far as its files tell."""
    config = parse((wanted.folder / "boot" / f"config-{wanted.release}").read_text())
    return GuestKernel(wanted.image, wanted.release, config, wanted.modules, loads_modules=True)


@dataclass(frozen=True)
class Qemu(Bootable):
    """One kernel in it. `accel`: KVM or TCG, the emulator."""

    wanted: Wanted
    processors: int
    accel: str

    @property
    def kind(self) -> str:
        return "QEMU with KVM" if self.accel == KVM else "QEMU, emulated"

    @property
    def accelerator(self) -> str:
        return self.accel

    @property
    def cpus(self) -> int:
        return self.processors

    @property
    def boot_seconds_max(self) -> float:
        return _BOOT_SECONDS[self.accel]

    def prepare(self, place: GuestFolder) -> None:
        """The initramfs, and what the first program asks by name."""
        modules = self.wanted.modules.parent
        (place.path / "kind").write_text(
            "# Sourced by init: what of this kind of guest has other names.\n"
            f"disk=/dev/vda channel=$(echo /dev/vport*p1) modules={shlex.quote(str(modules))}\n"
            'mount_record() { mount -t virtiofs record "$1"; }\n'
        )
        with (place.path / "initramfs").open("wb") as file:
            for part in archive(self.wanted):
                file.write(part)

    def boot(self, place: GuestFolder, memory_bytes: int, parameters: str) -> Guest:
        return Guest(place, lambda channel: self.command(place, memory_bytes, parameters, channel), TOOLS)

    def command(self, place: GuestFolder, memory_bytes: int, parameters: str, channel: int) -> list[str]:
        """A shell that starts the two that show folders, and becomes QEMU: with it all end."""
        record = (place.path / "record").read_text().removesuffix("\n")
        view = place.path / "view"
        read_only = shlex.join([sys.executable, "-I", read_only_view.__file__, str(view)])
        lines = ["umask 022", "mkdir -p view"]  # whoever may write to a socket has what is shown by it
        lines += [
            f"{before} {shlex.quote(str(virtiofsd()))} --socket-path={tag}.socket -o source={shlex.quote(source)} "
            f"-o cache={cache} -o sandbox=chroot </dev/null >>virtiofsd.log 2>&1 &"
            for before, tag, source, cache in (
                (read_only, "root", str(view), "always"),
                ("", "record", record, "auto"),
            )
        ]
        lines += [
            f"tries={_SHOWN_TRIES}",
            "until [ -S root.socket ] && [ -S record.socket ]; do",
            "[ $tries -gt 0 ] || { cat virtiofsd.log; exit 1; }",  # onto its console, which is kept
            "tries=$((tries - 1)); sleep 0.05",
            "done",
        ]
        lines.append(f"exec {shlex.join(self.machine(place, memory_bytes, parameters, channel))}")
        return [*CONTAINED, *_OWN_LOCKS, "sh", "-c", "\n".join(lines)]

    def machine(self, place: GuestFolder, memory_bytes: int, parameters: str, channel: int) -> list[str]:
        """QEMU itself. Of `parameters` none is one of ours (experiment/kernels/table.py)."""
        size = f"{memory_bytes >> 20}M"
        append = f"console=ttyS0 loglevel=4 panic=-1 {parameters} PLIMSOLL_GUEST={place.path}"
        cache = "none" if self.accel == KVM else "writeback"  # a disk of the host's, and not its page cache
        # Emulated CPUs run by turns. Each in a thread of its own, one was seen to meet a breakpoint by which the kernel
        # changes its text (as it switches tracepoints) on another, after that was over: "Oops: int3".
        accel = self.accel if self.accel == KVM else f"{self.accel},thread=single"
        return [
            PROGRAM, "-machine", "pc", "-accel", accel, "-cpu", "host" if self.accel == KVM else "max",
            "-smp", str(self.processors), "-m", size, "-nodefaults", "-no-user-config", "-no-reboot",
            "-display", "none", "-serial", "stdio", "-monitor", "none",
            # virtiofsd reads and writes the guest's memory
            "-object", f"memory-backend-memfd,id=memory,size={size},share=on", "-numa", "node,memdev=memory",
            "-kernel", str(self.wanted.image), "-initrd", "initramfs", "-append", " ".join(append.split()),
            "-drive", f"file={DISK},format=raw,if=virtio,cache={cache}",
            "-chardev", "socket,id=root,path=root.socket", "-device", "vhost-user-fs-pci,chardev=root,tag=root",
            "-chardev", "socket,id=record,path=record.socket", "-device", "vhost-user-fs-pci,chardev=record,tag=record",
            "-device", "virtio-serial-pci", "-chardev", f"socket,id=lines,fd={channel}",
            "-device", "virtserialport,chardev=lines,name=plimsoll",
        ]  # fmt: skip


def cannot_show(folder: Path) -> str | None:
    """Why virtiofsd would show another folder than this; None where it shows this one."""
    if any(sign in str(folder) for sign in _SIGNS_OF_OPTIONS):
        return f"{folder}: virtiofsd takes no path with a comma, a backslash or a line's end; choose another (--out)"
    return None


def of(wanted: Wanted, cpus: int) -> Qemu:
    """A kernel as this machine can run it."""
    return Qemu(kernel_of(wanted), wanted, cpus, KVM if has_kvm() else TCG)


def archive(wanted: Wanted) -> Iterator[bytes]:
    """The initramfs, in cpio's newc format."""
    busybox = shutil.which("busybox", path=TOOLS["PATH"])
    assert busybox is not None  # available() has found it
    number = 0

    def entry(name: str, mode: int, data: bytes = b"") -> bytes:
        nonlocal number
        number += 1
        named = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(named), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + named
        return head + bytes(-len(head) % 4) + data + bytes(-len(data) % 4)

    for folder in ("bin", "modules", "dev", "new"):
        yield entry(folder, 0o40755)
    yield entry("bin/busybox", 0o100755, Path(busybox).read_bytes())
    for place, module in enumerate(modules_of(wanted)):
        yield entry(f"modules/{place:02}-{module.name.partition('.')[0]}.ko", 0o100644, _unpacked(module))
    yield entry("init", 0o100755, _FIRST.encode())
    yield entry("TRAILER!!!", 0)


def modules_of(wanted: Wanted) -> list[Path]:
    """Every module that is needed after all that it depends on, each once; what is built in needs no file."""
    order: dict[str, None] = {}
    base = wanted.modules.parents[2]  # above lib/modules/RELEASE
    for module in _MODULES:
        argv = ["modprobe", "-C", "/dev/null", "-d", str(base), "-S", wanted.release, "--show-depends", module]
        done = subprocess.run(argv, capture_output=True, text=True, env=TOOLS, check=False)
        if done.returncode:
            raise Fault(
                f"{wanted.release}: {done.stderr.strip()}", remedy=f"a guest needs the module {module}: another kernel"
            )
        order.update(dict.fromkeys(_INSMOD.findall(done.stdout)))
    return [Path(name) for name in order]


def _unpacked(module: Path) -> bytes:
    data = module.read_bytes()
    if module.suffix == ".xz":
        return lzma.decompress(data)
    if module.suffix == ".zst":
        return subprocess.run(["zstd", "-dc"], input=data, capture_output=True, check=True, env=TOOLS).stdout
    return data
