"""Documents of loads that no golden run has, against their types: decision support, files, load lines, live watches.

They are made of records by hand (the worlds of tests/unit/analysis), by the functions that make the real ones.
"""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import analyse
from plimsoll.analysis.decision_support.document import DecisionSupport
from plimsoll.analysis.files.document import Operations, Phases
from plimsoll.record import open_run

_HERE = Path(__file__).parent
faults = runpy.run_path(str(_HERE / "test_types.py"))["faults"]
_ANALYSIS = _HERE.parent / "analysis"
_SUPPORT = runpy.run_path(str(_ANALYSIS / "decision_support_world.py"))
_FILES = runpy.run_path(str(_ANALYSIS / "files_world.py"))
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
