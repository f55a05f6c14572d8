"""Golden records: a committed run folder must read and analyse to the committed verdict, today and in later versions.

`synthetic` was made by make_synthetic.py and measured nowhere. After a wanted change of the analysis:
    PLIMSOLL_GOLDEN_ACCEPT=1 ./test tests/golden    and read the difference before committing it.
"""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import analyse
from plimsoll.record import open_run
from plimsoll.words import verdict as words

HERE = Path(__file__).parent
GOLDEN = sorted(folder.parent.name for folder in HERE.glob("*/run.json"))
LARGEST_BYTES = 400_000


def _differences(found: Any, expected: Any, path: str = "") -> list[str]:
    """Where two documents differ; numbers may differ by rounding."""
    if isinstance(found, dict) and isinstance(expected, dict):
        keys = found.keys() | expected.keys()
        return [
            line for key in sorted(keys) for line in _differences(found.get(key), expected.get(key), f"{path}.{key}")
        ]
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return [line for place, (one, other) in pairs for line in _differences(one, other, f"{path}[{place}]")]
    if isinstance(found, float | int) and isinstance(expected, float | int):
        same = math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12)
    else:
        same = found == expected
    return [] if same else [f"{path}: {found!r}, expected {expected!r}"]


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_record_gives_its_verdict(name: str) -> None:
    found = json.loads(json.dumps(analyse(open_run(HERE / name)), allow_nan=False))
    found["headlines"] = words.headlines(found)
    place = HERE / f"{name}.expected.json"
    if os.environ.get("PLIMSOLL_GOLDEN_ACCEPT"):
        place.write_text(json.dumps(found, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n")
    assert _differences(found, json.loads(place.read_text()))[:20] == []


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_records_stay_small(name: str) -> None:
    assert sum(file.stat().st_size for file in (HERE / name).rglob("*") if file.is_file()) <= LARGEST_BYTES


def test_there_is_a_golden_record() -> None:
    assert GOLDEN
