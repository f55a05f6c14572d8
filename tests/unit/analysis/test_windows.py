"""Runs of windows: what counts of a window, what tells levels apart, when a run may stop, what is named."""

import json
import math
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis import analyse, compare_treatments
from plimsoll.analysis.comparing.compare import ALPHA_OF_TEST
from plimsoll.analysis.trial.readings import device_counter, seconds_measured
from plimsoll.analysis.trial.windows import windows
from plimsoll.analysis.windows import judge, lead_in, others_writes
from plimsoll.analysis.windows.budget import POWER, Arrangement, ratio_told
from plimsoll.analysis.windows.equals import start_of
from plimsoll.analysis.windows.judge import Start, compare
from plimsoll.analysis.windows.looks import decision
from plimsoll.analysis.windows.method import noise_levels
from plimsoll.analysis.windows.spending import FIRST, at_end, at_look
from plimsoll.record import open_run
from plimsoll.report import write_report
from plimsoll.words.terminal import terminal_lines
from plimsoll.words.windows import budget_words

WORLD = runpy.run_path(str(Path(__file__).with_name("windows_world.py")))
Shape, make = WORLD["Shape"], WORLD["make"]
sys.path.insert(0, str(Path(__file__).parents[3] / "benches"))
from simulate import windows as worlds  # noqa: E402  the path comes first

Json = dict[str, Any]


def _verdict(folder: Path, **shape: Any) -> Json:
    verdict: Json = json.loads(json.dumps(analyse(open_run(make(folder / "run", Shape(**shape))))))
    return verdict


def test_what_ends_in_the_lead_in_or_in_the_drain_does_not_count(tmp_path: Path) -> None:
    run = open_run(make(tmp_path / "run", Shape(blocks=1, rounds=5)))
    trial = run.trials[0]
    found, rows, table = windows(trial), trial.measure.transactions, trial.measure.windows
    assert found is not None and rows is not None and table is not None
    for place, row in enumerate(table):
        begin, end = int(row["opened_ns"]) + 250_000_000, int(row["closed_ns"])
        assert found.done[place] == sum(begin < int(at) <= end for at in rows["end_ns"])
        assert found.seconds[place] == 0.75
    assert found.done.sum() < len(rows)
    assert found.rate == pytest.approx(found.done.sum() / (5 * 0.75))


def test_series_hold_what_happened_while_the_window_was_open(tmp_path: Path) -> None:
    run = open_run(make(tmp_path / "run", Shape(blocks=1, rounds=6)))
    for trial in run.trials:
        done = trial.measure.told["identity"]["done"]
        assert device_counter(trial, "write_sectors") == done * 16
        assert seconds_measured(trial.measure) == pytest.approx(6 * 1.01)


def test_a_window_without_a_transaction_counts_as_it_is(tmp_path: Path) -> None:
    calm, stalled = (_verdict(tmp_path / str(share), stalled=share, rounds=40) for share in (0.0, 0.5))
    rates = [verdict["treatments"]["t1"]["metrics"]["throughput_per_second"]["value"] for verdict in (calm, stalled)]
    assert stalled["windows"]["without_transaction"] > 100
    assert rates[1] == pytest.approx(rates[0] / 2, rel=0.2)


def test_a_server_that_never_finishes_a_window_is_the_slowest_and_not_left_out(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(effects=(0.0, 0.0, 0.0), blocks=4, duplicate=True))
    for trial in open_run(folder).trials:
        if trial.treatment == "t2":
            rows = np.load(trial.measure.path / "transactions.npy")
            table = np.load(trial.measure.path / "windows.npy")
            place = np.searchsorted(table["opened_ns"], rows["end_ns"], side="right") - 1
            rows["end_ns"] = table["closed_ns"][place] + 1000  # all of them drain
            np.save(trial.measure.path / "transactions.npy", rows)
    compared = analyse(open_run(folder))["comparisons"][0]
    level = compared["levels"][1]
    assert level["verdict"] == "worse" and level["estimate"] < 0.1 and level["blocks"] == 4


@pytest.mark.parametrize("duplicate", [True, False])
def test_the_shown_estimates_have_the_shown_ratios(tmp_path: Path, duplicate: bool) -> None:
    verdict = _verdict(tmp_path, duplicate=duplicate, blocks=4)
    compared = verdict["comparisons"][0]
    shown = {level["level"]: level["estimate"] for level in compared["levels"]}
    for level in compared["levels"]:
        metrics = verdict["treatments"][level["treatment"]]["metrics"]
        assert metrics["throughput_per_second"]["value"] == pytest.approx(level["estimate"])
    for pair in compared["pairs"]:
        assert pair["ratio"] == pytest.approx(shown[pair["second"]] / shown[pair["first"]])


def test_one_block_tells_nothing_of_levels_unless_starts_are_known(tmp_path: Path) -> None:
    verdict = _verdict(tmp_path / "a", blocks=1, effects=(0.0, 0.5))
    assert [level["verdict"] for level in verdict["comparisons"][0]["levels"]] == ["too few blocks", "best estimate"]
    assert "no verdict from one start of each server" in "\n".join(terminal_lines(verdict, "page"))
    stored = {"run": "a-a-1", "windows": {"start_sd_log": 0.02, "start_freedom": 12}}
    stored["windows"] |= {"trial_sd_log": 0.03, "windows_sd_log": 0.02}
    known = _verdict(tmp_path / "b", blocks=1, effects=(0.0, 0.5), a_a=stored)
    compared = known["comparisons"][0]
    assert compared["levels"][0]["verdict"] == "worse"
    assert compared["noise"]["levels"]["starts_from"] == "a-a-1"
    assert "known from the A/A run a-a-1" in "\n".join(terminal_lines(known, "page"))


def test_an_a_a_that_kept_less_is_taken_by_its_pairs() -> None:
    kept: Any = {"start_sd_log": 0.0, "start_freedom": 9.0}
    assert start_of({"sd_log": 0.03, "blocks": 8, "windows": kept}) == Start(0.03 / math.sqrt(2), 7.0)
    assert start_of({"sd_log": None, "blocks": 8, "windows": kept}) is None
    kept |= {"trial_sd_log": 0.04, "windows_sd_log": 0.05}
    assert start_of({"sd_log": 0.03, "blocks": 8, "windows": kept}) == Start(0.04, 9.0, 0.05)
    assert Start(0.05, 9.0, 0.04).sd_log == pytest.approx(0.03) and Start(0.04, 9.0, 0.05).sd_log == 0
    assert start_of({"sd_log": 0.03, "blocks": 1, "windows": {**kept, "start_sd_log": None}}) is None


def test_two_blocks_tell_a_large_difference(tmp_path: Path) -> None:
    compared = _verdict(tmp_path, blocks=2, effects=(0.0, 0.0, 0.0, 0.7), duplicate=True)["comparisons"][0]
    assert compared["best_set"] == ["512 MiB"]
    assert {level["verdict"] for level in compared["levels"][:3]} == {"worse"}


def test_looks_share_the_errors_of_one_verdict() -> None:
    for planned in range(1, 12):
        looks = [at_look(block, planned) for block in range(FIRST, planned)]
        assert sum(one.alpha for one in looks) + at_end(planned, planned).alpha == pytest.approx(ALPHA_OF_TEST)
        missed = sum(1 - one.confidence for one in looks) + 1 - at_end(planned, planned).confidence
        assert missed == pytest.approx(0.05)
        # a budget of time may end it after any block: never more than is left
        for block in range(FIRST, planned):
            before = sum(at_look(one, planned).alpha for one in range(FIRST, block))
            assert before + at_end(block, planned).alpha == pytest.approx(ALPHA_OF_TEST)


def test_a_run_is_decided_when_every_pair_is_told_or_alike(tmp_path: Path) -> None:
    far = {"effects": (0.0, 0.7), "duplicate": True, "blocks": 4, "window": 0.05}
    assert decision(make(tmp_path / "one", Shape(**far, last_block=1))) is None
    found = decision(make(tmp_path / "far", Shape(**far, last_block=2)))
    assert found is not None and found.decided and found.after_block == 2
    near = {**far, "effects": (0.0, 0.02), "window": 0.3}
    found = decision(make(tmp_path / "near", Shape(**near, last_block=2)))
    assert found is not None and not found.decided and "64 MiB and 128 MiB" in found.why
    alike = {
        **far,
        "effects": (0.0, 0.0, 0.0),
        "window": 0.02,
        "start": 0.001,
        "blocks": 3,
        "rounds": 60,
        "rate": 800.0,
    }
    found = decision(make(tmp_path / "alike", Shape(**alike, last_block=2)))
    assert found is not None and found.decided


def test_a_block_that_is_not_whole_is_not_looked_at(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(effects=(0.0, 0.7), duplicate=True, blocks=3))
    (folder / "trials" / "0006" / "trial.json").unlink()
    assert decision(folder) is None


def test_a_stopped_block_is_not_looked_at_before_it_was_done(tmp_path: Path) -> None:
    """Else its predecessors' data were looked at again, by what the last look may spend."""
    folder = make(tmp_path / "run", Shape(effects=(0.0, 0.7), duplicate=True, blocks=3))
    for number in (7, 8, 9):
        path = folder / "trials" / f"{number:04d}" / "trial.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "status": "stopped"}))
    found = decision(folder)
    assert found is not None and found.after_block == 2


def test_what_a_decision_left_out_is_no_exclusion_and_the_verdict_spends_what_the_look_did(tmp_path: Path) -> None:
    verdict = _verdict(tmp_path, effects=(0.0, 0.7), duplicate=True, blocks=4, last_block=2, decided=True)
    assert verdict["exclusions"] == []
    assert verdict["windows"]["looks"]["decided_after"] == 2
    assert verdict["windows"]["looks"]["alpha"] == pytest.approx(at_look(2, 4).alpha)
    assert "Ended early, after block 2 of 4" in "\n".join(terminal_lines(verdict, "page"))


@pytest.mark.parametrize("how", ["still", "hung"])
def test_a_server_that_stood_still_loses_and_is_not_left_out(tmp_path: Path, how: str) -> None:
    """Left out of its worst block it was the best: 22 % faster in the other two."""
    shape: Json = {"effects": (0.0, 0.0, 0.2), "duplicate": True, "window": 0.03}
    calm = _verdict(tmp_path / "calm", **shape)["comparisons"][0]
    assert calm["best_set"] == ["256 MiB"]
    verdict = _verdict(tmp_path / "not", **shape, **{how: ((2, 2),)})
    compared, entries = verdict["comparisons"][0], verdict["trials"]
    worst = compared["levels"][2]
    assert worst["unbounded"] == {"blocks": 1, "of": 3, "stood_still": True}
    assert compared["reference"] != "256 MiB" and worst["verdict"] != "best estimate"
    assert all(level["verdict"] != "worse" for level in compared["levels"][:2]), "nothing is beaten by what stood still"
    assert not [entry for entry in verdict["exclusions"] if entry["treatment"] == "t3"]
    assert verdict["treatments"]["t3"]["metrics"]["throughput_per_second"]["stood_still"]
    assert compared["noise"]["sd_log"] == pytest.approx(calm["noise"]["sd_log"], rel=1.0), "a standstill is no noise"
    said = " ".join("\n".join(terminal_lines(verdict, "page")).split())
    assert "256 MiB: stood still in 1 of 3 blocks" in said and "at most" in said
    assert any("the server stood still" in text for entry in entries for text in entry["caveats"])
    assert write_report(tmp_path / "not" / "run").exists()


@pytest.mark.parametrize("how", ["still", "hung"])
def test_a_server_that_always_stands_still_is_the_worst(tmp_path: Path, how: str) -> None:
    shape: Json = {"effects": (0.0, 0.0, 0.2), "duplicate": True, "window": 0.03}
    verdict = _verdict(tmp_path, **shape, **{how: tuple((block, 2) for block in (1, 2, 3))})
    compared = verdict["comparisons"][0]
    assert [level["verdict"] == "worse" for level in compared["levels"]] == [False, False, True]
    assert compared["levels"][2]["times_slower"]["bound"] == "at least"
    assert "worst: stood still in all 3 blocks" in "\n".join(terminal_lines(verdict, "page"))


def test_a_look_counts_a_server_that_stood_still(tmp_path: Path) -> None:
    shape: Json = {"effects": (0.0, 0.7), "duplicate": True, "blocks": 4, "window": 0.05, "last_block": 2}
    assert decision(make(tmp_path / "calm", Shape(**shape))).decided
    found = decision(make(tmp_path / "still", Shape(**shape, still=((1, 1),))))
    assert found is not None and not found.decided


def test_a_trial_that_failed_leaves_the_others(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(blocks=4, duplicate=True))
    path = folder / "trials" / "0001" / "trial.json"  # block 1 has a duplicate of another level
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": "failed", "reason": "killed in a window"}))
    table = np.load(path.parent / "measure" / "windows.npy")
    np.save(path.parent / "measure" / "windows.npy", table[:7])  # the rounds after it are the others' alone
    compared = analyse(open_run(folder))["comparisons"][0]
    assert [level["blocks"] for level in compared["levels"]] == [3, 4, 4]


def test_the_lead_in_is_called_too_short_where_windows_begin_slowly(tmp_path: Path) -> None:
    slow = _verdict(tmp_path / "slow", slow_start=0.1, rounds=30)
    assert slow["windows"]["lead_in"]["verdict"] == "too short"
    assert slow["windows"]["lead_in"]["ratio"] == pytest.approx(0.9, abs=0.03)
    assert any("lead-in of windows is too short" in caveat for caveat in slow["caveats"])
    steady = _verdict(tmp_path / "steady", rounds=30)
    assert steady["windows"]["lead_in"]["verdict"] != "too short"


def test_caveats_are_of_what_enters(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(blocks=4, duplicate=True, slow_start=0.1, rounds=30))
    assert any("lead-in of windows is too short" in caveat for caveat in analyse(open_run(folder))["caveats"])

    def excluded(*entering: int) -> Json:
        for path in sorted((folder / "trials").glob("*/trial.json")):
            told = json.loads(path.read_text())
            checks = [{"name": "rows", "ok": told["number"] in entering}]
            path.write_text(json.dumps({**told, "caveats": [f"seen of {told['number']}"], "checks": checks}))
        return analyse(open_run(folder))

    some = excluded(1, 6)
    assert [text for text in some["caveats"] if "seen of" in text] == ["trial 1: seen of 1", "trial 6: seen of 6"]
    assert some["trials"][1]["caveats"][-1] == "seen of 2", "it stands with its trial"
    assert not [text for text in excluded()["caveats"] if "seen of" in text or "lead-in" in text]


def test_the_lead_in_of_steady_windows_is_seldom_accused() -> None:
    random, accused = np.random.default_rng(7), 0
    for _ in range(400):
        sides = [(random.poisson(40, 30) / 0.25, random.poisson(80, 30) / 0.5) for _ in range(6)]
        found = lead_in.test(sides)
        assert found is not None
        accused += found["verdict"] == "too short"
    assert accused <= 10  # 1 % of 400, and three standard errors


def test_writes_of_frozen_servers_are_counted_and_named(tmp_path: Path) -> None:
    some = _verdict(tmp_path / "some", foreign=0.2, rounds=40)["windows"]["others_writes"]
    assert some["share"] == pytest.approx(0.2, abs=0.02) and some["is_named"]
    few = _verdict(tmp_path / "few", foreign=0.05, rounds=40)
    assert not few["windows"]["others_writes"]["is_named"]
    assert not any("frozen" in caveat for caveat in few["caveats"])


def test_what_disks_wrote_is_told_by_disk_and_not_by_its_place_in_a_trials_list() -> None:
    def trial(*written: tuple[str, float, float]) -> Any:
        rows = [(place, value) for place, (_, *values) in enumerate(written) for value in values]
        table = np.array(rows, [("device", "<i8"), ("write_sectors", "<f8")])
        measure = SimpleNamespace(
            series=lambda _: table, column=lambda _, name: table[name], told={"devices": [name for name, *_ in written]}
        )
        return SimpleNamespace(measure=measure)

    shared, other = ("vda", 100.0, 120.0), ("sdb", 5000.0, 5007.0)
    assert others_writes.device_bytes([trial(shared), trial(("vda", 110.0, 130.0))]) == 30 * 512
    assert others_writes.device_bytes([trial(shared, other), trial(other, shared)]) == 27 * 512
    assert others_writes.device_bytes([trial(shared), trial(other)]) == 27 * 512


def test_both_levels_of_noise_are_found_again() -> None:
    noise, shape = worlds.Noise("normal", 0.03, 0.2), worlds.Shape(6, 40, 50)
    found = worlds.rates(noise, shape, 1, 5)[0]
    scatter, inside = judge.noise(found)
    levels = noise_levels(scatter, inside)
    assert levels is not None and levels["start_sd_log"] is not None
    assert levels["window_sd_log"] == pytest.approx(0.2, rel=0.1)
    assert levels["windows_sd_log"] == pytest.approx(0.2 / math.sqrt(50), rel=0.1)
    assert levels["start_sd_log"] == pytest.approx(0.03, rel=0.2)


def test_windows_that_resemble_their_neighbours_are_worth_fewer() -> None:
    shape = worlds.Shape(4, 10, 80)
    white, carried = (
        judge.noise(worlds.rates(worlds.Noise(kind, 0.0, 0.1), shape, 1, 5)[0])[1] for kind in ("normal", "own AR 0.9")
    )
    assert carried.window > 8 * white.window
    shared = judge.noise(worlds.rates(worlds.Noise("shared AR 0.9", 0.0, 0.1), shape, 1, 5)[0])[1]
    assert shared.window < 2 * white.window  # a drift of all servers cancels within rounds


@pytest.mark.parametrize("kind", worlds.KINDS)
def test_equals_are_accused_in_at_most_one_run_of_a_hundred(kind: str) -> None:
    """A tenth of what benches/verdicts.py has: four looks at 4 servers, some starts as noisy as their windows."""
    ever = []
    for start, window in ((0.0, 0.15), (0.05, 0.05)):
        noise = worlds.Noise(kind, start, window)
        ever.append(worlds.run(worlds.rates(noise, worlds.Shape(4, 5, 20), 200, 11))[1])
    bound = worlds.BOUND_NOISY if kind == "one noisy" else worlds.BOUND
    assert np.concatenate(ever).mean() <= bound + 2 * math.sqrt(bound / 400)


def test_intervals_hold_where_the_run_stopped() -> None:
    for apart in (0.0, 0.05, 0.3):
        found = worlds.rates(
            worlds.Noise("normal", 0.02, 0.15), worlds.Shape(2, 5, 20, True), 400, 3, np.array([0, -apart])
        )
        shown, _ = worlds.run(found)
        held = np.abs(shown.mean[:, 0, 1] - apart) <= shown.half[:, 0, 1]
        assert held.mean() >= worlds.COVERED


def each_its_own(starts: list[Start]) -> Any:
    """What each of many runs knows of starts, for a comparison of all of them at once."""
    (freedom,) = {one.freedom for one in starts}
    trial, inside = ([getattr(one, name) for one in starts] for name in ("trial_sd_log", "windows_sd_log"))
    return Start(np.reshape(trial, (-1, 1, 1)), freedom, np.reshape(inside, (-1, 1, 1)))  # type: ignore[arg-type]


def holds_nothing(said: Any) -> np.ndarray:
    """By run: whether the interval of the first two levels, which are equal, holds 0."""
    return np.asarray(np.abs(said.shown.mean[:, 0, 1]) <= said.half()[:, 0, 1])


@pytest.mark.parametrize("levels", [2, 4])
def test_starts_that_few_duplicates_have_told_accuse_no_equals(levels: int) -> None:
    """An A/A of four duplicates says little of starts, and that their share is small just where it is wrong."""
    freedom, runs = 4, 1500
    found = worlds.rates(worlds.Noise("normal", 0.05, 0.15), worlds.Shape(levels, 1, 40), runs, 3)
    random = np.random.default_rng(5)
    stored = 0.05 * np.sqrt(random.chisquare(freedom, runs) / freedom)
    said = compare(found, each_its_own([Start(sd, freedom) for sd in stored.tolist()]))[0]
    # by one freedom for both it was 0.015 of two levels, and 0.018 of four
    assert np.mean(said.beaten.any((-1, -2))) <= 0.01
    assert np.mean(holds_nothing(said)[:400]) >= worlds.COVERED


@pytest.mark.parametrize(("blocks", "rounds", "start"), [(4, 20, 0.03), (10, 30, 0.02), (10, 30, 0.05)])
def test_an_a_a_that_saw_no_starts_by_chance_accuses_no_equals(blocks: int, rounds: int, start: float) -> None:
    """What its windows left of its trials is 0 in 2 to 35 of 100 of these: taken as that, it accused 20, 8 and 4."""
    noise, runs = worlds.Noise("normal", start, 0.15), 600
    found = worlds.rates(noise, worlds.Shape(4, 1, 120), runs, 3)
    said = compare(found, each_its_own(list(worlds.stored(noise, blocks, rounds, runs, 5))))[0]
    assert np.mean(said.beaten.any((-1, -2))) <= 0.01 + 2 * math.sqrt(0.01 / runs)
    assert np.mean(holds_nothing(said)) >= worlds.COVERED


def test_starts_that_are_known_hold_in_one_block() -> None:
    found = worlds.rates(worlds.Noise("normal", 0.03, 0.15), worlds.Shape(4, 1, 40), 400, 3)
    told, naive = (compare(found, Start(sd, 20))[0].beaten.any((-1, -2)) for sd in (0.03, 0.0))
    assert np.mean(told) <= 0.02
    assert np.mean(naive) > 0.05  # the windows alone would accuse


def test_the_page_draws_how_intervals_closed(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(effects=(0.0, 0.2), blocks=2, rounds=12))
    page = write_report(folder).read_text()
    assert 'id="windows-closing"' in page and 'id="windows-rates"' in page
    assert "The servers of a block were up at once" in page


def test_what_a_plan_can_tell_is_told_as_often_as_it_says() -> None:
    noise, shape = worlds.Noise("normal", 0.01, 0.12), worlds.Shape(2, 8, 20, True)
    stored = {"run": "a-a-1"} | {
        "windows": {"window_sd_log": 0.12, "start_sd_log": 0.01, "start_freedom": 20, "window_seconds": 0.75}
    }
    planned = Arrangement(2, 3, 8, 20, 0.75, True)
    ratio = ratio_told(stored["windows"], planned)
    assert ratio is not None
    shown, _ = worlds.run(worlds.rates(noise, shape, 400, 3, np.array([0.0, -math.log(ratio)])))
    assert shown.told[:, 1, 0].mean() == pytest.approx(POWER, abs=0.06)
    longer = Arrangement(2, 3, 8, 20, 3.0, True)
    assert 1 < (ratio_told(stored["windows"], longer) or 0) < ratio
    assert f"a difference of {ratio - 1:.1%} between levels in 80%" in budget_words(stored, planned)
    assert "not known" in budget_words(None, planned)
    assert ratio_told({**stored["windows"], "start_sd_log": None}, planned) is None


@pytest.mark.parametrize("levels", range(2, 9))
@pytest.mark.parametrize(("blocks", "duplicate"), [(3, True), (8, False)])
def test_a_plan_of_any_number_of_levels_is_told_as_often_as_it_says(levels: int, blocks: int, duplicate: bool) -> None:
    """With five levels and more 60 % were told of the 80 % promised: the noisier of two counts by itself."""
    noise, shape = worlds.Noise("normal", 0.01, 0.12), worlds.Shape(levels, blocks, 20, duplicate)
    _, told = worlds.planned(noise, shape, 400, 5)
    assert told.mean() == pytest.approx(POWER, abs=0.07)  # two points of the plan's, and 2.5 standard errors


def test_an_a_a_of_windows_keeps_what_its_windows_and_its_starts_scatter(tmp_path: Path) -> None:
    found = _verdict(tmp_path, effects=(0.0,), duplicate=True, blocks=8, rounds=30, start=0.03, rate=2000.0)
    noise = found["windows"]["noise"]
    assert noise["start_freedom"] == 8 and noise["window_seconds"] == 0.75
    assert noise["window_sd_log"] == pytest.approx(0.1, rel=0.25)
    assert 0.005 < noise["start_sd_log"] < 0.06
    assert found["a_a"]["within_run"]["blocks"] == 8


def test_two_treatments_compared_by_themselves_have_the_ratio_of_the_page(tmp_path: Path) -> None:
    run = open_run(make(tmp_path / "run", Shape(duplicate=True, blocks=4)))
    page = {(pair["first"], pair["second"]): pair for pair in analyse(run)["comparisons"][0]["pairs"]}
    row = compare_treatments(run, "t1", "t3")["treatments"][0]
    assert row["ratio"] == pytest.approx(page["64 MiB", "256 MiB"]["ratio"])
    assert row["low"] < row["ratio"] < row["high"] and row["blocks"] == 4


def test_blocks_that_did_not_fit_are_named_and_spend_nothing(tmp_path: Path) -> None:
    why = "block 2 was the last that fits into 10 minutes"
    verdict = _verdict(tmp_path, blocks=4, last_block=2, decided=True, why_skipped=why)
    assert f"6 trials were not run: {why}" in verdict["caveats"]
    assert verdict["windows"]["looks"]["decided_after"] is None
    assert verdict["windows"]["looks"]["alpha"] == pytest.approx(at_end(2, 4).alpha)
