"""CPU lists as the kernel writes them ("0-3,8"), and the affinity of a process for the load generator."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from plimsoll.environment import kernel_files
from plimsoll.environment.fault import Fault


def parse(text: str) -> list[int]:
    """CPU numbers in order, without repeats."""
    numbers: set[int] = set()
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        low, dash, high = part.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()) or (dash and int(high) < int(low)):
            raise Fault(f"CPU list {text!r}: {part!r} is not a number or a range", remedy='write it like "0-3,8"')
        numbers.update(range(int(low), int(high or low) + 1))
    return sorted(numbers)


def show(numbers: Iterable[int]) -> str:
    """The shortest list in the kernel's form."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def online() -> list[int]:
    text = kernel_files.read(Path("/sys/devices/system/cpu/online"))
    return parse(text) if text else sorted(os.sched_getaffinity(0))


def usable() -> list[int]:
    """Those this process may run on: fewer than online ones in a container."""
    return sorted(os.sched_getaffinity(0))


def check(text: str) -> list[int]:
    """Parse a list and refuse CPUs this machine does not give us."""
    numbers = parse(text)
    missing = sorted(set(numbers) - set(online()))
    if not numbers or missing:
        what = f"CPU {show(missing)} is not online" if missing else "it is empty"
        raise Fault(f"CPU list {text!r}: {what}", remedy=f"choose among {show(online())}")
    return numbers


def pin(pid: int, text: str) -> None:
    """Set the affinity of every thread of a process we started; it ends with the process, so nothing is put back."""
    numbers = check(text)
    for task in (Path("/proc") / str(pid) / "task").iterdir():
        try:
            os.sched_setaffinity(int(task.name), numbers)
        except ProcessLookupError:
            continue
        except OSError as error:
            raise Fault(f"process {pid}: affinity {text}: {error.strerror}", remedy="run as root") from error
