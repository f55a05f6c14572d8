"""Runs the command line and kills it, by SIGKILL, at one step of the undo journal; step 0 counts the steps instead.

Usage: kill_at.py STEP VERB...
"""

import os
import signal
import sys
from pathlib import Path

from plimsoll.cli import main
from plimsoll.environment.journal import journal

wanted = int(sys.argv[1])
sys.argv = ["plimsoll", *sys.argv[2:]]
steps: list[str] = []


def at_step(name: str, number: int) -> None:
    """Called before and after every durable step and every action."""
    steps.append(name)
    if number == wanted:
        os.kill(os.getpid(), signal.SIGKILL)


journal.step_hook = at_step
try:
    main()
finally:
    if wanted == 0:
        Path(os.environ["PLIMSOLL_STATE"], "steps").write_text("\n".join(steps))
