"""Exit codes of the command line; setup/help.txt says what they mean."""

from __future__ import annotations

FAILED, BAD_REQUEST, IMPOSSIBLE, STOPPED, FAULT = 1, 2, 3, 4, 70
