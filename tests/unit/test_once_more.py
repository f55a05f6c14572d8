"""What is run again after a failure, and what is not."""

import runpy
from pathlib import Path

import pytest

_SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "once_more.py"))
runs_again, programs_again = _SCRIPT["runs_again"], _SCRIPT["programs_again"]
KNOWN, FLOW = "tests/known/test_sync.py::test_a", "tests/flow/test_run.py::test_b[1]"


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        ([KNOWN], True),
        ([KNOWN, FLOW, "tests/guest/test_c.py::test_c"], True),
        ([], False),
        ([KNOWN, "tests/unit/run/test_d.py::test_d"], False),
        (["tests/known/test_sync.py"], False),
        ([f"{KNOWN}{i}" for i in range(6)], False),
    ],
    ids=["one", "three that watch", "none", "a unit test among them", "a file that cannot be read", "many"],
)
def test_few_failures_of_tests_that_watch_a_machine_are_run_again(failed: list[str], again: bool) -> None:
    assert runs_again(failed) is again


@pytest.mark.parametrize(
    ("said", "again"),
    [
        ("error: 1 target failed:\n    `-p a --test b`\n", [["-p", "a", "--test", "b"]]),
        (
            "x\nerror: 2 targets failed:\n    `-p a --test b`\n    `-p c --test d`\n",
            [["-p", "a", "--test", "b"], ["-p", "c", "--test", "d"]],
        ),
        ("error: 2 targets failed:\n    `-p a --test b`\n    `-p a --lib`\n", []),
        ("error: 6 targets failed:\n" + "    `-p a --test b`\n" * 6, []),
        ("error: could not compile `a`\n", []),
    ],
    ids=["one", "two", "a unit test among them", "many", "what does not compile"],
)
def test_few_programs_of_rust_are_run_again(said: str, again: list[list[str]]) -> None:
    assert programs_again(said) == again
