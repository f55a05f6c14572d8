"""Order entry against its rules: intervals against hand cases, each bound kept, broken and untold, labels, ceilings."""

import json
import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from plimsoll.analysis import analyse
from plimsoll.analysis.admission import check_commits
from plimsoll.analysis.order_entry import order_entry
from plimsoll.analysis.order_entry import ranges as order_entry_ranges
from plimsoll.analysis.statistics.distributions import rate_interval, share_interval
from plimsoll.analysis.trial.histograms import Histogram
from plimsoll.record import Trial, open_run
from plimsoll.report import write_report
from plimsoll.words.workloads import order_entry as order_entry_words

_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_open.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]
KINDS = list(order_entry.KINDS)
USERS = {"pacing": {"keying_and_think": True, "time_scale": 1.0}, "delivery": "deferred", "isolation": "serializable"}
NOBODY = {"pacing": {"keying_and_think": False}, "delivery": "in turn", "isolation": "read committed"}


def totals(times: int = 1, **changed: int) -> dict[str, int]:
    """The counts of `times` a thousand New-Orders that are what the rules expect."""
    one = {
        "new_order_done": 990, "new_order_rolled_back": 10, "order_lines_drawn": 10_000, "remote_lines_drawn": 100,
        "payment_done": 1000, "payment_remote": 150, "payment_by_name": 600, "order_status_done": 100,
        "order_status_by_name": 60, "delivery_done": 100, "districts_skipped": 0,
    }  # fmt: skip
    return {name: times * count for name, count in one.items()} | changed


def judged(found: dict[str, int], warehouses: int = 2, minutes: float = 1) -> dict[str, str]:
    rows = order_entry_ranges.ranges(found, warehouses=warehouses, minutes=minutes)
    return {row["name"]: row["verdict"] for row in rows}


def test_the_interval_of_a_share_is_the_exact_one() -> None:
    low, high = share_interval(3, 20, 0.95)
    # By its definition: 3 or more of 20 happen with 2.5 % at the lower end, 3 or fewer at the upper one.
    assert stats.binom.sf(2, 20, low) == pytest.approx(0.025)
    assert stats.binom.cdf(3, 20, high) == pytest.approx(0.025)
    assert share_interval(0, 20, 0.95)[0] == 0
    assert share_interval(20, 20, 0.95)[1] == 1


def test_the_interval_of_a_count_is_the_exact_one() -> None:
    low, high = rate_interval(7, 0.95)
    assert stats.poisson.sf(6, low) == pytest.approx(0.025)
    assert stats.poisson.cdf(7, high) == pytest.approx(0.025)
    assert rate_interval(0, 0.95)[0] == 0


def test_what_the_rules_expect_holds_when_enough_was_done() -> None:
    assert set(judged(totals(1000)).values()) == {"holds"}


def test_few_transactions_cannot_tell() -> None:
    found = judged(totals(1))
    assert found["lines"] == "holds", "a thousand orders tell the number of lines"
    assert found["rolled_back"] == found["remote_lines"] == found["order_status_by_name"] == "cannot tell"


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("rolled_back", {"new_order_rolled_back": 15_000}),
        ("lines", {"order_lines_drawn": 11_000_000}),
        ("remote_lines", {"remote_lines_drawn": 120_000}),
        ("remote_payments", {"payment_remote": 170_000}),
        ("payment_by_name", {"payment_by_name": 500_000}),
        ("order_status_by_name", {"order_status_by_name": 70_000}),
        ("skipped_districts", {"districts_skipped": 50_000}),
    ],
)
def test_what_leaves_its_bound_is_broken(name: str, changed: dict[str, int]) -> None:
    assert judged(totals(1000, **changed))[name] == "broken"


def test_a_single_warehouse_has_no_remote_ones() -> None:
    found = judged(totals(1000, remote_lines_drawn=0, payment_remote=0), warehouses=1)
    assert found["remote_lines"] == found["remote_payments"] == "does not apply"
    assert found["rolled_back"] == "holds"


def test_one_skipped_district_a_minute_is_allowed() -> None:
    few = totals(1, districts_skipped=5)
    assert judged(few, minutes=1)["skipped_districts"] == "cannot tell"
    assert judged(few, minutes=100)["skipped_districts"] == "holds"
    assert judged(totals(0), minutes=1)["skipped_districts"] == "cannot tell", "no Delivery, nothing known"


def test_decks_tell_their_shares_sooner_than_weights_do() -> None:
    done = dict(zip(KINDS, (1000, 1000, 100, 100, 100), strict=True))
    by_deck = order_entry_ranges.mix(done, terminals=10, is_dealt=True)
    by_weights = order_entry_ranges.mix(done, terminals=10, is_dealt=False)
    assert [row["verdict"] for row in by_deck] == ["does not apply", "holds", "holds", "holds", "holds"]
    assert {row["verdict"] for row in by_weights[1:]} == {"cannot tell"}
    assert by_deck[1]["value"] == by_weights[1]["value"] == 1000 / 2300


def test_the_interval_of_decks_covers() -> None:
    random = np.random.default_rng(5)
    deck = np.repeat(np.arange(5), [10, 10, 1, 1, 1])
    covered, runs = 0, 300
    for _ in range(runs):
        counts = np.zeros(5, int)
        for _terminal in range(8):
            cards = np.concatenate([random.permutation(deck) for _ in range(6)])
            begun = random.integers(0, 23)
            counts += np.bincount(cards[begun : begun + 100], minlength=5)
        rows = order_entry_ranges.mix(dict(zip(KINDS, map(int, counts), strict=True)), terminals=8, is_dealt=True)
        covered += rows[1]["low"] <= 10 / 23 <= rows[1]["high"]
    assert covered / runs > 0.95


def spread_over(values_s: np.ndarray) -> Histogram:
    low = np.sort(values_s * 1e9)
    return Histogram(low, low + 1, np.ones(len(low), np.int64))


def test_response_times() -> None:
    random = np.random.default_rng(1)
    fast = spread_over(random.exponential(0.01, 3000))
    slow = spread_over(random.exponential(6.0, 3000))
    rows = {row["name"]: row for row in order_entry.limits([{"new_order": fast, "payment": slow}], is_deferred=False)}
    assert rows["new_order"]["verdict"] == rows["new_order"]["p90_not_below_mean"] == "holds"
    assert rows["payment"]["verdict"] == "broken", "e^(-5/6) of them take longer than 5 s"
    assert rows["payment"]["value"] == pytest.approx(math.exp(-5 / 6), abs=0.03)
    assert rows["stock_level"]["verdict"] == "cannot tell", "none was done"
    few = order_entry.limits([{"new_order": spread_over(np.full(20, 0.01))}], is_deferred=False)[0]
    assert few["verdict"] == "cannot tell", "twenty in time do not show that nine in ten are"


def test_a_few_that_take_forever_raise_the_average_above_the_percentile() -> None:
    values = np.concatenate([np.full(2850, 0.01), np.full(150, 100.0)])
    row = order_entry.limits([{"new_order": spread_over(values)}], is_deferred=False)[0]
    assert row["verdict"] == "holds"
    assert row["p90_not_below_mean"] == "broken"


def test_a_deferred_delivery_has_eighty_seconds() -> None:
    found = spread_over(np.full(500, 30.0))
    for is_deferred, said in ((True, "holds"), (False, "broken")):
        rows = order_entry.limits([{"delivery": found}], is_deferred=is_deferred)
        assert rows[3]["verdict"] == said
        assert ("queued" in rows[3]["label"]) == is_deferred


def trial(folder: Path, number: int, new_orders: int, minutes: float, facts: dict[str, Any], **workload: Any) -> Trial:
    """A trial of which only the summary is kept."""
    (folder / f"{number}" / "measure").mkdir(parents=True)
    counted = totals(1, new_order_done=new_orders, new_order_rolled_back=0)
    summary = {"totals": counted, "facts": facts, "started_ns": 0, "ended_ns": int(minutes * 60e9), "by_kind": {}}
    (folder / f"{number}" / "measure" / "summary.json").write_text(json.dumps({"format": 1, **summary}))
    planned = {"number": number, "resolved": {"workload": {"name": "order_entry", "mix": "deck", **workload}}}
    return Trial(folder / f"{number}", planned)


def test_with_users_the_rate_has_a_ceiling_and_a_minimum(tmp_path: Path) -> None:
    minutes, warehouses = 120.0, 10
    for place, (each, ceiling, minimum) in enumerate(
        [(12.5, "holds", "holds"), (13.5, "broken", "holds"), (8.0, "holds", "broken")]
    ):
        one = trial(tmp_path, place, int(each * minutes * warehouses), minutes, USERS, warehouses=10, clients=100)
        found = order_entry.of_trials([one])
        assert found is not None
        assert found["rate"]["name"] == "tpmC-like"
        assert found["rate"]["ceiling"]["verdict"] == ceiling
        assert found["rate"]["minimum"]["verdict"] == minimum
        assert found["departures"] == []


def test_what_users_times_allow_is_that_of_the_deck() -> None:
    # 23 cards take 476 s and hold ten New-Orders.
    assert order_entry.allowed_per_minute({"clients": 10, "mix": "deck"}, USERS) == pytest.approx(60 * 10 * 10 / 476)
    half = {"pacing": {"keying_and_think": True, "time_scale": 0.5}}
    assert order_entry.allowed_per_minute({"clients": 10}, half) == pytest.approx(2 * 60 * 10 * 10 / 476)
    only = {"clients": 10, "mix": {"new_order": 3}}
    assert order_entry.allowed_per_minute(only, USERS) == pytest.approx(60 * 10 / 30)
    assert order_entry.allowed_per_minute({"clients": 10}, NOBODY) is None


def test_without_users_it_is_another_benchmark(tmp_path: Path) -> None:
    found = order_entry.of_trials([trial(tmp_path, 1, 6000, 1, NOBODY, warehouses=2, clients=8, foreign_keys=False)])
    assert found is not None
    assert found["benchmark"] == "order entry without keying and think time: a different benchmark"
    assert found["rate"]["name"] == "New-Orders a minute"
    assert found["rate"]["ceiling"] is None
    said = " ".join(found["departures"])
    for word in ("no keying and think times", "8 terminals", "not for 120", "no foreign keys", "read committed"):
        assert word in said
    hurried = {**USERS, "pacing": {"keying_and_think": True, "time_scale": 0.1}}
    assert "multiplied by 0.1: a different benchmark" in order_entry.benchmark(hurried)
    assert not order_entry.is_tpmc_like(hurried)


def test_rolled_back_new_orders_are_done_and_not_committed(tmp_path: Path) -> None:
    def commits(grown: int) -> dict[str, Any]:
        one = trial(tmp_path, grown, 0, 1, NOBODY)
        path = one.path / "measure" / "summary.json"
        summary = json.loads(path.read_text()) | {
            "workload": "order_entry",
            "totals": {"new_order_rolled_back": 7},
            "identity": {"planned": 100, "done": 100, "failed": 0, "skipped": 0, "lost": 0},
            "server_commits_beside": 4,
            "backend_pids": [1, 2],
        }
        path.write_text(json.dumps(summary))
        counters = {"before": {"xact_commit": 0}, "after": {"xact_commit": grown}}
        (one.path / "trial.json").write_text(json.dumps({"status": "finished", "counters": counters}))
        return check_commits(one)

    assert commits(97)["ok"] is True
    assert commits(98)["ok"] is False
    assert commits(92)["excess"] < 0, "fewer than were done"


# --- a whole run ----------------------------------------------------------------------------------------------------


def order_entry_run(folder: Path, ledger: dict[str, Any] | None = None) -> Path:
    """A synthetic run whose load is taken for order entry."""
    run: Path = make(folder, Shape(rates=(20.0, 30.0), judged="throughput_per_second"))
    workload = {"name": "order_entry", "warehouses": 2, "clients": 4, "mix": "deck"}
    experiment = json.loads((run / "experiment.json").read_text())
    (run / "experiment.json").write_text(json.dumps(experiment | {"workload": workload}))
    plan = json.loads((run / "plan.json").read_text())
    for planned in plan["trials"]:
        planned["resolved"] = {"workload": workload}
    (run / "plan.json").write_text(json.dumps(plan))
    for path in run.glob("trials/*/measure/summary.json"):
        summary = json.loads(path.read_text())
        summary |= {"workload": "order_entry", "facts": NOBODY, "totals": totals(1)}
        path.write_text(json.dumps(summary))
    if ledger:
        path = run / "trials" / "0001" / "trial.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"ledger": ledger}))
    return run


def test_the_label_is_on_the_page_and_in_the_terminal(tmp_path: Path) -> None:
    run = order_entry_run(tmp_path / "run")
    verdict = analyse(open_run(run))
    line = order_entry_words.lines(verdict)[0]
    assert "TPC-C-like, not comparable to published results" in line
    assert "a different benchmark" in line
    page = write_report(run).read_text()
    assert page.count("TPC-C-like, not comparable to published results") >= 2
    assert "New-Orders a minute: order entry without keying and think time: a different benchmark" in page
    assert "tpmC-like" not in page, "nobody keys and thinks"
    assert "tpmC" not in page.replace("tpmC-like", ""), "never that name alone"


def test_the_report_lists_what_was_lost(tmp_path: Path) -> None:
    fates = {"acknowledged": 40, "lost": 1, "twice": 0}
    lost = [
        {"kind": "payment", "index": 9, "warehouse": 1, "district": 2, "order": 0, "customer_warehouse": 2,
         "customer_district": 7, "customer": 1234, "amount_cents": 4711, "made_us": 1},
        {"kind": "new_order", "index": 8, "warehouse": 1, "district": 3, "order": 3017, "customer_warehouse": 1,
         "customer_district": 3, "customer": 5, "amount_cents": 0, "made_us": 1},
    ]  # fmt: skip
    run = order_entry_run(tmp_path / "run", {"new_orders": fates, "payments": fates, "lost": lost})
    page = write_report(run).read_text()
    assert "40 New-Orders acknowledged, 1 lost, 0 duplicated" in page
    for cell in ("47.11", "2, 7, 1234", "3017"):
        assert f">{cell}</td>" in page


def test_what_was_lost_is_named_with_the_setting_that_allows_for_it(tmp_path: Path) -> None:
    fates = {"acknowledged": 40, "lost": 1, "twice": 0}
    run = order_entry_run(tmp_path / "run", {"new_orders": fates, "payments": fates})
    path = run / "trials" / "0001" / "trial.json"
    found = json.loads(path.read_text())
    safe = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    exported = {"filer": {"nfs": {"export": ["rw", "async"]}}, "other": {"nfs": {"export": ["rw", "sync"]}}, "disk": {}}

    def line() -> str:
        return order_entry_words.ledger_lines({"order_entry": order_entry.order_entry(open_run(run), {})})[0]

    def told(durability: dict[str, str], places: dict[str, Any]) -> str:
        more = {"server": {"durability": durability}, "layout": {"places": places}}
        path.write_text(json.dumps(found | more))
        return line()

    assert told(safe, exported).endswith("and able to lose them: NFS export of filer: async")
    assert told(safe, {"disk": {}}).endswith("No setting in force where some were lost allows for it")
    both = told(safe | {"fsync": "off", "synchronous_commit": "off"}, {})
    assert both.endswith("and able to lose them: fsync off, synchronous_commit off")
    path.write_text(
        json.dumps(found | {"ledger": {"new_orders": fates | {"lost": 0}, "payments": fates | {"lost": 0}}})
    )
    assert "in force" not in line()


def test_another_workload_has_no_such_part(tmp_path: Path) -> None:
    verdict = analyse(open_run(make(tmp_path / "run", Shape())))
    assert "order_entry" not in verdict
    assert order_entry_words.lines(verdict) == []
