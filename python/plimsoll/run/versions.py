"""Which Plimsoll made a record. Apart from the other documents, because it needs nothing of an experiment."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from plimsoll import __version__
from plimsoll.run import agent


def versions() -> dict[str, Any]:
    """Plimsoll's version, the commit of its sources where git knows it, and the agent's version."""
    root = Path(__file__).resolve().parents[3]
    known: dict[str, Any] = {"version": __version__, "commit": None, "agent_version": None}
    for key, argv in (
        ("commit", ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]),
        ("agent_version", [str(agent.PROGRAM), "--version"]),
    ):
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=True)
            known[key] = done.stdout.strip()
        except (OSError, subprocess.SubprocessError):
            continue
    return known
