"""The terminal's picture at 80 columns, without colour: whole, and nothing of the server's steers the terminal."""

from __future__ import annotations

from typing import Any

import pytest
from live_world import QUERIES, SESSIONS, S, backend, line, look, seen

from plimsoll.analysis.watch.live import Picture
from plimsoll.cli import breakdown_lines as drawn

Json = dict[str, Any]
ABOUT = {
    "version": "15.18 (Debian 15.18-0+deb12u1)", "pid": 4711, "data": "/var/lib/postgresql/15/main", "seconds": 30.0,
    "live": True, "notes": [],
}  # fmt: skip


@pytest.fixture
def found() -> Json:
    """Two busy backends, one of them in the other's way."""
    picture = Picture()
    texts = {**QUERIES, "1": {"text": "update \x1b[31ma set b = ? " + "x" * 150, "query_id": None, "cut": True}}
    lock = {"pid": 21, "blockers": [20], "kind": "transactionid", "mode": "ShareLock", "relation": "pgbench_branches"}
    picture.look(
        look(0.4, seen(20, 0, since=0.1), seen(21, 1, "Lock:transactionid", since=0.1), queries=texts)
        | {"sessions": SESSIONS, "locks": [lock | {"since_ns": int(0.1 * S)}]}
    )
    now = {"state": "blocked", "event": 101, "bucket": "lock", "since_ns": 700_000_000, "transaction_ns": S}
    waits = {(101, "lock"): 0.7, (100, "wal_sync"): 0.1, (102, "client"): 0.05}
    picture.line(line(1, backend(20, cpu=0.6, queue=0.2, transactions=120), backend(21, waits=waits, now=now)))
    picture.look(look(1.1, seen(20, 0), seen(21, 1, "Lock:transactionid", since=0.1)))
    return picture.document(20)


def shown(found: Json, height: int | None = None, **about: Any) -> list[str]:
    return [one.plain for one in drawn.picture_lines({**ABOUT, **about}, found, 80, height)]


def test_no_line_is_wider_than_the_terminal(found: Json) -> None:
    for live in (True, False):
        assert max(len(one) for one in shown(found, live=live)) <= 80


def test_it_says_what_there_is_to_say(found: Json) -> None:
    text = "\n".join(shown(found))
    assert "process 4711" in text
    assert "watched 1 s of 30" in text
    assert "clients: 2 busy, 0 idle in a transaction, 3 idle" in text
    assert "120 transactions/s" in text
    for row in ("cpu", "run_queue", "lock", "wal_sync"):
        assert any(one.startswith(row) and "%" in one for one in text.splitlines()), row
    assert any(one.startswith("client ") and "(not busy)" in one for one in text.splitlines())
    assert "20 active blocks: select ?" in text
    assert "21 waits 300 ms (transactionid on pgbench_branches)" in text
    assert "Lock:transactionid 700 ms" in text
    assert "IO:WALSync" in text


def test_text_of_the_server_cannot_steer_the_terminal(found: Json) -> None:
    assert "\x1b" not in "\n".join(shown(found))
    assert drawn.clean("a\x1b]0;title\x07\nb") == "a ]0;title  b"


@pytest.mark.parametrize("height", range(14, 40))
def test_it_fits_the_height_and_keeps_the_buckets(found: Json, height: int) -> None:
    lines = shown(found, height)
    assert len(lines) <= height
    assert any(one.startswith("wal_sync") for one in lines)


def test_what_is_missing_is_said() -> None:
    picture = Picture()
    picture.line(line(1, backend(1, cpu=0.5)))
    lines = shown(picture.document(20), notes=["queries and users are not shown: no session"])
    assert any("idle unknown" in one for one in lines)
    assert lines[-1].startswith("queries and users are not shown")
    assert not any(one.startswith("queries by") for one in lines)


def test_before_anything_was_watched() -> None:
    lines = shown(Picture().document(20))
    assert lines[0].startswith("PostgreSQL 15.18")
    assert "0 transactions/s" in lines[1]


def test_one_line_for_a_log(found: Json) -> None:
    line_ = drawn.plain_line(found)
    assert "120 transactions/s" in line_
    assert "1.60 busy: lock 43.8 %, cpu 37.5 %" in line_
