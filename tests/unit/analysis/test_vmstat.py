"""vmstat's columns against a host whose counters grow by known amounts."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.recfunctions import repack_fields

from plimsoll.analysis.trial import vmstat
from plimsoll.record import Segment

_WORLD = runpy.run_path(str(Path(__file__).with_name("decision_support_world.py")))
SECOND = 1_000_000_000


def segment(folder: Path, without: tuple[str, ...] = ()) -> Segment:
    table = _WORLD["host"](5 * SECOND, 65 * SECOND)
    kept = [name for name in table.dtype.names if name not in without]
    np.save(folder / "host.npy", repack_fields(table[kept]))
    return Segment(folder, "power")


def test_every_column_has_its_value(tmp_path: Path) -> None:
    rows = vmstat.curve(segment(tmp_path))
    by_column = {name: [row["value"] for row in rows if row["column"] == name] for name in vmstat.COLUMNS}
    exact = {"free": 4096, "buff": 1024, "cache": 8192 + 2048, "bi": 10, "bo": 20, "us": 25, "sy": 25, "id": 25}
    exact |= {"wa": 25, "st": 0}
    for name, value in exact.items():
        assert by_column[name] == [pytest.approx(value)] * 60, name
    assert {row["seconds"] for row in rows} == set(map(float, range(1, 61)))


def test_what_the_host_does_not_tell_is_absent(tmp_path: Path) -> None:
    rows = vmstat.curve(segment(tmp_path, without=("pgpgin", "s_reclaimable_kib", "cpu_steal")))
    # Without one of the CPUs' columns the whole is not known, and no share of it.
    assert {row["column"] for row in rows} == {"free", "buff", "bo"}


def test_no_series_no_rows(tmp_path: Path) -> None:
    assert vmstat.curve(Segment(tmp_path, "power")) == []
