"""The record of a test on an embedded server, from lines by hand: read again by the analysis as any other."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

from plimsoll.analysis.decision_support.trial import caveats, reading
from plimsoll.experiment.workloads.decision_support import DecisionSupport
from plimsoll.record import Trial, transactions
from plimsoll.record.summary import REQUIRED, Summary
from plimsoll.run.servers.duckdb import record as records

_TYPES = runpy.run_path(str(Path(__file__).parents[1] / "record" / "test_types.py"))
Json = dict[str, Any]
SECOND = 1_000_000_000
SURROUNDINGS = {
    "samples": 3,
    "sample_late_ns_max": 1,
    "probes": {},
    "devices": [],
    "cpus_allowed": "0-1",
    "epoch_minus_monotonic_ns": 5,
    "pid": 71,
    "is_stopped": False,
    "seed": 1,
}
TOLD = {"released_ns": 10, "own_cpu_user_ns": 3, "own_cpu_system_ns": 2, "memory_bytes_max": 4096}


def workload(**about: Any) -> DecisionSupport:
    return DecisionSupport.model_validate({"name": "decision_support", "scale_factor": 1.0, **about})


def planned(*streams: int, refresh: bool) -> list[Json]:
    """As the agent's `plan` tells the work of a test: with stream 0 a power test, with others a throughput test."""
    queries: list[Json] = [
        {"name": f"Q{number}", "title": f"title {number}", "parameters": {"day": "1"}, "sql": f"select {number}"}
        for number in range(1, 23)
    ]
    first, last = ({"name": name, "title": name, "parameters": {}, "function": name} for name in ("RF1", "RF2"))
    sessions: list[tuple[int | None, list[Json]]] = [(number, queries) for number in streams]
    if refresh and streams == (0,):
        sessions = [(0, [first, *queries, last])]
    elif refresh:
        sessions.append((None, [first, last] * len(streams)))
    placed = [
        {"stream": stream, "connection": connection, "place": place, **work}
        for connection, (stream, works) in enumerate(sessions)
        for place, work in enumerate(works)
    ]
    return [{"index": index, **work} for index, work in enumerate(placed)]


def done(works: list[Json], **other: str) -> records.Progress:
    """Each piece of work takes a second of its session; `other`: statuses by name."""
    progress = records.Progress(works)
    at: dict[int, int] = {}
    for work in works:
        planned_ns = at.get(work["connection"], 10)
        status = other.get(work["name"], "done")
        line: Json = {"event": "ended", "index": work["index"], "planned_ns": planned_ns, "status": status}
        if status != "skipped":
            line |= {"start_ns": planned_ns + 5, "end_ns": planned_ns + SECOND, "own_ns": None}
            at[work["connection"]] = planned_ns + SECOND
        if status == "done":
            left = {"orders": 2, "lines": 9, "prices_wrong": 0, "ok": work["name"] == "RF1"}
            refreshed = {"set": 1, "orders": 2, "lines": 9, "rows": 11, "verified": left}
            line |= refreshed if "function" in work else {"rows": 4, "own_ns": SECOND // 100}
        elif status != "skipped":
            line |= {"error": "it said why", "error_class": "BinderException"}
        progress.see({"event": "began", "index": work["index"], "t_ns": planned_ns})
        progress.see(line)
    return progress


def test_sessions_and_sets_follow_from_the_work() -> None:
    works = planned(0, refresh=True)
    assert records.sets_needed(works) == {"RF1": 1, "RF2": 1}
    (session,) = records.sessions_of(works)
    assert session[:2] == [{"index": 0, "function": "RF1"}, {"index": 1, "sql": "select 1"}]
    works = planned(1, 2, refresh=True)
    assert records.sets_needed(works) == {"RF1": 2, "RF2": 2}
    assert [len(session) for session in records.sessions_of(works)] == [22, 22, 4]
    assert records.sets_needed(planned(1, 2, refresh=False)) == {"RF1": 0, "RF2": 0}


def test_a_test_is_accounted_for_at_any_moment() -> None:
    works = planned(0, refresh=True)
    progress = records.Progress(works)
    progress.see({"event": "began", "index": 0, "t_ns": 12})
    assert progress.at() == [{"stream": 0, "connection": 0, "place": 0, "name": "RF1", "began_ns": 12}]
    assert progress.identity() == {"planned": 24, "done": 0, "failed": 0, "skipped": 0, "lost": 0}
    whole = done(works, Q3="failed", Q4="timed out", RF2="skipped")
    assert whole.identity() == {"planned": 24, "done": 21, "failed": 2, "skipped": 1, "lost": 0}
    assert whole.at() == []


def trial_of(folder: Path, progress: records.Progress, test: str, one: DecisionSupport) -> Trial:
    """Written as run/servers/duckdb/at_work.py does, and read again."""
    out = folder / test
    out.mkdir()
    found = records.summary(one, test, progress, TOLD, SURROUNDINGS)
    assert _TYPES["faults"](found, Summary, "summary") == []
    assert REQUIRED - found.keys() == set()
    (out / "queries.json").write_text(json.dumps(records.queries(one, test, progress)))
    (out / "summary.json").write_text(json.dumps(found))
    transactions.write(out, records.transactions(progress, 71))
    tests = {"tests": [{"test": test, "segment": test}], "measured_segment": test}
    (folder / "trial.json").write_text(json.dumps(tests))
    return Trial(folder, {"number": 1, "resolved": {"workload": one.model_dump()}})


def test_the_analysis_reads_it(tmp_path: Path) -> None:
    one = workload(tests=["power"])
    trial = trial_of(tmp_path, done(planned(0, refresh=True)), "power", one)
    found = reading(trial)
    assert found is not None
    # 24 pieces of a second each, less the five nanoseconds before each.
    assert round(found["figures"]["power_queries_per_hour"]["value"], 3) == 3600
    assert list(found["times_s"]["power"])[-2:] == ["RF1", "RF2"]
    assert caveats(found) == ["the driver's own part of the queries' time: power 1.00%"]
    (work,) = [work for work in found["segments"][0]["work"] if work["name"] == "RF1"]
    assert (work["set"], work["rows"]) == (1, 11)
    rows = trial.measure.transactions
    assert rows is not None and len(rows) == 24
    assert list(rows["kind"][:2]) == [22, 0] and set(rows["outcome"]) == {0} and set(rows["backend_pid"]) == {71}
    summary = trial.measure.summary or {}
    assert (summary["verification"]["checked"], summary["verification"]["wrong"]) == (2, 1)
    (example,) = summary["verification"]["examples"]
    assert example["index"] == 23 and example["message"].startswith("after RF2 of set 1 there are 2 of its orders")
    assert summary["identity"]["planned"] == summary["identity"]["done"] == 24
    assert summary["health"]["lag_ns"] == {"p50": 5, "p99": 5, "max": 5}
    assert summary["kinds"][22:] == ["RF1", "RF2"] and summary["facts"]["driver_own_queries"] == 22


def test_what_failed_leaves_no_metric_and_says_so(tmp_path: Path) -> None:
    one = workload(tests=["throughput"], query_timeout_seconds=1)
    works = planned(1, 2, refresh=True)
    trial = trial_of(tmp_path, done(works, Q3="timed out", Q4="failed", RF2="skipped"), "throughput", one)
    found = reading(trial)
    assert found is not None
    figure = found["figures"]["throughput_queries_per_hour"]
    assert figure["value"] is None and "stream 1 Q3 (timed out)" in figure["why_absent"]
    summary = trial.measure.summary or {}
    assert [(error["sqlstate"], error["count"]) for error in summary["errors"]] == [
        ("57014", 2),
        ("BinderException", 2),
    ]
    rows = trial.measure.transactions
    assert rows is not None
    by_index = {int(row["index"]): row for row in rows}
    assert (by_index[2]["outcome"], by_index[2]["error"], by_index[3]["error"]) == (1, 1, 2)
    assert by_index[45]["outcome"] == 2 and by_index[45]["statements"] == 0
    (skipped, *_rest) = [row for row in (trial.measure.queries or {})["queries"] if row["name"] == "RF2"]
    assert (skipped["began_ns"], skipped["rows"], skipped["status"]) == (None, None, "skipped")


def agents_keys(struct: str) -> set[str]:
    """The keys of queries.json as the agent writes it, read where they are declared."""
    source = (Path(__file__).parents[3] / "crates/agent/src/streams/record.rs").read_text()
    body = re.search(rf"struct {struct}<'a> \{{(.*?)\n\}}", source, re.DOTALL)
    assert body is not None
    return set(re.findall(r"^    (\w+):", body[1], re.MULTILINE))


def test_its_keys_are_the_agents() -> None:
    one = workload(tests=["power"])
    written = records.queries(one, "power", done(planned(0, refresh=True)))
    assert written.keys() == agents_keys("Queries")
    entries = {key for entry in written["queries"] for key in entry}
    # Its driver tells what it took for itself, and no plans.
    assert entries == agents_keys("Entry") - {"plan"} | {"own_ns"}
