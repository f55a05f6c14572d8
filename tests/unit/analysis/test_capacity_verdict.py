"""From a record to capacity.json and its page: what enters, what the words say, what two runs say of each other."""

import json
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.capacity.compare import compare_capacity, unlike
from plimsoll.analysis.capacity.judge import all_in_use, generator_limit
from plimsoll.analysis.capacity.line import SIMULATED_SECONDS
from plimsoll.analysis.capacity.objective import parse
from plimsoll.analysis.capacity.reading import Reading
from plimsoll.analysis.capacity.verdict import analyse_capacity
from plimsoll.analysis.statistics.percentile import Cells
from plimsoll.record import compact, open_run
from plimsoll.report.capacity.page import write_capacity_report
from plimsoll.words.capacity.capacity import compared_words, evidence_lines, headline, terminal_lines, trial_words

_WORLD = runpy.run_path(str(Path(__file__).with_name("capacity_world.py")))
RATES = [700, 910, 200, 400, 750, 780, 800, 790, 770, 810, 820, 780, 800]


def make(
    folder: Path,
    rates: list[float] = RATES,
    slo: str = "p99 <= 20ms",
    service: float = 1e-3,
    started: int = 10**18,
    above: float = 0.0,
    **more: Any,
) -> Path:
    random = np.random.default_rng(7)
    _WORLD["write_run"](folder, parse(slo).as_json(), started)
    closed = {"role": "saturation", "rate": None, "seconds": 10}
    _WORLD["write_trial"](folder, 1, closed, _WORLD["queue"](950 * 1e-3 / service, service, 1, 10, random), 16)
    for number, rate in enumerate(rates, start=2):
        made = _WORLD["queue"](rate, service, 1, 20, random)
        place = {"role": "bisect", "rate": float(rate), "seconds": 20}
        _WORLD["write_trial"](folder, number, place, made, 16, **(more if rate >= above else {}))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("runs") / "first")


def test_the_verdict_of_a_record(folder: Path) -> None:
    verdict = analyse_capacity(open_run(folder))
    line = verdict["line"]
    truth = _WORLD["true_line"](0.99, 0.020, 1e-3, 1)
    assert line["status"] == "found"
    assert line["low"] <= line["rate"] <= line["high"]
    assert line["rate"] == pytest.approx(truth, rel=0.06)
    assert verdict["knee"]["low"] <= verdict["knee"]["rate"] <= verdict["knee"]["high"]
    assert verdict["closed_loop"]["throughput"] == pytest.approx(950, rel=0.1)
    words = {one["rate"]: one["verdict"] for one in verdict["trials"]}
    assert words[200] == words[400] == "holds"
    assert words[910] == "breaks"
    assert words[None] is None
    assert json.loads(json.dumps(verdict, allow_nan=False)) == verdict


def test_the_words(folder: Path) -> None:
    verdict = analyse_capacity(open_run(folder))
    said = headline(verdict)
    assert said.startswith("bank select_only, scale 20, 16 connections carries ")
    assert " at p99 <= 20 ms; the queue starts to grow at " in said
    assert verdict["knee"]["place"] == "below"
    assert re.search(r"carries [\d,]+/s \[[\d,]+, [\d,]+\]", said)
    lines = terminal_lines(verdict, "runs/x/report/index.html")
    assert lines[-1] == "Report: runs/x/report/index.html"
    assert any(line.startswith("Closed loop with 16 connections") for line in lines)
    assert all(trial_words(one) for one in verdict["trials"])


def test_the_page(folder: Path) -> None:
    compact(folder)
    verdict = analyse_capacity(open_run(folder))
    verdict["earlier"] = [compare_capacity(verdict, verdict, [])]
    (folder / "capacity.json").write_text(json.dumps(verdict))
    text = write_capacity_report(folder, is_with_files=True).read_text()
    start = text.index("<script>")
    page = text[:start] + text[text.index("</script>", start) :]
    assert "<script>alert" not in page
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", page)
    assert page.index("carries") < page.index("<figure")
    for name in ("latency-against-rate", "search"):
        assert f'data-figure="{name}"' in page
        assert (folder / "report" / "figures" / f"{name}.svg").read_text().startswith("<svg")
    assert "Earlier searches for the same objective" in page


def test_a_record_cut_short_reads(tmp_path: Path) -> None:
    folder = make(tmp_path / "cut", [500, 500, 910])
    run = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(run | {"status": "running"}))
    (folder / "trials" / "0005").mkdir()
    (folder / "trials" / "0004" / "measure" / "summary.json").unlink()
    verdict = analyse_capacity(open_run(folder))
    assert verdict["line"]["status"] == "at least"
    assert [one["verdict"] for one in verdict["trials"]] == [None, "holds", "holds", None, None]
    assert any("the search did not finish" in caveat for caveat in verdict["caveats"])
    assert "carries at least 500/s" in headline(verdict)


def test_nothing_to_judge(tmp_path: Path) -> None:
    folder = _WORLD["write_run"](tmp_path / "none", parse("p99 <= 20ms").as_json())
    verdict = analyse_capacity(open_run(folder))
    assert verdict["line"]["status"] == "cannot tell"
    assert "cannot tell" in headline(verdict)
    (folder / "capacity.json").write_text(json.dumps(verdict))
    assert "Not drawn: no trial at a planned rate has a result" in write_capacity_report(folder).read_text()


def test_what_cannot_be_told_is_told_in_more_minutes(tmp_path: Path) -> None:
    verdict = analyse_capacity(open_run(make(tmp_path / "few", [850])))
    verdict["line"] |= {"status": "cannot tell", "rate": None, "low": None, "high": None, "more": 2.5}
    assert "; --minutes 25 might" in headline(verdict)
    assert "--minutes" not in headline(verdict | {"line": verdict["line"] | {"more": None}})


def test_how_sure_it_is_is_said_of_what_was_simulated(folder: Path) -> None:
    verdict = analyse_capacity(open_run(folder))
    said = next(line for line in evidence_lines(verdict) if "simulated" in line)
    assert verdict["budget_seconds"] == SIMULATED_SECONDS
    assert "nine of ten" in said
    assert "shorter" not in said
    assert any("as this is" in line for line in evidence_lines(verdict | {"budget_seconds": 180.0}))


def test_trials_that_the_hypervisor_disturbed_are_left_out_and_said(tmp_path: Path) -> None:
    verdict = analyse_capacity(open_run(make(tmp_path / "stolen", [*RATES, 950, 960], above=900, steal=12)))
    disturbed = [one for one in verdict["trials"] if one.get("disturbed")]  # 12 ticks of 200 are taken
    assert {one["rate"] for one in disturbed} == {910, 950, 960}
    assert all("the hypervisor took 6% of the CPU time" in trial_words(one) for one in disturbed)
    assert any("3 trials that did not hold were disturbed" in caveat for caveat in verdict["caveats"])
    assert verdict["line"]["high"] < 900, "what breaks below bounds it, and these have no say"
    assert "disturbed" in verdict["rules"]


def test_a_search_cut_short_says_so(tmp_path: Path) -> None:
    below = analyse_capacity(open_run(make(tmp_path / "below", [930], service=1.2e-3)))
    assert below["line"]["status"] == "below"
    assert any("before lower rates were tried" in caveat for caveat in below["caveats"])
    least = analyse_capacity(open_run(make(tmp_path / "least", [300, 400])))
    assert least["line"]["status"] == "at least"
    assert any("before a rate broke the objective" in caveat for caveat in least["caveats"])


def test_a_tight_objective_ends_below_the_knee_and_says_so(tmp_path: Path) -> None:
    rates = [100, 200, 250, 280, 300, 320, 400, 450, 500, 600, 800]
    verdict = analyse_capacity(open_run(make(tmp_path / "tight", rates, "p99 <= 6.4ms")))
    assert verdict["line"]["rate"] == pytest.approx(_WORLD["true_line"](0.99, 6.4e-3, 1e-3, 1), rel=0.15)
    assert verdict["knee"]["place"] == "above"
    assert headline(verdict).endswith("above the load line")
    assert any("only above the load line" in caveat for caveat in verdict["caveats"])


def test_trials_at_one_rate_that_differ_are_named_with_what_moved(tmp_path: Path) -> None:
    folder = make(tmp_path / "drifts", [])
    random = np.random.default_rng(9)
    for number in range(2, 14):
        slow = number * 5 % 12 / 12
        made = _WORLD["queue"](700.0, 1e-3 * (1 + 0.25 * slow), 1, 20, random)
        place = {"role": "confirm", "rate": 700.0, "seconds": 20}
        _WORLD["write_trial"](folder, number, place, made, 16, steal=int(30 * slow))
    verdict = analyse_capacity(open_run(folder))
    assert verdict["drift"]["drifted"]
    assert "cpu_steal_share" in [row["condition"] for row in verdict["drift"]["moved"]]
    assert any("the machine drifted" in caveat and "stolen" in caveat for caveat in verdict["caveats"])


def test_a_failed_check_names_others_as_a_cause_where_there_may_be_others(folder: Path, tmp_path: Path) -> None:
    for name, dsn in (("ours", None), ("theirs", "postgresql://tester@127.0.0.1/bank")):
        other = tmp_path / name
        shutil.copytree(folder, other)
        run = json.loads((other / "run.json").read_text())
        run["capacity"]["checks"] = [{"name": "pgbench_history: rows", "expected": "1", "found": "2", "ok": False}]
        (other / "run.json").write_text(json.dumps(run))
        (other / "experiment.json").write_text(json.dumps({"name": "x", "target": {"dsn": dsn}}))
        said = next(text for text in analyse_capacity(open_run(other))["caveats"] if "FAILED" in text)
        assert "pgbench_history: rows" in said
        assert ("another client that wrote to them" in said) == (dsn is not None)


def test_wrong_answers_are_no_result(tmp_path: Path) -> None:
    verdict = analyse_capacity(open_run(make(tmp_path / "wrong", [700], wrong=3)))
    assert verdict["trials"][1]["verdict"] is None
    assert "3 answers were wrong" in verdict["trials"][1]["reason"]
    assert any("wrong answers" in caveat for caveat in verdict["caveats"])


def test_failed_operations_break_an_objective_that_does_not_speak_of_them(tmp_path: Path) -> None:
    failing = {"identity": {"failed": 600}}
    assert analyse_capacity(open_run(make(tmp_path / "a", [300], **failing)))["trials"][1]["verdict"] == "breaks"
    lenient = make(tmp_path / "b", [300], "p99 <= 20ms and errors <= 15%", **failing)
    assert analyse_capacity(open_run(lenient))["trials"][1]["verdict"] == "holds"
    strict = make(tmp_path / "c", [300], "p99 <= 20ms and errors <= 5%", **failing)
    found = analyse_capacity(open_run(strict))["trials"][1]
    assert found["verdict"] == "breaks"
    assert "errors" in found["reasons"][0]


def test_a_late_generator_is_not_the_servers_queue(tmp_path: Path) -> None:
    late = make(tmp_path / "late", [500, 500, 930, 930], above=900, lag_ns=15_000_000, identity={"skipped": 2000})
    verdict = analyse_capacity(open_run(late))
    assert verdict["trials"][3]["verdict"] == "generator"
    assert verdict["line"]["status"] == "at least"
    assert "the load generator was saturated" in headline(verdict)
    busy = {"health": {"load_cpu_user_ns": 19 * 10**9}}
    verdict = analyse_capacity(open_run(make(tmp_path / "busy", [500, 990], **busy)))
    assert verdict["trials"][2]["verdict"] == "generator"
    assert verdict["trials"][1]["verdict"] == "holds", "a rate that holds holds, however busy the generator is"


def test_how_often_all_connections_are_in_use() -> None:
    found = all_in_use(np.array([0.0, 0.5, 1.0, 2.0, np.nan]), 1)
    assert found == pytest.approx([0.0, 0.5, 1.0, 1.0, 1.0])
    # M/M/2 at load 0.5 waits with probability 1/3.
    assert all_in_use(np.array([1.0]), 2) == pytest.approx([1 / 3])
    assert all_in_use(np.array([8.0]), 16) < 0.01
    assert all_in_use(np.array([5000.0]), 10_000) < 1e-12


def test_lag_that_waits_for_one_of_few_connections_is_no_fault_of_the_generator() -> None:
    objective = parse("p95 <= 50ms")
    seconds = 10
    lag = Cells(
        np.arange(seconds), np.full(seconds, 16e6), np.full(seconds, 17e6), np.full(seconds, 100.0), np.zeros(seconds)
    )
    slow = Cells(lag.second, lag.low * 5, lag.high * 5, lag.count, lag.beyond)
    unknown = np.zeros(seconds)
    counts = {"done": 1000, "failed": 0, "skipped": 0, "lost": 0}

    def limit(clients: int) -> str | None:
        busy = np.full(seconds, 2.7)
        one = Reading(
            1, "bisect", 100.0, seconds, clients, 1, slow, None, unknown, busy, unknown, lag, counts, 100.0, 0.2, 0.8
        )
        return generator_limit([one], objective)

    assert limit(4) is None
    assert "lag p95 16" in (limit(64) or "")


@pytest.mark.parametrize(
    ("rate", "half", "agree"), [(103.0, 0.2, True), (110.0, 0.02, False), (110.0, 0.1, None), (110.0, None, None)]
)
def test_lines_differ_only_where_their_intervals_do(rate: float, half: float | None, agree: bool | None) -> None:
    def line(rate: float) -> dict[str, Any]:
        ends = {"low": None, "high": None} if half is None else {"low": rate * (1 - half), "high": rate * (1 + half)}
        return {"line": {"status": "found", "rate": rate, **ends}, "trials": [], "conditions": {}}

    found = compare_capacity(line(100.0), line(rate), [])
    assert found["agree"] is agree
    assert {True: "agree", False: "differ", None: "cannot tell"}[agree] in compared_words(found)


def test_two_lines_that_agree_and_two_that_do_not(tmp_path: Path, folder: Path) -> None:
    first = analyse_capacity(open_run(folder))
    same = compare_capacity(first, first, [])
    assert same["agree"] is True
    assert "agree within 5 %" in compared_words(same)
    slow = make(tmp_path / "slow", [rate * 0.8 for rate in RATES], service=1.25e-3, steal=20)
    second = analyse_capacity(open_run(slow))
    found = compare_capacity(first, second, [])
    assert found["agree"] is False
    lines = [_WORLD["true_line"](0.99, 0.020, service, 1) for service in (1e-3, 1.25e-3)]
    assert found["ratio"] == pytest.approx(lines[1] / lines[0], rel=0.1)
    assert found["moved"][0]["condition"] in (
        "cpu_steal_share",
        "server_cpu_ns_per_transaction",
        "generator_cpu_ns_per_transaction",
    )
    assert "CPU stolen by the hypervisor" in compared_words(found)
    assert unlike(first, second) == []
    assert unlike(first, {**second, "clients": 8}) == ["clients: 16 against 8"]
