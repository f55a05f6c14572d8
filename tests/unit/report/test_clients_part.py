"""Study S2's part of the page: the answer in words, three figures, and what is said where one is not drawn."""

import json
import runpy
from pathlib import Path

import pytest

from plimsoll.analysis.studies.clients import CLIENTS, EACH, SCALE
from plimsoll.report import write_report

svg = runpy.run_path(str(Path(__file__).with_name("page_figures.py")))["svg"]
_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_open.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]


def closed_loop(folder: Path, scales: list[int], counts: list[int], each: list[int]) -> Path:
    """A synthetic run turned into one of study S2: its rates become places in the grid."""
    grid = [(scale, count, many) for scale in scales for count in counts for many in each]
    rates = tuple(30.0 + 10 * place for place in range(len(grid)))
    run = make(folder, Shape(rates=rates, seconds=10, service_ms=5.0, judged="throughput_per_second"))
    plan = json.loads((run / "plan.json").read_text())
    for place, (name, entry) in zip(grid, plan["treatments"].items(), strict=True):
        levels = dict(zip((SCALE, CLIENTS, EACH), map(str, place), strict=True))
        entry |= {"levels": levels, "label": f"{place}"}
        for trial in plan["trials"]:
            if trial["treatment"] == name:
                trial["levels"] = levels
    plan["factors"] = [
        {"path": path, "paths": [path], "label": path.split(".")[1], "unit": None, "compare": path == CLIENTS}
        | {"levels": [{"label": str(value), "value": value} for value in values]}
        for path, values in ((SCALE, scales), (CLIENTS, counts), (EACH, each))
    ]
    experiment = json.loads((run / "experiment.json").read_text())
    experiment |= {"source": "Study S2 (CITI)", "schedule": {"kind": "closed"}}
    experiment["factors"] = [{"path": factor["path"], "compare": factor["compare"]} for factor in plan["factors"]]
    (run / "plan.json").write_text(json.dumps(plan))
    (run / "experiment.json").write_text(json.dumps(experiment))
    for path in run.glob("trials/*/measure/summary.json"):
        summary = json.loads(path.read_text())
        path.write_text(json.dumps({**summary, "schedule": {"kind": "closed"}, "planned_rate": None}))
    return run


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    return write_report(closed_loop(folder, [1, 32], [1, 10, 30], [50, 500]))


def test_the_figures_are_drawn(page: Path) -> None:
    text = page.read_text()
    for name in ("clients", "transactions-per-client", "scale-gain"):
        assert f'data-figure="{name}"' in text
        assert svg(page, name)


def test_the_answer_leads_and_stands_beside_the_study(page: Path) -> None:
    text = page.read_text()
    assert text.index("30 clients: scale 32 carries") < text.index("<figure")
    assert text.index('data-figure="clients"') < text.index('data-figure="throughput"'), "the study's section leads"
    assert '<a href="#section-clients">30 clients' in text
    assert "CITI, University of Michigan, 2001" in text
    assert "the CPU idle" in text


def test_many_comparisons_are_folded(tmp_path: Path) -> None:
    text = write_report(closed_loop(tmp_path / "run", [1, 32], [1, 30], [50, 200, 500])).read_text()
    assert "6 more answers" in text, "of two answers and six comparisons two lead"
    assert "2 more tables" in text


def test_one_scale_and_one_number_of_transactions_say_so(tmp_path: Path) -> None:
    text = write_report(closed_loop(tmp_path / "run", [1], [1, 30], [200])).read_text()
    assert "more answers" not in text
    assert "more tables" not in text
    assert ": because this run has one scale" in text
    assert ": because this run has one number of transactions per client" in text
