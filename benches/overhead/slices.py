"""The breakdown within a budget: the agent is gone, so its slices of time are opened and closed here, by its rule."""

from __future__ import annotations

import random
import struct
import threading
from collections.abc import Callable

SLICE_SECONDS = 0.05
# struct target of crates/probe/src/breakdown/breakdown.h: the phase, the slice's number, and one in how many.
_PLACE = struct.Struct("=III")
_AT = 28
_OPENED, _CLOSED = 0, 2


class Slices:
    """Opens one slice in `one_in`, at random times, for as long as it runs.

    Unlike the agent it closes a slice without waiting for what is under way: such transactions are cut, which is
    cheaper by the few that there are.
    """

    def __init__(
        self, read: Callable[[], bytes], write: Callable[[bytes], None], switch: Callable[[bool], None], one_in: int
    ) -> None:
        self._read, self._write, self._switch, self._one_in = read, write, switch, one_in
        self._number = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _tell(self, phase: int) -> None:
        target = bytearray(self._read())
        _PLACE.pack_into(target, _AT, phase, self._number, self._one_in)
        self._write(bytes(target))

    def _run(self) -> None:
        while not self._stop.is_set():
            self._switch(False)
            self._number += 1
            self._tell(_CLOSED)
            if self._stop.wait(random.uniform(0, 2 * (self._one_in - 1) * SLICE_SECONDS)):
                return
            self._tell(_OPENED)
            self._switch(True)
            self._stop.wait(SLICE_SECONDS)

    def close(self) -> None:
        """No slice is opened any more."""
        self._stop.set()
        self._thread.join()
