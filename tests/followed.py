"""Tests that go on with what another one of their file has made: one failure, when that one fails, and not two.

The constraint: it is named in the test itself, `@pytest.mark.follows("test_that_makes_it")`, so that nothing else is
taken for the same failure. pytest's cache keeps who follows whom for tests/once_more.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

MARK = "follows"
KEPT = "plimsoll/follows"


def before(item: pytest.Item) -> str | None:
    """The name of the test that it follows."""
    marker = item.get_closest_marker(MARK)
    return None if marker is None else f"{item.nodeid.partition('::')[0]}::{marker.args[0]}"


def keep(config: pytest.Config, items: Sequence[pytest.Item]) -> None:
    """Leaves the names in pytest's cache, if it has one."""
    if getattr(config, "cache", None) is not None:
        config.cache.set(KEPT, {item.nodeid: followed for item in items if (followed := before(item)) is not None})


def kept_in(cache: Path) -> dict[str, str]:
    """The same again, of a folder of pytest's cache."""
    path = cache / "v" / KEPT
    found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    return found


def causes(failed: Sequence[str], follows: dict[str, str]) -> list[str]:
    """Those that failed, but for the followers of others among them."""
    return [name for name in failed if follows.get(name) not in failed]


def in_order(failed: Sequence[str], follows: dict[str, str]) -> list[str]:
    """Each of them after the test that it follows, which is run before it whether it failed or not."""
    both = [name for one in failed for name in (follows.get(one), one) if name is not None]
    return list(dict.fromkeys(both))
