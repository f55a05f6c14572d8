"""The first screen of the pages that are no experiment's, and of runs that compare nothing: links lead somewhere."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import analyse
from plimsoll.analysis.breakdown.parts import OTHERS, gathered, named_among, spent
from plimsoll.analysis.capacity.verdict import analyse_capacity
from plimsoll.record import compact, open_run
from plimsoll.report import write_report
from plimsoll.report.capacity.page import write_capacity_report
from plimsoll.report.decision_support.drift_figure import answer_figure
from plimsoll.words.first_screen import first_screen
from plimsoll.words.watch_screen import watch_screen

_TESTS = Path(__file__).parents[2]
_CAPACITY = runpy.run_path(str(_TESTS / "unit/analysis/test_capacity_verdict.py"))
_DSS = runpy.run_path(str(_TESTS / "unit/analysis/decision_support_world.py"))
_MAKER = runpy.run_path(str(_TESTS / "golden/make_synthetic.py"))
_BREAKDOWN = runpy.run_path(str(_TESTS / "unit/analysis/breakdown_world.py"))
Json = dict[str, Any]


def links(text: str) -> tuple[set[str], set[str]]:
    """The places that a page links to, and those that it has; the sections that are folded are all in the contents."""
    linked = set(re.findall('<a href="#([^"]+)"', text))
    there = set(re.findall(r'<details class="section" data-section="[^"]+">\s*<summary><h2>[^<]+</h2></summary>\s*'
                           r'<div id="([^"]+)">', text))  # fmt: skip
    return linked, there


def test_a_load_line_has_it(tmp_path: Path) -> None:
    folder = _CAPACITY["make"](tmp_path / "run", [200, 400, 700, 780, 800, 820, 910])
    compact(folder)
    verdict = analyse_capacity(open_run(folder))
    (folder / "capacity.json").write_text(json.dumps(verdict))
    text = write_capacity_report(folder).read_text()
    linked, there = links(text)
    assert linked == there >= {"section-line", "section-trials", "section-machine", "section-method"}
    assert text.index('data-figure="answer"') < text.index("What to do next") < text.index("<details")
    if verdict["line"]["status"] == "found":
        assert f"Plan for at most {verdict['line']['low']:,.0f}/s" in text


BUCKETS = [
    {"bucket": "cpu", "share": 0.3, "ns": 3},
    {"bucket": "lock", "share": 0.6, "ns": 6},
    {"bucket": "client", "share": None, "ns": 9},
]
WATCHED: Json = {
    "headline": "On average 1.00 backends were busy",
    "buckets": BUCKETS,
    "queries": [{"text": "SELECT\n  " + "x" * 99, "share": 0.5}],
    "waits": [{"event": "Lock:tuple", "share": 0.6}],
    "lock_waits": [{"waiter": 1}],
    "watched_ns": 3e9,
    "transactions": 15,
    "caveats": ["first", "second"],
}


def test_a_watch_says_what_to_read_by_its_largest_bucket() -> None:
    screen = watch_screen(WATCHED)
    assert [one.section for one in screen.next_steps] == ["locks"]
    assert [one.section for one in watch_screen(WATCHED | {"lock_waits": []}).next_steps] == ["queries"]
    assert watch_screen(WATCHED | {"buckets": []}).next_steps == []
    assert screen.why[0].text.endswith("xxx…") and "\n" not in screen.why[0].text
    assert [one.text for one in screen.wrong] == ["first (and 1 more)"]


def test_a_run_of_one_treatment_shows_where_its_time_goes(tmp_path: Path) -> None:
    folder = _MAKER["make"](tmp_path / "run", _MAKER["Shape"](caches=(256,), measure_seconds=8, warmup_seconds=8))
    plan = json.loads((folder / "plan.json").read_text())
    plan["trials"] = [trial | {"duplicate": False} for trial in plan["trials"]]
    (folder / "plan.json").write_text(json.dumps(plan))
    for path in folder.glob("trials/*/trial.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"duplicate": False}))
    _BREAKDOWN["add_to_run"](folder, {})
    text = write_report(folder).read_text()
    assert re.search(r"throughput \d+ \[\d+, \d+\] transactions/s; nothing to compare", text)
    assert "A transaction takes " in text and "<code>./plimsoll run buffer-cache --set" in text
    assert text.index('data-figure="answer"') < text.index("<details")
    linked, there = links(text)
    assert linked == there


def test_a_series_that_compares_nothing_shows_its_drift(tmp_path: Path) -> None:
    run = open_run(_DSS["make"](tmp_path / "run", _DSS["World"](repeats=3)))
    verdict = analyse(run)
    assert answer_figure(verdict) is None, "levels are the answer where there are any"
    alone = verdict | {"comparisons": []}
    figure = answer_figure(alone)
    assert figure is not None and figure.name == "answer" and figure.spec is not None
    assert "throughput over 3 tests" in first_screen(alone).answers[0].text


@pytest.mark.parametrize(
    ("wholes", "named"),
    [
        ([{"a": 99.5, "b": 0.5}], {"a", "b"}),
        ([{"a": 99, "b": 0.4, "c": 0.4}], {"a"}),
        ([{"a": 99, "b": 0.4, "c": 0.4}, {"a": 1, "c": 1}], {"a", "b", "c"}),
        ([{"a": 99, "b": 0.4, "c": -1.5, "d": 0.1}], {"a", "c"}),
        ([{"a": 1, "b": 0.0, "c": 0.0}], {"a"}),
        ([], set()),
    ],
)
def test_a_part_has_a_name_where_it_is_worth_one(wholes: list[dict[str, float]], named: set[str]) -> None:
    assert named_among(wholes) == named
    for whole in wholes:
        shown = gathered(whole, named)
        assert sum(shown.values()) == pytest.approx(sum(whole.values()))
        assert shown.keys() - {OTHERS} <= named


def test_what_segments_took_is_added_up_by_part() -> None:
    assert spent([{"part": "a", "ns": 3}, {"part": "b", "ns": 5}, {"part": "a", "ns": 4}]) == {"a": 7, "b": 5}
