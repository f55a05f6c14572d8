"""Records of soaks by hand, after schema/record.md: every figure is given, nothing is measured. Loaded by runpy."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from plimsoll.record import Run, open_run

Json = dict[str, Any]
SECOND = 10**9
BEGAN_NS = 1_790_000_000 * SECOND  # of the world's time
OFFSET_NS = BEGAN_NS - 5_000 * SECOND  # the machine had been up for 5000 s
COUNTERS = (
    *("cpu_user", "cpu_nice", "cpu_system", "cpu_idle", "cpu_iowait", "cpu_irq", "cpu_softirq", "cpu_steal"),
    *("pgpgin", "pgpgout"),
)
LEVELS = ("mem_free_kib", "buffers_kib", "cached_kib", "s_reclaimable_kib", "shmem_kib")


@dataclass
class World:
    """A soak whose rounds have these throughputs; what befell them stands by the number of the round, from 1."""

    values: list[float]
    seconds: int = 600
    sample_s: int = 60
    length: str = "14d"
    metric: str = "throughput_per_second"
    crashes: dict[int, str] = field(default_factory=dict)
    events: dict[int, str] = field(default_factory=dict)
    cut: list[Json] = field(default_factory=list)
    cold: tuple[int, ...] = ()
    database_bytes_a_round: int = 0
    told: Json = field(default_factory=dict)
    speeds: list[tuple[int, int, int]] = field(default_factory=list)  # of each round: what a beat's pieces took, in ns


def began_ns(world: World, number: int) -> int:
    """When a round began."""
    return BEGAN_NS + (number - 1) * (world.seconds + 60) * SECOND


def host(world: World, began: int) -> np.ndarray:
    """The host's series of a round: counters that grow by the second, memory that stays."""
    times = began - OFFSET_NS + np.arange(0, world.seconds + 1, world.sample_s) * SECOND
    table = np.zeros(len(times), [("t_ns", "<i8"), *((name, "<i8") for name in (*COUNTERS, *LEVELS))])
    table["t_ns"] = times
    for place, name in enumerate(COUNTERS, start=1):
        table[name] = place * np.arange(0, world.seconds + 1, world.sample_s)
    for name in LEVELS:
        table[name] = 1024 * 100
    return table


def summary(world: World, number: int, value: float) -> Json:
    """What the agent has told of a round."""
    began = began_ns(world, number) - OFFSET_NS
    done = round(value * world.seconds)
    events = []
    if number in world.events:
        known = {"class": "warning", "sequence": number, "level": 4, "by": "kernel", "text": world.events[number]}
        events = [{"t_ns": began + 5 * SECOND, **known}]
    log = {
        "status": "on", "reason": None, "boot_id": "one", "before": number - 1, "last": number,
        "counts": {"warning": len(events)} if events else {}, "events": events, "lost": {},
    }  # fmt: skip
    return {
        "format": 1,
        "started_ns": began,
        "ended_ns": began + world.seconds * SECOND,
        "epoch_minus_monotonic_ns": OFFSET_NS,
        "identity": {"planned": done, "done": done, "failed": 0, "skipped": 0, "lost": 0},
        "kinds": ["only"],
        "rows": {"recorded": 0, "all_below_index": 0, "sample_one_in": 1000},
        "health": {"memory_bytes_max": 20 * 2**20},
        "probes": {"kernel_log": log},
    }


def machine_speed(world: World, number: int) -> np.ndarray:
    """The probe's series of a round on two CPUs, of which the second is a tenth slower; its sums begin anywhere."""
    names = ("cpu", "beats", "multiply_ns", "add_ns", "memory_ns")
    begun = began_ns(world, number) - OFFSET_NS
    table = np.zeros(4, [("t_ns", "<i8"), *((name, "<i8") for name in names)])
    table["t_ns"], table["cpu"] = np.repeat([begun, begun + world.seconds * SECOND], 2), [0, 1, 0, 1]
    beats = 4 * world.seconds
    table["beats"] = [7, 9, 7 + beats, 9 + beats]
    for name, took in zip(names[2:], world.speeds[number - 1], strict=True):
        table[name] = [1000, 2000, 1000 + beats * took, 2000 + beats * took * 11 // 10]
    return table


def write_round(folder: Path, world: World, number: int, value: float) -> Path:
    """One round; returns its folder."""
    name = f"round-{number:04d}"
    place = folder / name
    place.mkdir(parents=True)
    began = began_ns(world, number)
    np.save(place / "host.npy", host(world, began))
    if world.speeds:
        np.save(place / "machine_speed.npy", machine_speed(world, number))
    log = np.zeros(2, [("t_ns", "<i8"), ("records", "<i8")])
    log["t_ns"] = [began - OFFSET_NS, began - OFFSET_NS + world.seconds * SECOND]
    np.save(place / "kernel_log.npy", log)
    (place / "summary.json").write_text(json.dumps(summary(world, number, value)))
    crashes = (
        [{"round": number, "epoch_ns": began + SECOND, "text": world.crashes[number]}]
        if number in world.crashes
        else []
    )
    entry = {
        "round": number, "attempt": 1, "sitting": 1, "begins_cold": number in world.cold, "measured_segment": name,
        "began_epoch_ns": began, "ended_epoch_ns": began + world.seconds * SECOND, "crashes": crashes,
        "sizes": {"database_bytes": 10**9 + number * world.database_bytes_a_round, "dead_tuples": 100},
        "front_bytes": 60 * 2**20, "thinned": {"step_s": 60, "has_rows": True, "bytes": 1},
    }  # fmt: skip
    (place / "round.json").write_text(json.dumps(entry))
    return place


def write(folder: Path, world: World) -> Run:
    """A whole record."""
    trial = folder / "trials" / "0001"
    trial.mkdir(parents=True)
    for number, value in enumerate(world.values, start=1):
        write_round(trial, world, number, value)
    crashes = [
        {"round": number, "epoch_ns": began_ns(world, number) + SECOND, "text": text}
        for number, text in world.crashes.items()
    ]
    soak = {
        "spent_s": len(world.values) * (world.seconds + 60.0), "crashes": crashes, "full": [], "ended_by": "time",
        "why": None, "steps_s": [1, 10, 60, 300],
    } | world.told  # fmt: skip
    settings = {
        "name": "x", "workload": {"name": "bank", "scale": 1, "clients": 1}, "schedule": {"kind": "closed"},
        "probes": {"kernel": True},
    }  # fmt: skip
    (trial / "trial.json").write_text(
        json.dumps(
            {
                "number": 1, "block": 1, "treatment": "t1", "duplicate": False, "status": "finished", "sittings": 1,
                "measured_segment": "round-0001", "stationary": None, "caveats": [], "soak": soak, "cut": world.cut,
                "epoch_minus_monotonic_ns": OFFSET_NS,
            }
        )
    )  # fmt: skip
    asked = {"length": world.length, "between": "vacuum", "after_crash": "go on", "record_max": "2 GiB"}
    planned = {"number": 1, "block": 1, "position": 1, "treatment": "t1", "duplicate": False, "levels": {}}
    documents = {
        "run": {"format": 1, "id": folder.name, "kind": "soak", "experiment": "x", "title": "Does it last?",
                "status": "finished", "started_epoch_ns": BEGAN_NS, "seed": 1, "quick": False,
                "soak": asked | {"unit": False}},
        "experiment": settings | {"soak": asked, "sections": []},
        "plan": {"kind": "full factorial", "blocks": 1, "judged": world.metric, "relevant_ratio": 1.05, "factors": [],
                 "treatments": {"t1": {"label": "as it is", "levels": {}}},
                 "trials": [planned | {"resolved": settings}]},
        "fingerprint": {},
    }  # fmt: skip
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    return open_run(folder)
