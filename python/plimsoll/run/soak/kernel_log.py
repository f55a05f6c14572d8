"""Where the kernel's log stands when a soak begins, so that its first round reads on from there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from plimsoll.environment.processes import boot_id

LOG: Final = Path("/dev/kmsg")
_RECORD_BYTES: Final = 16 * 1024
_RECORDS_MAX: Final = 1_000_000  # a log that grows as fast as it is read keeps nobody here


def position(log: Path = LOG) -> tuple[str, int] | None:
    """The boot, and the number of its log's last record; None where the log cannot be read, or is empty."""
    try:
        descriptor = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    last: int | None = None
    try:
        for _ in range(_RECORDS_MAX):
            try:
                record = os.read(descriptor, _RECORD_BYTES)
            except BrokenPipeError:  # the next one was overwritten
                continue
            except OSError:
                break
            if not record:
                break
            number = record.split(b",", 2)[1] if record.count(b",") > 1 else b""
            last = int(number) if number.isdigit() else last
    finally:
        os.close(descriptor)
    return None if last is None else (boot_id(), last)
