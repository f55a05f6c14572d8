"""What pages show beside sums: shares, means and changes, where there is something to divide by and where not."""

import pytest

from plimsoll.analysis.breakdown.totals import added, own_read_share, requests, shares
from plimsoll.analysis.comparing.a_a import band
from plimsoll.analysis.probes.block_series import cumulative
from plimsoll.analysis.probes.profile import cost_shares
from plimsoll.analysis.probes.syscalls import call_rates, sync_parts, together
from plimsoll.analysis.trial.throughput import relative_half_width
from plimsoll.analysis.watch.curve import backends, began_ns, longest_ns
from plimsoll.analysis.watch.queries import is_exact


def test_counts_are_added_and_of_a_largest_the_largest_is_kept() -> None:
    assert added([{"seen": 2, "open_max": 7}, {"seen": 3, "open_max": 5}, {"lost": None}]) == {
        "seen": 5, "open_max": 7, "lost": 0,
    }  # fmt: skip


def _trial(seen: int | None, sent: int | None, one_in: int) -> dict[str, object]:
    return {"requests": {"seen": seen, "sent": sent}, "sampling": {"one_in_max": one_in}}


def test_requests_are_to_be_equal_where_all_of_the_time_was_watched() -> None:
    assert requests([_trial(5, 5, 1), _trial(3, 9, 4)]) == {"seen": 8, "sent": 14, "differ": False}
    assert requests([_trial(5, 6, 1)])["differ"]
    assert requests([_trial(5, 5, 1), _trial(5, None, 1)]) == {"seen": None, "sent": None, "differ": False}


def test_of_nothing_there_is_no_share() -> None:
    assert own_read_share({"own_ns": 30, "on_its_way_ns": 10}) == 0.75
    assert own_read_share({"own_ns": 0, "on_its_way_ns": 0}) is None
    assert shares({"a": 3, "b": 1}) == {"a": 0.75, "b": 0.25}
    assert shares({"a": 0}) == {"a": None}
    assert cost_shares({"segment_ns": 100, "cost_ns": 3, "agent_cpu_ns": 1}) == (0.04, 0.01)
    assert cost_shares({"segment_ns": None, "cost_ns": 3, "agent_cpu_ns": 1}) is None
    assert relative_half_width({"high": 110.0, "mean": 100.0}) == pytest.approx(0.1)
    assert relative_half_width({"high": None, "mean": 100.0}) is None
    assert band(100.0, 1.25) == (80.0, 125.0)
    assert band(100.0, None) is None


def test_calls_of_two_kinds_as_one() -> None:
    calls = [
        {"count": 3, "returned_bytes": 10, "sequential": 3, "bytes_log2": [0, 3]},
        {"count": 1, "returned_bytes": 5, "sequential": 0, "bytes_log2": [0, 0, 1]},
    ]
    assert together(calls) == {"bytes": 15, "bucket": 1, "sequential_share": 0.75}
    assert together([]) == {"bytes": 0, "bucket": None, "sequential_share": None}
    assert call_rates({"count": 4, "ns": 8, "count_se": 2.0}, 2) == {
        "per_transaction": 2.0, "ns_mean": 2.0, "count_margin": pytest.approx(3.92),
    }  # fmt: skip
    assert set(call_rates({"count": 0, "ns": 0}, None).values()) == {None}


def test_the_parts_of_a_sync_are_means_a_call() -> None:
    found = sync_parts({"count": 2, "ns": 100, "parts_ns": {"cpu": 20, "journal": 60}, "pages": 7})
    assert found["parts"] == {"cpu": {"ns": 10.0, "share": 0.2}, "journal": {"ns": 30.0, "share": 0.6}}
    assert (found["closure"], found["pages"], found["journal_flush_ns"]) == (0.8, 3.5, None)


def test_the_share_of_requests_that_took_no_longer() -> None:
    assert cumulative([[0, 1], [2_000_000, 3]]) == [(1e-6, 0.25), (2.0, 1.0)]


def test_a_watch_as_a_curve() -> None:
    stretch = {"t_ns": 100, "span_ns": 40, "lasted_ns": 50, "buckets": {"cpu": 25, "lock": 100}}
    assert backends(stretch) == {"cpu": 0.5, "lock": 2.0}
    assert (began_ns([stretch]), began_ns([])) == (60, None)
    assert (longest_ns([stretch, {"buckets": {"cpu": 9}}]), longest_ns([])) == (125, 0)
    assert is_exact({"exact_ns": 999, "busy_ns": 1000})
    assert not is_exact({"exact_ns": 99, "busy_ns": 100})
    assert not is_exact({"exact_ns": 0, "busy_ns": 0})
