"""What a run tells while it goes on. The run names what happens; drawing it is the command line's business."""

from __future__ import annotations

from typing import Any, Protocol


class Observer(Protocol):
    """Receives events: `dataset` (line), `trial` (trial), `phase` (phase), `sample` (line),
    `asking` (done, planned), `trial_end` (trial, status, reason), `block_end` (block), `note` (text); where the servers
    of several trials are up at once also `turn` (trial: whose it is from now on) and `window` (trial, line, round,
    rounds)."""

    def event(self, name: str, **info: Any) -> None:
        """One thing that happened."""


class Several:
    """Tells several observers, in their order."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = observers

    def event(self, name: str, **info: Any) -> None:
        """One thing that happened."""
        for observer in self._observers:
            observer.event(name, **info)


class Silent:
    """Listens to nothing."""

    def event(self, name: str, **info: Any) -> None:
        """Does nothing."""
