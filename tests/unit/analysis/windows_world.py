"""Makes a SYNTHETIC run of windows after schema/record.md: no server, no load, a seed. For tests only.

Servers of a block are on one clock: each round has a window of each, in random order, and while one is open the others
stand still. Loaded by runpy, since tests are imported one by one.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Json = dict[str, Any]
PATH = "target.settings.shared_buffers"
SECOND = 1_000_000_000
NOTE = "SYNTHETIC: made by tests/unit/analysis/windows_world.py, measured nowhere"
WINDOW = np.dtype(
    [
        *(("round", "<u4"), ("position", "<u4"), ("opened_ns", "<i8"), ("closed_ns", "<i8"), ("drained_ns", "<i8")),
        *(("first_index", "<u8"), ("next_index", "<u8"), ("done", "<u8"), ("failed", "<u8"), ("skipped", "<u8")),
        ("lost", "<u8"),
    ]
)
TRANSACTION = np.dtype(
    [
        *(("index", "<u8"), ("planned_ns", "<i8"), ("start_ns", "<i8"), ("end_ns", "<i8"), ("bytes", "<u8")),
        *(("connection", "<u4"), ("backend_pid", "<u4"), ("statements", "<u4"), ("requests", "<u4")),
        *(("retries", "<u4"), ("error", "<u2"), ("kind", "u1"), ("outcome", "u1")),
    ]
)
_GAP_NS, _DRAIN_NS = 30_000_000, 10_000_000
_WRITE_SECTORS = 16


@dataclass(frozen=True)
class Shape:
    """What ran; `effects` are of the levels, on the log; `slow_start` is what the first third of a window lacks.

    `foreign` is the share of a server's writes that the kernel does while it is frozen; `stalled` the
    share of windows without a transaction; `last_block` the last that ran, where fewer ran than planned. `groups` are
    places of levels that were up together, each a block, the first place in all of them; `blocks` are then replicates.
    `blocks_differ`, in tenths on the log, is what blocks scatter by. `still`, of (block, place of a level): no
    transaction is done; `hung`: it is given up in its third window.
    """

    effects: tuple[float, ...] = (0.0, 0.0, 0.2)
    blocks: int = 3
    rounds: int = 20
    rate: float = 200.0
    start: float = 0.01
    window: float = 0.10
    duplicate: bool = False
    slow_start: float = 0.0
    foreign: float = 0.0
    stalled: float = 0.0
    lead_in_s: float = 0.25
    seed: int = 19
    last_block: int | None = None
    decided: bool = False
    still: tuple[tuple[int, int], ...] = ()
    hung: tuple[tuple[int, int], ...] = ()
    why_skipped: str = ""
    design: Json = field(default_factory=dict)
    a_a: Json | None = None
    groups: tuple[tuple[int, ...], ...] = ()
    blocks_differ: float = 0.0

    @property
    def blocks_in_all(self) -> int:
        """Of all replicates."""
        return self.blocks * max(1, len(self.groups))


def make(out: Path, shape: Shape | None = None) -> Path:
    """Write the run folder."""
    shape = shape or Shape()
    out.mkdir(parents=True)
    plan = _plan(shape)
    run = {"format": 1, "id": out.name, "experiment": "buffer-cache", "title": "Synthetic windows", "synthetic": NOTE}
    run |= {"status": "finished", "started_epoch_ns": 10**18, "seed": shape.seed, "quick": False, "a_a": shape.a_a}
    experiment = {"name": "buffer-cache", "synthetic": NOTE, "workload": {"name": "bank", "clients": 8}}
    design = {"kind": "windows", "blocks": shape.blocks, "relevant_ratio": 1.05, "stop": "decided", **shape.design}
    experiment |= {"design": design, "factors": [{"path": PATH}], "sections": []}
    for name, document in (("run", run), ("plan", plan), ("experiment", experiment), ("fingerprint", {})):
        (out / f"{name}.json").write_text(json.dumps(document))
    for block in range(1, shape.blocks_in_all + 1):
        trials = [entry for entry in plan["trials"] if entry["block"] == block]
        if block <= (shape.last_block or shape.blocks_in_all):
            _block(out / "trials", shape, trials)
        elif shape.decided:
            for entry in trials:
                why = shape.why_skipped or f"decided after block {shape.last_block}: every pair of levels is told apart"
                _document(out / "trials", entry, "skipped", why)
    return out


def _plan(shape: Shape) -> Json:
    labels = [f"{64 * 2**place} MiB" for place in range(len(shape.effects))]
    treatments = {
        f"t{place}": {"label": f"shared_buffers {label}", "levels": {PATH: label}}
        for place, label in enumerate(labels, start=1)
    }
    trials: list[Json] = []
    for block in range(1, shape.blocks_in_all + 1):
        names, turn = list(treatments), block
        if shape.groups:
            names = [f"t{place + 1}" for place in shape.groups[(block - 1) % len(shape.groups)]]
            turn = (block - 1) // len(shape.groups)
        arms = [(name, False) for name in names]
        if shape.duplicate:
            arms.append((names[turn % len(names)], True))
        for position, (name, duplicate) in enumerate(arms, start=1):
            where = {"number": len(trials) + 1, "block": block, "position": position}
            trials.append({**where, "treatment": name, "duplicate": duplicate, "levels": treatments[name]["levels"]})
    levels = [{"label": label, "value": 2**26 * 2**place} for place, label in enumerate(labels)]
    factors = [{"path": PATH, "label": "shared_buffers", "unit": "bytes", "levels": levels}]
    plan = {"trials": trials, "treatments": treatments, "factors": factors, "judged": "throughput_per_second"}
    if shape.groups:
        members = [[f"t{place + 1}" for place in one] for one in shape.groups]
        plan["groups"] = {"reference": f"t{shape.groups[0][0] + 1}", "members": members, "why": "they need too much"}
    return plan


def _block(folder: Path, shape: Shape, trials: list[Json]) -> None:
    random = np.random.default_rng([shape.seed, trials[0]["block"]])
    clock = trials[0]["block"] * 10_000 * SECOND
    of_block = 0.1 * shape.blocks_differ * random.standard_normal()
    arms = [_Arm(shape, entry, random, of_block) for entry in trials]
    written = 0
    for place in range(shape.rounds):
        for position, index in enumerate(random.permutation(len(arms)), start=1):
            served = arms[index]
            served.window(place + 1, position, clock, written)
            own = served.done[-1] * _WRITE_SECTORS
            left = round(own * shape.foreign)
            written += own - left
            served.drained(clock + SECOND + _DRAIN_NS, written, left * 512)
            clock += SECOND + _DRAIN_NS + _GAP_NS
            written += left
    for arm in arms:
        arm.write(folder)


class _Arm:
    """One server of a block, and what its agent writes."""

    def __init__(self, shape: Shape, entry: Json, random: np.random.Generator, block: float) -> None:
        self.shape, self.entry, self.random = shape, entry, random
        effect = shape.effects[int(entry["treatment"][1:]) - 1]
        self.rate = shape.rate * math.exp(effect + block + shape.start * random.standard_normal())
        where = (entry["block"], int(entry["treatment"][1:]) - 1)
        self.is_hung = where in shape.hung
        if where in shape.still:
            self.rate = 0.0
        self.windows: list[tuple[int, ...]] = []
        self.ends: list[np.ndarray] = []
        self.done: list[int] = []
        self.series: list[tuple[int, int, int]] = []

    def window(self, place: int, position: int, opened: int, written: int) -> None:
        """Its transactions end at a steady rate but for a slow beginning; those that drain end a little later."""
        if self.is_hung and place > 2:
            self.done.append(0)
            return
        rate = self.rate * max(0.0, 1 + self.shape.window * self.random.standard_normal())
        rate *= self.random.random() >= self.shape.stalled
        count = self.random.poisson(rate * 1.005)
        at = np.sort(self.random.random(count)) * 1.005
        lead, third = self.shape.lead_in_s, (1 - self.shape.lead_in_s) / 3
        slow = (at > lead) & (at < lead + third) & (self.random.random(count) < self.shape.slow_start)
        at = at[~slow]
        first = sum(self.done)
        self.series.append((opened - 1000, written, 0))  # what it left dirty was written while it was frozen
        self.ends.append(opened + (at * SECOND).astype(np.int64))
        self.done.append(len(at))
        row = (place, position, opened, opened + SECOND, opened + SECOND + _DRAIN_NS, first, first + len(at), len(at))
        self.windows.append((*row, 0, 0, 0))

    def drained(self, at: int, written: int, dirty: int) -> None:
        """After the drain, with so many bytes of its pages dirty."""
        if len(self.series) < 2 * len(self.windows):
            self.series.append((at, written, dirty))

    def write(self, folder: Path) -> None:
        """The trial's files."""
        place = folder / f"{self.entry['number']:04d}" / "measure"
        place.mkdir(parents=True)
        ends = np.concatenate(self.ends)
        rows = np.zeros(len(ends), TRANSACTION)
        rows["index"], rows["end_ns"] = np.arange(len(ends)), ends
        rows["planned_ns"] = rows["start_ns"] = ends - 2_000_000
        rows["statements"], rows["requests"] = 5, 7
        np.save(place / "transactions.npy", rows)
        np.save(place / "windows.npy", np.array(self.windows, WINDOW))
        columns = [("t_ns", "<i8"), ("device", "<i8"), ("read_sectors", "<i8"), ("write_sectors", "<i8")]
        device = np.array([(t, 0, 0, written) for t, written, _ in self.series], columns)
        np.save(place / "device.npy", device)
        columns = [("t_ns", "<i8"), ("dirty_bytes", "<i8"), ("writeback_bytes", "<i8")]
        np.save(place / "group.npy", np.array([(t, dirty, 0) for t, _, dirty in self.series], columns))
        done = {"planned": len(ends), "done": len(ends), "failed": 0, "skipped": 0, "lost": 0}
        summary = {"format": 1, "workload": "bank", "kinds": ["transfer"], "first_index": 0, "next_index": len(ends)}
        summary |= {"started_ns": int(self.windows[0][2]) - SECOND, "ended_ns": int(self.windows[-1][4]) + SECOND}
        summary |= {"identity": done, "by_kind": {"transfer": {"done": len(ends), "statements": 5 * len(ends)}}}
        summary |= {"errors": [], "devices": ["vda"], "backend_pids": [], "schedule": {"kind": "closed"}}
        summary["health"] = {
            "cpu_user_ns": 10**8,
            "cpu_system_ns": 10**8,
            "cpus_allowed": [0, 1],
            "connections_lost": 0,
        }
        (place / "summary.json").write_text(json.dumps(summary))
        windows = {"seconds": 1.0, "lead_in_seconds": self.shape.lead_in_s, "rounds": self.shape.rounds}
        windows |= {"thaw_ns": {"median": 90_000, "max": 400_000}, "freeze_ns": {"median": 2e6, "max": 9e6}}
        if self.is_hung:
            (place / "summary.json").unlink()
            windows["stood_still_seconds"] = 31.0
            why = "round 3: transactions of its window had not ended after 31 s"
            return _document(folder, self.entry, "failed", why, windows=windows)
        _document(folder, self.entry, "finished", None, windows=windows)
        return None


def _document(folder: Path, entry: Json, status: str, reason: str | None, **more: Any) -> None:
    place = folder / f"{entry['number']:04d}"
    place.mkdir(parents=True, exist_ok=True)
    known = {key: entry[key] for key in ("number", "block", "treatment", "duplicate")}
    trial = {**known, "status": status, "reason": reason, "synthetic": NOTE, "checks": [], "caveats": [], **more}
    (place / "trial.json").write_text(json.dumps(trial))
