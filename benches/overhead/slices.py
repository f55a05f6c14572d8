"""Programs that the agent attaches in slices of time: it is gone, so they are opened and closed here, by its rule."""

from __future__ import annotations

import random
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

# struct target of crates/probe/src/breakdown/breakdown.h: the phase, the slice's number, and one in how many.
_PLACE = struct.Struct("=III")
_AT = 28
_OPENED, _CLOSED = 0, 2
# struct target of crates/probe/src/syscalls/syscalls.h: since and until when, in ns of CLOCK_MONOTONIC; 0: not.
_SINCE, _SINCE_AT = struct.Struct("=QQ"), 8


@dataclass
class OfBreakdown:
    """What the breakdown's programs are told at either end of a slice."""

    read: Callable[[], bytes]
    write: Callable[[bytes], None]
    one_in: int
    number: int = 0

    def __call__(self, opened: bool) -> None:
        """Tells them."""
        self.number += not opened
        target = bytearray(self.read())
        _PLACE.pack_into(target, _AT, _OPENED if opened else _CLOSED, self.number, self.one_in)
        self.write(bytes(target))


@dataclass
class OfSystemCalls:
    """What the programs of all system calls are told."""

    read: Callable[[], bytes]
    write: Callable[[bytes], None]

    def __call__(self, opened: bool) -> None:
        """Tells them."""
        target = bytearray(self.read())
        _SINCE.pack_into(target, _SINCE_AT, time.monotonic_ns() if opened else 0, 0)
        self.write(bytes(target))


class Slices:
    """Opens one slice of `seconds` in `one_in`, at random times, for as long as it runs.

    Unlike the agent it closes the breakdown's without waiting for what is under way: such transactions are cut, which
    is cheaper by the few that there are.
    """

    def __init__(
        self, tell: Callable[[bool], None], switch: Callable[[bool], None], one_in: int, seconds: float
    ) -> None:
        self._tell, self._switch, self._one_in, self._seconds = tell, switch, one_in, seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._switch(False)
            self._tell(False)
            if self._stop.wait(random.uniform(0, 2 * (self._one_in - 1) * self._seconds)):
                return
            self._tell(True)
            self._switch(True)
            self._stop.wait(self._seconds)

    def close(self) -> None:
        """No slice is opened any more."""
        self._stop.set()
        self._thread.join()
