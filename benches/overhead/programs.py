"""The agent's own programs in the kernel, attached and detached at will.

Why: on a shared machine the CPU time of the very same work drifts by tens of percent within seconds. Only windows that
lie close together can be compared, so the load goes on while the programs are switched on and off. The agent loads,
configures and tests them (`watch`); they are taken over from it and it ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import platform
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from overhead import events
from overhead.probes import PROFILE_HZ
from overhead.slices import OfBreakdown, OfSystemCalls, Slices
from plimsoll.environment import Fault
from plimsoll.run.agent import Agent, AgentFailed

_BPF = {"x86_64": 321, "aarch64": 280}
_LOOKUP, _UPDATE, _PROGRAM_BY_ID, _MAP_BY_ID, _INFO = 1, 2, 13, 14, 15
_OPEN_TRACEPOINT, _LINK_BY_ID, _ENABLE_STATS = 17, 30, 32
# BPF_MAP_TYPE_RINGBUF; of program types BPF_PROG_TYPE_TRACEPOINT, _PERF_EVENT and _TRACING
_RING = 27
_OF_EVENT, _OF_CLOCK, _OF_BTF = 5, 7, 26
# Programs that are detached between slices, and the one whose missed runs lose only who ended a wait.
_OFTEN = tuple(f"breakdown.{name}" for name in ("on_switch", "on_waking", "on_send", "on_sys_exit"))
_OFTEN_SECONDS = 0.05
# Programs of all system calls are, too, unless each call is counted.
_OF_ALL_CALLS = ("syscalls.on_sys_enter", "syscalls.on_sys_exit")
_OF_ALL_CALLS_SECONDS, _OF_ALL_CALLS_ONE_IN = 0.1, 8
_WAKERS = "breakdown.on_waking"
# To attach or detach one, until it is known: the kernel waits for whoever is at the tracepoint.
_SWITCH_SECONDS = 0.02
_libc = ctypes.CDLL(None, use_errno=True)


def _bpf(command: int, attributes: bytes) -> int:
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    found = _libc.syscall(_BPF[platform.machine()], command, buffer, 128)
    if found < 0:
        raise OSError(ctypes.get_errno(), f"bpf command {command}: {os.strerror(ctypes.get_errno())}")
    return int(found)


def _info(descriptor: int, maps: ctypes.Array[Any] | None = None) -> bytes:
    """The beginning of bpf_prog_info or bpf_map_info."""
    about = ctypes.create_string_buffer(80)
    if maps is not None:
        struct.pack_into("=I", about, 52, len(maps))
        struct.pack_into("=Q", about, 56, ctypes.addressof(maps))
    _bpf(_INFO, struct.pack("=IIQ", descriptor, 80, ctypes.addressof(about)))
    return about.raw


def _name(raw: bytes) -> str:
    return raw.split(b"\0")[0].decode()


@dataclass
class Program:
    """One program, by a descriptor of ours; its name begins with its probe's, for several have an `on_switch`."""

    name: str
    descriptor: int
    kind: int
    tracepoints: list[str] = field(default_factory=list)
    links: list[int] = field(default_factory=list)

    def set(self, attached: bool) -> None:
        """Attaches it, or detaches it."""
        if attached and not self.links:
            self.links = self._attached()
        elif not attached:
            # Should it be stopped in between nothing is closed twice.
            links, self.links = self.links, []
            events.close(links)

    def _attached(self) -> list[int]:
        if self.kind == _OF_CLOCK:
            return events.clocks(self.descriptor, PROFILE_HZ)
        if self.kind == _OF_EVENT:
            return [events.tracepoint(self.descriptor, name) for name in self.tracepoints]
        return [_bpf(_OPEN_TRACEPOINT, struct.pack("=QI", 0, self.descriptor))]

    def counts(self) -> tuple[int, int, int]:
        """Runs, run time in ns, and runs left out because it was at work already."""
        lines = Path(f"/proc/self/fdinfo/{self.descriptor}").read_text().splitlines()
        found = dict(line.split(":", 1) for line in lines if ":" in line)
        return int(found["run_cnt"]), int(found["run_time_ns"]), int(found.get("recursion_misses", 0))


@dataclass
class Programs:
    """All programs of the probes, detached at first."""

    programs: list[Program]
    losses: list[tuple[int, int]]
    rings: list[int] = field(default_factory=list)
    targets: dict[str, tuple[int, int]] = field(default_factory=dict)
    account_every: int = 5
    _switches: int = 0
    _switching_seconds: float = 0.0
    _turn: int = 0
    _slices: list[Slices] = field(default_factory=list)
    _switching: threading.Lock = field(default_factory=threading.Lock)
    _on: bool = False
    _between_slices: set[str] = field(default_factory=set)
    _accounting: int | None = None

    def attach(self) -> None:
        """On, every so often with the kernel's accounting of run time, as the agent has it."""
        self._turn += 1
        accounted = self.account_every and self._turn % self.account_every == 0
        self._accounting = _bpf(_ENABLE_STATS, struct.pack("=I", 0)) if self.programs and accounted else None
        began = time.monotonic()
        with self._switching:
            self._on = True
            for program in self.programs:
                program.set(program.name not in self._between_slices)
        self._switched(began)

    def watch_one_slice_in(self, one_in: int) -> None:
        """The breakdown does not watch all of the time from here on; its programs were loaded with a budget."""
        tell = OfBreakdown(*self._target_of("breakdown"), one_in)
        self._slices.append(Slices(tell, self._switch_of(_OFTEN), one_in, _OFTEN_SECONDS))

    def count_calls_in_slices(self) -> None:
        """The agent counts system calls in slices without being told to."""
        if any(program.name in _OF_ALL_CALLS for program in self.programs):
            tell, switch = OfSystemCalls(*self._target_of("syscalls")), self._switch_of(_OF_ALL_CALLS)
            self._slices.append(Slices(tell, switch, _OF_ALL_CALLS_ONE_IN, _OF_ALL_CALLS_SECONDS))

    def _target_of(self, probe: str) -> tuple[Callable[[], bytes], Callable[[bytes], None]]:
        """Reads and writes what a probe's programs are aimed at."""
        descriptor, size = self.targets[probe]
        key = ctypes.c_uint32(0)

        def read() -> bytes:
            value = ctypes.create_string_buffer(size)
            _bpf(_LOOKUP, struct.pack("=I4xQQQ", descriptor, ctypes.addressof(key), ctypes.addressof(value), 0))
            return value.raw

        def write(target: bytes) -> None:
            value = ctypes.create_string_buffer(target, size)
            _bpf(_UPDATE, struct.pack("=I4xQQQ", descriptor, ctypes.addressof(key), ctypes.addressof(value), 0))

        return read, write

    def _switch_of(self, names: tuple[str, ...]) -> Callable[[bool], None]:
        """In a slice, and within a window, these programs are attached."""

        def switch(on: bool) -> None:
            with self._switching:
                (self._between_slices.difference_update if on else self._between_slices.update)(names)
                for program in self.programs:
                    if program.name in names:
                        program.set(on and self._on)

        return switch

    def keep(self, names: list[str]) -> None:
        """Only these from here on."""
        known = {program.name for program in self.programs}
        if unknown := set(names) - known:
            raise Fault(
                f"no program is called {', '.join(sorted(unknown))}", remedy=f"there are {', '.join(sorted(known))}"
            )
        for program in self.programs:
            if program.name not in names:
                os.close(program.descriptor)
        self.programs = [program for program in self.programs if program.name in names]

    def detach(self) -> None:
        """Off."""
        began = time.monotonic()
        with self._switching:
            self._on = False
            for program in self.programs:
                program.set(False)
        self._switched(began)
        if self._accounting is not None:
            os.close(self._accounting)
            self._accounting = None
        for ring in self.rings:
            _empty(ring)

    def _switched(self, began: float) -> None:
        self._switches += 1
        self._switching_seconds += time.monotonic() - began

    @property
    def switch_seconds(self) -> float:
        """What attaching and detaching take, by what they took so far."""
        attached = sum(max(1, 2 * len(program.tracepoints)) for program in self.programs)
        each = self._switching_seconds / self._switches if self._switches else _SWITCH_SECONDS * attached
        return 2 * each

    def counts(self) -> dict[str, tuple[int, int, int]]:
        """Of every program so far."""
        return {program.name: program.counts() for program in self.programs}

    def lost(self) -> int:
        """Events lost so far, and runs left out."""
        cpus = _possible_cpus()
        total = sum(program.counts()[2] for program in self.programs if program.name != _WAKERS)
        for descriptor, bytes_each in self.losses:
            key, value = ctypes.c_uint32(0), ctypes.create_string_buffer(cpus * bytes_each)
            where = ctypes.addressof(key), ctypes.addressof(value)
            _bpf(_LOOKUP, struct.pack("=I4xQQQ", descriptor, *where, 0))
            total += sum(struct.unpack(f"={len(value) // 8}Q", value.raw))
        return total

    def close(self) -> None:
        """Nothing of them stays."""
        for each in self._slices:
            each.close()
        self.detach()
        for descriptor in (
            *(program.descriptor for program in self.programs),
            *(each for each, _ in (*self.losses, *self.targets.values())),
            *self.rings,
        ):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _empty(ring: int) -> None:
    """Takes what is in a ring of records, as the agent would: into a full one nothing is written, at no cost."""
    # The first page is the consumer's, the second the producer's; both begin with a position.
    with (
        mmap.mmap(ring, mmap.PAGESIZE) as consumer,
        mmap.mmap(ring, mmap.PAGESIZE, prot=mmap.PROT_READ, offset=mmap.PAGESIZE) as producer,
    ):
        consumer[:8] = producer[:8]


def _possible_cpus() -> int:
    return int(Path("/sys/devices/system/cpu/possible").read_text().strip().rpartition("-")[2]) + 1


def take_over(requests: dict[str, dict[str, Any]], agent: Path | None = None) -> Programs:
    """Lets the agent (a build of it) load and test one probe after the other, takes their programs, and ends it."""
    taken = Programs([], [])
    try:
        for name, request in requests.items():
            _take(name, request, taken, agent)
    except BaseException:
        taken.close()
        raise
    return taken


def _take(name: str, request: dict[str, Any], into: Programs, agent: Path | None) -> None:
    running = Agent("watch", request, program=agent)
    lines = running.lines()
    try:
        probes = next((line["probes"] for line in lines if line["event"] == "watching"), None)
        if probes is None:
            running.finish()
            raise Fault("the agent's watch ended without saying watching", remedy="build the agent anew")
        if probes[name]["status"] != "on":
            remedy = probes[name]["remedy"] or "see ./plimsoll doctor"
            raise Fault(f"probe {name} was refused: {probes[name]['reason']}", remedy=remedy)
        next(lines, None)  # a clock starts with the first sample, which is taken before the first word of progress
        _collect(name, running.pid, into)
        running.stop()
        for _ in lines:
            pass
        running.finish()
    except BaseException:
        running.kill()
        with contextlib.suppress(AgentFailed):
            running.finish()
        raise


def _descriptors(pid: int) -> Iterator[dict[str, str]]:
    """What the kernel says of each; those of files that the process is done with are gone meanwhile."""
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):
            yield dict(line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)


def _tracepoint_of(link: int) -> str:
    """The name of the classic tracepoint that a link attaches to."""
    descriptor = _bpf(_LINK_BY_ID, struct.pack("=I", link))
    try:
        name, about = ctypes.create_string_buffer(128), ctypes.create_string_buffer(64)
        # bpf_link_info: of a perf event's its kind at 16, then where its name is to go and how long it may be.
        struct.pack_into("=QI", about, 24, ctypes.addressof(name), len(name))
        _bpf(_INFO, struct.pack("=IIQ", descriptor, len(about), ctypes.addressof(about)))
        return name.value.decode()
    finally:
        os.close(descriptor)


def _collect(probe: str, pid: int, into: Programs) -> None:
    """Descriptors of our own of what a process has loaded, and of maps that tell of losses or need emptying."""
    programs: dict[int, Program] = {}
    maps: set[int] = set()
    links: list[tuple[int, int]] = []
    for found in _descriptors(pid):
        number = int(found.get("prog_id", 0))
        if found.get("link_type", "").strip() == "perf":
            links.append((number, int(found["link_id"])))
        if not number or number in programs:
            continue
        descriptor = _bpf(_PROGRAM_BY_ID, struct.pack("=I", number))
        used = (ctypes.c_uint32 * 32)()
        about = _info(descriptor, used)
        (kind,) = struct.unpack_from("=I", about)
        programs[number] = Program(f"{probe}.{_name(about[64:80])}", descriptor, kind)
        maps |= set(used[: struct.unpack_from("=I", about, 52)[0]])
    for number, link in links:
        if programs[number].kind == _OF_EVENT:
            programs[number].tracepoints.append(_tracepoint_of(link))
    into.programs += programs.values()
    for each in maps:
        held = _bpf(_MAP_BY_ID, struct.pack("=I", each))
        described = _info(held)
        name = _name(described[24:40])
        with_size = (held, struct.unpack_from("=I", described, 12)[0])
        if name == "losses":
            into.losses.append(with_size)
        elif name.endswith(".data.target"):
            into.targets[probe] = with_size
        elif struct.unpack_from("=I", described)[0] == _RING:
            into.rings.append(held)
        else:
            os.close(held)
