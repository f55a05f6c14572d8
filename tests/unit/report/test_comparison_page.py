"""The page of a comparison: what the terminal says, and flame graphs of the difference; offline, nothing as markup."""

import html
import json
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import compare_runs, compare_treatments
from plimsoll.cli import records
from plimsoll.experiment import ExperimentError
from plimsoll.record import open_run
from plimsoll.report.comparison.page import changes_figures, write_comparison
from plimsoll.report.drawing import theme
from plimsoll.words.comparing.comparison import comparison_lines

_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
_WORLD = runpy.run_path(str(Path(__file__).parents[1] / "analysis" / "changes_world.py"))
Json = dict[str, Any]
HOSTILE = "</script><script>alert(1)</script>"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run without stacks, and with them: in its second treatment there is a sort."""
    place = tmp_path_factory.mktemp("runs")
    shape = _MAKER["Shape"](caches=(64, 1024), measure_seconds=8, warmup_seconds=8)
    first, second = _MAKER["make"](place / "first", shape), place / "second"
    _WORLD["add_to_run"](first, seed=1)
    shutil.copytree(first, second)
    _WORLD["add_to_run"](second, None, {"t2": {("backend", "main", "run", "sort"): 6.0}}, seed=2)
    for trial in open_run(second).trials:
        with (trial.measure.path / "profile.folded").open("a") as file:
            file.write(f"backend;main;{HOSTILE} 400\n")
    return first, second


@pytest.fixture(scope="module")
def compared(runs: tuple[Path, Path]) -> Json:
    found: Json = json.loads(json.dumps(compare_runs(open_run(runs[0]), open_run(runs[1])), allow_nan=False))
    return found


def test_boxes_have_the_colour_of_what_is_told(compared: Json) -> None:
    figures = changes_figures(compared)
    assert len(figures) == 2, "one for each treatment"
    assert figures[1].spec is not None
    rows = figures[1].spec["data"]["values"]
    kinds = {row["name"]: row["kind"] for row in rows}
    assert kinds["sort"] == "more"
    assert kinds["hash"] in ("more, or chance", "less, or chance")
    assert set(kinds.values()) <= set(theme.CHANGED)
    (sort,) = [row for row in rows if row["name"] == "sort"]
    assert re.fullmatch(r"\+[\d,.e+]+ µs \(more\)", sort["difference"])


def test_the_page_says_what_the_terminal_says(compared: Json, tmp_path: Path) -> None:
    text = write_comparison(compared, tmp_path / "page.html").read_text()
    body = text[: text.index("<script>")]
    shown = re.search(r"<pre>(.*?)</pre>", body, re.S)
    assert shown is not None

    assert html.unescape(shown[1]).rstrip("\n").split("\n") == comparison_lines(compared)
    assert body.count('data-figure="changes-') == 2
    assert HOSTILE not in text, "a function's name ends no script"


def test_a_page_goes_where_nothing_is(runs: tuple[Path, Path], tmp_path: Path) -> None:
    taken = tmp_path / "taken.html"
    taken.write_text("mine")
    for place, said in ((taken, "this file exists already"), (tmp_path / "none/x.html", "no such folder")):
        with pytest.raises(ExperimentError, match=said):
            records.compare(*runs, False, True, place)
    assert taken.read_text() == "mine"


@pytest.mark.parametrize(
    ("accelerator", "said"), [("tcg", "emulated: mechanism only."), (None, "mechanism, not speed")]
)
def test_what_a_guest_s_times_are_worth_stands_above_what_they_say(
    runs: tuple[Path, Path], tmp_path: Path, accelerator: str | None, said: str
) -> None:
    emulated = tmp_path / "emulated"
    shutil.copytree(runs[0], emulated)
    document = json.loads((emulated / "run.json").read_text())
    guest = {"kernel": "QEMU, emulated", "version": "6.1", "cpus": 2, "boots": []} | {"accelerator": accelerator}
    (emulated / "run.json").write_text(json.dumps(document | {"guest": guest}))
    found = json.loads(json.dumps(compare_treatments(open_run(emulated), "t1", "t2"), allow_nan=False))
    assert comparison_lines(found)[0].startswith(f"{document['id']}: {said}")
    assert said in write_comparison(found, tmp_path / "page.html").read_text()
    found = compare_treatments(open_run(runs[0]), "t1", "t2")
    assert not any("mechanism" in line for line in comparison_lines(found))
