"""A comparison of known records: it must say what compare.expected.json says, today and in later versions.

The records are the committed synthetic run twice, with system calls and stacks of tests/unit/analysis/changes_world.py:
in the second there is a sort and twice the syncs in one treatment. After a wanted change:
    PLIMSOLL_GOLDEN_ACCEPT=1 ./test tests/golden    and read the difference before committing it.
"""

import json
import os
import runpy
import shutil
from pathlib import Path
from typing import Any

from plimsoll.analysis import compare_runs
from plimsoll.record import open_run
from plimsoll.words.comparing.comparison import comparison_lines

HERE = Path(__file__).parent
EXPECTED = HERE / "compare.expected.json"
_WORLD = runpy.run_path(str(HERE.parent / "unit/analysis/changes_world.py"))
_GOLDEN = runpy.run_path(str(HERE / "test_golden.py"))


def _without_paths(found: dict[str, Any]) -> dict[str, Any]:
    for side in ("first", "second"):
        del found[side]["path"]
    return found


def test_a_comparison_says_what_it_said(tmp_path: Path) -> None:
    first, second = (shutil.copytree(HERE / "synthetic", tmp_path / name) for name in ("first", "second"))
    treatment = list(open_run(first).plan["treatments"])[-1]
    _WORLD["add_to_run"](first, seed=1)
    more = {treatment: {("wal", "fdatasync"): 0.6}}
    _WORLD["add_to_run"](second, more, {treatment: {("backend", "main", "run", "sort"): 6.0}}, seed=2)
    found = compare_runs(open_run(first), open_run(second))
    found = _without_paths(json.loads(json.dumps(found, allow_nan=False)))
    found["lines"] = comparison_lines(found)
    if os.environ.get("PLIMSOLL_GOLDEN_ACCEPT"):
        EXPECTED.write_text(json.dumps(found, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n")
    assert _GOLDEN["_differences"](found, json.loads(EXPECTED.read_text()))[:20] == []
