"""A program: a run that makes a group and starts a program in it is killed at each of its steps; undo after each.

A process of its own, since a fork of pytest's takes a second in this guest. Arguments: the state folder and the run's
name. Prints the number of steps; ends with 1 and a line on standard error at the first kill that leaves something.
"""

import os
import signal
import sys
from pathlib import Path

from plimsoll.environment import GroupKnob, Journal, Limits, StateDir, undo
from plimsoll.environment.journal import journal as journals

ROOT = Path("/sys/fs/cgroup")
LIMIT = 16 << 20


def _run(state: StateDir, run_id: str, step: int, last: int) -> None:
    """Does not return."""

    def hook(_: str, number: int) -> None:
        os.pwrite(last, str(number).encode().ljust(8), 0)
        if number == step:
            os.kill(os.getpid(), signal.SIGKILL)

    try:
        journals.step_hook = hook
        journal = Journal.create(state, run_id)
        GroupKnob(run_id).make(Limits(LIMIT, 0), journal).exec_in(["sleep", "300"])
        journal.put_back_all()
        os._exit(0)
    finally:
        os._exit(99)


def _killed_at(state: StateDir, run_id: str, step: int) -> tuple[bool, int]:
    """(was it killed, the last step it came to)"""
    last = os.memfd_create("last")
    child = os.fork()
    if child == 0:
        _run(state, run_id, step, last)
    _, status = os.waitpid(child, 0)
    reached = int(os.pread(last, 8, 0) or 0)
    os.close(last)
    if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) != 0:
        sys.exit(f"step {step}: the run ended with {os.WEXITSTATUS(status)}")
    return os.WIFSIGNALED(status), reached


def _left(state: StateDir) -> tuple[list[str], list[str], str]:
    groups = sorted(path.name for path in ROOT.iterdir() if path.is_dir())
    journal = sorted(path.name for path in state.journal.glob("*.jsonl"))
    return groups, journal, (ROOT / "cgroup.subtree_control").read_text()


def main() -> None:
    state, run_id = StateDir(Path(sys.argv[1])), sys.argv[2]
    before = _left(state)
    step, killed, reached = 0, True, 0
    while killed:
        step += 1
        killed, reached = _killed_at(state, run_id, step)
        results = undo(state)
        if not all(result.ok for result in results) or _left(state) != before:
            sys.exit(f"killed at step {step}: {results}; left {_left(state)}, was {before}")
    assert reached == step - 1
    print(reached)


if __name__ == "__main__":
    main()
