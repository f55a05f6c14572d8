"""Runs the command line on a machine that seems to have no more memory available than so many MiB.

Usage: little_memory.py MIB VERB...
"""

import sys

from plimsoll.cli import main
from plimsoll.run.host import ThisMachine

available = int(sys.argv[1]) * 2**20
sys.argv = ["plimsoll", *sys.argv[2:]]
ThisMachine.available_bytes = lambda _: available  # type: ignore[method-assign]
main()
