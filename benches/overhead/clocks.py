"""A program that the agent runs by clocks, one perf event a CPU, attached and detached at will."""

from __future__ import annotations

import ctypes
import fcntl
import os
import platform
import struct
from pathlib import Path

_OPEN = {"x86_64": 298, "aarch64": 241}
_SET_PROGRAM, _ENABLE = 0x40042408, 0x2400
_SOFTWARE, _CPU_CLOCK = 1, 0
# Of the attributes' bits: excludes idle CPUs; the period is a frequency.
_EXCLUDE_IDLE, _FREQUENCY = 1 << 6, 1 << 10
_ATTRIBUTES_BYTES = 112
_CLOSE_ON_EXEC = 8
_libc = ctypes.CDLL(None, use_errno=True)


def start(program: int, hz: int) -> list[int]:
    """Runs a program `hz` times a second on every CPU that is online; while the descriptors are open."""
    return [_clock(program, hz, cpu) for cpu in _online()]


def _clock(program: int, hz: int, cpu: int) -> int:
    head = struct.pack("=IIQQQQQ", _SOFTWARE, _ATTRIBUTES_BYTES, _CPU_CLOCK, hz, 0, 0, _EXCLUDE_IDLE | _FREQUENCY)
    attributes = ctypes.create_string_buffer(head.ljust(_ATTRIBUTES_BYTES, b"\0"), _ATTRIBUTES_BYTES)
    event = int(_libc.syscall(_OPEN[platform.machine()], attributes, -1, cpu, -1, _CLOSE_ON_EXEC))
    if event < 0:
        raise OSError(ctypes.get_errno(), f"a clock on CPU {cpu}: {os.strerror(ctypes.get_errno())}")
    fcntl.ioctl(event, _SET_PROGRAM, program)
    fcntl.ioctl(event, _ENABLE, 0)
    return event


def _online() -> list[int]:
    parts = Path("/sys/devices/system/cpu/online").read_text().strip().split(",")
    ends = (part.partition("-") for part in parts)
    return [cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)]
