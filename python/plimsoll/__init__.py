"""Plimsoll: a laboratory for Linux under database and file-serving load."""

__version__ = "0.1.0"
