"""A run of a test's own that is killed, at a step of its journals or at any moment, and what undo makes of it.

The constraint: what is killed is a child that performs it, so that nothing of the test goes with it.
"""

from __future__ import annotations

import functools
import os
import random
import select
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from plimsoll.environment import StateDir, undo
from plimsoll.environment.journal import journal as journals

Perform = Callable[[], object]
Look = Callable[[], object]  # what there is on the machine


@dataclass(frozen=True)
class Ended:
    """How it ended. `steps`: the names of those that it came to, in their order; `seconds`: how long it ran."""

    killed: bool
    steps: list[str]
    seconds: float

    def last(self) -> str:
        return self.steps[-1] if self.steps else "begun"


def at_step(perform: Perform, step: int) -> Ended:
    """Killed at that step, counted from 1; if it never comes there (to 0, say) it goes to its end."""
    return _performed(perform, step, None)


def after(perform: Perform, seconds: float) -> Ended:
    """Killed after so long, within a step or between two."""
    return _performed(perform, None, seconds)


def at_each_step(perform: Perform, state: StateDir, look: Look, stride: int = 1) -> list[str]:
    """Killed at every so many of its steps, the first one to begin with; after each undo leaves what there was before.

    The names of its steps.
    """
    before, step = look(), 1
    while (ended := at_step(perform, step)).killed:
        is_undone(state, look, before, f"killed at step {step}, {ended.last()}")
        step += stride
    is_undone(state, look, before, "never killed")
    assert len(ended.steps) < step
    return ended.steps


def at_random(perform: Perform, state: StateDir, look: Look, kills: int) -> Counter[str]:
    """Killed so many times at moments drawn from all of its life; after each undo leaves what there was before.

    How many kills came after which step.
    """
    before, chance, hit = look(), random.Random(kills), Counter[str]()
    longest = after(perform, 600).seconds
    while hit.total() < kills:
        ended = after(perform, chance.uniform(0, longest))
        if not ended.killed:
            longest = min(longest, ended.seconds)
            continue
        hit[ended.last()] += 1
        is_undone(state, look, before, f"killed after {ended.seconds:.3f} s, {ended.last()}")
    return hit


def undo_at_each_step(perform: Perform, state: StateDir, look: Look) -> int:
    """Killed when everything is set; then undo is killed one step later each time, until it comes to its end.

    How many steps that took.
    """
    before, steps = look(), at_step(perform, 0).steps
    everything_set = next(place for place, name in enumerate(steps, start=1) if name.startswith("before put back"))
    at_step(perform, everything_set)
    assert look() != before
    step = 1
    while at_step(functools.partial(undo, state), step).killed:
        step += 1
    is_undone(state, look, before, f"undo was killed at {step - 1} steps")
    return step - 1


def is_undone(state: StateDir, look: Look, before: object, when: str) -> None:
    """Undo puts all back, there is what there was before, and a second undo has nothing to do."""
    results = undo(state)
    assert all(result.ok and not result.is_left for result in results), (when, results)
    assert (found := look()) == before, f"{when}: left {found}, was {before}"
    assert undo(state) == [], when


def _performed(perform: Perform, step: int | None, seconds: float | None) -> Ended:
    said, say = os.pipe()
    began, child = time.monotonic(), os.fork()
    if child == 0:
        try:
            journals._steps, journals.step_hook = 0, functools.partial(_come_to, say, step)
            perform()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(99)
    os.close(say)
    if seconds is not None:
        handle = os.pidfd_open(child)
        if not select.select([handle], [], [], seconds)[0]:
            os.kill(child, signal.SIGKILL)  # ours, and not waited for yet: the number is still its own
        os.close(handle)
    with os.fdopen(said) as lines:
        steps = lines.read().splitlines()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, f"it failed by itself, after {steps[-1:]}"
    return Ended(os.WIFSIGNALED(status), steps, time.monotonic() - began)


def _come_to(say: int, wanted: int | None, name: str, number: int) -> None:
    os.write(say, f"{name}\n".encode())
    if number == wanted:
        os.kill(os.getpid(), signal.SIGKILL)
