"""The picture of where the files lay, and the table of cells."""

import runpy
from pathlib import Path
from typing import Any

from plimsoll.analysis.places.layout import layouts
from plimsoll.report.drawing.figure import Figure, write_files
from plimsoll.report.drawing.html import piece
from plimsoll.report.places.cells import cells_figures, table, tables
from plimsoll.report.places.layout import PANELS_MAX, layout_figures

_WORLD = runpy.run_path(str(Path(__file__).parents[1] / "analysis" / "places_world.py"))
PLAN: dict[str, Any] = {"factors": [], "treatments": {}}


def drawn(figure: Figure, folder: Path) -> str:
    write_files(figure, folder)
    return (folder / f"{figure.name}.svg").read_text()


def test_every_word_of_a_layout_is_in_the_picture(tmp_path: Path) -> None:
    (figure,) = layout_figures(layouts(PLAN, {"t1": _WORLD["apart"](), "t2": _WORLD["striped"]()}))
    text = drawn(figure, tmp_path)
    for words in ("first", "data", "data=journal, noatime", "stride 16", "image 64 MiB", "journal of first",
                  "ext4 on vda", "RAID-0", "chunk 128 KiB", "dm-delay", "sdb 1 TiB", "filer:/log"):  # fmt: skip
        assert words in text, words


def test_so_many_layouts_are_drawn_and_the_others_counted() -> None:
    documents = {}
    for number in range(PANELS_MAX + 2):
        documents[f"t{number}"] = _WORLD["together"]()
        documents[f"t{number}"]["places"]["first"]["mount_given"] = [f"commit={number}"]
    (figure,) = layout_figures(layouts(PLAN, documents))
    assert figure.spec is not None and len(figure.spec["concat"]) == PANELS_MAX
    assert f"{PANELS_MAX} of {PANELS_MAX + 2} layouts are drawn." in figure.caption


def mean(value: float) -> dict[str, Any]:
    return {"value": value, "low": value * 0.9, "high": value * 1.1, "blocks": 5}


def test_the_table_of_the_first_screen() -> None:
    less = {**mean(0.5), "blocks": 5}
    cells = [
        {"cell": "a", "scale": 1.0, "rate": mean(200.0), "ratio": None, "verdict": None},
        {"cell": "b", "scale": 1.0, "rate": mean(100.0), "ratio": less, "verdict": "worse"},
        {"cell": "c", "scale": 1.0, "rate": mean(4.0), "ratio": less | {"low": None}, "verdict": "cannot tell"},
    ]
    rows = [{"level": "one disk", "cells": [0, 1]}, {"level": "two disks", "cells": [2, None]}]
    one = {"scale": 1.0, "at": "chunk: 8 KiB", "rows_label": "database", "columns_label": "WAL", "columns": ["x", "y"]}
    found: Any = {"rows": [], "cells": cells, "tables": [one | {"rows": rows}]}
    text = " ".join(piece("places/cells_head.html.j2", {"tables": tables(found)}).split())
    assert "<h3>chunk: 8 KiB</h3>" in text and "<th>database</th>" in text and "WAL: y" in text
    assert "<th>one disk</th>" in text and "<b>200 [180, 220]</b><br><span>the first</span>" in text
    assert '<b>100 [90, 110]</b><br><span class="word-worse">0.50 [0.45, 0.55] x, worse</span>' in text
    assert "<b>4.0 [3.6, 4.4]</b><br><span>0.50 (–) x, cannot tell</span>" in text and "not run" in text
    alone: Any = found | {"tables": [one | {"at": None, "columns_label": None, "columns": [], "rows": rows[:1]}]}
    (drawn_alone,) = tables(alone)
    assert drawn_alone["heads"] == ["transactions/s"] and drawn_alone["title"] == ""
    del found["tables"]
    assert tables(found) == [], "a record of before there were any"


def test_the_table_of_cells_and_the_study_s_graph(tmp_path: Path) -> None:
    rows = [
        {"cell": cell, "scale": 1.0, "clients": clients, "transactions_per_client": each, **mean(100.0 * clients)}
        for cell in ("WAL: beside", "WAL: apart") for clients in (1.0, 4.0) for each in (50.0, 500.0)
    ]  # fmt: skip
    cells = [
        {"cell": "WAL: beside", "scale": 1.0, "rate": mean(200.0), "ratio": None},
        {"cell": "WAL: apart", "scale": 1.0, "rate": mean(250.0), "ratio": {**mean(1.25), "low": None, "high": None}},
    ]
    assert table(cells) == [  # type: ignore[arg-type]
        ["1", "WAL: beside", "200 [180, 220]", "1", "5"],
        ["1", "WAL: apart", "250 [225, 275]", "1.25 (–)", "5"],
    ]
    (figure,) = cells_figures({"rows": rows, "cells": cells})  # type: ignore[typeddict-item]
    text = drawn(figure, tmp_path)
    assert "scale 1: WAL: beside" in text and "scale 1: WAL: apart" in text and "transactions per client" in text
    (none,) = cells_figures({"rows": rows[:1], "cells": cells})  # type: ignore[typeddict-item]
    assert none.spec is None and "one number of transactions" in none.absent
