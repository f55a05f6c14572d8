"""Faults planted one at a time: at least 28 of 30 are seen by the tests of the default run (plant.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PLANT = Path(__file__).with_name("plant.py")


@pytest.mark.long
@pytest.mark.alone
def test_the_default_tests_see_what_is_planted(capsys: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run([sys.executable, PLANT], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    with capsys.disabled():
        print(f"\n{done.stdout}")
    assert done.returncode == 0, "the table above says which faults nobody saw"
