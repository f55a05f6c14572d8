"""The scaling part of the page: the study's table beside today's, curves, pairs, and what grows."""

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis import analyse
from plimsoll.analysis.breakdown.breakdown import breakdown
from plimsoll.analysis.studies.memory_scaling import memory_scaling
from plimsoll.analysis.studies.scaling import pairs, scaling
from plimsoll.record import open_run
from plimsoll.report import write_report
from plimsoll.words.studies import scaling as scaling_words

_UNIT = Path(__file__).parents[1]
_FIGURES = runpy.run_path(str(Path(__file__).with_name("page_figures.py")))
svg, section = _FIGURES["svg"], _FIGURES["section"]
_MAKER = runpy.run_path(str(_UNIT.parent / "golden" / "make_open.py"))
_WORLD = runpy.run_path(str(_UNIT / "analysis" / "scaling_world.py"))
_READING = runpy.run_path(str(_UNIT / "analysis" / "test_breakdown_verdict.py"))
_RATES = runpy.run_path(str(_UNIT / "analysis" / "test_scaling.py"))
Json = dict[str, Any]


def time_of(number: int, cpus: int) -> Json:
    """A trial's reading: locks grow with the CPUs, waiting for a CPU shrinks."""
    noise = np.random.default_rng(number).integers(0, 20, 2)
    lock, queue = 100 * cpus + int(noise[0]), 1600 // cpus + int(noise[1])
    mean = _READING["band"](410 + lock + queue, cpu=300, wal_sync=100, transport_in=10, lock=lock, run_queue=queue)
    return _READING["one"](number, mean, mean)


def cpu_verdict(run: Path) -> Json:
    """A synthetic run's verdict with scaling over four numbers of CPUs and two of clients, and a breakdown."""
    found = _WORLD["plan"]({_WORLD["CPUS"]: [_WORLD["cpu_text"](n) for n in (1, 2, 4, 8)], _WORLD["CLIENTS"]: [4, 16]})
    used = _WORLD["used"](found, 3, _RATES["by_law"], load="0-1")
    scaled = scaling(found, _WORLD["EXPERIMENT"], used, 0.05)
    counts = {name: _RATES["count_of"](trial["resolved"]) for trial in found["trials"] for name in [trial["treatment"]]}
    readings = {entry["number"]: time_of(entry["number"], counts[name]) for (_, name), entry in used.items()}
    split = breakdown(readings, used, found["treatments"], [], pairs(scaled))
    verdict = analyse(open_run(run))
    like = next(iter(verdict["treatments"].values()))
    treatments = {name: {**like, **entry} for name, entry in found["treatments"].items()}
    return verdict | {"scaling": scaled, "breakdown": split, "treatments": treatments, "comparisons": []}


def page_of(run: Path, source: str, verdict: Json) -> str:
    experiment = json.loads((run / "experiment.json").read_text())
    (run / "experiment.json").write_text(json.dumps(experiment | {"source": source}))
    (run / "verdict.json").write_text(json.dumps(verdict))
    return write_report(run).read_text()


def a_run(folder: Path) -> Path:
    return Path(_MAKER["make"](folder, _MAKER["Shape"](rates=(20.0, 30.0), seconds=8)))


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    run = a_run(tmp_path_factory.mktemp("runs") / "run")
    return run, page_of(run, "Study S4 (IBM)", cpu_verdict(run))


def test_the_studys_factors_stand_below_todays(page: tuple[Path, str]) -> None:
    run, text = page
    table = text[text.index("Scaling factors") :]
    table = table[: table.index("</table>")]
    assert table.index("this run, 4 clients") < table.index("the study, order entry (Informix 9.4), kernel 2.4")
    assert [f'<td class="n">{value}</td>' in table for value in ("3.7", "6.9", "9.5", "11.5", "12.7")] == [True] * 5
    assert "of other hardware" in text
    for name in ("scaling-cpus", "scaling-clients"):
        assert f'data-figure="{name}"' in text
        assert svg(run / "report" / "index.html", name)


def test_the_law_is_in_the_table_or_says_why_not(page: tuple[Path, str]) -> None:
    _, text = page
    table = text[text.index("<h3>Universal Scalability Law") :]
    table = table[: table.index("</table>")]
    assert "throughput is largest at" in table
    assert "cannot tell: 2 levels" in table


def test_what_grows_is_named(page: tuple[Path, str]) -> None:
    _, text = page
    part = text[text.index("What of a transaction") :]
    assert "What grows: CPUs 8 against 1 at clients 4" in part
    row = part[part.index("<td>lock</td>") :]
    assert "grows" in row[: row.index("</tr>")]
    row = part[part.index("<td>run_queue</td>") :]
    assert "shrinks" in row[: row.index("</tr>")]


def test_the_sentence_names_the_lock_and_not_the_queue(tmp_path: Path) -> None:
    lines = scaling_words.growth_lines(cpu_verdict(a_run(tmp_path / "run")))
    over_cpus = [line for line in lines if "CPUs 8 against 1" in line]
    assert len(over_cpus) == 2
    assert all("lock (waiting for a lock that another process holds)" in line for line in over_cpus)
    assert not any("run_queue" in line for line in over_cpus)
    over_clients = next(line for line in lines if "clients 16 against 4" in line)
    assert over_clients.endswith("no single part grew significantly")


def test_the_knobs_pairs_are_drawn(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    verdict = analyse(open_run(run))
    assert verdict["scaling"] is None
    assert verdict["memory_scaling"] is None
    found = _WORLD["plan"]({_WORLD["MEMORY"]: [2**30, 2**31], _WORLD["HUGE"]: ["always", "never"]})
    used = _WORLD["used"](found, 3, _RATES["by_pages"])
    by_memory = memory_scaling(found, _WORLD["EXPERIMENT"], used, 0.05, 0.0)
    text = page_of(run, "Study S5 (IBM)", verdict | {"memory_scaling": by_memory})
    assert 'data-figure="memory-pairs"' in text
    assert "fixed I/O buffers" in text
    part = section(text, "scaling")
    assert "no relevant difference" in part
    assert "CPU cost,<br>always over never" in part
    assert "Universal Scalability Law" not in part


def test_other_pages_have_no_such_part(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    assert 'id="scaling"' not in write_report(run).read_text()
