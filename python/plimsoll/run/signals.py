"""Ctrl-C, SIGTERM and SIGHUP: they end the current trial, not the process, and never a put-back.

The flag is what everybody asks; the exception only cuts short what would take long to notice it.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from plimsoll.run.observer import Observer


class Stopped(Exception):
    """The user asked for the run to end."""


@dataclass
class Interrupts:
    """Whether the run is to end, and whether it may be cut short just now."""

    observer: Observer
    stopping: bool = False
    _open: bool = False

    def is_stopping(self) -> bool:
        """Whether the user has asked for the end."""
        return self.stopping

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Inside, the three signals ask for the end; afterwards they mean what they meant before.

        The handler draws nothing: the terminal may be what went away. A signal that was ignored (nohup) stays so.
        """

        def stop(_number: int, _frame: FrameType | None) -> None:
            if self.stopping:
                return
            self.stopping = True
            if self._open:
                raise Stopped

        wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        heard = [number for number in wanted if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, stop) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def may_cut(self) -> Iterator[None]:
        """Work that a signal cuts short by raising Stopped."""
        self._open = True
        try:
            if self.stopping:
                raise Stopped
            yield
        finally:
            self._open = False

    @contextmanager
    def must_finish(self) -> Iterator[None]:
        """Work that a signal must not cut short: putting back."""
        before, self._open = self._open, False
        if self.stopping:
            self.observer.event("note", text="stopping: the machine is put back first, which takes a few seconds")
        try:
            yield
        finally:
            self._open = before
