"""The probes and the double-caching readings of a SYNTHETIC run: arithmetic and a seed, measured nowhere.

The page-cache probe explains the device's reads but for a small remainder (a larger one where memory is overcommitted);
in one trial it is refused, the throttle probe is refused in every trial. make_synthetic.py puts them into the record.
"""

from typing import Any

import numpy as np

Json = dict[str, Any]
PAGE = 4096
BLOCK = 8192
REFUSED_TRIAL = 3
CLASSES = ["data", "wal", "global", "temp", "other"]
COLUMNS = (
    *("read_calls", "read_pages", "read_blocks", "read_missed_pages", "read_missed_blocks", "read_calls_missed"),
    *("read_calls_waited", "fault_pages", "fault_missed_pages", "readahead_pages", "prefetch_pages"),
    *("ahead_used_pages", "ahead_mapped_pages", "ahead_evicted_pages", "write_pages", "other_pages"),
    *("unsettled_pages", "added_pages", "evicted_pages", "dropped_pages"),
)
# Share of the database, how hot it is in the server's cache and in the page cache.
RELATIONS = [
    ("history", "table", 0.36, 0.7, 1.3),
    ("customer", "table", 0.22, 1.0, 1.0),
    ("customer_accounts", "table", 0.14, 1.0, 1.0),
    ("stock", "table", 0.08, 2.6, 0.9),
    ("customer_pkey", "index", 0.06, 3.0, 0.8),
    ("history_pkey", "index", 0.06, 1.2, 0.9),
    ("orders", "table", 0.04, 1.4, 1.0),
    ("(catalogs and others)", "other", 0.04, 0.3, 0.6),
]


def _accounted(columns: Json) -> int:
    names = ("read_missed", "fault_missed", "readahead", "prefetch", "write", "other", "unsettled")
    return int(sum(columns[f"{name}_pages"] for name in names))


def _refused(reason: str, remedy: str) -> Json:
    return {"status": "refused", "reason": reason, "remedy": remedy, "absent": {}}


def _classes(random: np.random.Generator, brought: float, blks_read: int, evicts: bool) -> Json:
    """Totals by class: `brought` bytes of pages, most of them the data's."""
    totals = {name: dict.fromkeys(COLUMNS, 0) for name in CLASSES}
    pages = brought / PAGE
    data, other = totals["data"], totals["other"]
    missed = int(pages * random.uniform(0.58, 0.64))
    ahead = int(pages * 0.97) - missed
    blocks = max(blks_read, -(-missed // 2))
    data |= {"read_calls": blocks, "read_pages": 2 * blocks, "read_blocks": blocks}
    data |= {"read_missed_pages": missed, "read_missed_blocks": -(-missed // 2), "read_calls_missed": -(-missed // 2)}
    data |= {"read_calls_waited": missed // 40, "fault_pages": 0, "readahead_pages": ahead}
    data |= {"ahead_used_pages": int(ahead * 0.34), "ahead_evicted_pages": int(ahead * 0.5) if evicts else 0}
    data |= {"write_pages": missed // 30, "other_pages": missed // 400}
    other |= {"read_calls": 60, "read_pages": 90, "read_blocks": 60}
    other |= {"fault_pages": 40, "fault_missed_pages": int(pages * 0.01), "readahead_pages": int(pages * 0.02)}
    totals["wal"] |= {"read_calls": 4, "write_pages": 300}
    for columns in totals.values():
        columns["added_pages"] = _accounted(columns)
        columns["evicted_pages"] = columns["added_pages"] if evicts else 0
    return totals


def probes(seed: int, number: int, facts: Json, lost: bool) -> Json:
    """`probes` of summary.json. Facts: device_bytes, swap_bytes, blks_read, overcommitted, evicts."""
    random = np.random.default_rng([seed, number, 46])
    remainder = float(random.normal(0.085 if facts["overcommitted"] else 0.008, 0.006))
    brought = max(0.0, facts["device_bytes"] * (1 - remainder) - facts["swap_bytes"])
    totals = _classes(random, brought, facts["blks_read"], facts["evicts"])
    runs = sum(columns["read_calls"] + columns["added_pages"] for columns in totals.values())
    programs = [("read_enter", runs, 240), ("added", runs // 2, 310), ("removed", runs // 3, 180)]
    cost = [{"name": name, "runs": count, "run_ns": count * each} for name, count, each in programs]
    found = {
        "status": "on",
        "reason": None,
        "remedy": None,
        "absent": {},
        "programs": "tp_btf",
        "requests": "get_pages",
        "self_test": {"pages": 211, "missed_cold": 211, "missed_warm": 0}
        | {"sequential_pages": 1019, "sequential_added": 1019, "passed": True},
        "classes": CLASSES,
        "page_bytes": PAGE,
        "block_bytes": BLOCK,
        "file_systems": [{"device": "254:0", "type": "ext4"}],
        "totals": totals,
        "lost": {"files": 0, "tasks": 0, "ahead": 17 if lost else 0, "intervals": 0},
        "identity": {
            name: {"added": columns["added_pages"], "accounted": _accounted(columns), "holds": True}
            for name, columns in totals.items()
        },
        "cost": {"run_ns": sum(row["run_ns"] for row in cost), "programs": cost},
    }
    touched = {"vda": {"touched": int(totals["data"]["read_missed_pages"] * 0.7 + facts["blks_read"] * 0.05)}}
    heads = {"status": "on", "reason": None, "remedy": None, "absent": {}, "programs": "tp_btf", "devices": ["vda"]}
    heads |= {"totals": touched, "lost": {}}
    heads |= {"cost": {"run_ns": 5000, "programs": [{"name": "touched", "runs": 50, "run_ns": 5000}]}}
    if number == REFUSED_TRIAL:
        found = _refused("the self-test read 211 cold pages and counted 206 missed", "end what else reads the disk")
    throttle = _refused(
        "this kernel has no tracepoint writeback:balance_dirty_pages", "use a kernel with CONFIG_TRACING"
    )
    return {"page_cache": found, "buffer_heads": heads, "throttle": throttle}


def double_caching(seed: int, number: int, cache: float, page_cache: float, database: float) -> Json:
    """`double_caching` of trial.json: each cache filled in proportion to a relation's size and heat there."""
    random = np.random.default_rng([seed, number, 47])
    result: Json = {"absent": None}
    for when, full in (("before_measure", 0.93), ("after", 1.0)):
        heat = np.array([(share * server, share * linux) for _, _, share, server, linux in RELATIONS])
        heat = heat / heat.sum(axis=0) * np.array([cache, min(page_cache, database)]) * full
        rows = []
        for (name, kind, share, _, _), (server, linux) in zip(RELATIONS, heat, strict=True):
            size = share * database
            held, resident = min(server, size), min(linux, size)
            both = held * resident / size * random.uniform(0.75, 1.0)
            sizes = {"bytes": size, "server_bytes": held, "page_cache_bytes": resident, "both_bytes": both}
            rows.append(
                {"relation": name, "kind": kind, **{key: int(value) // BLOCK * BLOCK for key, value in sizes.items()}}
            )
        total = {key: sum(row[key] for row in rows) for key in sizes}
        result[when] = {"block_bytes": BLOCK, "source": "mincore", "relations": rows, "total": total}
        result[when]["elsewhere_bytes"] = 40 * BLOCK
    return result
