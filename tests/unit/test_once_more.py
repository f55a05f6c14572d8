"""What is run again after a failure, and what is not."""

import runpy
from pathlib import Path

import pytest

runs_again = runpy.run_path(str(Path(__file__).parents[1] / "once_more.py"))["runs_again"]
KNOWN, FLOW = "tests/known/test_sync.py::test_a", "tests/flow/test_run.py::test_b[1]"


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        ([KNOWN], True),
        ([KNOWN, FLOW, "tests/guest/test_c.py::test_c"], True),
        ([], False),
        ([KNOWN, "tests/unit/run/test_d.py::test_d"], False),
        (["tests/known/test_sync.py"], False),
        ([f"{KNOWN}{i}" for i in range(4)], False),
    ],
    ids=["one", "three that watch", "none", "a unit test among them", "a file that cannot be read", "many"],
)
def test_few_failures_of_tests_that_watch_a_machine_are_run_again(failed: list[str], again: bool) -> None:
    assert runs_again(failed) is again
