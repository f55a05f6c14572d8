#!/usr/bin/env python3
"""How often verdicts are wrong, and what they tell: the analysis in simulated worlds of known truth.

    .plimsoll/venv/bin/python benches/verdicts.py --help

No server runs. Each line is a bound of the project, what was found, its standard error, and whether it holds (a bound
that is missed by less than two errors holds). Of so many bounds some are missed by chance: such a case is simulated
again with another seed and four times the runs, and that decides. Exit codes: 0 all hold; 1 one does not.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "benches")]

from simulate import (  # noqa: E402  the paths come first
    best_test,
    caches,
    clock,
    groups,
    levels,
    loadline,
    queries,
    soaks,
    speeds,
    windows,
)
from simulate.rows import Row, Section  # noqa: E402

ROOMS = (clock, caches, loadline, queries, levels, windows, groups, best_test, soaks, speeds)
AGAIN = 4  # times the runs, where a bound was missed
SECTIONS: list[Section] = [section for room in ROOMS for section in room.sections()]


def main() -> int:
    names = sorted({section.name for section in SECTIONS})
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=names, help="may be repeated [all]")
    parser.add_argument("--share", type=float, default=1.0, help="of the usual number of simulated runs [1]")
    parser.add_argument("--seed", type=int, default=20261123, help="[20261123]")
    parser.add_argument("--json", action="store_true", help="rows as JSON, one a line")
    asked = parser.parse_args()
    found = simulated([one for one in SECTIONS if not asked.only or one.name in asked.only], asked)
    broken = [row for row in found if not row.holds]
    print(f"{len(found)} bounds, {len(broken)} broken; seed {asked.seed}", file=sys.stderr)
    return 1 if broken else 0


def simulated(sections: list[Section], asked: argparse.Namespace) -> list[Row]:
    """All rows, printed as they come, with what is left on standard error."""
    cases, began, found = sum(len(one.cases) for one in sections), time.monotonic(), []
    done = 0
    for section in sections:
        for rows in section.rows(asked.seed, asked.share, AGAIN):
            done += 1
            for row in rows:
                print(json.dumps(row.as_json()) if asked.json else row.text(), flush=True)
            found += rows
            left = (time.monotonic() - began) * (cases / done - 1)
            print(f"{section.name}: {done} of {cases} cases, about {left:.0f} s left", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
