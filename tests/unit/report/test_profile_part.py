"""The page draws the profile when the record has one; what a file calls its functions never becomes markup."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from plimsoll.report import write_report

svg = runpy.run_path(str(Path(__file__).with_name("page_figures.py")))["svg"]
_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]
EVIL = "</script><script>alert(1)</script>"
STACKS = f"backend;main;PostgresMain;{EVIL} 40\nbackend;main;PostgresMain;read_[k] 50\nwalwriter;main;[postgres] 10\n"


def add(folder: Path, probe: dict[str, Any], stacks: str | None) -> None:
    for path in folder.glob("trials/*/measure/summary.json"):
        document = json.loads(path.read_text())
        document.setdefault("probes", {})["profile"] = probe
        path.write_text(json.dumps(document))
        if stacks is not None:
            (path.parent / "profile.folded").write_text(stacks)


def made(folder: Path) -> Path:
    found: Path = make(folder, Shape(caches=(64, 1024), measure_seconds=4, warmup_seconds=4))
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made(tmp_path_factory.mktemp("runs") / "run")
    image = {"path": "/b/postgres", "symbols": "dynamic symbols", "samples": 10, "unnamed": 10, "remedy": "install <x>"}
    counts = {"taken": 100, "in_kernel": 50, "named": 90, "complete": 100}
    cost = {"run_ns": 10, "segment_ns": 1000, "programs": []}
    wait = {
        "kind": "mutex",
        "caller": "f<oo>",
        "stack": "sys;f<oo>",
        "count": 2,
        "total_ns": 3_000_000,
        "max_ns": 2_000_000,
    }
    locks = {"kinds": [{**wait, "caller": "", "stack": ""}], "sites": [wait], "sites_known": 1}
    ticks = {"busy_ns": 4, "stolen_ns": 0, "due": 400, "came": 300}
    facts = {"contention": locks, "ticks": ticks, "hz": 99, "samples": counts, "images": [image], "agent_cpu_ns": 5}
    add(folder, {"status": "on", "programs": "perf_event", "lost": {}, "cost": cost, "profile": facts}, STACKS)
    return write_report(folder)


def test_a_flame_graph_a_treatment_is_drawn(page: Path) -> None:
    text = page.read_text()
    folded = sorted(path.name for path in (page.parent / "figures").iterdir())
    assert folded == ["profile-t1.folded", "profile-t2.folded"]
    drawn = svg(page, "profile-t1")
    assert "PostgresMain" in drawn
    assert ">read<" in drawn, "the kernel's mark is a colour"
    assert 'data-figure="profile-t1"' in text
    assert 'data-figure="profile-t2"' in text
    assert "install &lt;x&gt;" in text
    # Three blocks of a hundred samples each.
    assert "300 at 99 a second" in text
    assert "Of 1,200 ticks due while CPUs were at work 25% did not come" in text


def test_waits_for_locks_have_a_table(page: Path) -> None:
    text = page.read_text()
    assert "f&lt;oo&gt; &lt; sys" in text
    assert '<td class="n">9.000</td>' in text, "three blocks of 3 ms"


def test_names_are_never_markup(page: Path) -> None:
    assert EVIL not in page.read_text()
    assert EVIL not in svg(page, "profile-t1")


def test_the_collapsed_stacks_are_those_of_the_trials(page: Path) -> None:
    lines = (page.parent / "figures" / "profile-t1.folded").read_text().splitlines()
    assert lines[1] == "backend;main;PostgresMain;read_[k] 150"


def test_a_refused_profile_is_said_and_none_is_not_mentioned(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    assert 'id="profile-part"' not in write_report(folder).read_text()
    (folder / "verdict.json").unlink()
    add(folder, {"status": "refused", "reason": "no clock here"}, None)
    assert "Not drawn: no clock here" in write_report(folder).read_text()
