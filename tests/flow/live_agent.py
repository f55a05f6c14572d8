"""An agent that watches nothing: prints the live lines of a script, in the form of schema/agent.md, and ends when told.

The script, a JSON file named by PLIMSOLL_LIVE_SCRIPT: {"status", "reason", "remedy" of the probe, "lines": [{"names",
"processes"}, ...] (the last one again and again), "ends_after": lines after which it ends by itself, or absent}.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Any


def _print(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


def main() -> int:
    """As the agent's `watch`."""
    if sys.argv[1:] != ["watch"]:
        print("0.0 of the tests")
        return 0
    request = json.loads(sys.stdin.readline())
    probe = request["probes"]["breakdown"]
    script = json.loads(Path(os.environ["PLIMSOLL_LIVE_SCRIPT"]).read_text())
    if "exit" in script:
        print(f"plimsoll-agent: {script['reason']}", file=sys.stderr)
        return int(script["exit"])
    assert probe["live"] is True and Path(probe["data_directory"]).is_dir(), probe
    report = {"status": script.get("status", "on"), "reason": script.get("reason"), "remedy": script.get("remedy")}
    _print({"event": "watching", "probes": {"breakdown": report}})
    last, number = time.monotonic_ns(), 0
    while True:
        heard, _, _ = select.select([sys.stdin], [], [], request["interval_ms"] / 1000)
        now = time.monotonic_ns()
        if heard:
            word = sys.stdin.readline()
            _print({"event": "breakdown", "t_ns": now, "lasted_ns": now - last, "names": {}, "processes": []})
            break
        line = script["lines"][min(number, len(script["lines"]) - 1)]
        names = line.get("names", {}) if number < len(script["lines"]) else {}
        _print({"event": "progress", "t_ns": now})
        _print({"event": "breakdown", "t_ns": now, "lasted_ns": now - last, **line, "names": names})
        last, number = now, number + 1
        if number == script.get("ends_after"):
            return 1
    cost = {"run_ns": 12_000_000, "segment_ns": 3_000_000_000}
    _print({"event": "watched", "probes": {"breakdown": {**report, "buckets": ["lock"], "lost": {}, "cost": cost}}})
    return 0 if word == "stop\n" else 4


sys.exit(main())
