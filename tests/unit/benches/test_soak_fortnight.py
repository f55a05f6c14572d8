"""What the fortnight's bench reads of a program's memory is that program's alone."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[3] / "benches"))
from soak_fortnight import most_resident

MIB = 2**20


def test_a_larger_child_before_is_not_counted() -> None:
    large = most_resident([sys.executable, "-c", f"bytearray({400 * MIB})"])
    small = most_resident([sys.executable, "-c", "pass"])
    assert large > 400 * MIB > small


def test_what_the_caller_has_resident_is_not_counted() -> None:
    held = b"x" * (400 * MIB)
    assert most_resident([sys.executable, "-c", "pass"]) < len(held)


def test_a_program_that_fails_is_no_figure() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        most_resident([sys.executable, "-c", "raise SystemExit(3)"])
