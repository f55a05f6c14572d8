"""The record's documents and their types: every key of real files is typed, and what is required is there.

`agent_summary.json` was written by the agent (tests/golden); the agent's own types are read where they are declared.
"""

import json
import re
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

import pytest

from plimsoll.analysis import analyse, parts
from plimsoll.analysis.caches import document as of_caches
from plimsoll.analysis.next_steps.step import Step
from plimsoll.analysis.probes import document as of_probes
from plimsoll.record import open_run, summary
from plimsoll.record.trial import TrialDocument
from plimsoll.record.verdict import Verdict

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"
FILES = [GOLDEN / "agent_summary.json", *sorted(GOLDEN.glob("*/trials/*/*/summary.json"))]
TRIALS = sorted(GOLDEN.glob("*/trials/*/trial.json"))


def faults(value: Any, kind: Any, where: str) -> list[str]:
    """Where a document is not of its type: keys that it does not know, values of another kind."""
    if kind is Any:
        return []
    if is_typeddict(kind):
        if not isinstance(value, dict):
            return [f"{where} is no object"]
        hints = get_type_hints(kind)
        found = [f"{where}.{key} is in no type" for key in value.keys() - hints.keys()]
        found += [f"{where}.{key} is missing" for key in kind.__required_keys__ - value.keys()]
        return found + [one for key in value.keys() & hints for one in faults(value[key], hints[key], f"{where}.{key}")]
    origin, inner = get_origin(kind), get_args(kind)
    if origin is list and isinstance(value, list):
        return [one for item in value for one in faults(item, inner[0], f"{where}[]")]
    if origin is tuple and isinstance(value, list) and len(value) == len(inner):  # JSON has no other form of it
        pairs = enumerate(zip(value, inner, strict=True))
        return [one for place, (item, its) in pairs for one in faults(item, its, f"{where}[{place}]")]
    if origin is dict and isinstance(value, dict):
        return [one for key, item in value.items() for one in faults(item, inner[1], f"{where}.{key}")]
    if origin is Literal:
        fits = value in inner
    elif origin in (Union, UnionType):
        fits = any(not faults(value, one, where) for one in inner)
    else:
        fits = type(value) in ((int, float) if kind is float else (origin or kind,))
    return [] if fits else [f"{where} is a {type(value).__name__}"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_a_real_summary_is_of_its_type(path: Path) -> None:
    found = json.loads(path.read_text())
    assert faults(found, summary.Summary, "summary") == []
    assert summary.REQUIRED - found.keys() == set()


@pytest.mark.parametrize("path", TRIALS, ids=lambda path: str(path.relative_to(GOLDEN)))
def test_a_real_trial_is_of_its_type(path: Path) -> None:
    assert faults(json.loads(path.read_text()), TrialDocument, "trial") == []


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/run.json")), ids=lambda path: path.parent.name)
def test_a_verdict_is_of_its_type(path: Path) -> None:
    found = json.loads(json.dumps(analyse(open_run(path.parent))))
    core = {key: value for key, value in found.items() if key not in {part.key for part in parts.PARTS}}
    assert faults(core, Verdict, "verdict") == []
    entries = [*found["trials"], *found["treatments"].values()]
    assert {"reconciliation", "double_caching"} <= {key for entry in entries for key in entry}
    assert found["next_steps"] and faults(found["next_steps"], list[Step], "next_steps") == []


# The golden runs watched the page cache, buffer heads and paused writers; what the other probes give is checked
# where trials of them are written (tests/unit/analysis/test_probe_documents.py).
OF_RUN: dict[str, Any] = {
    "instruments": dict[str, of_probes.Instrument],
    "reconciliation": of_caches.Reconciliation,
    "double_caching_absent": list[of_caches.NotRead],
}
OF_TREATMENT: dict[str, Any] = {
    "reconciliation": of_caches.MeanDeviceReads | None,
    "double_caching": of_caches.Readings | None,
}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*/run.json")), ids=lambda path: path.parent.name)
def test_what_probes_and_caches_give_is_of_its_type(path: Path) -> None:
    found = json.loads(json.dumps(analyse(open_run(path.parent))))
    wrong = [one for key, kind in OF_RUN.items() for one in faults(found[key], kind, key)]
    for treatment in found["treatments"].values():
        wrong += [one for key, kind in OF_TREATMENT.items() for one in faults(treatment[key], kind, key)]
    for trial in found["trials"]:
        wrong += faults(trial["reconciliation"], of_caches.DeviceReads | None, "reconciliation")
    assert wrong == []


def test_what_no_type_knows_is_told() -> None:
    found = json.loads(FILES[0].read_text())
    found["health"]["lag_ns"]["p75"] = found["novel"] = 1
    found["retries"], found["rows"] = "none", {"recorded": 1}
    assert sorted(faults(found, summary.Summary, "summary")) == [
        "summary.health.lag_ns.p75 is in no type",
        "summary.novel is in no type",
        "summary.retries is a str",
        "summary.rows.all_below_index is missing",
        "summary.rows.sample_one_in is missing",
    ]


@pytest.mark.parametrize(
    ("struct", "file", "typed"),
    [
        ("Summary", "summary", summary.Summary),
        ("Identity", "summary", summary.Identity),
        ("ByKind", "summary", summary.ByKind),
        ("ErrorEntry", "summary", summary.ErrorEntry),
        ("Health", "summary", summary.Health),
        ("LagNs", "summary", summary.LagNs),
        ("Verification", "summary", summary.Verification),
        ("WrongAnswer", "summary", summary.WrongAnswer),
        ("Rows", "summary", summary.Rows),
        ("Windows", "summary", summary.Windows),
    ],
)
def test_the_agent_writes_the_keys_that_are_typed(struct: str, file: str, typed: type) -> None:
    written = _fields(ROOT / f"crates/record/src/{file}.rs", struct)
    others = {"synthetic", "instrument"} if typed is summary.Summary else set()  # of test data, and of a watch
    assert set(get_type_hints(typed)) - others == written


def _fields(path: Path, struct: str) -> set[str]:
    """The public fields of the structs whose name is, or ends in, this."""
    bodies = re.findall(rf"pub struct {struct} \{{(.*?)\n\}}", path.read_text(), re.DOTALL)
    assert bodies, f"{path}: no struct {struct}"
    return {field for body in bodies for field in re.findall(r"^    pub (\w+):", body, re.MULTILINE)}


def test_every_probes_report_is_typed() -> None:
    probes = ROOT / "crates/record/src/probe"
    # Each begins with what every probe says of itself, which is written beside its own keys.
    written = _fields(probes / "mod.rs", "ProbeStatus")
    for path in sorted(probes.glob("*.rs")):
        written |= set() if path.name == "mod.rs" else _fields(path, r"\w+Report") - {"status"}
    assert set(get_type_hints(summary.Probe)) == written


def test_what_a_record_lacks_is_empty(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    (tmp_path / "trials" / "0001").mkdir(parents=True)
    segment = open_run(tmp_path).trials[0].measure
    assert segment.summary is None
    told = (segment.told, segment.identity, segment.by_kind, segment.health, segment.verification, segment.probes)
    assert [*told, segment.schedule] == [{}] * 7
    assert [segment.kinds, segment.errors, segment.devices] == [[]] * 3
