"""A program: a run that makes a group and starts a program in it is killed at each of its steps; undo after each.

A process of its own, since a fork of pytest's takes a second in this guest. Arguments: the state folder and the run's
name. Prints the number of steps; ends with 1 and the reason on standard error at the first kill that leaves something.
"""

import sys
from functools import partial
from pathlib import Path

import killed
from plimsoll.environment import GroupKnob, Journal, Limits, StateDir

ROOT = Path("/sys/fs/cgroup")
LIMIT = 16 << 20


def _run(state: StateDir, run_id: str) -> None:
    journal = Journal.create(state, run_id)
    GroupKnob(run_id).make(Limits(LIMIT, 0), journal).exec_in(["sleep", "300"])
    journal.put_back_all()


def _left(state: StateDir) -> tuple[list[str], list[str], str]:
    groups = sorted(path.name for path in ROOT.iterdir() if path.is_dir())
    journal = sorted(path.name for path in state.journal.glob("*.jsonl"))
    return groups, journal, (ROOT / "cgroup.subtree_control").read_text()


def main() -> None:
    state, run_id = StateDir(Path(sys.argv[1])), sys.argv[2]
    print(len(killed.at_each_step(partial(_run, state, run_id), state, partial(_left, state))))


if __name__ == "__main__":
    main()
