"""What layers are made with and looked at: programs, block devices, what the kernel has. Tests have one of their own.

The constraint: a program that goes on after the run was killed (mkfs of a large device) would hold what `undo` has to
take away. So each dies with its parent.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.environment import kernel_files
from plimsoll.environment.devices import Mount, mounts
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import handed_on
from plimsoll.environment.memory import swap

_libc = ctypes.CDLL(None, use_errno=True)
ASK_SECONDS = 60.0  # a device that answers no question is not waited for
REACH_SECONDS = 5.0
OWN_REACH_SECONDS = 2.0  # of the loopback: the kernel asks again after one
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ENXIO, errno.ENODEV)
# Followed by our number: a parent that was gone before it could be told of is not ours any more.
_DIES_WITH_ITS_PARENT = ("setpriv", "--pdeathsig", "KILL", "sh", "-c", '[ "$PPID" = "$0" ] && exec "$@"')
_FSOPEN, _FSCONFIG, _SET_FLAG, _SET_STRING = 430, 431, 0, 1
_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/local/sbin"
_PACKAGES = {
    "mkfs.xfs": "xfsprogs", "mkfs.btrfs": "btrfs-progs", "mke2fs": "e2fsprogs", "mdadm": "mdadm", "dmsetup": "dmsetup",
    "modprobe": "kmod", "lvm": "lvm2",
}  # fmt: skip
# A guest's first program links its modules there, wherever their package was unpacked; modprobe is told so as well.
_MODULES = (Path("/lib/modules"), Path("/run/plimsoll/lib/modules"))
_UDEV = Path("/run/udev/control")
DEVICE = "{device}"  # in a list of arguments: the device that is formatted
ENDS_BYTES = 1 << 20


@dataclass(frozen=True)
class Block:
    """A block device, as sysfs tells of it."""

    name: str  # such as sdb1
    number: str  # major:minor
    size_bytes: int
    read_only: bool = False
    diskseq: int | None = None  # of its disk: never given twice in a boot, whatever it is called (Linux 5.15 and later)
    parts: list[str] = field(default_factory=list)  # partitions in it
    holders: list[str] = field(default_factory=list)  # arrays and mapped devices over it


class Machine:
    """The one that we are on."""

    is_root = os.geteuid() == 0

    def has_program(self, name: str) -> bool:
        """Whether it is installed, for root."""
        return shutil.which(name, path=_PATH) is not None

    def call(
        self, *argv: str, text: str | None = None, pass_fds: tuple[int, ...] = (), seconds: float | None = None
    ) -> str:
        """What a program says. Raises Fault with its own words where it fails, or goes on for longer than `seconds`."""
        code, out, err = _run(argv, text, pass_fds, seconds)
        if code != 0:
            said = (err.strip() or out.strip()).replace("\n", "; ")
            raise Fault(f"{' '.join(argv)}: {said or f'exit code {code}'}", remedy="see `dmesg` for more")
        return out.strip()

    def start(self, *argv: str) -> subprocess.Popen[str]:
        """A program that ends with us, not waited for; `undo` waits for it."""
        return _start(argv, None, ())

    # --- devices ------------------------------------------------------------------------------------------------------

    def block(self, path: str) -> Block | None:
        """The block device of that path; None where it is none."""
        folder = _sysfs(path)
        if folder is None:
            return None
        holders = folder / "holders"
        return Block(
            name=folder.name,
            number=kernel_files.read(folder / "dev") or "",
            size_bytes=512 * (kernel_files.read_int(folder / "size") or 0),
            read_only=kernel_files.read(folder / "ro") == "1",
            diskseq=kernel_files.read_int(_disk(folder) / "diskseq"),
            parts=sorted(entry.parent.name for entry in folder.glob("*/partition")),
            holders=sorted(entry.name for entry in holders.iterdir()) if holders.is_dir() else [],
        )

    def queue(self, path: str) -> Path:
        """The folder of a block device's queue; of a partition that of its disk."""
        folder = _sysfs(path)
        if folder is None:
            raise Fault(f"{path}: is no block device", remedy="name one that is there")
        return _disk(folder) / "queue"

    def queues_of_loops(self) -> list[Path]:
        """The folders of the queues of loop devices, used or not."""
        return sorted(Path("/sys/block").glob("loop*/queue"))

    def loops_of(self, image: Path) -> list[str]:
        """The loop devices that show a file, which the kernel names without symbolic links."""
        found, real = [], str(real_path(image))
        for folder in sorted(Path("/sys/block").glob("loop*")):
            backing = kernel_files.read(folder / "loop/backing_file")
            if backing is not None and backing.removesuffix(" (deleted)") == real:
                found.append(f"/dev/{folder.name}")
        return found

    def is_direct(self, loop: str) -> bool:
        """Whether a loop device goes around the page cache of its file."""
        return kernel_files.read(Path("/sys/block", Path(loop).name, "loop/dio")) == "1"

    def signatures(self, path: str) -> dict[str, str]:
        """What blkid finds on the device itself, never in its cache: TYPE, UUID, LOGUUID, PTTYPE, USAGE, LABEL.

        Empty where nothing is there. Raises Fault where that cannot be told.
        """
        try:
            # blkid answers the same for a device that it cannot open and for one with nothing on it.
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise Fault(f"{path}: cannot be read: {error.strerror}", remedy="see `dmesg`, and try again") from error
        try:
            code, out, err = _run(("blkid", "--probe", "--output", "export", path), None, (), ASK_SECONDS)
        finally:
            os.close(handle)
        if code == 8:
            return {"TYPE": "several things at once"}
        if code not in (0, 2):
            raise Fault(f"blkid --probe {path}: {err.strip() or f'exit code {code}'}", remedy="see `dmesg` for more")
        pairs = (line.partition("=") for line in out.splitlines())
        known = ("TYPE", "UUID", "LOGUUID", "PTTYPE", "USAGE", "LABEL")
        return {key: value for key, _, value in pairs if key in known}

    def with_uuid(self, uuid: str) -> str | None:
        """The device whose file system has it, as udev has listed it; None where it lists none."""
        link = Path("/dev/disk/by-uuid", uuid)
        return str(link.resolve()) if link.exists() else None

    def mapped(self, name: str) -> str | None:
        """The UUID of the device-mapper device of that name, with a table or without; None where there is none."""
        if "device-mapper" not in Path("/proc/misc").read_text().split():
            return None  # the kernel has none at all
        argv = ("dmsetup", "info", "--columns", "--noheadings", "--separator", "\t", "-o", "name,uuid")
        listed = (line.partition("\t") for line in self.call(*argv, seconds=ASK_SECONDS).splitlines())
        return next((uuid.strip() for found, tab, uuid in listed if tab and found.strip() == name), None)

    def ends_are_zero(self, path: str) -> bool:
        """Whether the first and the last MiB of a device hold nothing but zeros."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
            size = os.lseek(handle, 0, os.SEEK_END)
            pieces = (os.pread(handle, ENDS_BYTES, place) for place in (0, max(0, size - ENDS_BYTES)))
            return not any(piece.strip(b"\0") for piece in pieces)
        finally:
            os.close(handle)

    def zero_ends(self, path: str) -> None:
        """Makes them so; refused by the kernel where the device is in use."""
        handle = os.open(path, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
        try:
            size = os.lseek(handle, 0, os.SEEK_END)
            for place in (0, max(0, size - ENDS_BYTES)):
                os.pwrite(handle, bytes(min(ENDS_BYTES, size)), place)
            os.fsync(handle)
        finally:
            os.close(handle)

    def mounts(self) -> list[Mount]:
        """All there are."""
        return mounts()

    def swaps(self) -> list[str]:
        """The paths of all swap that is on."""
        return [area.path for area in swap.areas()]

    def open_by(self, path: str) -> list[str]:
        """The processes that have the device open. Files elsewhere are not looked at: on a mount whose server is gone a
        look waits for ever."""
        number, found = os.stat(path).st_rdev, []  # noqa: PTH116
        for folder in Path("/proc").glob("[0-9]*/fd"):
            try:
                is_open = any(_is_device(entry, number) for entry in folder.iterdir())
            except OSError:
                continue
            if is_open:
                found.append(f"{kernel_files.read(folder.parent / 'comm')} ({folder.parent.name})")
        return found

    def is_claimed(self, path: str) -> bool:
        """Whether the kernel or somebody else has it for himself."""
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError:
            return True
        return False

    def forget_name(self, path: str) -> None:
        """Removes a name of a device that is gone, or empty and about to go: without udev nobody else does."""
        name, block = Path(path), self.block(path)
        if name.is_symlink() and (block is None or block.size_bytes == 0):
            name.unlink(missing_ok=True)
            with suppress(OSError):
                name.parent.rmdir()  # /dev/md, where it was the last one

    # --- the kernel ---------------------------------------------------------------------------------------------------

    def has_module(self, *names: str) -> bool:
        """Whether the kernel has one of these, loaded, built in or to be loaded."""
        wanted = {name.replace("-", "_") for name in names}
        loaded = any(Path("/sys/module", name).exists() for name in wanted)
        return loaded or bool(wanted & (_modules_in("modules.builtin") | _modules_in("modules.dep")))

    def load(self, name: str) -> None:
        """Has the kernel load a module, where it is one and not loaded yet."""
        name = name.replace("-", "_")
        if not Path("/sys/module", name).exists() and name in _modules_in("modules.dep"):
            self.call("modprobe", name)

    def release(self) -> str:
        """Of the kernel."""
        return os.uname().release

    def has_loops(self) -> bool:
        """Whether loop devices can be had."""
        return Path("/dev/loop-control").exists() or self.has_module("loop")

    def has_file_system(self, name: str) -> bool:
        """Whether the kernel can mount it."""
        lines = (kernel_files.read(Path("/proc/filesystems")) or "").splitlines()
        return any(line.split()[-1:] == [name] for line in lines) or self.has_module(name)

    def serves_nfs(self) -> str:
        """What there is of an NFS server that is not ours; empty where there is none."""
        threads = next((line.split()[1] for line in _lines("/proc/net/rpc/nfsd") if line.startswith("th ")), "0")
        exports = [line.split()[0] for line in _lines("/proc/fs/nfs/exports") if line and not line.startswith("#")]
        found = [] if threads == "0" else [f"it runs with {threads} threads"]
        return " and ".join([*found, *([f"it exports {exports[0]}"] if exports else [])])

    def has_taken(self, port: int) -> bool:
        """Whether somebody listens on a port of the loopback address."""
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            return True
        return False

    def unreachable(self, host: str, *, port: int | None) -> str:
        """Why a server is not to be had, by its name alone or at a port of TCP; empty where it is."""
        try:
            address = self.address_of(host)
            if port is not None:
                socket.create_connection((address, port), REACH_SECONDS).close()
        except Fault as fault:
            return fault.what
        except OSError as error:
            return f"{address} does not answer on port {port} ({error.strerror or error})"
        return ""

    def reaches_itself(self, address: str, port: int) -> bool:
        """Whether packets come back from a port of TCP of ours: somebody listens there, or is said not to."""
        try:
            socket.create_connection((address, port), OWN_REACH_SECONDS).close()
        except TimeoutError:
            return False
        except OSError as error:
            return error.errno == errno.ECONNREFUSED
        return True

    def address_of(self, host: str) -> str:
        """The first address of a host, as the kernel takes it."""
        try:
            return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
        except OSError as error:
            raise Fault(f"{host}: {error.strerror or error}", remedy="give its address") from error

    def own_address(self, address: str) -> str:
        """Ours, on the way to another one. Nothing is sent."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as asking:
            asking.connect((address, 9))
            return str(asking.getsockname()[0])

    def refused_option(self, fs: str, name: str, value: str | None) -> str | None:
        """Why the file system takes no such mount option, in the kernel's words; None where it does, or says nothing.

        Asked of a context that is never mounted (fsopen(2)).
        """
        context = _libc.syscall(_FSOPEN, fs.encode(), 1)
        if context < 0:
            return None
        try:
            how, given = (_SET_FLAG, None) if value is None else (_SET_STRING, value.encode())
            if _libc.syscall(_FSCONFIG, context, how, name.encode(), given, 0) == 0:
                return None
            number = ctypes.get_errno()
            try:
                said = os.read(context, 4096).decode(errors="replace").strip()
            except OSError:
                said = ""
            return said.removeprefix("e ") or os.strerror(number)
        finally:
            os.close(context)

    def refused_mkfs(self, argv: list[str], size_bytes: int) -> str | None:
        """Why mkfs refuses these arguments, in its words; tried on a file of that size in memory, all holes."""
        handle = os.memfd_create("plimsoll-mkfs")
        try:
            os.ftruncate(handle, size_bytes)
            path = f"/proc/self/fd/{handle}"
            self.call(*(path if one == DEVICE else one for one in argv), pass_fds=(handle,))
        except Fault as fault:
            return fault.what.partition(": ")[2] or fault.what
        finally:
            os.close(handle)
        return None


def _lines(path: str) -> list[str]:
    return (kernel_files.read(Path(path)) or "").splitlines()


def real_path(path: Path) -> Path:
    """Without symbolic links on the way to it; its last part as it is."""
    return path.parent.resolve() / path.name


def _modules_in(file: str) -> set[str]:
    """The names in a list of modules of the running kernel."""
    texts = [kernel_files.read(folder / os.uname().release / file) or "" for folder in _MODULES]
    lines = [line for text in texts for line in text.splitlines()]
    return {line.partition(":")[0].rpartition("/")[2].partition(".ko")[0].replace("-", "_") for line in lines}


def _surroundings() -> dict[str, str]:
    """The environment of programs. Where no udev makes nodes of mapped devices, dmsetup and LVM have to."""
    alone = {} if _UDEV.exists() else {"DM_DISABLE_UDEV": "1"}
    return {**os.environ, "PATH": _PATH, "LC_ALL": "C", **alone}


def _sysfs(path: str) -> Path | None:
    """The folder of a block device in sysfs, by its number: a node may have any name. None where there is none.

    Raises Fault where that cannot be told.
    """
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError as error:
        if error.errno in _GONE:
            return None
        raise Fault(f"{path}: cannot be looked at: {error.strerror}", remedy="see `dmesg`, and try again") from error
    if not stat.S_ISBLK(found.st_mode):
        return None
    numbers = Path("/sys/dev/block")
    folder = numbers / f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"
    if not numbers.is_dir():
        raise Fault(f"{path}: what it is cannot be told without {numbers}", remedy="`mount -t sysfs sysfs /sys`")
    return folder.resolve() if folder.exists() else None


def _is_device(descriptor: Path, number: int) -> bool:
    """Whether a process's descriptor is of that block device."""
    try:
        if descriptor.readlink().parts[:2] != ("/", "dev"):
            return False
        opened = descriptor.stat()
    except OSError:
        return False  # it has been closed
    return stat.S_ISBLK(opened.st_mode) and opened.st_rdev == number


def _disk(folder: Path) -> Path:
    """Of a partition the folder of its disk."""
    return folder.parent if (folder / "partition").exists() else folder


def _start(argv: Sequence[str], text: str | None, pass_fds: tuple[int, ...]) -> subprocess.Popen[str]:
    """A program that ends with us. Raises Fault where there is none.

    A relative path in its arguments names nothing of where the user stands. No code of ours runs in the child, so that
    nothing of our memory is copied for it: in a guest kernel that costs more than most programs.
    """
    for program in (_DIES_WITH_ITS_PARENT[0], argv[0]):
        if shutil.which(program, path=_PATH) is None:
            raise Fault(f"{program}: is not installed", remedy=f"install {package_of(program)}")
    pipe = subprocess.PIPE
    with handed_on() as journals:
        return subprocess.Popen(
            (*_DIES_WITH_ITS_PARENT, str(os.getpid()), *argv),
            stdin=subprocess.DEVNULL if text is None else pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            cwd="/",
            env=_surroundings(),
            pass_fds=(*pass_fds, *journals),
        )


def _run(
    argv: Sequence[str], text: str | None, pass_fds: tuple[int, ...], seconds: float | None
) -> tuple[int, str, str]:
    """Exit code and what was said, of a program that ends with us. Raises Fault where none is, or none answers."""
    process = _start(argv, text, pass_fds)
    try:
        out, err = process.communicate(text, timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()  # and not waited for: it may be in uninterruptible sleep
        what = f"{' '.join(argv)}: has not answered in {seconds:.0f} s"
        raise Fault(what, remedy="see `dmesg`: a device may hang") from None
    except BaseException:
        process.kill()
        process.wait()
        raise
    return process.returncode, out, err


def package_of(program: str) -> str:
    """What has to be installed for it."""
    return _PACKAGES.get(program, "util-linux")


HERE = Machine()


@contextmanager
def asked_instead(other: Machine) -> Iterator[None]:
    """What stands in the way is asked of another machine than the one that we are on, such as a guest's kernel."""
    global HERE
    ours, HERE = HERE, other
    try:
        yield
    finally:
        HERE = ours
