"""What judges a soak with faults (benches/planting): faults that are told are found, and each that is not is missed."""

from __future__ import annotations

import argparse
import copy
import itertools
import os
import runpy
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benches"))
from planting import journal
from planting.journal import Fault
from planting.judge import alarms, judged
from planting.machine import CLIENT, GrowingLoad
from planting.plan import KILLS, LEAK, LOAD, PARTS, SERVER, WARNING, planned, share_taken

from plimsoll.experiment.soaking import seconds_of
from plimsoll.run.soak.source import Asked, source_of

Json = dict[str, Any]


def may_be_first() -> bool:
    """Whether a process may have a real-time priority here; it is asked in one of its own."""
    asked = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", asked], capture_output=True, check=False).returncode == 0


S = 10**9
BEGAN = 1_795_867_200 * S  # 2026-11-28 12:00:00 UTC
ROUND_S, ROUNDS, MIB = 60, 12, 2**20


def at(minutes: float) -> int:
    return BEGAN + round(minutes * ROUND_S * S)


BENCH = Path(__file__).parents[3] / "benches" / "soak_with_faults.py"
STEADY = BENCH.parent / "planting" / "steady" / "experiment.toml"

FAULTS = [
    Fault("growing load", at(1.2), "round-0002", 1),
    Fault("leak", at(1.3), "round-0002", 1),
    Fault("front killed", at(2.5), "round-0003", 1, pid=10),
    Fault("front killed", at(3.5), "round-0003", 2, pid=11),
    Fault("agent killed", at(4.5), "round-0005", 1, pid=12),
    Fault("backend killed", at(5.5), "round-0006", 1, pid=13),
    Fault("server crash", at(6.5), "round-0007", 1, pid=14),
    Fault("kernel warning", at(8.5), "round-0009", 1, text="WARNING: planted"),
]


def share(value: float) -> Json:
    return {"value": value, "low": value - 0.01, "high": value + 0.01}


def cut(name: str, attempt: int, began: int, why: str) -> Json:
    return {"round": name, "attempt": attempt, "began_epoch_ns": began, "why": why}


def growth(name: str, verdict: str = "grows") -> Json:
    floors = [{"t_s": 100.0 + 30 * place, "value": (100 + 2.4 * place) * MIB} for place in range(24)]
    slope = {"value": 286.0 * MIB, "low": 280.0 * MIB, "high": 290.0 * MIB}
    return {"name": name, "unit": "bytes", "hours": 0.2, "an_hour": slope, "first": 1.0, "last": 2.0, "floors": floors,
            "verdict": verdict, "rule": ""}  # fmt: skip


def calm() -> Json:
    """What a soak without faults says."""
    rounds = range(1, ROUNDS + 1)
    row: Json = {"seconds": 60.0, "value": 200.0, "latency_ns_p99": 1e6, "failed": 0, "is_judged": True}
    each = [row | {"round": one, "began_epoch_ns": at(one - 1), "step_s": 0, "has_rows": True} for one in rounds]
    steady: Json = {
        "value": 200.0, "by_machine": None, "value_by_machine": None, "verdict": None, "remarks": [],
    }  # fmt: skip
    drift: Json = {
        "rounds": [steady | {"round": one, "change": share(0.0)} for one in rounds],
        "a_round": share(0.0), "over_all": share(0.0), "steps": [], "shape": None, "scatter": 0.01, "correlation": 0.0,
        "widest": None, "at_equal_speed": None, "told": "as measured", "verdict": "no drift larger than 1.5 %",
        "rule": "",
    }  # fmt: skip
    soak: Json = {
        "metric": "throughput_tps", "length_s": 720.0, "spent_s": 720.0, "between": "checkpoint",
        "after_crash": "go on", "ended_by": "time", "why": None, "sittings": 1, "each": each, "drift": drift,
        "inside": [], "crashes": [],
        "interruptions": [], "full": [], "disks": [], "growth": [growth("the database", "grew, and settles")],
        "thinned": {}, "rule": "",
    }  # fmt: skip
    kernel: Json = {"trials": [1], "counts": {}, "events": [], "lost": {}, "refused": [], "growth": []}
    return {"soak": soak, "kernel": kernel}


def told() -> Json:
    """What a soak with FAULTS says where it tells all of them."""
    verdict = calm()
    soak, kernel = verdict["soak"], verdict["kernel"]
    soak["drift"]["verdict"], soak["drift"]["over_all"], soak["drift"]["a_round"] = "lower", share(-0.2), share(-0.02)
    for one in soak["drift"]["rounds"]:
        one["change"] = share(-0.02 * (one["round"] - 1))
    log = "2026-11-28 12:05:30.512 UTC [99] LOG:  server process (PID 13) was terminated by signal 9: Killed"
    soak["crashes"] = [
        {"round": 6, "epoch_ns": at(5.5) + 512 * S // 1000, "text": log},
        {"round": 7, "epoch_ns": at(6.5) + S, "text": "the server ended in round-0007; its log ends with: FATAL"},
    ]
    soak["interruptions"] = [
        cut("round-0003", 1, at(2.1), "the run was killed"),
        cut("round-0003", 2, at(3.1), "the run was killed"),
        cut("round-0005", 1, at(4.1), "the agent's load ended with exit code -9: no message"),
        cut("round-0007", 1, at(6.1), "the server ended in round-0007: "),
    ]
    event = {"trial": 1, "segment": "round-0009", "what": "warning", "seconds": 30.0, "by": "program"}
    kernel["events"] = [event | {"epoch_ns": at(8.5) + S // 10, "text": "WARNING: planted"}]
    kernel["growth"] = [growth("shared memory and tmpfs")]
    return verdict


def test_all_that_a_soak_tells_is_found_with_its_time() -> None:
    rows = judged(FAULTS, told())
    assert [row.fault for row in rows] == FAULTS and all(row.is_told and row.told_as for row in rows), rows
    by = {row.fault.what: row for row in rows}
    assert by["backend killed"].told_ns == at(5.5) + 512 * S // 1000
    assert by["kernel warning"].told_ns == at(8.6) - 6 * S + S // 10
    assert by["growing load"].told_ns == at(2), "the first round that is lower than the first for good"
    assert "a round -2 %" in str(by["growing load"].told_as)
    assert by["leak"].told_ns == at(0) + 90 * S and "+286 MiB/h" in str(by["leak"].told_as)  # a tenth of its rise
    assert rows[2].told_ns == at(2.1) and rows[3].told_ns == at(3.1)


def test_what_others_hold_for_a_while_does_not_tell_when_a_leak_began() -> None:
    verdict = told()
    (found,) = verdict["kernel"]["growth"]
    base = [0.0, 0, 0, 10, 20, 30, 40, 50, 60, 70]
    others = [900.0, 0, 500, 0, 0, 0, 0, 0, 0, 0]
    found["floors"] = [
        {"t_s": 60.0 * place, "value": held + more} for place, (held, more) in enumerate(zip(base, others, strict=True))
    ]
    rows = judged([FAULTS[1]], verdict)
    assert rows[0].told_ns == at(0) + 120 * S, "of what there is then, no more than 10 is there at the end"


def _no_drift(verdict: Json) -> None:
    verdict["soak"]["drift"]["verdict"] = "cannot tell"


def _recovered(verdict: Json) -> None:
    verdict["soak"]["drift"]["rounds"][-1]["change"] = share(0.0)


def _settles(verdict: Json) -> None:
    verdict["kernel"]["growth"][0]["verdict"] = "grew, and settles"


def _of_another_series(verdict: Json) -> None:
    verdict["kernel"]["growth"][0]["name"] = "slab dentry"


def _one_cut(verdict: Json) -> None:
    del verdict["soak"]["interruptions"][1]


def _one_attempt_twice(verdict: Json) -> None:
    verdict["soak"]["interruptions"][1]["attempt"] = 1


def _without_its_time(verdict: Json) -> None:
    verdict["soak"]["interruptions"][0]["began_epoch_ns"] = None


def _by_nobody(verdict: Json) -> None:
    verdict["soak"]["interruptions"][2]["why"] = "the run was stopped"


def _another_process(verdict: Json) -> None:
    verdict["soak"]["crashes"][0]["text"] = verdict["soak"]["crashes"][0]["text"].replace("PID 13", "PID 131")


def _seen_at_the_end(verdict: Json) -> None:
    verdict["soak"]["crashes"][0]["epoch_ns"] = at(7)


def _late(verdict: Json) -> None:
    verdict["soak"]["crashes"][1]["epoch_ns"] += 600 * S


def _other_text(verdict: Json) -> None:
    verdict["kernel"]["events"][0]["text"] = "WARNING: another"


def _no_clock(verdict: Json) -> None:
    verdict["kernel"]["events"][0]["epoch_ns"] = None


@pytest.mark.parametrize(
    ("hide", "missing"),
    [
        (_no_drift, "growing load"),
        (_recovered, "growing load"),
        (_settles, "leak"),
        (_of_another_series, "leak"),
        (_one_cut, "front killed"),
        (_one_attempt_twice, "front killed"),
        (_without_its_time, "front killed"),
        (_by_nobody, "agent killed"),
        (_another_process, "backend killed"),
        (_seen_at_the_end, "backend killed"),
        (_late, "server crash"),
        (_other_text, "kernel warning"),
        (_no_clock, "kernel warning"),
    ],
)
def test_what_a_soak_does_not_tell_is_missed_and_nothing_else(hide: Callable[[Json], None], missing: str) -> None:
    verdict = told()
    hide(verdict)
    assert [row.fault.what for row in judged(FAULTS, verdict) if not row.is_told] == [missing]


def test_two_faults_are_not_told_by_one_record() -> None:
    twice = [FAULTS[-1], FAULTS[-1], FAULTS[2], FAULTS[2], FAULTS[5], FAULTS[5]]
    assert [row.is_told for row in judged(twice, told())] == [True, False] * 3


def inside(*, by_machine: bool) -> Json:
    """A change inside a round."""
    equal = share(0.01 if by_machine else 0.09)
    return {
        "round": 5,
        "after_s": 9.0,
        "size": share(0.1),
        "chance": 0.0,
        "at_equal_speed": equal,
        "by_machine": by_machine,
    }


def test_what_the_machine_did_inside_a_round_is_no_alarm() -> None:
    verdict = copy.deepcopy(calm())
    verdict["soak"]["inside"].append(inside(by_machine=True))
    assert alarms(verdict) == []


def test_a_calm_soak_has_no_alarm_and_each_of_its_alarms_is_one() -> None:
    assert alarms(calm()) == []
    assert len(alarms(told())) == 1 + 2 + 4 + 1 + 1  # its drift, crashes, interruptions, the log, what grows
    assert alarms({"kernel": calm()["kernel"]}) != []
    for place, change in enumerate(
        (
            lambda soak, _: soak["drift"].update(verdict="cannot tell"),
            lambda soak, _: soak["drift"]["steps"].append({"round": 5, "size": share(0.05), "chance": 0.0}),
            lambda soak, _: soak["inside"].append(inside(by_machine=False)),
            lambda soak, _: soak["full"].append({"epoch_ns": at(1), "freed_bytes": 1}),
            lambda _, kernel: kernel["growth"].append(growth("slab dentry")),
            lambda _, kernel: kernel["refused"].append("may not be read"),
        )
    ):
        verdict = copy.deepcopy(calm())
        change(verdict["soak"], verdict["kernel"])
        assert len(alarms(verdict)) == 1, place


@pytest.mark.parametrize("seed", range(40))
def test_a_plan_has_every_fault_once_to_a_round(seed: int) -> None:
    plan = planned(36, seed)
    assert plan == planned(36, seed) and plan != planned(36, seed + 1)
    counts = Counter(one.what for one in plan)
    assert sum(counts[part] for part in PARTS) == KILLS and all(counts[part] for part in PARTS)
    assert (counts[SERVER], counts[WARNING], counts[LOAD], counts[LEAK]) == (1, 1, 1, 1)
    once = [one.round for one in plan if one.what not in (LOAD, LEAK)]
    assert len(set(once)) == len(once) and all(2 <= one <= 23 for one in once)
    assert [one.round for one in plan] == sorted(one.round for one in plan)
    assert {one.what for one in plan[:2]} == {LOAD, LEAK}


def test_too_few_rounds_are_refused_with_how_many_are_enough() -> None:
    with pytest.raises(ValueError, match="20 are enough"):
        planned(10, 1)
    assert len(planned(20, 1)) == KILLS + 4
    with pytest.raises(ValueError, match="are too few"):
        planned(19, 1)


def test_each_round_loses_its_share_of_what_is_left() -> None:
    left = [1 - share_taken(rounds, 0.02) for rounds in range(4)]
    assert left == pytest.approx([1, 0.98, 0.98**2, 0.98**3]) and share_taken(-1, 0.02) == 0


def test_what_was_planted_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "planted.jsonl"
    assert journal.read(path) == []
    for fault in FAULTS:
        journal.write(path, fault)
    assert journal.read(path) == FAULTS


@pytest.mark.parametrize(
    ("title", "is_one"),
    [
        ("postgres: plimsoll plimsoll [local] idle in transaction", True),
        ("postgres: plimsoll plimsoll [local]", True),
        ("postgres: cluster: plimsoll bank 127.0.0.1(51234) COMMIT", True),
        ("postgres: checkpointer ", False),
        ("postgres: autovacuum worker plimsoll", False),
        ("/usr/lib/postgresql/15/bin/postgres -D /x", False),
    ],
)
def test_a_backend_is_told_by_its_title(title: str, is_one: bool) -> None:
    assert bool(CLIENT.match(title)) is is_one


def test_a_load_takes_its_share_beside_others_of_another_session() -> None:
    """Autogroups share CPUs by session, whatever nice value a process has: such a load got 0.2 and asked for 0.5."""
    burn = "import time\nbegan = time.monotonic()\nwhile time.monotonic() - began < 20: pass"
    others = [subprocess.Popen([sys.executable, "-c", burn], start_new_session=True) for _ in range(4)]
    load = GrowingLoad()
    try:
        load.set(0.5)
        time.sleep(0.2)
        before, began = load.taken_s(), time.monotonic()
        time.sleep(2.0)
        share = (load.taken_s() - before) / (time.monotonic() - began) / len(os.sched_getaffinity(0))
    finally:
        load.end()
        for one in others:
            one.kill()
            one.wait()
    # A hypervisor, or another real-time process, may leave less, and so do others where it has no real-time priority
    # (which takes root, and a budget in the control group); more it never takes.
    assert (0.35 if may_be_first() else 0.05) < share < 0.55


@pytest.mark.parametrize("length", ["10m", "2h"])
def test_the_steady_load_is_soaked_with_what_the_bench_sets(length: str) -> None:
    asked = argparse.Namespace(length=length, rounds=36, leak=5.0, seed=24, sets=None)
    given = runpy.run_path(str(BENCH))["options"](seconds_of(length), asked)
    sets = [value for option, value in itertools.pairwise(given) if option == "--set"]
    assert len(sets) >= 3 and f"target.settings.shared_buffers={57 if length == '2h' else 5} MiB" in sets
    settings = source_of(str(STEADY), Asked(length=length, round_length="30s", goes_on=True), sets=sets).experiment
    assert settings.soak is not None and settings.probes.kernel and settings.probes.machine_speed
    every = {"10m": 2, "2h": 18}[length]
    assert settings.probes.kernel_every_seconds == every and settings.target.settings["autovacuum"] is True


def test_the_bench_begins_from_anywhere_without_a_path_of_python(tmp_path: Path) -> None:
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(
        [sys.executable, str(BENCH), "--help"], cwd=tmp_path, env=surroundings, capture_output=True, text=True
    )
    assert told.returncode == 0 and "--no-faults" in told.stdout, told.stderr
