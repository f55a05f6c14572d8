"""System calls and stacks, written by hand and drawn by chance, added to a synthetic run: what changed in it is known.

Loaded by runpy, since tests are imported one by one. All times are nanoseconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

Json = dict[str, Any]
HZ = 999
# Class, kind: calls a transaction and what one takes. Without a class: other calls.
CALLS = {
    ("data", "pread"): (12.0, 9_000),
    ("data", "pwrite"): (0.4, 14_000),
    ("wal", "pwrite"): (1.0, 11_000),
    ("wal", "fdatasync"): (0.6, 300_000),
    ("none", "read"): (0.2, 700),
    ("", "sendto"): (3.0, 8_000),
    ("", "recvfrom"): (4.0, 1_500),
    ("", "epoll_wait"): (3.0, 2_000_000),
}
# Samples a transaction; a role stands first.
STACKS = {
    ("backend", "main", "run", "scan", "fetch"): 4.0,
    ("backend", "main", "run", "scan", "pin"): 3.0,
    ("backend", "main", "run", "hash"): 1.5,
    ("backend", "main", "run", "sort"): 0.0,
    ("backend", "main", "run", "scan", "read_[k]"): 2.0,
    ("backend", "main", "commit", "log", "write_[k]"): 1.0,
    ("walwriter", "main", "log", "write_[k]"): 0.2,
    **{("backend", "main", "run", f"function {number}"): 0.6 / (1 + number) for number in range(40)},
}
Extra = dict[str, dict[tuple[str, ...], float]]


def add_to_run(
    folder: Path, extra_calls: Extra | None = None, extra_stacks: Extra | None = None, seed: int = 1
) -> None:
    """Both probes for every trial. `extra` {treatment: {call or stack: so many more a transaction}}."""
    plan = json.loads((folder / "plan.json").read_text())
    for trial in plan["trials"]:
        place = folder / f"trials/{trial['number']:04d}/measure"
        if not (place / "summary.json").exists():
            continue
        random = np.random.default_rng([seed, trial["number"]])
        summary = json.loads((place / "summary.json").read_text())
        done, which = summary["identity"]["done"], trial["treatment"]
        probes = {"syscalls": calls(random, done, (extra_calls or {}).get(which, {})), "profile": profile()}
        summary["probes"] = (summary.get("probes") or {}) | probes
        (place / "summary.json").write_text(json.dumps(summary))
        (place / "profile.folded").write_text(stacks(random, done, (extra_stacks or {}).get(which, {})))


def calls(random: np.random.Generator, done: int, extra: dict[tuple[str, ...], float]) -> Json:
    """An entry of the probe: counts are Poisson, times those of so many calls that scatter by half."""
    totals: Json = {}
    others: Json = {}
    for (of, kind), (each, ns) in CALLS.items():
        count = int(random.poisson((each + extra.get((of, kind), 0.0)) * done))
        one = {"count": count, "errors": 0, "ns": int(count * ns * random.normal(1, 0.5 / max(1, count) ** 0.5))}
        if of:
            totals.setdefault(of, {})[kind] = one
        else:
            others[kind] = one
    head = {"status": "on", "reason": None, "remedy": None, "absent": {}, "lost": {"files": 0}}
    head |= {"classes": ["data", "wal", "none"], "calls": ["pread", "pwrite", "fdatasync", "read"]}
    return head | {"call_totals": totals, "other_calls": others}


def profile() -> Json:
    return {"status": "on", "reason": None, "remedy": None, "absent": {}, "lost": {"no_room": 0}, "profile": {"hz": HZ}}


def stacks(random: np.random.Generator, done: int, extra: dict[tuple[str, ...], float]) -> str:
    """The folded stacks: counts are Poisson."""
    drawn = {stack: int(random.poisson((each + extra.get(stack, 0.0)) * done)) for stack, each in STACKS.items()}
    lines = (f"{';'.join(stack).replace(' ', '_')} {count}\n" for stack, count in drawn.items() if count)
    return "".join(lines)
