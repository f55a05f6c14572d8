"""Layouts drawn as boxes, and what each layout carried."""

import math
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis.places.cells import cells
from plimsoll.analysis.places.layout import layouts
from plimsoll.analysis.places.promise import storages_of

_WORLD = runpy.run_path(str(Path(__file__).with_name("places_world.py")))
PLAN = {
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
    rows = [(row["cell"], row["clients"], row["transactions_per_client"]) for row in found["rows"]]
    assert rows == [("WAL: beside", 1, 100), ("WAL: beside", 4, 100), ("WAL: apart", 1, 100), ("WAL: apart", 4, 100)]


def test_a_cell_is_not_called_by_a_place_that_nothing_lies_on_in_it() -> None:
    chunk = {"path": "places.stripe.raid.chunk", "paths": ["environment.places.stripe.raid.chunk"], "label": "chunk"}
    wal = {**PLAN["factors"][0], "path": "wal"}  # type: ignore[dict-item]
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
