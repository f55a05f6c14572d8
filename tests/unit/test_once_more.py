"""What is run again after a failure, and what is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import once_more

NAMED = "tests/known/test_sync.py::test_a"


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        ([NAMED], True),
        ([f"{NAMED}[ext4-1]", f"{NAMED}[xfs-1]"], True),
        ([], False),
        ([NAMED, "tests/known/test_sync.py::test_b"], False),
        (["tests/known/test_sync.py"], False),
    ],
    ids=["named", "parameters of it", "none", "another", "a file that cannot be read"],
)
def test_only_what_is_named_is_run_again(monkeypatch: pytest.MonkeyPatch, failed: list[str], again: bool) -> None:
    monkeypatch.setattr(once_more, "AGAIN", {NAMED: "a reason"})
    assert once_more.runs_again(failed) is again


def test_at_most_two_are_named_each_with_its_reason_and_there() -> None:
    assert len(once_more.AGAIN) <= once_more.AT_MOST
    for name, reason in once_more.AGAIN.items():
        file, _, function = name.partition("::")
        assert f"def {function}(" in (Path(__file__).parents[2] / file).read_text()
        assert len(reason) > 20


def test_what_failed_is_read_from_each_cache_and_a_failure_that_is_not_named_fails(tmp_path: Path) -> None:
    for lane, names in (("one", ["a.py::b"]), ("two", ["c.py::d[1]"]), ("three", [])):
        left = tmp_path / lane / "v/cache"
        left.mkdir(parents=True)
        if names:
            (left / "lastfailed").write_text(json.dumps(dict.fromkeys(names, True)))
    caches = [tmp_path / lane for lane in ("one", "two", "three")]
    assert once_more.failed_in(caches) == ["a.py::b", "c.py::d[1]"]
    assert once_more.judge(caches, others_failed=False) == 1
    assert once_more.judge([], others_failed=True) == 1
    assert once_more.judge([], others_failed=False) == 0
