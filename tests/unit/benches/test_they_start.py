"""Each bench starts by the command of benches/README.md: the project's interpreter, nothing in the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[3] / "benches"
SCRIPTS = sorted(path.name for path in BENCHES.glob("*.py") if "__main__" in path.read_text())


def test_there_are_some() -> None:
    assert "verdicts.py" in SCRIPTS and "soak_fortnight.py" in SCRIPTS


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_starts_and_says_how_it_is_used(name: str, tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    command = [sys.executable, str(BENCHES / name), "--help"]
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert told.returncode == 0 and told.stdout.startswith("usage:"), told.stderr
