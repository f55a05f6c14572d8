"""Layouts drawn as boxes, and what each layout carried."""

import math
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.places.cells import _said, cells
from plimsoll.analysis.places.layout import layouts
from plimsoll.analysis.places.promise import storages_of
from plimsoll.words.places import CELLS, cell_lines, table_lines
from plimsoll.words.probes.syncs import SENTENCES as SYNCS
from plimsoll.words.verdict import answers

_WORLD = runpy.run_path(str(Path(__file__).with_name("places_world.py")))
PLAN: dict[str, Any] = {
    "factors": [
        {"path": "wal", "paths": ["target.files.wal"], "label": "WAL", "levels": []},
        {"path": "workload.clients", "paths": ["workload.clients"], "label": "clients", "levels": []},
    ],
    "treatments": {
        "t1": {"levels": {"wal": "beside", "workload.clients": "1"}},
        "t2": {"levels": {"wal": "beside", "workload.clients": "4"}},
        "t3": {"levels": {"wal": "apart", "workload.clients": "1"}},
    },
}


def drawn(document: Any) -> Any:
    (found,) = layouts(PLAN, {"t1": document})
    return found


def test_a_layout_is_drawn_once_with_the_treatments_that_have_it() -> None:
    found = layouts(PLAN, {"t1": _WORLD["together"](), "t2": _WORLD["together"]("loop7"), "t3": _WORLD["apart"]()})
    assert [(one["treatments"], one["title"]) for one in found] == [
        (["t1", "t2"], "WAL: beside"),  # the number of a loop device decides nothing
        (["t3"], "WAL: apart"),
    ]


def test_from_the_part_down_to_the_disk() -> None:
    found = drawn(_WORLD["apart"]())
    told = [(box["kind"], box["title"], box["lines"]) for box in found["boxes"]]
    device = ["loop, direct I/O", "scheduler none, 128 requests", "write back"]
    assert told == [
        ("part", "first", ["data"]),
        ("file system", "ext4", ["data=journal, noatime", "stride 16", "read-ahead 128 KiB"]),
        ("device", "image 512 MiB", device),
        ("part", "second", ["wal"]),
        ("file system", "xfs", ["read-ahead 128 KiB"]),
        ("device", "image 512 MiB", device),
        ("part", "journal", ["journal of first"]),
        ("device", "image 64 MiB", device),
        ("below", "ext4 on vda", []),
    ]
    below = found["boxes"][-1]
    assert found["columns"] == 3 and below["left"] < 0.1 and below["right"] > 2.9, "one disk is under all three"


def test_what_stands_on_what() -> None:
    for name in ("together", "apart", "striped"):
        found = drawn(_WORLD[name]())
        ends = {box["bottom"] for box in found["boxes"]}
        for link in found["links"]:
            assert link["top"] in ends
            assert any(
                box["top"] == link["bottom"] and box["left"] <= link["to"] <= box["right"] for box in found["boxes"]
            ), (name, link)
        for one in found["boxes"]:
            for other in found["boxes"]:
                beside = one["right"] <= other["left"] or other["right"] <= one["left"]
                over = one["bottom"] < other["top"] or other["bottom"] < one["top"]
                assert one is other or beside or over, f"{name}: {one['title']} lies over {other['title']}"
        assert max(box["bottom"] for box in found["boxes"]) == pytest.approx(found["height"])


def test_an_array_stands_on_each_of_its_members() -> None:
    found = drawn(_WORLD["striped"]())
    titles = [(box["kind"], box["title"]) for box in found["boxes"]]
    assert titles == [
        ("part", "disk"), ("file system", "ext2"), ("mapper", "dm-delay"), ("raid", "RAID-0"),
        ("device", "sdb 1 TiB"), ("device", "sdc 1 TiB"), ("part", "/mnt/log"), ("file system", "nfs4"),
        ("below", "filer:/log"),
    ]  # fmt: skip
    raid = next(box for box in found["boxes"] if box["kind"] == "raid")
    assert raid["lines"] == ["chunk 128 KiB"]
    assert sum(link["top"] == raid["bottom"] for link in found["links"]) == 2


def _measured(rates: dict[str, float], blocks: int = 4) -> Any:
    """`used` of a run: blocks drift, and the larger load is twice as fast everywhere."""
    places = {"t1": ("beside", 1), "t2": ("beside", 4), "t3": ("apart", 1), "t4": ("apart", 4)}
    found = {}
    for block in range(1, blocks + 1):
        for treatment, (cell, clients) in places.items():
            value = rates[cell] * clients**0.5 * (1 + 0.2 * block)
            found[block, treatment] = {"metrics": {"throughput_per_second": value}}
    return found


def test_cells_are_compared_within_the_block_over_all_loads() -> None:
    levels = [{"label": "1", "value": 1}, {"label": "4", "value": 4}]
    plan: Any = {
        "factors": [PLAN["factors"][0], {**PLAN["factors"][1], "levels": levels}],  # type: ignore[index]
        "treatments": {**PLAN["treatments"], "t4": {"levels": {"wal": "apart", "workload.clients": "4"}}},  # type: ignore[dict-item]
    }
    experiment = {"workload": {"scale": 25}, "measure": {"transactions_per_client": 100}}
    found = cells(plan, experiment, _measured({"beside": 100, "apart": 130}))
    assert found is not None
    assert [(one["cell"], one["scale"]) for one in found["cells"]] == [("WAL: beside", 25.0), ("WAL: apart", 25.0)]
    first, second = found["cells"]
    assert first["ratio"] is None and second["ratio"] is not None
    # The drift of the blocks is that of both, so the ratio has none of it.
    assert [second["ratio"][key] for key in ("value", "low", "high")] == pytest.approx([1.3, 1.3, 1.3])
    assert second["rate"]["low"] is not None and second["rate"]["low"] < second["rate"]["value"] * 0.9
    base = math.prod(1 + 0.2 * block for block in range(1, 5)) ** 0.25
    assert first["rate"]["value"] == pytest.approx(100 * 2**0.5 * base)
    assert [one["treatments"] for one in found["cells"]] == [["t1", "t2"], ["t3", "t4"]]
    assert [one["verdict"] for one in found["cells"]] == [None, "better"]
    (table,) = found["tables"]
    assert (table["at"], table["rows_label"], table["columns_label"], table["columns"]) == (None, "WAL", None, [])
    assert table["rows"] == [{"level": "beside", "cells": [0]}, {"level": "apart", "cells": [1]}]
    rows = [(row["cell"], row["clients"], row["transactions_per_client"]) for row in found["rows"]]
    assert rows == [("WAL: beside", 1, 100), ("WAL: beside", 4, 100), ("WAL: apart", 1, 100), ("WAL: apart", 4, 100)]


def test_a_cell_is_not_called_by_a_place_that_nothing_lies_on_in_it() -> None:
    chunk = {"path": "places.stripe.raid.chunk", "paths": ["environment.places.stripe.raid.chunk"], "label": "chunk"}
    wal = {**PLAN["factors"][0], "path": "wal"}
    levels = {"wal": "beside", chunk["path"]: "8 KiB"}
    plan: Any = {
        "factors": [wal, {**chunk, "levels": []}],
        "treatments": {
            "t1": {"levels": levels, "without": [chunk["path"]]},
            "t2": {"levels": levels | {"wal": "stripe"}},
            "t3": {"levels": {"wal": "stripe", chunk["path"]: "64 KiB"}},
        },
    }
    used: Any = {(1, name): {"metrics": {"throughput_per_second": 10}} for name in plan["treatments"]}
    found = cells(plan, {"workload": {}, "measure": {}}, used)
    names = ["WAL: beside", "WAL: stripe, chunk: 8 KiB", "WAL: stripe, chunk: 64 KiB"]
    assert found is not None and [one["cell"] for one in found["cells"]] == names
    assert list(storages_of(plan).values()) == names


def grid() -> tuple[Any, Any]:
    """Database by log at two scales, and a stripe's chunk: cells without the stripe are there once. And `used`."""
    chunk = "environment.places.stripe.raid.chunk"
    factors = [
        {"path": "database", "paths": ["target.files.data", "target.files.tablespaces"], "label": "database"},
        {"path": "wal", "paths": ["target.files.wal"], "label": "WAL"},
        {"path": chunk, "paths": [chunk], "label": "chunk"},
        {"path": "workload.scale", "paths": ["workload.scale"], "label": "scale"},
    ]
    scales = [{"label": "1", "value": 1}, {"label": "25", "value": 25}]
    treatments: dict[str, Any] = {}
    rates = {("one disk", "apart", None): 100.0, ("one disk", "RAID-0", "8 KiB"): 50.0,
             ("one disk", "RAID-0", "64 KiB"): 101.0, ("RAID-0", "apart", "8 KiB"): 150.0,
             ("RAID-0", "apart", "64 KiB"): 160.0, ("RAID-0", "RAID-0", "8 KiB"): 140.0,
             ("RAID-0", "RAID-0", "64 KiB"): 100.0}  # fmt: skip
    used: Any = {}
    for place, (database, wal, size) in enumerate(rates):
        for scale in ("1", "25"):
            name = f"t{2 * place + (2 if scale == '25' else 1)}"
            levels = {"database": database, "wal": wal, chunk: size or "8 KiB", "workload.scale": scale}
            treatments[name] = {"levels": levels, **({} if size else {"without": [chunk]})}
            for block in range(1, 6):
                # The stripe of 64 KiB with both on it is as fast in the mean, and not in any block.
                odd = (1.5 if block % 2 else 0.7) if (database, wal, size) == ("RAID-0", "RAID-0", "64 KiB") else 1.0
                value = rates[database, wal, size] * odd * (1 + 0.1 * block) * (1 + 0.002 * ((block * 7 + place) % 3))
                used[block, name] = {"metrics": {"throughput_per_second": value}}
    return {"factors": [*factors[:3], factors[3] | {"levels": scales}], "treatments": treatments}, used


def test_the_studys_table_has_the_database_by_rows_and_the_log_by_columns_for_each_chunk() -> None:
    plan, used = grid()
    found = cells(plan, {"workload": {}, "measure": {}}, used)
    assert found is not None
    tables = [(one["scale"], one["at"]) for one in found["tables"]]
    assert tables == [(scale, f"chunk: {size}") for scale in (1.0, 25.0) for size in ("8 KiB", "64 KiB")]
    for one in found["tables"]:
        assert (one["rows_label"], one["columns_label"], one["columns"]) == ("database", "WAL", ["apart", "RAID-0"])
        named = {
            (row["level"], column): found["cells"][place]
            for row in one["rows"] for column, place in zip(one["columns"], row["cells"], strict=True)
            if place is not None
        }  # fmt: skip
        assert {cell["scale"] for cell in named.values()} == {one["scale"]}
        assert named["one disk", "apart"]["cell"] == "database: one disk, WAL: apart", "in the table of each chunk"
        assert all(f"chunk: {(one['at'] or '')[7:]}" in cell["cell"] for key, cell in named.items() if "RAID-0" in key)
    assert [cell["verdict"] for cell in found["cells"]][:7] == [
        None, "worse", "no relevant difference", "better", "better", "better", "cannot tell",
    ]  # fmt: skip
    holes = {key: value for key, value in used.items() if plan["treatments"][key[1]]["levels"]["wal"] == "apart"
             or plan["treatments"][key[1]]["levels"]["database"] == "RAID-0"}  # fmt: skip
    first = cells(plan, {"workload": {}, "measure": {}}, holes)
    assert first is not None and first["tables"][0]["rows"][0]["cells"] == [0, None], "what was not run has no cell"


def test_of_many_layouts_one_is_told_apart_by_all_of_them() -> None:
    """A ratio whose own interval leaves 1 out, and not the one that it has among as many as there are."""
    logs = {1: [0.10], 2: [0.12], 3: [0.30], 4: [0.18]}
    assert _said(logs, 1) == "better" and _said(logs, 40) == "cannot tell"
    assert _said({1: [0.5], 2: [0.5]}, 1) == "cannot tell", "two blocks have no interval"


def test_the_table_leads_the_screen_and_the_terminal_and_sentences_of_treatments_stand_behind() -> None:
    plan, used = grid()
    storage = cells(plan, {"workload": {}, "measure": {}}, used)
    parts = {"journal": 2e6, "flush": 1e6}
    syncs = {name: {"classes": {"wal": {"fdatasync": {"count": 10, "ns": int(place + 1) * 3e7, "parts_ns": {
        part: int(place + 1) * 1e7 * ns / 1e6 for part, ns in parts.items()}}}}, "absent": [], "file_systems": []}
        for place, name in enumerate(plan["treatments"])}  # fmt: skip
    verdict: Any = {
        "storage": storage, "syscalls": {"syncs": syncs}, "comparisons": [], "treatments": plan["treatments"],
        "caveats": ["quick: so", "3 trials: the images of a and b lie on one device (vda): and so on"],
    }  # fmt: skip
    first, second = cell_lines(verdict)
    assert first.startswith(
        "scale 1: against database: one disk, WAL: apart (130 [111, 151] transactions/s): "
        "database: RAID-0, WAL: apart, chunk: 64 KiB carries 1.60 x ["
    )
    assert "; database: one disk, WAL: RAID-0, chunk: 8 KiB carries 0.50 x [" in first
    assert first.endswith("; 2 more are not told apart from it") and second.startswith("scale 25: ")
    assert [one.text for one in answers(verdict)] == [first, second]
    assert table_lines(verdict)[0].startswith(
        "database one disk, chunk: 8 KiB, transactions/s: WAL apart 130 [111, 151] · WAL RAID-0 "
    )
    (took, dearest) = SYNCS.explains(verdict)
    assert took.startswith("with scale 1 a sync of the WAL takes 3.00 ms (database: one disk, WAL: apart), ")
    assert took.endswith("), and 3 more")
    assert dearest.startswith("database: RAID-0, WAL: RAID-0, chunk: 64 KiB: an fdatasync of the WAL takes 39.00 ms")
    assert SYNCS.explains(verdict | {"storage": None}) == []
    assert CELLS.warns(verdict) == ["3 trials: the images of a and b lie on one device (vda): and so on"]


@pytest.mark.parametrize(
    ("said", "ending"),
    [
        (("cannot tell", "no relevant difference"), "they carry 1.10 to 1.20 x of it, by intervals that include 1"),
        (("no relevant difference",) * 2, "they carry 1.10 to 1.20 x of it"),
        (("cannot tell", "worse"), "c carries 1.10 x [1.00, 1.30]; 1 more is not told apart from it"),
    ],
)
def test_what_is_said_where_layouts_are_not_told_apart(said: tuple[str, str], ending: str) -> None:
    def cell(name: str, value: float, word: str | None) -> dict[str, Any]:
        mean = {"value": value, "low": None, "high": None, "blocks": 2}
        ratio = mean | {"low": value - 0.1, "high": value + 0.2} if word else None
        return {"cell": name, "scale": 1.0, "rate": mean, "ratio": ratio, "verdict": word}

    each = [cell("a", 1.0, None), cell("b", 1.2, said[0]), cell("c", 1.1, said[1])]
    (line,) = cell_lines({"storage": {"rows": [], "cells": each, "tables": []}})
    assert line.endswith(ending) and "a (1.0 transactions/s)" in line
    for one in each[1:]:
        one["ratio"] |= {"low": None, "high": None}
    (line,) = cell_lines({"storage": {"rows": [], "cells": each, "tables": []}})
    assert "by intervals" not in line, "of one block there is none"


def test_one_layout_is_no_table() -> None:
    used: Any = {(1, "t1"): {"metrics": {"throughput_per_second": 10}}}
    assert cells(PLAN, {"workload": {}, "measure": {}}, used) is None


def test_no_line_is_longer_than_its_box() -> None:
    long = _WORLD["striped"]()
    long["parts"] |= {"tablespaces.a_table_with_a_name_that_is_long_indeed": "disk"}
    long["places"]["disk"]["mount_given"] = [f"an_option_of_the_mount={number}" for number in range(6)]
    found = drawn(long)
    assert max(len(line) / box["width"] for box in found["boxes"] for line in box["lines"]) <= 36 / 0.85
    for box in found["boxes"]:
        assert box["bottom"] - box["top"] >= len(box["lines"]) + 1.8, "its height is that of its lines"
