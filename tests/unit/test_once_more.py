"""What is run again after a failure, and what is not."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

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
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
        commands.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(subprocess, "run", run)
    assert once_more.judge(_caches(tmp_path, *lanes), rust) == (0 if again else 1)
    assert len(commands) == again


def test_what_fails_again_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1))
    assert once_more.judge(_caches(tmp_path, [KNOWN]), None) == 1
    assert once_more.judge([], None) == 0
