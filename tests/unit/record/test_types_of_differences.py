"""Parts of a verdict that no golden run has, against their types: breakdown, changes, studies, order entry, windows.

They are made of records by hand (the worlds of tests/unit/analysis), by the functions that make the real ones.
"""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import analyse, compare_treatments, parts
from plimsoll.analysis.breakdown.document import Breakdown
from plimsoll.analysis.order_entry.document import OfTreatment, OrderEntry
from plimsoll.analysis.order_entry.order_entry import of_trials
from plimsoll.analysis.runs.document import Explained
from plimsoll.analysis.studies.clients import clients
from plimsoll.analysis.studies.document import Clients, MemoryScaling, Scaling
from plimsoll.analysis.studies.memory_scaling import memory_scaling
from plimsoll.analysis.studies.scaling import scaling
from plimsoll.analysis.windows.document import WindowsOfRun
from plimsoll.record import open_run
from plimsoll.record.verdict import Verdict

_HERE = Path(__file__).parent
faults = runpy.run_path(str(_HERE / "test_types.py"))["faults"]
_ANALYSIS = _HERE.parent / "analysis"
_SYNTHETIC = runpy.run_path(str(_HERE.parents[1] / "golden" / "make_synthetic.py"))
_BREAKDOWN = runpy.run_path(str(_ANALYSIS / "breakdown_world.py"))
_CHANGES = runpy.run_path(str(_ANALYSIS / "changes_world.py"))
_SCALING = runpy.run_path(str(_ANALYSIS / "scaling_world.py"))
_RATES = runpy.run_path(str(_ANALYSIS / "test_scaling.py"))
_CLIENTS = runpy.run_path(str(_ANALYSIS / "test_clients.py"))
_WINDOWS = runpy.run_path(str(_ANALYSIS / "windows_world.py"))
_ORDERS = runpy.run_path(str(_ANALYSIS / "test_order_entry.py"))


def stored(document: object) -> Any:
    """As a file has it."""
    return json.loads(json.dumps(document))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two treatments, the second of which waits longer, and calls and runs more."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    made = _SYNTHETIC["make"](folder, _SYNTHETIC["Shape"](caches=(64, 1024), measure_seconds=8, warmup_seconds=8))
    _BREAKDOWN["add_to_run"](made, {"t2": ("lock", _BREAKDOWN["TRANSACTION_LOCK"], 0.3)})
    _CHANGES["add_to_run"](made, {"t2": {("wal", "fdatasync"): 0.6}}, {"t2": {("backend", "main", "sort"): 6.0}})
    return Path(made)


def test_a_breakdown_is_of_its_type(run: Path) -> None:
    found = stored(analyse(open_run(run)))["breakdown"]
    assert found["differences"] and any(row["waits"] for row in found["differences"])
    assert all(entry["slowest"] and entry["system"] for entry in found["treatments"].values())
    assert faults(found, Breakdown, "breakdown") == []


def test_what_changed_is_of_its_type(run: Path) -> None:
    (found,) = stored(compare_treatments(open_run(run), "t1", "t2"))["explained"]
    assert all(found[key] for key in ("latency", "cpu", "calls", "functions")), "all is known"
    assert faults(found, Explained, "explained") == []


def test_a_refused_breakdown_is_of_its_type(tmp_path: Path) -> None:
    refused = Path(_SYNTHETIC["make"](tmp_path / "run", _SYNTHETIC["Shape"](measure_seconds=8, warmup_seconds=8)))
    for path in refused.glob("trials/*/measure/summary.json"):
        document = json.loads(path.read_text())
        document["probes"] = {"breakdown": {"status": "refused", "reason": "no BTF", "remedy": "another kernel"}}
        path.write_text(json.dumps(document))
    found = stored(analyse(open_run(refused)))["breakdown"]
    assert found["why_absent"] and found["refused"]
    assert faults(found, Breakdown, "breakdown") == []


@pytest.mark.parametrize("blocks", [1, 3])
def test_the_study_of_clients_is_of_its_type(blocks: int) -> None:
    used = _CLIENTS["used"](blocks, _CLIENTS["locked"])
    found = stored(clients(_CLIENTS["plan"]([1, 32], [1, 30]), _CLIENTS["EXPERIMENT"], used, 0.05))
    assert found["rows"] and found["growth"] and found["against_smallest"]
    assert faults(found, Clients, "clients") == []


@pytest.mark.parametrize("blocks", [1, 3])
def test_the_studies_of_scaling_are_of_their_types(blocks: int) -> None:
    counts = [_SCALING["cpu_text"](count) for count in (1, 2, 4, 8)]
    planned = _SCALING["plan"]({_SCALING["CPUS"]: counts, _SCALING["CLIENTS"]: [4, 16]})
    used = _SCALING["used"](planned, blocks, _RATES["by_law"], load="0-1")
    found = stored(scaling(planned, _SCALING["EXPERIMENT"], used, 0.05))
    assert {law["over"] for law in found["laws"]} == {"cpus", "clients"}
    assert any(law["status"] == "fitted" for law in found["laws"]) == (blocks > 1)
    assert faults(found, Scaling, "scaling") == []
    planned = _SCALING["plan"]({_SCALING["MEMORY"]: [2**30, 2**31], _SCALING["HUGE"]: ["never", "always"]})

    def rates(_settings: dict[str, Any], block: int) -> dict[str, float]:
        return {"throughput_per_second": 100.0 + block, "cpu_ns_per_transaction": 50.0 * block, "cpu_steal_share": 0.1}

    used = _SCALING["used"](planned, blocks, rates)
    found = stored(memory_scaling(planned, _SCALING["EXPERIMENT"], used, 0.05, 0.0))
    assert found["pairs"] and found["growth"] and found["rows"]
    assert faults(found, MemoryScaling, "memory_scaling") == []


def test_order_entry_is_of_its_type(tmp_path: Path) -> None:
    fates = {"acknowledged": 40, "lost": 1, "twice": 0}
    where = dict.fromkeys(("index", "warehouse", "district", "order", "amount_cents", "made_us"), 1)
    customer = dict.fromkeys(("customer_warehouse", "customer_district", "customer"), 2)
    lost = [{"kind": "payment", **where, **customer}]
    run = _ORDERS["order_entry_run"](tmp_path / "run", {"new_orders": fates, "payments": fates, "lost": lost})
    found = stored(analyse(open_run(run)))["order_entry"]
    assert found["treatments"] and found["ledger"]
    assert faults(found, OrderEntry, "order_entry") == []


def test_order_entry_with_users_is_of_its_type(tmp_path: Path) -> None:
    trials = [_ORDERS["trial"](tmp_path, number, 100 * number, 2.0, _ORDERS["USERS"]) for number in (1, 2)]
    found = stored(of_trials(trials))
    assert found["rate"]["ceiling"] and found["rate"]["of_allowed"]
    assert faults(found, OfTreatment, "order_entry") == []


@pytest.mark.parametrize("about", [{"duplicate": True, "slow_start": 0.2, "foreign": 0.2}, {"blocks": 1}], ids=str)
def test_windows_are_of_their_type(tmp_path: Path, about: dict[str, Any]) -> None:
    run = _WINDOWS["make"](tmp_path / "run", _WINDOWS["Shape"](**about))
    verdict = stored(analyse(open_run(run)))
    found = verdict["windows"]
    assert found["rates"] and found["closing"] and found["lead_in"] and found["noise"]
    assert faults(found, WindowsOfRun, "windows") == []
    core = {key: value for key, value in verdict.items() if key not in {part.key for part in parts.PARTS}}
    assert faults(core, Verdict, "verdict") == []
