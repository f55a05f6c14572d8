"""`python -m plimsoll`."""

from plimsoll.cli import main

main()
