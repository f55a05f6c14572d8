"""Documents of loads that no golden run has, against their types: decision support, files, load lines, live watches.

They are made of records by hand (the worlds of tests/unit/analysis), by the functions that make the real ones.
"""

import json
import runpy
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

from plimsoll.analysis import analyse
from plimsoll.analysis.capacity.compare import compare_capacity
from plimsoll.analysis.capacity.document import Capacity, LinesCompared
from plimsoll.analysis.capacity.objective import parse
from plimsoll.analysis.capacity.verdict import analyse_capacity
from plimsoll.analysis.decision_support.document import DecisionSupport
from plimsoll.analysis.files.document import Operations, Phases
from plimsoll.analysis.watch.document import PictureDocument, WatchDocument
from plimsoll.analysis.watch.heard import Activity, AgentLine, Look, NowHeard, ProcessGrown, WaitGrown
from plimsoll.analysis.watch.live import Picture
from plimsoll.analysis.watch.verdict import analyse_live
from plimsoll.record import open_run

_HERE = Path(__file__).parent
_TYPES = runpy.run_path(str(_HERE / "test_types.py"))
faults, fields, ROOT = _TYPES["faults"], _TYPES["_fields"], _TYPES["ROOT"]
_ANALYSIS = _HERE.parent / "analysis"
_SUPPORT = runpy.run_path(str(_ANALYSIS / "decision_support_world.py"))
_CAPACITY = runpy.run_path(str(_ANALYSIS / "capacity_world.py"))
_FILES = runpy.run_path(str(_ANALYSIS / "files_world.py"))
_WATCH = runpy.run_path(str(_HERE.parent / "report" / "test_live_page.py"))
Json = dict[str, Any]
TIMED_OUT = ((1, "power", 0, "Q9"), "timed out")


def stored(document: object) -> Any:
    """As a file has it."""
    return json.loads(json.dumps(document))


@pytest.mark.parametrize(
    "about",
    [{"explain": True}, {"repeats": 3, "failing": (TIMED_OUT,)}, {"blocks": 1, "tests": ("throughput",), "repeats": 2}],
    ids=["plans", "series", "one block"],
)
def test_decision_support_is_of_its_type(tmp_path: Path, about: Json) -> None:
    run = _SUPPORT["make"](tmp_path / "run", _SUPPORT["World"](**about))
    found = stored(analyse(open_run(run)))["decision_support"]
    assert found["treatments"] and found["trials"] and found["changes"]
    assert faults(found, DecisionSupport, "decision_support") == []


@pytest.mark.parametrize("load", ["raw_storage", "sequential_io"])
def test_phases_are_of_their_type(tmp_path: Path, load: str) -> None:
    run = _FILES["make"](tmp_path / "run", {"name": load, "processes": 1}, ("write", "rewrite", "read"))
    found = stored(analyse(open_run(run)))["phases"]
    assert set(found["phases"]) == {"write", "rewrite", "read"}
    assert faults(found, Phases, "phases") == []


def test_operations_are_of_their_type(tmp_path: Path) -> None:
    found = stored(analyse(open_run(_FILES["make"](tmp_path / "run", {"name": "files"}))))["operations"]
    assert all(treatment["kinds"] for treatment in found["treatments"].values())
    assert faults(found, Operations, "operations") == []


def search(folder: Path, rates: list[float], **last: Any) -> Capacity:
    """A search of a server that does 1000/s; `last`: how its last trial differs."""
    random = np.random.default_rng(7)
    _CAPACITY["write_run"](folder, parse("p99 <= 20ms and errors <= 0.1%").as_json())
    for number, rate in enumerate([None, *rates], start=1):
        made = _CAPACITY["queue"](rate or 950, 1e-3, 1, 10, random)
        place = {"role": "bisect" if rate else "saturation", "rate": rate, "seconds": 10}
        _CAPACITY["write_trial"](folder, number, place, made, 16, **(last if number > len(rates) else {}))
    return analyse_capacity(open_run(folder))


def test_a_load_line_is_of_its_type(tmp_path: Path) -> None:
    found = search(tmp_path / "a", [700.0, 990.0, 200.0, 800.0, 800.0, 800.0, 800.0])
    assert found["knee"] and found["drift"] and found["line"]["rate"], "what may be null is there"
    assert faults(stored(found), Capacity, "capacity") == []
    later = search(tmp_path / "b", [600.0, 700.0, 500.0], wrong=1)
    assert "terms" not in later["trials"][-1]
    compared = compare_capacity(found, later, [])
    assert faults(stored({**later, "earlier": [compared]}), Capacity, "capacity") == []
    assert faults(stored(compared), LinesCompared, "compared") == []


def test_a_watch_is_of_its_type(tmp_path: Path) -> None:
    run = _WATCH["made"](tmp_path / "run")
    columns = ("request", "backend_pid", "arrived_ns", "ended_ns", "cpu_ns", "run_queue_ns", "flags", "requests")
    rows = [(1, 2, 0, 10**9, 10**8, 0, 0, 1), (2, 1, 10**9, 3 * 10**9, 0, 10**8, 64, 1)]  # the second is not over
    table = np.array(rows, [(name, "<i8") for name in columns])
    np.save(run / "trials/0001/measure/breakdown.npy", table)
    names = json.loads((run / "trials/0001/measure/activity.json").read_text())
    assert faults(names, Activity, "activity") == []
    found = stored(analyse_live(open_run(run)))
    lists = ("buckets", "waits", "queries", "backends", "lock_waits", "relations", "processes", "seconds")
    assert all(found[key] for key in lists), "a list without a row says nothing of its type"
    assert len(found["latency"]["slowest"]) == 2
    assert faults(found, WatchDocument, "watch") == []
    found["queries"][0]["mostly"][0][1] = "much"
    assert faults(found, WatchDocument, "watch") == ["watch.queries is a list"]


def test_a_picture_on_the_way_is_of_its_type() -> None:
    picture = Picture()
    assert faults(stored(picture.document(5)), PictureDocument, "picture") == [], "before anything was watched"
    for one in _WATCH["events"]():
        kind = AgentLine if "processes" in one else Look
        assert faults(one, kind, kind.__name__) == []
        (picture.line if "processes" in one else picture.look)(one)
        if "locks" in one:
            break
    found = stored(picture.document(5))
    assert [row["depth"] for row in found["chains"]] == [0, 1]
    assert faults(found, PictureDocument, "picture") == []


@pytest.mark.parametrize(
    ("struct", "typed"),
    [("LiveLine", AgentLine), ("LiveProcess", ProcessGrown), ("LiveWait", WaitGrown), ("LiveNow", NowHeard)],
)
def test_the_agent_tells_the_keys_that_are_typed(struct: str, typed: type) -> None:
    others = {"event"} if typed is AgentLine else set()  # of every line that the agent prints
    assert set(get_type_hints(typed)) - others == fields(ROOT / "crates/record/src/live.rs", struct)
