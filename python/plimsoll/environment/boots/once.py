"""One boot into another kernel: by the boot loader's one-shot entry, or by kexec.

The constraint: the default entry is never touched, so whatever becomes of us the boot after the next is the one that
there was before. What is set for the next boot is journalled first, since a kill may come between it and the reboot:
then `undo` takes it back, and the machine boots what it booted before.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from plimsoll.environment import devices, kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, ChangedSince, changed_since, puts_back

Called = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]
GRUB, SYSTEMD_BOOT, KEXEC = "GRUB", "systemd-boot", "kexec"
_EFI_VENDOR: Final = "4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"  # of systemd-boot's variables
_EFI: Final = "sys/firmware/efi/efivars"
_KEPT_IN_PLACE: Final = re.compile(r"^/dev/(md|mapper/|dm-)")  # where GRUB reads, and writes nothing back


def _call(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": os.environ.get("PATH", "") + ":/usr/sbin:/sbin", "LC_ALL": "C"}
    return subprocess.run([*argv], capture_output=True, text=True, check=False, env=env)


call: Called = _call  # tests set another


def _done(*argv: str) -> None:
    done = call(argv)
    if done.returncode:
        raise Fault(f"{' '.join(argv)}: {done.stderr.strip() or done.returncode}", remedy="see what it says")


def _has(program: str) -> bool:
    return shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is not None


@dataclass(frozen=True)
class Wanted:
    """A kernel that is to be booted: its release, where it is installed, and parameters beside those of its entry."""

    release: str
    parameters: str = ""
    folder: Path = Path("/")

    @property
    def image(self) -> Path:
        return self.folder / "boot" / f"vmlinuz-{self.release}"

    @property
    def initrd(self) -> Path:
        return self.folder / "boot" / f"initrd.img-{self.release}"

    @property
    def modules(self) -> Path:
        """Where a package has them; the older place where neither is there."""
        places = [self.folder / place / self.release for place in ("lib/modules", "usr/lib/modules")]
        return next((place for place in places if place.is_dir()), places[0])


@dataclass(frozen=True)
class Way(ABC):
    """How a machine comes into another kernel once. `root`: of the machine's files; tests have a tree of their own."""

    root: Path = Path("/")
    has_program: Callable[[str], bool] = field(default=_has, compare=False)

    name: str = ""

    @abstractmethod
    def why_not(self, wanted: Wanted) -> str | None:
        """Why it cannot, with the remedy; None where it can."""

    @abstractmethod
    def arm(self, wanted: Wanted, journal: Journal) -> None:
        """From here on the next boot, and no other, is into that kernel."""

    def is_another_boot(self, parameters: str) -> str:
        """Why this boot is not the one that was armed with these parameters, though its kernel is; empty if it is."""
        del parameters  # an entry of a boot loader has its own
        return ""

    def reboot(self) -> None:
        """Begins to go down. Returns while services are stopped."""
        _done("systemctl", "reboot")

    def is_to_go_down(self) -> bool:
        """Whether somebody has planned a shutdown: there is one at a time, and ours would be in its place."""
        return (self.root / "run/systemd/shutdown/scheduled").exists()

    def reboot_in(self, minutes: int) -> None:
        """Goes down after that, into the default; `shutdown -c` keeps it up."""
        _done("shutdown", "-r", f"+{minutes}")

    def _lacks(self, wanted: Wanted, *programs: str) -> str | None:
        for program in programs:
            if not self.has_program(program):
                return f"{program} is not installed; install it, or choose another environment.boot.by"
        if wanted.folder != Path("/"):
            return f"{wanted.folder}: it boots what is installed under /; leave folder out, or boot it by qemu"
        if not (self.root / wanted.image.relative_to("/")).exists():
            return f"{wanted.image} is not there; install the kernel's package, or name a release of /boot"
        return None


@dataclass(frozen=True)
class Grub(Way):
    """Through `next_entry` of GRUB's environment, which its own script takes back before it boots the entry."""

    name: str = GRUB

    @property
    def config(self) -> Path:
        return self.root / "boot/grub/grub.cfg"

    @property
    def environment(self) -> Path:
        return self.root / "boot/grub/grubenv"

    def why_not(self, wanted: Wanted) -> str | None:
        if (why := self._lacks(wanted, "grub-reboot", "grub-editenv")) is not None:
            return why
        if wanted.parameters:
            return "an entry of GRUB has the parameters that it has; leave parameters out, or choose kexec"
        config = kernel_files.read(self.config) or ""
        if "next_entry" not in config:
            return f"{self.config} knows no next_entry, so a boot would not be the only one; run update-grub"
        if (kept := self._cannot_take_back()) is not None:
            return kept
        if (theirs := next_entry(self.environment)) is not None:
            return _chosen_already(theirs, f"grub-editenv {self.environment} unset next_entry")
        if grub_entry(config, wanted.release) is None:
            return f"{self.config} has no entry of {wanted.release}; run update-grub"
        return None

    def _cannot_take_back(self) -> str | None:
        """GRUB reads its environment wherever it finds it, but writes to plain partitions alone."""
        mount = devices.mount_of(self.config.parent)
        if mount.fs in ("btrfs", "zfs") or _KEPT_IN_PLACE.match(mount.source):
            where = f"{self.config.parent} lies on {mount.source} ({mount.fs})"
            return f"{where}, where GRUB cannot take the entry back after one boot; choose kexec"
        return None

    def arm(self, wanted: Wanted, journal: Journal) -> None:
        entry = grub_entry(self.config.read_text(encoding="utf-8"), wanted.release)
        if entry is None:
            raise Fault(f"{self.config} has no entry of {wanted.release}", remedy="run update-grub")
        found = next_entry(self.environment)
        folder = str(self.environment.parent.parent)
        journal.change(
            "boot_once_grub",
            lambda: _done("grub-reboot", f"--boot-directory={folder}", entry),
            file=str(self.environment), found=found, set=entry,
        )  # fmt: skip


@dataclass(frozen=True)
class SystemdBoot(Way):
    """Through the variable LoaderEntryOneShot, which systemd-boot deletes before it boots the entry."""

    name: str = SYSTEMD_BOOT

    def variable(self, name: str) -> Path:
        return self.root / _EFI / f"{name}-{_EFI_VENDOR}"

    def is_in_use(self) -> bool:
        """Whether this boot was by it. GRUB from 2.12 on says in the same variable that it was by GRUB."""
        return (efi_text(self.variable("LoaderInfo")) or "").startswith(SYSTEMD_BOOT)

    def entry_of(self, release: str) -> str | None:
        """The name of the entry's file; None where there is none."""
        for folder in ("boot", "efi", "boot/efi"):
            for path in sorted((self.root / folder / "loader/entries").glob("*.conf")):
                words = [line.split() for line in (kernel_files.read(path) or "").splitlines()]
                of_kernel = [line[1] for line in words if len(line) == 2 and line[0] in ("version", "linux")]
                if any(one == release or one.endswith((f"/{release}/linux", f"-{release}")) for one in of_kernel):
                    return path.name
        return None

    def why_not(self, wanted: Wanted) -> str | None:
        if (why := self._lacks(wanted, "bootctl")) is not None:
            return why
        if not self.is_in_use():
            return "this machine was not booted by systemd-boot; choose another environment.boot.by"
        if wanted.parameters:
            return "an entry of systemd-boot has the parameters that it has; leave parameters out, or choose kexec"
        if (theirs := efi_text(self.variable("LoaderEntryOneShot"))) is not None:
            return _chosen_already(theirs, "bootctl set-oneshot ''")
        if self.entry_of(wanted.release) is None:
            return f"systemd-boot has no entry of {wanted.release}; run kernel-install add"
        return None

    def arm(self, wanted: Wanted, journal: Journal) -> None:
        entry = self.entry_of(wanted.release)
        if entry is None:
            raise Fault(f"systemd-boot has no entry of {wanted.release}", remedy="run kernel-install add")
        file = self.variable("LoaderEntryOneShot")
        journal.change(
            "boot_once_systemd_boot",
            lambda: _done("bootctl", "set-oneshot", entry),
            file=str(file), found=efi_text(file), set=entry,
        )  # fmt: skip


@dataclass(frozen=True)
class Kexec(Way):
    """From this kernel straight into the next, whose image is in memory: no boot loader hears of it."""

    name: str = KEXEC

    @property
    def loaded(self) -> Path:
        return self.root / "sys/kernel/kexec_loaded"

    def why_not(self, wanted: Wanted) -> str | None:
        if (why := self._lacks(wanted, "kexec")) is not None:
            return why
        if kernel_files.read(self.loaded) is None:
            return "this kernel has no kexec (CONFIG_KEXEC, or it is locked down); choose the boot loader"
        if kernel_files.read(self.root / "proc/sys/kernel/kexec_load_disabled") == "1":
            return "kernel.kexec_load_disabled is set, until the next boot; choose the boot loader"
        if kernel_files.read(self.loaded) == "1":
            return "a kernel is loaded for kexec already, which is not ours; unload it (kexec -u)"
        return None

    def arm(self, wanted: Wanted, journal: Journal) -> None:
        argv = ["kexec", "-l", str(wanted.image), "--command-line", self.command_line(wanted)]
        if (self.root / wanted.initrd.relative_to("/")).exists():
            argv += ["--initrd", str(wanted.initrd)]
        journal.change("boot_once_kexec", lambda: _done(*argv), file=str(self.loaded))

    def command_line(self, wanted: Wanted) -> str:
        """This kernel's own, without what names its image and what an earlier boot of ours has added."""
        now = (kernel_files.read(self.root / "proc/cmdline") or "").split()
        given = now[: now.index(MARK)] if MARK in now else now
        kept = [word for word in given if not word.startswith(("BOOT_IMAGE=", "initrd="))]
        return " ".join([*kept, MARK, *wanted.parameters.split()])

    def is_another_boot(self, parameters: str) -> str:
        words = (kernel_files.read(self.root / "proc/cmdline") or "").split()
        if MARK not in words:  # the kernel that was in memory is gone with a power failure, or it went down at once
            return "came up with its boot loader's command line"
        has = words[words.index(MARK) + 1 :]
        return "" if has == parameters.split() else f"came up with parameters '{' '.join(has)}'"

    def reboot(self) -> None:
        _done("systemctl", "kexec")


MARK: Final = "plimsoll.boot=1"  # begins what we have added to a kernel's command line
WAYS: Final[dict[str, type[Way]]] = {GRUB: Grub, SYSTEMD_BOOT: SystemdBoot, KEXEC: Kexec}


def of_the_machine(by: str, root: Path = Path("/")) -> Way:
    """`by`: "kexec", or "boot loader": the one that this machine was booted by, as far as it shows."""
    if by == KEXEC:
        return Kexec(root)
    one = SystemdBoot(root)
    return one if one.is_in_use() else Grub(root)


def grub_entry(config: str, release: str) -> str | None:
    """The first entry of grub.cfg that boots this release and is none of recovery: submenus and entry by their ids."""
    above: list[tuple[int, str]] = []  # the menus and entries around the line, each with the depth that it begins at
    depth = 0
    for line in config.splitlines():
        words = line.split("#", 1)[0] if line.lstrip().startswith("#") else line
        if (told := re.match(r"\s*(menuentry|submenu)\s+(['\"])(.*?)\2(.*)", words)) is not None:
            told_id = re.search(r"(?:--id\s+|\$menuentry_id_option\s+)(['\"]?)([^'\"\s]+)\1", told[4])
            above.append((depth, told_id[2] if told_id else told[3]))
        elif above and _boots(words, release):
            return ">".join(name for _, name in above)
        depth += _braces(words)
        while above and depth <= above[-1][0]:
            above.pop()
    return None


def _chosen_already(theirs: str, taken_back_by: str) -> str:
    """A boot of ours would use up the boot loader's one choice, and nobody would be told."""
    return (
        f"the next boot is chosen already, and not by this run: {theirs}; boot it, or take it back ({taken_back_by}; "
        "`plimsoll undo` where a run was killed)"
    )


def _boots(line: str, release: str) -> bool:
    """Whether a line loads the kernel of this release, and not for recovery."""
    loads = re.match(rf"\s*linux(16|efi)?\s+\S*/vmlinuz-{re.escape(release)}(\s|$)", line)
    return loads is not None and re.search(r"\s(single|recovery)(\s|$)", line) is None


def _braces(line: str) -> int:
    """By how much a line goes deeper; what is quoted or a variable's ${name} counts nothing."""
    bare = re.sub(r"\$\{[^}]*\}|'[^']*'|\"[^\"]*\"", "", line)
    return bare.count("{") - bare.count("}")


def next_entry(environment: Path) -> str | None:
    """Of GRUB's environment; None where none is set."""
    for line in (kernel_files.read(environment) or "").splitlines():
        name, _, value = line.partition("=")
        if name == "next_entry":
            return value or None
    return None


def efi_text(file: Path) -> str | None:
    """A variable of the firmware: four bytes of attributes, then text in UTF-16 with a zero at its end."""
    try:
        data = file.read_bytes()[4:]
    except OSError:
        return None
    return data.decode("utf-16-le", errors="replace").rstrip("\0") or None


def _put_back_entry(args: Args, now: str | None, take: Callable[[str | None], Any]) -> str:
    """Ours is taken back where it still waits for a boot; one that was booted, or never set, is not there."""
    found, ours = args["found"], args["set"]
    if now == found:
        return f"{args['file']}: the next boot is as it was"
    if now == ours:
        take(found)
        step("taken back")
        return f"{args['file']}: {ours} is no longer booted next"
    if now is None:
        return f"{args['file']}: {ours} was booted, once"
    what = changed_since(args["file"], found=found or "empty", ours=ours, now=now)
    raise ChangedSince(what, "see that the next boot is the one that you want")


@puts_back("boot_once_grub", survives_reboot=True)
def _put_back_grub(args: Args) -> str:
    file = args["file"]

    def take(found: str | None) -> None:
        words = ("unset", "next_entry") if found is None else ("set", f"next_entry={found}")
        _done("grub-editenv", file, *words)

    return _put_back_entry(args, next_entry(Path(file)), take)


@puts_back("boot_once_systemd_boot", survives_reboot=True)
def _put_back_systemd_boot(args: Args) -> str:
    return _put_back_entry(
        args, efi_text(Path(args["file"])), lambda found: _done("bootctl", "set-oneshot", found or "")
    )


@puts_back("boot_once_kexec", survives_reboot=False)
def _put_back_kexec(args: Args) -> str:
    if kernel_files.read(Path(args["file"])) != "1":
        return "no kernel is loaded for kexec"
    _done("kexec", "-u")
    step("taken back")
    return "the kernel that was loaded for kexec is unloaded"
