"""What is run again after a failure, and what is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import followed
import once_more

KNOWN, FLOW, UNIT = "tests/known/test_sync.py::test_a", "tests/flow/test_run.py::test_b[1]", "tests/unit/test_c.py::d"
ONE = "error: 1 target failed:\n    `-p plimsoll-agent --test watch_live`\n"
LIBRARY = "error: 2 targets failed:\n    `-p plimsoll-agent --test watch_live`\n    `-p plimsoll-load --lib`\n"


def _caches(folder: Path, *lanes: list[str]) -> list[Path]:
    for number, names in enumerate(lanes):
        left = folder / str(number) / "v/cache"
        left.mkdir(parents=True)
        if names:
            (left / "lastfailed").write_text(json.dumps(dict.fromkeys(names, True)))
    return [folder / str(number) for number in range(len(lanes))]


def _run_well(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is run from now on, none of which fails."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


@pytest.mark.parametrize(
    ("lanes", "rust", "again"),
    [
        ([[KNOWN]], None, 1),
        ([[KNOWN], [FLOW]], None, 1),
        ([], ONE, 1),
        ([[KNOWN]], ONE, 2),
        ([[f"{KNOWN}{i}" for i in range(4)]], ONE, 2),
        ([[KNOWN], [UNIT]], None, 0),
        ([["tests/known/test_sync.py"]], None, 0),
        ([[f"{KNOWN}{i}" for i in range(6)]], None, 0),
        ([[f"{KNOWN}{i}" for i in range(5)]], ONE, 0),
        ([], LIBRARY, 0),
        ([], "error: could not compile\n", 0),
        ([[]], None, 0),
    ],
    ids=[
        *(
            "one",
            "two lanes",
            "a program of Rust",
            "both",
            "as many as are",
            "a unit test among them",
            "a file that cannot be read",
        ),
        *("many", "many of both", "a library", "no name of a program", "a lane that names nothing"),
    ],
)
def test_few_failures_of_tests_that_watch_a_machine_are_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lanes: list[list[str]], rust: str | None, again: int
) -> None:
    commands = _run_well(monkeypatch)
    assert once_more.judge(_caches(tmp_path, *lanes), rust) == (0 if again else 1)
    assert len(commands) == again


def test_what_fails_again_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    assert once_more.judge(_caches(tmp_path, [KNOWN]), None) == 1
    assert once_more.judge([], None) == 0


FIRST, THEN = "tests/flow/test_run.py::test_makes", "tests/flow/test_run.py::test_asks_of_it"


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        # It counts with the one that it follows, and is run after it.
        ([f"{KNOWN}{i}" for i in range(4)] + [THEN, FIRST], [FIRST, THEN, *(f"{KNOWN}{i}" for i in range(4))]),
        # By itself it is a failure, and needs what that one makes.
        ([f"{KNOWN}{i}" for i in range(4)] + [THEN], [FIRST, THEN, *(f"{KNOWN}{i}" for i in range(4))]),
        ([f"{KNOWN}{i}" for i in range(5)] + [THEN], None),
        ([f"{KNOWN}{i}" for i in range(5)] + [THEN, FIRST], None),
    ],
    ids=["with the other", "alone", "alone, many", "with the other, many"],
)
def test_what_follows_another_by_its_own_word_is_one_failure_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failed: list[str], again: list[str] | None
) -> None:
    commands = _run_well(monkeypatch)
    (cache,) = _caches(tmp_path, failed)
    (cache / "v/plimsoll").mkdir()
    (cache / "v/plimsoll/follows").write_text(json.dumps({THEN: FIRST}))
    assert once_more.judge([cache], None) == (1 if again is None else 0)
    assert [command[command.index("full") + 1 :] for command in commands] == ([again] if again else [])


OF_TWO = """
import pytest

def test_makes():
    assert {passes}

@pytest.mark.follows("test_makes")
def test_asks_of_it():
    {asks}

def test_other():
    pass
"""


@pytest.mark.parametrize(("passes", "asks"), [(False, "pass"), (True, "assert False"), (True, "pass")])
def test_a_follower_is_not_begun_after_a_failure_and_pytest_leaves_who_follows_whom(
    tmp_path: Path, passes: bool, asks: str
) -> None:
    tests = Path(__file__).parents[1]
    (tmp_path / "conftest.py").write_text(
        "from tests_conftest import pytest_runtest_logreport, pytest_runtest_setup\n"
        "import followed\n\ndef pytest_collection_modifyitems(config, items):\n    followed.keep(config, items)\n"
    )
    (tmp_path / "tests_conftest.py").write_text((tests / "conftest.py").read_text())
    (tmp_path / "test_two.py").write_text(OF_TWO.format(passes=passes, asks=asks))
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = follows(test)\n")
    around = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rf", str(tmp_path)], cwd=tmp_path, env=around, capture_output=True, text=True
    )
    cache = tmp_path / ".pytest_cache"
    follows = followed.kept_in(cache)
    assert follows == {"test_two.py::test_asks_of_it": "test_two.py::test_makes"}
    failed = once_more.failed_in([cache])
    whole = [] if passes and asks == "pass" else ["test_two.py::test_asks_of_it"]
    assert failed == (whole if passes else [*whole, "test_two.py::test_makes"]), done.stdout + done.stderr
    assert len(followed.causes(failed, follows)) == (1 if whole else 0)
    assert ("not begun: it follows test_two.py::test_makes, which failed" in done.stdout) is not passes
