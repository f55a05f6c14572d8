"""Programs that the agent attaches to perf events, clocks and classic tracepoints: attached and detached at will."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_OPEN = {"x86_64": 298, "aarch64": 241}
_SET_PROGRAM, _ENABLE = 0x40042408, 0x2400
_SOFTWARE, _TRACEPOINT, _CPU_CLOCK = 1, 2, 0
_EVENTS = Path("/sys/kernel/tracing/events")
_CLOSERS = 8
# Of the attributes' bits: excludes idle CPUs; the period is a frequency.
_EXCLUDE_IDLE, _FREQUENCY = 1 << 6, 1 << 10
_ATTRIBUTES_BYTES = 112
_CLOSE_ON_EXEC = 8
_libc = ctypes.CDLL(None, use_errno=True)


def clocks(program: int, hz: int) -> list[int]:
    """Runs a program `hz` times a second on every CPU that is online; while the descriptors are open."""
    flags = _EXCLUDE_IDLE | _FREQUENCY
    return [_event(program, (_SOFTWARE, _CPU_CLOCK, hz, flags), cpu, f"a clock on CPU {cpu}") for cpu in _online()]


def tracepoint(program: int, name: str) -> int:
    """Runs a program at the classic tracepoint of that name, on whichever CPU; while the descriptor is open."""
    (number,) = (int((folder / "id").read_text()) for folder in _EVENTS.glob(f"*/{name}"))
    return _event(program, (_TRACEPOINT, number, 1, 0), 0, f"tracepoint {name}")


def close(descriptors: list[int]) -> None:
    """Several at once, for at each the kernel waits until nobody is in the program any more."""
    if len(descriptors) == 1:
        os.close(descriptors[0])
        return
    with ThreadPoolExecutor(_CLOSERS) as pool:
        list(pool.map(os.close, descriptors))


def _event(program: int, about: tuple[int, int, int, int], cpu: int, what: str) -> int:
    kind, config, period, flags = about
    head = struct.pack("=IIQQQQQ", kind, _ATTRIBUTES_BYTES, config, period, 0, 0, flags)
    attributes = ctypes.create_string_buffer(head.ljust(_ATTRIBUTES_BYTES, b"\0"), _ATTRIBUTES_BYTES)
    event = int(_libc.syscall(_OPEN[platform.machine()], attributes, -1, cpu, -1, _CLOSE_ON_EXEC))
    if event < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    fcntl.ioctl(event, _SET_PROGRAM, program)
    fcntl.ioctl(event, _ENABLE, 0)
    return event


def _online() -> list[int]:
    parts = Path("/sys/devices/system/cpu/online").read_text().strip().split(",")
    ends = (part.partition("-") for part in parts)
    return [cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)]
