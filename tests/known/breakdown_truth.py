"""What the kernel itself says of a backend: time on a CPU and waiting for one, major faults; and memory put away."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scipy.stats import binom

from plimsoll.environment.groups import cgroups

PAGE = os.sysconf("SC_PAGE_SIZE")
_libc = ctypes.CDLL(None, use_errno=True)
_A_SWITCH_NS = 5_000
# A read ends now and then between the decision to wait for it and the switch; rarer than so, by the device's speed.
_ENDS_BEFORE_IT_WAITS, _ONE_IN_A_MILLION = 0.05, 1e-6
_PIDFD_OPEN, _PROCESS_MADVISE, _PAGE_OUT = 434, 440, 21


@dataclass(frozen=True)
class Spent:
    """By the kernel's counts, from one rest of the process to the next."""

    cpu_ns: int
    run_queue_ns: int
    major_faults: int
    blocks: int  # how often it gave up the CPU to wait, its wait for the next request the last
    switches: int  # away from it, of either kind
    stolen_ns: int  # what a hypervisor took: for the kernel's counts nobody's, for who is on a CPU part of that
    whole_ns: int

    @property
    def vague_ns(self) -> int:
        """The kernel's own counts change when it decides, and the tracepoint is when it switches."""
        return self.switches * _A_SWITCH_NS

    def cpu_truth(self, found_ns: int) -> int:
        """The nearest time on a CPU that may be true."""
        return min(max(found_ns, self.cpu_ns - self.vague_ns), self.cpu_ns + self.stolen_ns + self.vague_ns)

    def run_queue_truth(self, found_ns: int) -> int:
        """The nearest time of waiting for a CPU that may be true."""
        return min(max(found_ns, self.run_queue_ns - self.vague_ns), self.run_queue_ns + self.vague_ns)

    def waited_about(self, waits: int) -> bool:
        """The last block is the one for the next request; some end before it has left the CPU, and are no waits."""
        blocks = self.blocks - 1
        return blocks - binom.isf(_ONE_IN_A_MILLION, blocks, _ENDS_BEFORE_IT_WAITS) <= waits <= blocks

    def blocked_truth(self, found_ns: int, request_ns: int | None = None) -> int:
        """The nearest time blocked that may be true; of a request so long, where whoever asked may have been kept from
        a CPU before it or after it."""
        on_cpus = self.cpu_ns + self.run_queue_ns
        least = (self.whole_ns if request_ns is None else request_ns) - on_cpus - self.stolen_ns - self.vague_ns
        return min(max(found_ns, least), self.whole_ns - on_cpus + self.vague_ns)


def stat_fields(pid: int) -> list[str]:
    """What follows the program's name in /proc/PID/stat."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def status_of(pid: int, name: str) -> int:
    """A number of /proc/PID/status."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)[name].split()[0])


def children(pid: int) -> list[int]:
    """Processes of which this one is the parent."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def rest(pid: int) -> None:
    """Waits until the process sleeps, and stays asleep; a stopped one does."""
    until, calm = time.monotonic() + 10, 0
    while calm < 3:
        assert time.monotonic() < until, f"{pid} never rests"
        calm = calm + 1 if stat_fields(pid)[0] in "ST" else 0
        time.sleep(0.001)


class Meter:
    """Reads the counts of a process at rest; `read` gives what has grown since, and the time until the call."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        rest(pid)
        self._before, self._since = self._counts(), time.monotonic_ns()

    def _counts(self) -> tuple[int, ...]:
        cpu, run_queue, _ = map(int, Path(f"/proc/{self.pid}/schedstat").read_text().split())
        blocks, pushed = (status_of(self.pid, f"{kind}voluntary_ctxt_switches") for kind in ("", "non"))
        return cpu, run_queue, int(stat_fields(self.pid)[9]), blocks, blocks + pushed, _stolen()

    def read(self) -> Spent:
        """Called as soon as the answer is there."""
        until = time.monotonic_ns()
        rest(self.pid)
        grown = [new - old for new, old in zip(self._counts(), self._before, strict=True)]
        return Spent(*grown, until - self._since)


def _stolen() -> int:
    """From all CPUs."""
    return int(Path("/proc/stat").read_text().split(None, 9)[8]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class _Part(ctypes.Structure):
    _fields_ = (("start", ctypes.c_void_p), ("length", ctypes.c_size_t))


def swapped_pages(pid: int) -> int:
    """Of the process's memory, by the kernel's count."""
    return status_of(pid, "VmSwap") * 1024 // PAGE


def large_mapping(pid: int, least: int) -> range:
    """The only private mapping of memory that is at least so large."""
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split()
        start, end = (int(place, 16) for place in words[0].split("-"))
        if words[1] == "rw-p" and words[4] == "0" and end - start >= least:
            found.append(range(start, end))
    (mapping,) = found
    return mapping


def page_out(pid: int, memory: range) -> None:
    """Asks the kernel to put this part of a process's memory away, at once."""
    descriptor = _libc.syscall(_PIDFD_OPEN, pid, 0)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), f"pidfd_open of {pid}")
    try:
        part = _Part(memory.start, len(memory))
        if _libc.syscall(_PROCESS_MADVISE, descriptor, ctypes.byref(part), ctypes.c_size_t(1), _PAGE_OUT, 0) < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"process_madvise of {pid}: {os.strerror(number)}")
    finally:
        os.close(descriptor)


def _disk(path: Path) -> str:
    """The number of the whole disk that a file is on."""
    device = path.stat().st_dev
    found = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    return ((found.parent if (found / "partition").exists() else found) / "dev").read_text().strip()


@contextlib.contextmanager
def slow_reads(name: str, pid: int, path: Path, per_second: int) -> Iterator[None]:
    """The process may read so often in a second from the disk of `path`: however fast that is, a read is a wait."""
    group = Path(next(mount.point for mount in cgroups.mounts() if "blkio" in mount.options)) / name
    group.mkdir()
    try:
        (group / "blkio.throttle.read_iops_device").write_text(f"{_disk(path)} {per_second}\n")
        (group / "cgroup.procs").write_text(str(pid))
        yield
    finally:
        for each in (group / "cgroup.procs").read_text().split():
            (group.parent / "cgroup.procs").write_text(each)
        group.rmdir()


@contextlib.contextmanager
def on_one_cpu(pid: int, cpu: int) -> Iterator[None]:
    """A process that may run on this CPU alone."""
    before = os.sched_getaffinity(pid)
    os.sched_setaffinity(pid, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(pid, before)
