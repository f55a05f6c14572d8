"""Rounds at equal speed of the machine: known worlds in which its speed does all, something or nothing."""

from __future__ import annotations

import math
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis import analyse
from plimsoll.analysis.soak.inside import changes
from plimsoll.analysis.soak.rounds import judge_rounds
from plimsoll.analysis.soak.speed import PIECES, ROUNDS_MIN, speed_of, speeds_of_parts
from plimsoll.report import write_report
from plimsoll.words.soak import sentences

sys.path.append(str(Path(__file__).resolve().parents[3] / "benches"))

from simulate import speeds

_WORLD = runpy.run_path(str(Path(__file__).with_name("soak_world.py")))
World: Callable[..., Any] = _WORLD["World"]
Json = dict[str, Any]
COUNT = 36
LOSES = 0.5  # of throughput, as a power of what memory takes


def beats(memory: np.ndarray) -> list[Json]:
    """Speeds of a machine whose memory takes so much more (a logarithm), and whose core is as it is."""
    return [dict(zip(PIECES, (47e3, 63e3, 390e3 * math.exp(one)), strict=True)) for one in memory]


def wandering(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """How a machine's memory wanders over the rounds, and what else scatters them, as logarithms."""
    random = np.random.default_rng(seed)
    return 0.10 * random.standard_normal(COUNT), 0.005 * random.standard_normal(COUNT)


def test_what_the_machine_did_is_told_round_by_round() -> None:
    memory, noise = wandering(1)
    logs = noise - LOSES * memory
    found = judge_rounds(list(np.exp(logs)), (), beats(memory))
    equal = found["at_equal_speed"]
    assert equal is not None and found["told"] == "at equal speed"
    by = np.log1p([row["by_machine"] for row in found["rounds"]])
    assert by == pytest.approx(-LOSES * (memory - memory[0]), abs=0.01)
    assert equal["scatter"] < found["scatter"] / 4 and equal["scatter"] == pytest.approx(0.005, rel=0.5)
    assert math.log1p(equal["by_machine_widest"]) == pytest.approx(LOSES * np.ptp(memory), rel=0.05)
    bound = float(found["verdict"].removeprefix("no drift larger than ").removesuffix(" %"))
    alone = judge_rounds(list(np.exp(logs)))
    assert alone["verdict"] == "cannot tell" or bound < float(alone["verdict"].split()[-2]) / 2


def test_a_drift_that_the_machine_covered_is_found_at_equal_speed() -> None:
    memory, noise = wandering(2)
    logs = noise - LOSES * memory + math.log1p(-0.03) * np.arange(COUNT) / COUNT
    assert judge_rounds(list(np.exp(logs)))["verdict"] == "cannot tell"
    found = judge_rounds(list(np.exp(logs)), (), beats(memory))
    assert (found["verdict"], found["told"]) == ("lower", "at equal speed")
    assert found["at_equal_speed"]["over_all"]["low"] < -0.03 < found["at_equal_speed"]["over_all"]["high"] < 0


def test_a_machine_that_grew_slower_excuses_no_drift() -> None:
    """A load that needs more of the caches by and by slows the probe down as a neighbour would."""
    memory, noise = wandering(3)
    memory = memory / 20 + 0.4 * np.arange(COUNT) / COUNT
    found = judge_rounds(list(np.exp(noise - LOSES * memory)), (), beats(memory))
    assert (found["verdict"], found["told"]) == ("lower", "as measured")


def test_steps_through_memory_on_pages_of_two_sizes_are_not_compared() -> None:
    """An agent that finds no huge pages steps more slowly, and the machine is as it was."""
    memory, noise = wandering(6)
    logs, pages = noise - LOSES * memory, np.where(np.arange(COUNT) % 2, 4096, 2 << 20)
    speeds = [one | {"memory_page_bytes": float(size)} for one, size in zip(beats(memory), pages, strict=True)]
    assert judge_rounds(list(np.exp(logs)), (), speeds) == judge_rounds(list(np.exp(logs)))
    alike = [one | {"memory_page_bytes": 4096.0} for one in beats(memory)]
    assert judge_rounds(list(np.exp(logs)), (), alike) == judge_rounds(list(np.exp(logs)), (), beats(memory))


def test_speeds_that_explain_nothing_change_nothing() -> None:
    memory, noise = wandering(4)
    alone = judge_rounds(list(np.exp(noise)))
    assert judge_rounds(list(np.exp(noise)), (), beats(memory)) == alone
    assert alone["at_equal_speed"] is None and {row["by_machine"] for row in alone["rounds"]} == {None}
    assert judge_rounds(list(np.exp(noise)), (), beats(0 * memory)) == alone, "a speed that never moved"
    assert judge_rounds([10.0] * COUNT, (), beats(memory)) == judge_rounds([10.0] * COUNT), "rounds that are all alike"


def test_a_round_without_a_speed_or_too_few_rounds_are_told_as_measured() -> None:
    memory, noise = wandering(5)
    values = list(np.exp(noise - LOSES * memory))
    lacking: list[Any] = [*beats(memory[:-1]), None]
    assert judge_rounds(values, (), lacking) == judge_rounds(values)
    few = ROUNDS_MIN - 1
    assert judge_rounds(values[:few], (), beats(memory[:few])) == judge_rounds(values[:few])
    # A round that is not judged lacks nothing.
    assert judge_rounds([*values[:-1], None], (), lacking)["at_equal_speed"] is not None


def test_false_alarms_and_bounds_hold_beside_the_speeds() -> None:
    """A tenth of the runs of benches/verdicts.py, whose bounds are on a thousand."""
    (section,) = speeds.sections()
    cases = dict(section.cases)
    for name in ("AR 0.5, 36, 1", "AR 0.5, 36, 0"):
        assert all(row.holds for row in cases[name](20261129, 100))


def test_the_probe_s_sums_are_read_between_the_ends_of_a_round(tmp_path: Path) -> None:
    world = World([1000.0] * 2, speeds=[(40_000, 60_000, 300_000), (40_000, 60_000, 600_000)])
    first, second = _WORLD["write"](tmp_path, world).trials[0].rounds
    assert speed_of(first.measure) == pytest.approx({"multiply_ns": 42e3, "add_ns": 63e3, "memory_ns": 315e3})
    assert speed_of(second.measure) == pytest.approx({"multiply_ns": 42e3, "add_ns": 63e3, "memory_ns": 630e3})
    first.measure.probes["machine_speed"] = {"memory_page_bytes": 2 << 20}
    assert speed_of(first.measure)["memory_page_bytes"] == 2 << 20
    (first.measure.path / "machine_speed.npy").unlink()
    assert speed_of(first.measure) is None


def inside_of(seed: int, *, goes_by: float) -> tuple[dict[int, tuple[float, np.ndarray]], dict[int, np.ndarray]]:
    """12 rounds of 60 parts whose machine wanders: in the fifth memory takes a tenth more from the 30th part on, and in
    the eighth the load does a tenth less whatever the machine does."""
    random = np.random.default_rng(seed)
    rounds, speeds = {}, {}
    for number in range(1, 13):
        of_parts = np.log([47e3, 63e3, 390e3]) + 0.02 * random.standard_normal((60, 3))
        of_parts[30:, 2] += 0.10 if number == 5 else 0.0
        logs = math.log(5000) - goes_by * (of_parts[:, 2] - math.log(390e3)) + 0.01 * random.standard_normal(60)
        logs[30:] -= 0.10 if number == 8 else 0.0
        rounds[number], speeds[number] = (10.0, np.exp(logs)), of_parts
    return rounds, speeds


def test_a_change_inside_a_round_that_the_machine_made_is_known_from_one_of_the_load() -> None:
    rounds, speeds = inside_of(8, goes_by=1.5)
    found = {one["round"]: one for one in changes(rounds, speeds)}
    assert set(found) == {5, 8} and (found[5]["by_machine"], found[8]["by_machine"]) == (True, False)
    assert found[5]["size"]["high"] < -0.08 and abs(found[5]["at_equal_speed"]["value"]) < 0.02
    equal = found[8]["at_equal_speed"]
    assert equal["low"] < math.expm1(-0.10) < equal["high"] < -0.05
    alone = {one["round"]: one for one in changes(rounds)}
    assert {number: one["size"] for number, one in alone.items()} == {n: one["size"] for n, one in found.items()}
    assert all(one["at_equal_speed"] is None and not one["by_machine"] for one in alone.values())


def test_a_machine_that_a_load_does_not_go_by_excuses_no_change_inside_a_round() -> None:
    rounds, speeds = inside_of(9, goes_by=0.0)
    (one,) = changes(rounds, speeds)
    assert (one["round"], one["at_equal_speed"], one["by_machine"]) == (8, None, False)


def test_the_speed_of_parts_is_that_of_the_beats_in_them(tmp_path: Path) -> None:
    run = _WORLD["write"](tmp_path, World([100.0] * 2, speeds=[(42_000, 63_000, 315_000)] * 2))
    segment = run.trials[0].rounds[0].measure
    (world_s,) = {World([100.0]).seconds}
    halves = np.zeros(6, np.load(segment.path / "machine_speed.npy").dtype)
    began = segment.told["started_ns"]
    halves["t_ns"] = began + np.repeat([0, world_s // 2, world_s], 2) * 10**9
    halves["cpu"], halves["beats"] = [0, 1] * 3, np.repeat([5, 105, 205], 2)
    for name, first, then in (("multiply_ns", 40, 40), ("add_ns", 60, 90), ("memory_ns", 300, 600)):
        halves[name] = 7 + np.repeat([0, 100 * first, 100 * (first + then)], 2)
    np.save(segment.path / "machine_speed.npy", halves)
    segment = run.trials[0].rounds[0].measure
    found = speeds_of_parts(segment, world_s / 2, 2)
    assert np.exp(found) == pytest.approx(np.array([[40, 60, 300], [40, 90, 600]]))
    assert speeds_of_parts(segment, world_s / 8, 8) is None, "three samples tell nothing of eight parts"
    (segment.path / "machine_speed.npy").unlink()
    assert speeds_of_parts(run.trials[0].rounds[0].measure, world_s / 2, 2) is None


def test_the_page_and_the_sentences_say_what_the_machine_did(tmp_path: Path) -> None:
    memory, noise = wandering(6)
    taken = [(47_000, 63_000, round(390_000 * math.exp(one))) for one in memory]
    values = [1000.0 * math.exp(one) for one in noise - LOSES * memory]
    verdict = analyse(_WORLD["write"](tmp_path, World(values, speeds=taken)))
    leads = sentences.SENTENCES.leads(verdict)
    assert (
        leads[0].startswith("throughput: no drift larger than") and "at equal speed of the machine over 36" in leads[0]
    )
    assert "(as measured " in leads[0]
    assert leads[1].startswith("the machine's own speed changed throughput by up to ") and "drift" not in leads[1]
    page = write_report(tmp_path).read_text()
    assert "by the machine's" in page and "Rings: what the machine" in page
    (tmp_path / "slower").mkdir()
    slower = [1000.0 * math.exp(one) for one in noise - LOSES * memory - 0.01 * np.arange(COUNT)]
    (_, by) = sentences.SENTENCES.leads(analyse(_WORLD["write"](tmp_path / "slower", World(slower, speeds=taken))))[:2]
    assert ", and the drift is -3" in by or ", and the drift is -2" in by
    plain = tmp_path / "plain"
    plain.mkdir()
    assert len(sentences.SENTENCES.leads(analyse(_WORLD["write"](plain, World(values))))) == 1
    assert "by the machine's" not in write_report(plain).read_text()
