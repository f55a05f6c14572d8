"""Makes a SYNTHETIC run folder after schema/record.md: no server, no load, arithmetic and a seed. For tests only.

Nothing measured may ever be concluded from it. The arithmetic is plausible (a hit ratio that rises with the cache, a
page cache that holds what the group's memory leaves, swap beyond it), so that analysis and report have something of the
right shape before, and beside, a recorded run.

    python tests/golden/make_synthetic.py OUT [--small] [--sizes]
"""

import argparse
import json
import runpy
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

_PROBES = runpy.run_path(str(Path(__file__).with_name("synthetic_probes.py")))
MIB = 2**20
MEMORY = 768 * MIB
SWAP = 1536 * MIB
KINDS = ["new_order", "payment", "check_order", "delivery", "stock"]
MIX = np.array([10, 10, 1, 1, 1]) / 23
STATEMENTS = np.array([5, 1, 1, 1, 1])
BLOCKS_PER_STATEMENT = 3.5
PATH = "target.settings.shared_buffers"
SIZE = "workload.size"
NOTE = "SYNTHETIC: made by tests/golden/make_synthetic.py, measured nowhere"

TRANSACTION = np.dtype(
    [
        *(("index", "<u8"), ("planned_ns", "<i8"), ("start_ns", "<i8"), ("end_ns", "<i8"), ("connection", "<u4")),
        *(("backend_pid", "<u4"), ("kind", "u1"), ("outcome", "u1"), ("statements", "u1"), ("error", "<u2")),
    ]
)
LATENCY = np.dtype([("kind", "u1"), ("low_ns", "<u8"), ("high_ns", "<u8"), ("count", "<u8")])


@dataclass(frozen=True)
class Shape:
    """How large the synthetic run is."""

    caches: tuple[int, ...] = (64, 256, 512, 768, 1024)
    sizes: tuple[float, ...] = (2.0,)
    blocks: int = 3
    warmup_seconds: int = 16
    measure_seconds: int = 20
    clients: int = 8
    speed: float = 0.1
    noise: float = 0.025
    seed: int = 20020117
    faults: tuple[str, ...] = field(default=())


SMALL = Shape(caches=(64, 256, 1024), warmup_seconds=9, measure_seconds=9, speed=0.006)


@dataclass(frozen=True)
class Physics:
    """What a cache size does, in steady state."""

    hit: float
    page_hit: float
    swap: float
    tps: float
    read_bytes: float


def physics(cache: float, database: float) -> Physics:
    """Database hit ratio, the page cache's share of the misses, swap, throughput, device bytes a transaction."""
    reach = min(1.0, cache / database)
    hit = min(0.999, 0.50 + 0.44 * reach**0.55 + (0.06 if cache >= database else 0.0))
    anonymous = 60 * MIB
    left = max(0.0, MEMORY - anonymous - cache)
    page_hit = min(1.0, left / max(database - cache * 0.5, 1.0) * 1.4) if database > left else 1.0
    swap = max(0.0, cache + anonymous + 40 * MIB - MEMORY) if database > MEMORY * 0.9 else 0.0
    queries = float(MIX @ STATEMENTS)
    misses = queries * BLOCKS_PER_STATEMENT * (1 - hit)
    device_reads = misses * (1 - page_hit)
    faults = swap / (300 * MIB) * 0.9
    seconds = 0.9e-3 + misses * 12e-6 + device_reads * 280e-6 + faults * 520e-6
    return Physics(hit, page_hit, swap, 8 / seconds / 4, device_reads * 9000 + faults * 4096)


class Trial:
    """One synthetic trial: its clock, its random numbers and its files."""

    def __init__(self, shape: Shape, plan: dict[str, Any], cache: float, database: float, block_effect: float) -> None:
        self.shape, self.plan = shape, plan
        self.random = np.random.default_rng([shape.seed, plan["number"]])
        self.physics = physics(cache, database)
        self.cache, self.database = cache, database
        self.tps = self.physics.tps * shape.speed * np.exp(block_effect + self.random.normal(0, shape.noise))
        self.clock = int(plan["number"] * 60e9)
        self.counters = {
            name: int(self.random.integers(1_000, 9_000)) for name in ("xact_commit", "blks_hit", "blks_read")
        }
        self.counters |= {"xact_rollback": 2, "wal_records": 900, "wal_fpi": 40, "wal_bytes": 900_000}
        self.counters |= {"checkpoints_timed": 0, "checkpoints_req": 3}
        self.device = {"reads": 5_000, "read_sectors": 900_000, "writes": 2_000, "write_sectors": 300_000}
        self.swapped = [1_000, 2_000]

    def fill(self, second: np.ndarray) -> np.ndarray:
        """How full the caches are at a second since the load began: 0 cold, 1 steady."""
        return 1 - 0.85 * np.exp(-np.asarray(second, float) / 2.2)

    def segment(self, folder: Path, name: str, seconds: int, since: int, first_index: int) -> dict[str, Any]:
        """Write one segment; returns its summary."""
        place = folder / name
        place.mkdir(parents=True)
        start = self.clock
        rows = self.transactions(seconds, since, first_index)
        np.save(place / "transactions.npy", rows)
        self.series(place, rows, start, seconds, since)
        self.clock = end = int(max(start + seconds * 1_000_000_000, rows["end_ns"].max()))
        done = rows[rows["outcome"] == 0]
        self.histogram(place, done)
        summary = self.summary(rows, done, start, end, first_index)
        if name == "measure" and "unprobed" not in self.shape.faults:
            summary["probes"] = self.probes()
        (place / "summary.json").write_text(json.dumps(summary, indent=1))
        return summary

    def transactions(self, seconds: int, since: int, first_index: int) -> np.ndarray:
        """Closed loop: each connection's transactions follow one another."""
        clients = self.shape.clients
        mean = clients / self.tps
        parts = []
        for connection in range(clients):
            count = int(seconds / mean * 1.6) + 8
            kind = self.random.choice(5, count, p=MIX)
            latency = self.random.gamma(3.0, mean / 3.0, count) * (0.55 + STATEMENTS[kind] / 5)
            latency /= (0.55 + STATEMENTS / 5) @ MIX
            begin = np.concatenate([[0.0], np.cumsum(latency)[:-1]])
            latency /= 0.35 + 0.65 * self.fill(since + begin)  # a cold cache is slower
            ends = np.cumsum(latency)
            keep = np.concatenate([[True], ends[:-1] < seconds])
            part = np.zeros(int(keep.sum()), TRANSACTION)
            ends_ns = self.clock + (ends[keep] * 1e9).astype(np.int64)
            part["planned_ns"] = np.concatenate([[self.clock], ends_ns[:-1]])
            part["start_ns"] = part["planned_ns"] + self.random.gamma(2.0, 4_000, len(part)).astype(np.int64)
            part["end_ns"] = np.maximum(ends_ns, part["start_ns"] + 20_000)
            part["connection"], part["backend_pid"] = connection, 40_000 + connection
            part["kind"], part["statements"] = kind[keep], STATEMENTS[kind[keep]]
            parts.append(part)
        rows = np.concatenate(parts)
        rows = rows[np.argsort(rows["planned_ns"], kind="stable")]
        rows["index"] = first_index + np.arange(len(rows))
        return rows

    def series(self, place: Path, rows: np.ndarray, start: int, seconds: int, since: int) -> None:
        times = start + np.arange(seconds + 1) * 1_000_000_000
        done = np.histogram(rows["end_ns"], np.append(times, times[-1] + 10**12))[0]
        done = np.concatenate([[0], np.cumsum(done)])[: seconds + 1]
        each = np.diff(done, prepend=0)
        full = self.fill(since + np.arange(seconds + 1))
        hit = 0.30 + (self.physics.hit - 0.30) * full
        blocks = self.random.poisson(each * float(MIX @ STATEMENTS) * BLOCKS_PER_STATEMENT * 40) if len(each) else each
        reads = self.random.binomial(blocks, 1 - hit)
        before = self.counters | {}
        self.total = {
            "blks_read": int(reads.sum()),
            "blks_hit": int((blocks - reads).sum()),
            "xact_commit": len(rows) + self.shape.clients,
            "wal_bytes": int(len(rows) * 1_350),
            "wal_fpi": int(len(rows) * 0.06),
            "wal_records": len(rows) * 6,
        }
        columns = {"t_ns": times}
        columns |= {key: np.full(len(times), value) for key, value in before.items()}
        columns["blks_read"] = before["blks_read"] + np.cumsum(reads)
        columns["blks_hit"] = before["blks_hit"] + np.cumsum(blocks - reads)
        columns["xact_commit"] = before["xact_commit"] + done
        columns["wal_bytes"] = before["wal_bytes"] + done * 1_350
        save(place / "server.npy", columns)
        device = self.random.poisson(each * self.physics.read_bytes / 512 * (2.2 - 1.2 * full))
        self.sectors = int(device.sum())
        zero = np.zeros(len(times), np.int64)
        save(
            place / "device.npy",
            {
                "t_ns": times,
                "device": zero,
                "reads": self.device["reads"] + np.cumsum(device) // 17,
                "read_sectors": self.device["read_sectors"] + np.cumsum(device),
                "writes": self.device["writes"] + done * 2,
                "write_sectors": self.device["write_sectors"] + done * 34,
            },
        )
        self.group_and_host(place, times, each, full)

    def group_and_host(self, place: Path, times: np.ndarray, each: np.ndarray, full: np.ndarray) -> None:
        shmem = np.minimum(self.cache, MEMORY - 80 * MIB) * full
        swap = self.physics.swap * full
        anon = 60 * MIB + 0 * full
        file = np.maximum(12 * MIB, MEMORY - 10 * MIB - shmem - anon) * np.clip(full * 1.1, 0, 1)
        file = np.minimum(file, max(self.database - self.cache * 0.3, 40 * MIB))
        groups = {"t_ns": times, "usage_bytes": anon + shmem + file, "swap_bytes": swap, "anon_bytes": anon}
        groups |= {
            "file_bytes": file + shmem,
            "shmem_bytes": shmem,
            "mapped_bytes": shmem * 0.98,
            "dirty_bytes": file * 0.02,
        }
        groups |= {
            "pgmajfault": np.cumsum(each * (swap > 0) * 0.5),
            "limit_hits": np.cumsum(each),
            "oom_kills": 0 * full,
        }
        save(place / "group.npy", groups)
        pages = each * swap / (300 * MIB) * 0.9
        self.paged_in = int(np.round(pages[1:].sum()))
        busy = np.cumsum(np.full(len(times), 150))
        host = {"t_ns": times, "procs_running": 2 + 0 * full, "procs_blocked": 3 + 0 * full}
        host |= {"mem_total_kib": 24 * 2**20 + 0 * full, "mem_free_kib": 19 * 2**20 + 0 * full}
        host |= {"swap_total_kib": SWAP / 1024 + 0 * full, "swap_free_kib": (SWAP - swap) / 1024}
        host |= {"pswpin": self.swapped[0] + np.cumsum(pages), "pswpout": self.swapped[1] + np.cumsum(pages * 0.9)}
        host |= {"cpu_user": busy * 0.55, "cpu_nice": 0 * busy, "cpu_system": busy * 0.4, "cpu_idle": busy / 5}
        host |= {"cpu_iowait": busy / 8, "cpu_irq": 0 * busy, "cpu_softirq": busy * 0.05, "cpu_steal": busy * 0.004}
        save(place / "host.npy", host)

    def histogram(self, place: Path, done: np.ndarray) -> None:
        latency = (done["end_ns"] - done["planned_ns"]).astype(np.int64)
        edges = np.unique(np.geomspace(1e6, 1e11, 120).astype(np.int64))
        found = []
        for kind in np.unique(done["kind"]):
            counts = np.histogram(latency[done["kind"] == kind], edges)[0]
            found += [(kind, edges[i], edges[i + 1], count) for i, count in enumerate(counts) if count]
        np.save(place / "latency.npy", np.array(found, LATENCY))

    def summary(self, rows: np.ndarray, done: np.ndarray, start: int, end: int, first: int) -> dict[str, Any]:
        by_kind = {
            name: {"done": int((done["kind"] == i).sum()), "failed": 0, "skipped": 0, "lost": 0}
            | {"statements": int(rows["statements"][rows["kind"] == i].sum())}
            for i, name in enumerate(KINDS)
        }
        lag = rows["start_ns"] - rows["planned_ns"]
        busy = "generator" in self.shape.faults and self.plan["number"] == 4
        share = 0.96 if busy else 0.11
        return {
            "format": 1,
            "workload": "wpi_orders",
            "synthetic": NOTE,
            "kinds": KINDS,
            "first_index": first,
            "next_index": first + len(rows),
            "started_ns": start,
            "ended_ns": end,
            "epoch_minus_monotonic_ns": 10**18,
            "identity": {"planned": len(rows), "done": len(done), "failed": 0, "skipped": 0, "lost": 0},
            "by_kind": by_kind,
            "errors": [],
            "health": {
                "cpu_user_ns": int((end - start) * share * 0.2),
                "cpu_system_ns": int((end - start) * share * 0.8),
                "threads": 1,
                "lag_ns": {"p50": int(np.median(lag)), "p99": int(np.quantile(lag, 0.99)), "max": int(lag.max())},
                "records_dropped": 0,
                "samples": 20,
                "sample_late_ns_max": 300_000,
                "cpus_allowed": [0, 1],
                "connections_lost": 0,
            },
            "ended_by": "seconds",
            "verification": {"checked": len(done), "wrong": 0, "examples": []},
            "totals": {},
            "backend_pids": [40_000 + connection for connection in range(self.shape.clients)],
            "devices": ["vda"],
        }

    def page_cache(self) -> float:
        """What the group's memory leaves to the page cache, in steady state."""
        return min(max(12 * MIB, MEMORY - 70 * MIB - min(self.cache, MEMORY - 80 * MIB)), self.database)

    def probes(self) -> dict[str, Any]:
        facts = {
            "device_bytes": self.sectors * 512,
            "swap_bytes": self.paged_in * 4096,
            "blks_read": self.total["blks_read"],
            "overcommitted": self.physics.swap > 0,
            "evicts": self.page_cache() < self.database,
        }
        found: dict[str, Any] = _PROBES["probes"](
            self.shape.seed, self.plan["number"], facts, "lost" in self.shape.faults
        )
        return found

    def settle(self) -> None:
        """Carry the cumulative counters past the segment just written."""
        for key, grown in self.total.items():
            self.counters[key] += grown
        self.device["read_sectors"] += self.sectors
        self.device["write_sectors"] += self.total["xact_commit"] * 34

    def write(self, folder: Path) -> None:
        began = self.clock
        warm = self.segment(folder, "warmup", self.shape.warmup_seconds, 0, 0)
        self.settle()
        warmed = self.clock
        before, device_before = dict(self.counters), dict(self.device)
        since = 1 if "filling" in self.shape.faults and self.plan["number"] == 5 else self.shape.warmup_seconds
        self.segment(folder, "measure", self.shape.measure_seconds, since, warm["next_index"])
        self.settle()
        failed = "failed" in self.shape.faults and self.plan["number"] == 2
        phases = [("clone", began - 9e9, began - 3e9), ("start", began - 3e9, began - 1e9), ("warmup", began, warmed)]
        phases += [("measure", warmed, self.clock), ("check", self.clock, self.clock + 1e9)]
        trial = {
            **{key: self.plan[key] for key in ("number", "block", "treatment", "duplicate")},
            "synthetic": NOTE,
            "status": "failed" if failed else "finished",
            "reason": "the server closed the connection <script>alert(1)</script>" if failed else None,
            "server_log_tail": "LOG:  <script>alert('log')</script> & PANIC" if failed else None,
            "phases": [{"name": name, "start_ns": int(a), "end_ns": int(b)} for name, a, b in phases],
            "epoch_minus_monotonic_ns": 10**18,
            "stationary": {
                "reached": since > 1,
                "seconds": self.shape.warmup_seconds,
                "test": "synthetic",
                "detail": {},
            },
            "counters": {"before": before, "after": dict(self.counters)},
            "device_counters": {"before": {"vda": device_before}, "after": {"vda": dict(self.device)}},
            "residency": {"before_trial": {"resident_bytes": 0, "total_bytes": int(self.database)}},
            "double_caching": _PROBES["double_caching"](
                self.shape.seed, self.plan["number"], min(self.cache, self.database), self.page_cache(), self.database
            ),
            "checks": [{"name": "rows of orders", "expected": 51200, "found": 51200, "ok": True}],
            "server": {
                "version": "15.18 (synthetic)",
                "settings": {
                    "shared_buffers": f"{self.cache / MIB:.0f}MB",
                    "checkpoint_timeout": "1h",
                    "autovacuum": "off",
                },
                "durability": {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"},
            },
            "cpus": {"target": "0-1", "load": "0-1"},
            "group": {"version": 1, "limit_bytes": MEMORY, "swap_limit_bytes": SWAP, "oom_kills": 0},
            "caveats": [],
        }
        if "unprobed" in self.shape.faults:
            del trial["double_caching"]
        (folder / "trial.json").write_text(json.dumps(trial, indent=1))


def save(path: Path, columns: dict[str, Any]) -> None:
    length = len(columns["t_ns"])
    table = np.zeros(length, [(name, "<i8") for name in columns])
    for name, values in columns.items():
        table[name] = np.asarray(np.round(np.broadcast_to(np.asarray(values, float), length)), np.int64)
    np.save(path, table)


def make_plan(shape: Shape) -> dict[str, Any]:
    """Treatments in full factorial, a duplicate of the middle one, random order within blocks."""
    several = len(shape.sizes) > 1
    treatments = {}
    for size in shape.sizes:
        for cache in shape.caches:
            levels = ({SIZE: f"{size:g} x memory"} if several else {}) | {PATH: f"{cache} MiB"}
            label = ", ".join(f"{path.rsplit('.', 1)[-1]} {level}" for path, level in levels.items())
            treatments[f"t{len(treatments) + 1}"] = {"label": label, "levels": levels, "_": (size, cache)}
    names = list(treatments)
    random = np.random.default_rng(shape.seed)
    trials: list[dict[str, Any]] = []
    for block in range(1, shape.blocks + 1):
        arms = [(name, False) for name in names] + [(names[len(names) // 2], True)]
        for position, arm in enumerate(random.permutation(len(arms)), start=1):
            name, duplicate = arms[int(arm)]
            size, cache = treatments[name]["_"]
            trials.append(
                {"number": len(trials) + 1, "block": block, "position": position, "treatment": name}
                | {"levels": treatments[name]["levels"], "duplicate": duplicate}
                | {"resolved": {PATH: cache * MIB, SIZE: int(size * MEMORY), "environment.memory": MEMORY}}
            )
    factors = [
        {"path": PATH, "label": "shared_buffers", "unit": "bytes"}
        | {"levels": [{"label": f"{cache} MiB", "value": cache * MIB} for cache in shape.caches]}
    ]
    if several:
        sizes = [{"label": f"{size:g} x memory", "value": int(size * MEMORY)} for size in shape.sizes]
        factors.insert(0, {"path": SIZE, "label": "database size", "unit": "bytes", "levels": sizes})
    clean = {name: {key: entry[key] for key in ("label", "levels")} for name, entry in treatments.items()}
    return {"trials": trials, "treatments": clean, "factors": factors}


def make(out: Path, shape: Shape | None = None) -> Path:
    """Write the run folder; an existing one is replaced."""
    shape = shape or Shape()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    plan = make_plan(shape)
    title = "How should memory be split between PostgreSQL's cache and Linux's page cache?"
    if "markup" in shape.faults:
        title = "<script>alert('title')</script> & </script>"
    run = {"format": 1, "id": f"synthetic-{shape.seed}", "experiment": "buffer-cache", "title": f"{title} (synthetic)"}
    run |= {"synthetic": NOTE, "status": "finished", "started_epoch_ns": 10**18, "ended_epoch_ns": 10**18 + 10**12}
    run |= {"seed": shape.seed, "command": ["plimsoll", "run", "buffer-cache"], "quick": False, "a_a": None}
    run |= {"plimsoll": {"version": "0.1.0", "commit": "synthetic", "agent_version": "0.1.0"}}
    experiment = {"name": "buffer-cache", "source": "Study S1 (WPI and EMC, 2002)", "synthetic": NOTE}
    experiment |= {"workload": {"name": "wpi_orders", "clients": shape.clients, "keys": "uniform", "access": "index"}}
    experiment |= {"design": {"kind": "full factorial", "blocks": shape.blocks, "relevant_ratio": 1.05}}
    experiment["factors"] = [{"path": factor["path"], "compare": factor["path"] != SIZE} for factor in plan["factors"]]
    fingerprint = {"synthetic": NOTE, "kernel": "6.18.0-synthetic", "cpus": 2, "memory_bytes": 24 * 2**30}
    (out / "run.json").write_text(json.dumps(run, indent=1))
    (out / "plan.json").write_text(json.dumps(plan, indent=1))
    (out / "experiment.json").write_text(json.dumps(experiment, indent=1))
    (out / "fingerprint.json").write_text(json.dumps(fingerprint, indent=1))
    effects = np.random.default_rng(shape.seed + 1).normal(0, 0.05, shape.blocks + 1)
    for entry in plan["trials"]:
        resolved = entry["resolved"]
        trial = Trial(shape, entry, float(resolved[PATH]), float(resolved[SIZE]), float(effects[entry["block"]]))
        trial.write(out / "trials" / f"{entry['number']:04d}")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--small", action="store_true", help="a few transactions, for the golden folder")
    parser.add_argument("--sizes", action="store_true", help="three database sizes")
    parser.add_argument("--faults", default="", help="of failed,filling,generator,markup,lost,unprobed")
    asked = parser.parse_args()
    base = SMALL if asked.small else Shape()
    sizes = (0.5, 1.0, 2.0) if asked.sizes else base.sizes
    faults = tuple(fault for fault in asked.faults.split(",") if fault)
    print(make(asked.out, Shape(**{**vars(base), "sizes": sizes, "faults": faults})))


if __name__ == "__main__":
    main()
