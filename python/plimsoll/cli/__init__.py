"""The command line: reads words, calls the stages, prints what they return; exit codes stand in setup/help.txt."""

from plimsoll.cli.app import main

__all__ = ["main"]
