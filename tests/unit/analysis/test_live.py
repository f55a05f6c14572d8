"""The picture of a server at work, from worlds whose truth is known."""

from __future__ import annotations

import random
from typing import Any

import pytest
from live_world import QUERIES, SESSIONS, S, backend, line, look, seen

from plimsoll.analysis.watch.curve import merged
from plimsoll.analysis.watch.live import Picture

Json = dict[str, Any]


def picture(*events: Json, own: set[int] | None = None) -> Json:
    """Lines and looks in their order."""
    found = Picture(own)
    for one in events:
        if "processes" in one:
            found.line(one)
        else:
            found.look(one)
    found.close()
    return found.document(20)


def buckets(found: Json) -> dict[str, float]:
    return {row["bucket"]: row["ns"] / S for row in found["buckets"]}


def test_sums_are_of_backends_and_their_workers_and_leave_out_the_rest() -> None:
    found = picture(
        line(1, backend(1, cpu=0.5, waits={(100, "wal_sync"): 0.25}, transactions=10), backend(9, cpu=0.3)),
        line(2, backend(2, cpu=0.2, what="parallel worker"), backend(3, cpu=0.9, what="checkpointer")),
        own={9},
    )
    assert buckets(found) == {"cpu": 0.7, "wal_sync": 0.25}
    assert found["watched_ns"] == 2 * S
    assert found["busy_backends"] == pytest.approx(0.475)
    assert found["transactions_per_second"] == 5
    rows = {row["bucket"]: row for row in found["buckets"]}
    assert rows["cpu"]["share"] == pytest.approx(0.7 / 0.95)
    assert rows["cpu"]["ns_per_transaction"] == 0.07 * S
    assert [row["what"] for row in found["processes"]] == ["checkpointer"]


def test_waiting_for_the_client_is_no_busy_time() -> None:
    found = picture(line(1, backend(1, cpu=0.1, waits={(102, "client"): 0.9})))
    rows = {row["bucket"]: row for row in found["buckets"]}
    assert rows["cpu"]["share"] == 1.0
    assert rows["client"]["share"] is None
    assert rows["client"]["backends"] == pytest.approx(0.9)
    assert found["busy_ns"] == 0.1 * S
    assert found["waits"][-1]["bucket"] == "client"


def test_what_was_watched_only_in_slices_is_set_against_the_slices() -> None:
    found = picture(line(1, backend(1, cpu=0.25)) | {"watched_ns": S // 4})
    assert found["busy_backends"] == 1.0
    assert found["seconds"][0]["span_ns"] == S


def test_one_query_from_line_to_line_has_all_of_its_time_exactly() -> None:
    events = [look(0.9, seen(1, 0, since=0.2), queries=QUERIES, sessions=SESSIONS)]
    events += [look(1 + tenth / 10, seen(1, 0, "IO:DataFileRead", since=0.2)) for tenth in range(10)]
    found = picture(
        *events, line(2, backend(1, cpu=0.6, waits={(103, "data_read"): 0.4})), look(2.1, seen(1, 0, since=0.2))
    )
    (row,) = found["queries"]
    assert (row["text"], row["exact_ns"], row["busy_ns"], row["share"]) == ("select ?", S, S, 1.0)
    assert row["buckets"] == {"cpu": 0.6 * S, "data_read": 0.4 * S}
    assert row["margin"] == 0.0 or row["margin"] is None
    assert row["sessions"] == [["shop", "anna", "<b>till</b>"]]


@pytest.mark.parametrize(
    "after",
    [
        look(2.1, seen(1, 0, since=2.05)),  # the same query, but another execution
        look(2.1, seen(1, 1, since=0.2)),
        look(2.1),
    ],
)
def test_what_is_not_one_query_all_along_is_sampled(after: Json) -> None:
    looks = [look(1 + tenth / 10, seen(1, tenth % 2, since=0.2)) for tenth in range(1, 10)]
    found = picture(*looks, line(2, backend(1, cpu=1.0)), after)
    assert all(row["exact_ns"] == 0 for row in found["queries"])
    assert sum(row["busy_ns"] for row in found["queries"]) == pytest.approx(S)


def test_sampled_parts_add_up_to_each_bucket_and_follow_the_looks() -> None:
    """Two queries: the one waits for the log, the other is on a CPU and reads; their truth is drawn at random."""
    draw = random.Random(5)
    truth = {0: {"IO:WALSync": 0.3, None: 0.1}, 1: {None: 0.45, "IO:DataFileRead": 0.15}}
    choices = [(query, event) for query, parts in truth.items() for event in parts]
    weights = [part for parts in truth.values() for part in parts.values()]
    events: list[Json] = []
    for second in range(1, 41):
        for tenth in range(10):
            query, event = draw.choices(choices, weights)[0]
            events.append(look(second - 1 + (tenth + draw.random()) / 10, seen(1, query, event, since=second - 0.001)))
        waits = {(100, "wal_sync"): 0.3, (103, "data_read"): 0.15}
        events.append(line(second, backend(1, cpu=0.44, queue=0.11, waits=waits)))
    found = picture(*events, look(40.05))
    rows = {row["looks"]: row for row in found["queries"]}
    assert sum(row["busy_ns"] for row in rows.values()) == pytest.approx(40 * S, rel=1e-6)
    for name in ("cpu", "run_queue", "wal_sync", "data_read"):
        assert sum(row["buckets"].get(name, 0) for row in rows.values()) == pytest.approx(
            {"cpu": 17.6, "run_queue": 4.4, "wal_sync": 12, "data_read": 6}[name] * S, rel=1e-6
        )
    other, log = sorted(found["queries"], key=lambda row: row["buckets"].get("wal_sync", 0))
    assert log["share"] == pytest.approx(0.4, abs=2 * log["margin"])
    assert 0.02 < log["margin"] < 0.06
    assert "wal_sync" not in other["buckets"]


def test_an_event_that_nobody_blocks_in_is_time_on_a_cpu() -> None:
    """DataFileRead of what the page cache has never blocks: the server sets it all the same."""
    found = picture(look(0.5, seen(1, 0, "IO:DataFileRead", since=0.4)), line(1, backend(1, cpu=1.0)), look(1.1))
    assert found["queries"][0]["buckets"] == {"cpu": S}


def test_what_no_look_saw_is_said_and_given_to_no_query() -> None:
    found = picture(
        look(0.5, seen(1, 0, since=0.4)), line(1, backend(1, cpu=0.5, waits={(100, "wal_sync"): 0.5})), look(1.1)
    )
    assert found["sharing"]["unshared"] == {"wal_sync": 0.5 * S}
    assert found["queries"][0]["busy_ns"] == 0.5 * S


def test_without_looks_queries_are_absent_and_idle_is_not_told() -> None:
    now = {"state": "blocked", "event": 102, "bucket": "client", "since_ns": 5, "transaction_ns": 9}
    found = picture(line(1, backend(1, cpu=0.5, now=now), backend(2, cpu=0.1, now=now | {"bucket": "lock"})))
    assert found["queries"] is None
    assert found["clients"] == {"busy": 1, "idle_in_transaction": 1, "idle": None}


def test_workers_stand_under_their_leader() -> None:
    found = picture(
        look(
            0.5, seen(1, 0), seen(2, 0, kind="parallel worker", leader=1), seen(3, 0, kind="parallel worker", leader=1)
        ),
        line(
            1,
            backend(1, cpu=0.1),
            backend(2, cpu=0.5, what="parallel worker"),
            backend(3, cpu=0.4, what="parallel worker"),
        ),
    )
    (row,) = found["backends"]
    assert (row["pid"], row["workers"], row["busy_ns"]) == (1, [2, 3], S)


def locked(waiter: int, *blockers: int, since: float = 1.0, relation: str | None = "a") -> Json:
    row = {"pid": waiter, "blockers": list(blockers), "kind": "transactionid", "mode": "ShareLock"}
    return row | {"relation": relation, "since_ns": int(since * S)}


def test_a_chain_begins_with_who_waits_for_nobody() -> None:
    found = picture(look(2, locks=[locked(11, 10), locked(12, 11, since=1.5), locked(13, 11, since=1.2)]))
    chain = [(row["depth"], row["pid"], row.get("ns", 0) / S) for row in found["chains"]]
    assert chain == [(0, 10, 0), (1, 11, 1.0), (2, 13, 0.8), (2, 12, 0.5)]
    assert found["relations"] == [{"relation": "a", "looks": 3}]


def test_a_circle_of_waits_ends() -> None:
    found = picture(look(2, locks=[locked(11, 10), locked(10, 11)]))
    assert [row["pid"] for row in found["chains"]] == [10, 11, 10]


def test_a_wait_that_is_over_is_remembered() -> None:
    found = picture(look(2, locks=[locked(11, 10)]), look(2.6, locks=[locked(11, 10)]), look(3, locks=[]))
    assert found["chains"] == []
    assert [(row["waiter"], row["ns"] / S, row["now"]) for row in found["lock_waits"]] == [(11, 1.6, False)]


def test_a_server_of_short_connections_is_not_kept_one_by_one() -> None:
    found = Picture()
    for second in range(1, 13):
        found.line(line(second, *(backend(1000 * second + each, cpu=0.001) for each in range(1000))))
    assert found.document(20)["busy_ns"] == 12 * S
    assert len(found._backends) <= 10_000


def test_stretches_taken_together_keep_the_sums() -> None:
    seconds = picture(*(line(second, backend(1, cpu=0.5, transactions=2)) for second in range(1, 8)))["seconds"]
    found = merged(seconds, 3)
    assert [one["span_ns"] / S for one in found] == [3, 3, 1]
    assert sum(one["buckets"]["cpu"] for one in found) == 3.5 * S
