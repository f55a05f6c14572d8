"""A machine of made-up devices: what is asked of it is answered from a list, what is done is written down."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.environment import Fault
from plimsoll.environment.devices import Mount
from plimsoll.environment.places.machine import Block, Machine

GIB = 1 << 30
WITH_EVERYTHING = ("md_mod", "raid0", "raid1", "raid10", "raid456", "dm_mod", "dm_delay", "dm_flakey", "loop")


@dataclass
class Disk:
    """A made-up device: what there is on it, and who uses it."""

    size_bytes: int = GIB
    signatures: dict[str, str] = field(default_factory=dict)
    blank: bool = True
    read_only: bool = False
    parts: list[str] = field(default_factory=list)
    holders: list[str] = field(default_factory=list)
    open_by: list[str] = field(default_factory=list)
    claimed: bool = False
    diskseq: int = 1
    unreadable: bool = False


class FakeMachine(Machine):
    """`disks` by path; `calls`: every program that was called, with its arguments and what it was given to read."""

    is_root = True

    def __init__(self, disks: dict[str, Disk], modules: tuple[str, ...] = WITH_EVERYTHING) -> None:
        self.disks, self.modules = disks, modules
        self.calls: list[str] = []
        self.uuids: dict[str, str] = {}  # of arrays, their members and mapped devices
        self.groups: dict[str, str] = {}  # of LVM, by member
        self.mounted: list[Mount] = []
        self.swapped: list[str] = []
        self.missing: set[str] = set()
        self.failing = ""

    def has_program(self, name: str) -> bool:
        return name not in self.missing

    def call(
        self, *argv: str, text: str | None = None, pass_fds: tuple[int, ...] = (), seconds: float | None = None
    ) -> str:
        del pass_fds, seconds
        line = " ".join(argv) + (f" <<< {text.strip()}" if text else "")
        if self.failing and self.failing in line:
            raise Fault(f"{line}: it failed", remedy="mend it")
        self.calls.append(line)
        return self._done(list(argv))

    def _done(self, argv: list[str]) -> str:
        """What the program would leave behind, as far as the layers look at it."""
        program, last = argv[0], argv[-1]
        if program == "losetup" and "--find" in argv:
            loop = f"/dev/loop{sum('loop' in path for path in self.disks)}"
            self.disks[loop] = Disk(Path(last).stat().st_size if Path(last).exists() else GIB)
            return loop
        if program == "lvm":
            return self._lvm(argv)
        if program == "mdadm":
            return self._mdadm(argv)
        if program == "dmsetup" and argv[1] == "create":
            self.disks[f"/dev/mapper/{argv[2]}"] = Disk()
            self.uuids[argv[2]] = argv[4]
        elif program == "dmsetup":
            del self.uuids[last]
        if program == "mount":
            self.mounted.append(Mount(argv[-2], last, argv[2], [], "/", "9:9"))
        elif program == "umount":
            self.mounted = [mount for mount in self.mounted if mount.point != last]
        if program in ("mke2fs", "mkfs.xfs", "mkfs.btrfs"):
            kind = {"mkfs.xfs": "xfs", "mkfs.btrfs": "btrfs"}.get(program) or argv[argv.index("-t") + 1]
            marks = [one.removeprefix("uuid=") for one in argv if one.count("-") == 4]
            self.disks[last].signatures = {"TYPE": kind, "UUID": marks[0]}
        return ""

    def _lvm(self, argv: list[str]) -> str:
        verb, last = argv[1], argv[-1]
        if verb == "vgcreate":
            members = [one for one in argv[4:] if one in self.disks]
            self.groups |= dict.fromkeys(members, argv[argv.index("--yes") + 1])
            for one in members:
                self.disks[one].signatures = {"TYPE": "LVM2_member"}
        elif verb == "lvcreate":
            self.disks[f"/dev/mapper/{last.replace('-', '--')}-volume"] = Disk()
        elif verb == "pvs":
            return self.groups.get(last, "")
        elif verb == "vgremove":
            self.groups = {one: group for one, group in self.groups.items() if group != last}
        elif verb == "pvremove":
            self.disks[last].signatures = {}
        return ""

    def _mdadm(self, argv: list[str]) -> str:
        """As of a machine without udev: the array has the name that was asked for, and its own, /dev/md127."""
        last = argv[-1]
        if argv[1] == "--create":
            members = [one for one in argv if one in self.disks]
            uuid = next(one for one in argv if one.startswith("--uuid=")).removeprefix("--uuid=")
            for one in members:
                self.disks[one].signatures = {"TYPE": "linux_raid_member", "UUID": uuid.replace(":", "-")}
                self.disks[one].holders = ["md127"]
            array = Disk(sum(self.disks[one].size_bytes for one in members))
            self.disks |= {argv[2]: array, "/dev/md127": array}
        elif argv[1] == "--zero-superblock":
            assert not self.disks[last].holders
            self.disks[last].signatures = {}
        elif argv[1] == "--stop":
            array = self.disks[last]
            self.disks = {path: disk for path, disk in self.disks.items() if disk is not array}
            for disk in self.disks.values():
                disk.holders = [one for one in disk.holders if f"/dev/{one}" != last]
        return ""

    def block(self, path: str) -> Block | None:
        disk = self.disks.get(path)
        if disk is None:
            return None
        number = f"8:{list(self.disks).index(path)}"
        return Block(Path(path).name, number, disk.size_bytes, disk.read_only, disk.diskseq, disk.parts, disk.holders)

    def queue(self, path: str) -> Path:
        return Path("/nowhere", Path(path).name, "queue")

    def loops_of(self, image: Path) -> list[str]:
        del image
        return []

    def is_direct(self, loop: str) -> bool:
        return loop in self.disks

    def signatures(self, path: str) -> dict[str, str]:
        if path in self.disks and self.disks[path].unreadable:
            raise Fault(f"{path}: cannot be read: Input/output error", remedy="see `dmesg`")
        return self.disks[path].signatures if path in self.disks else {}

    def with_uuid(self, uuid: str) -> str | None:
        return next((path for path, disk in self.disks.items() if disk.signatures.get("UUID") == uuid), None)

    def mapped(self, name: str) -> str | None:
        return self.uuids.get(name)

    def ends_are_zero(self, path: str) -> bool:
        return self.disks[path].blank

    def mounts(self) -> list[Mount]:
        return self.mounted

    def swaps(self) -> list[str]:
        return self.swapped

    def open_by(self, path: str) -> list[str]:
        return self.disks[path].open_by

    def is_claimed(self, path: str) -> bool:
        return self.disks[path].claimed

    def has_module(self, *names: str) -> bool:
        return any(name.replace("-", "_") in self.modules for name in names)

    def release(self) -> str:
        return "6.12.0-made-up"

    def load(self, name: str) -> None:
        assert self.has_module(name)

    def forget_name(self, path: str) -> None:
        """None is left over: a fake's array goes with its name."""

    def has_loops(self) -> bool:
        return self.has_module("loop")

    def has_file_system(self, name: str) -> bool:
        return name in ("ext2", "ext3", "ext4", "xfs", "btrfs")

    def refused_option(self, fs: str, name: str, value: str | None) -> str | None:
        del fs, value
        return f"Unknown parameter '{name}'" if name == "sloppy" else None

    def refused_mkfs(self, argv: list[str], size_bytes: int) -> str | None:
        del size_bytes
        return "Invalid filesystem option set: odd" if "odd" in argv else None
