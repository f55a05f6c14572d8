"""A search over connections: what is asked, how a trial is judged, and that the search finds the boundary there is."""

from __future__ import annotations

import random

import numpy as np
import pytest

from plimsoll.analysis.capacity import objective as objectives
from plimsoll.analysis.capacity.judge import judge
from plimsoll.analysis.capacity.line import load_line
from plimsoll.analysis.capacity.objective import Objective, from_json, parse
from plimsoll.analysis.capacity.reading import Reading
from plimsoll.analysis.capacity.search import Tried, limits, next_step
from plimsoll.analysis.capacity.verdict import assess
from plimsoll.analysis.statistics.percentile import Cells

ASKED = Objective((), None, 0.95)


def reading(clients: int, conforming: int, *, number: int = 1, busy: float = 0.2, steal: float = 0.0) -> Reading:
    empty = np.zeros(0)
    cells = Cells(np.zeros(0, np.int64), empty, empty, empty, np.zeros(10))
    return Reading(
        number=number, role="bracket", rate=float(clients), seconds=10.0, clients=clients, threads=1, cells=cells,
        failed=None, outstanding=np.zeros(10), busy=np.zeros(10), lag=np.zeros(10), lag_cells=None,
        identity={"done": 100, "failed": 0, "skipped": 0, "lost": 0}, throughput=10.0, load_busy_share=busy,
        host_busy_share=0.5, steal_share=steal, conforming=conforming,
    )  # fmt: skip


def test_the_objective_is_read_and_written() -> None:
    assert parse("conforming >= 95%") == ASKED and str(ASKED) == "conforming >= 95%"
    assert from_json(ASKED.as_json()) == ASKED
    assert "conforming" not in parse("p99 <= 5ms").as_json()
    assert "conforming" in objectives.ALLOWED


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("conforming <= 95%", "at least"),
        ("conforming >= 0%", "above 0%"),
        ("conforming >= 95", "not a percentage"),
        ("conforming >= 100%", "below 100%"),
        ("conforming >= 95% and p99 <= 5ms", "give it alone"),
        ("p99 <= 5ms, conforming >= 95%", "give it alone"),
    ],
)
def test_what_is_no_objective_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse(text)


def test_a_number_holds_by_its_share_of_conforming_connections() -> None:
    assert judge([reading(100, 95)], ASKED).word == "holds"
    broken = judge([reading(100, 94)], ASKED)
    assert broken.word == "breaks" and broken.excess > 0
    assert "94 of 100 connections conform, 94.0% and not 95.0%" in broken.reasons
    assert judge([reading(100, 94), reading(100, 96)], ASKED).word == "holds"
    assert judge([reading(100, 100)], ASKED).excess < judge([reading(100, 96)], ASKED).excess < 0


def test_a_load_at_its_end_is_no_word_on_the_server() -> None:
    judged = judge([reading(100, 10, busy=0.95)], ASKED)
    assert judged.word == "generator" and "threads used 95%" in judged.reasons[0]
    assert judge([reading(100, 100, busy=0.95)], ASKED).word == "holds"
    assert judge([reading(100, 10, steal=0.5)], ASKED).disturbed is not None


def searched(carries: int, scale: float, most: int = 10_000, seed: int = 1) -> tuple[list[Tried], float | None]:
    """A search on a server of which about `carries` connections conform; its trials and the line."""
    within, tried, spent, chance = limits(595, 1.0, seed, most), list[Tried](), 0.0, random.Random(seed)
    readings: list[Reading] = []
    while (step := next_step(tried, within, spent)) is not None:
        spent += step.seconds + 1.0
        if step.rate is None:
            tried.append(Tried(1, "saturation", None, step.seconds, "cannot tell", "cannot tell", 0.0, scale))
            readings.append(reading(1, 1))
            continue
        assert step.rate == int(step.rate) <= most, "connections are whole"
        clients, now = int(step.rate), carries * chance.uniform(0.98, 1.02)
        conforming = clients if clients <= now else int(clients * max(0.0, 1 - 4 * (clients / now - 1)))
        readings.append(reading(clients, conforming, number=len(readings) + 1))
        tried = assess(readings, ASKED, tried)
    line = load_line(tried)
    return tried, line.rate if line.status == "found" else None


@pytest.mark.parametrize(("carries", "scale"), [(1000, 900.0), (37, 500.0), (2400, 300.0)])
def test_the_search_finds_what_a_server_carries(carries: int, scale: float) -> None:
    _, line = searched(carries, scale)
    assert line is not None and abs(line / carries - 1) < 0.06


def test_the_search_ends_where_no_more_connections_can_be_had() -> None:
    tried, line = searched(5000, 100_000.0, most=200)
    assert line is None and max(trial.rate or 0 for trial in tried) == 200
    assert len([trial for trial in tried if trial.rate == 200]) < 10
