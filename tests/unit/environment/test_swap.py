"""Putting a swap file back, with a kernel that only takes notes: in which order it is asked, and what stays."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.environment import Journal, StateDir, undo
from plimsoll.environment.memory import swap


class _Kernel:
    """Notes what is switched off, and whether the file was still there; answers with a number of errno."""

    def __init__(self, answer: int) -> None:
        self.answer = answer
        self.asked: list[tuple[Path, bool]] = []

    def swapoff(self, path: bytes) -> int:
        self.asked.append((Path(os.fsdecode(path)), Path(os.fsdecode(path)).exists()))
        ctypes.set_errno(self.answer)
        return -1 if self.answer else 0


@pytest.fixture
def left(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], tuple[_Kernel, Path]]:
    """A swap file that a run has left, and a kernel that answers so."""

    def make(answer: int) -> tuple[_Kernel, Path]:
        kernel, path = _Kernel(answer), state.work / "run.swap"
        monkeypatch.setattr(swap, "_libc", kernel)
        path.write_bytes(b"swap")
        Journal.create(state, "run").record("swap", path=str(path))
        return kernel, path

    return make


# EINVAL: it is not on.
@pytest.mark.parametrize("answer", [0, errno.EINVAL])
def test_undo_asks_the_kernel_to_switch_it_off_before_the_file_goes(
    state: StateDir, left: Callable[[int], tuple[_Kernel, Path]], answer: int
) -> None:
    kernel, path = left(answer)
    assert [one.ok for one in undo(state, force=True)] == [True]
    assert kernel.asked == [(path, True)]
    assert not path.exists()


def test_swap_that_stays_on_keeps_its_file_and_its_journal(
    state: StateDir, left: Callable[[int], tuple[_Kernel, Path]]
) -> None:
    _, path = left(errno.ENOMEM)
    (found,) = undo(state, force=True)
    assert not found.ok and "swapoff" in found.what and "plimsoll undo" in found.remedy
    assert path.exists() and (state.journal / "run.jsonl").exists()


def test_what_a_trial_has_on_is_not_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = ["/dev/sda2", "/var/lib/plimsoll/work/e92119a5-0001.swap", "/home/work/big.swap"]
    monkeypatch.setattr(swap, "areas", lambda: [swap.SwapArea(path, 4096, 0, -2) for path in paths])
    assert [area.path for area in swap.of_the_machine()] == ["/dev/sda2", "/home/work/big.swap"]
