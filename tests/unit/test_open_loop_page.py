"""The page on open loops: its examples are taken as they stand, and its table keeps to what it says of itself."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from plimsoll.experiment import load
from plimsoll.run.requests import schedule_request

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/open-loop.md").read_text()
EXAMPLES = re.findall(r"(?:^    .*\n)+", TEXT, flags=re.M)
SCHEDULES = [example for example in EXAMPLES if example.lstrip().startswith("[schedule]")]
HEAD = 'format = 1\nname = "mine"\ntitle = "A question"\n[workload]\nname = "bank"\nscale = 1\n[measure]\nseconds = 3\n'
COLUMNS = ("transactions", "late", "p50", "p99", "p99.9", "largest")


def _request(example: str, folder: Path) -> dict[str, object]:
    path = folder / "experiment.toml"
    path.write_text(HEAD + re.sub(r"^    ", "", example, flags=re.M))
    return schedule_request(load(str(path)).experiment, 1)


@pytest.mark.parametrize("example", SCHEDULES)
def test_a_schedule_is_an_open_loop(example: str, tmp_path: Path) -> None:
    assert _request(example, tmp_path)["kind"] == "poisson"


def test_the_agents_form_says_the_same(tmp_path: Path) -> None:
    with_limit = next(example for example in SCHEDULES if "late_limit_ms" in example)
    written = next(example for example in EXAMPLES if '"schedule"' in example)
    assert json.loads("{" + written + "}")["schedule"] | {"seed": 1} == _request(with_limit, tmp_path)


def _table() -> dict[str, dict[str, float]]:
    lines = [re.split(r" *\| *", line.strip("| ")) for line in TEXT.splitlines() if line.startswith("|")]
    head, rows = lines[0], lines[2:]
    numbers = {row[0]: [float(re.sub(r"[^\d.]", "", cell)) for cell in row[1:]] for row in rows}
    return {name: dict(zip(head, cells, strict=True)) for name, cells in numbers.items()}


def test_the_table_shows_what_the_text_says() -> None:
    table = _table()
    closed = table.pop("closed loop")
    pgbench = table["pgbench --rate"]
    assert all(tuple(row) == COLUMNS for row in table.values()), "what the test prints"
    for name, row in table.items():
        assert min(row["p99.9"], row["largest"]) > 950, name
        assert all(abs(row[column] - pgbench[column]) < 50 for column in ("p99", "p99.9", "largest")), name
    assert closed["largest"] > 950 > 250 > closed["p99.9"]
    assert closed["late"] == 4, "one a connection"


def test_the_pages_rate_is_the_tests_rate() -> None:
    test = (ROOT / "crates/agent/tests/stall.rs").read_text()
    wanted = {"RATE: f64 = 2_000.0", "SECONDS: f64 = 3.0", "CLIENTS: usize = 4", "TOLERANCE: f64 = 0.05"}
    assert all(constant in test for constant in wanted), "docs/open-loop.md tells these"
    assert all(tomllib.loads(re.sub(r"^    ", "", e, flags=re.M))["schedule"]["rate"] == 2000 for e in SCHEDULES)
