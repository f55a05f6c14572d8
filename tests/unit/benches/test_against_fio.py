"""What the bench against fio asks of both tools, what it reads of their results, and how it judges: no tool runs."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Behind the tests' own folders: one of them has a module of the same name as one of the benches.
sys.path.append(str(Path(__file__).resolve().parents[3] / "benches"))

from peers.arms import Run
from peers.files import Files, Fio, Reads, fio_counts, fio_log, rows_of
from peers.side_by_side import Apart, TimedRun, judged, shared

from plimsoll.environment import Fault

TASK = Reads(jobs=8, seconds=2, seed=7, file_bytes=1 << 20)


def timed(ended_s: list[float], latency_us: list[float] | None = None, cpu_ns: int = 1_000) -> TimedRun:
    latency = np.array(latency_us or [10.0] * len(ended_s))
    return TimedRun(len(ended_s), 2.0, cpu_ns, latency, latency, np.array(ended_s))


def evenly(first_s: float, last_s: float, latency_us: float = 10.0) -> TimedRun:
    """A read each 10 ms."""
    ended = np.arange(first_s, last_s, 0.01)
    return timed(list(ended), [latency_us] * len(ended))


@pytest.mark.parametrize(("order", "way"), [("random", "randread"), ("sequential", "read")])
def test_fio_reads_in_the_order_asked_for(order: str, way: str, tmp_path: Path) -> None:
    argv = Fio(tmp_path).argv(replace(TASK, order=order))
    assert f"--rw={way}" in argv and "--numjobs=8" in argv and "--time_based" in argv
    assert not any(word.startswith("--write_lat_log") for word in argv), "unless latencies are asked for"


def test_a_log_of_fios_has_the_time_of_the_day(tmp_path: Path) -> None:
    argv = Fio(tmp_path).argv(replace(TASK, latencies=True, direct=True))
    assert {"--log_unix_epoch=1", f"--write_lat_log={tmp_path}/log", "--direct=1"} <= set(argv)


def keys_of(task: Reads, folder: Path) -> Any:
    return Files(folder)._request(task)["workload"]["keys"]


def test_ours_has_a_stream_for_each_job(tmp_path: Path) -> None:
    assert keys_of(TASK, tmp_path) == "uniform"
    deep = replace(TASK, order="sequential", engine="io_uring", depth=32)
    assert keys_of(deep, tmp_path) == {"sequential": 8}
    assert "sequential reads" in deep.title


def test_an_order_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    for ask in (Fio(tmp_path).argv, Files(tmp_path)._request):
        with pytest.raises(KeyError):
            ask(replace(TASK, order="backwards"))


def told(error: int = 0, total: int = 1_200) -> str:
    return json.dumps({"jobs": [{"error": error, "read": {"total_ios": total, "runtime": 1_500}}]})


def test_fios_counts_are_read_behind_its_remarks() -> None:
    assert fio_counts("note: both iodepth >= 1 and synchronous I/O engine are selected\n" + told()) == (1_200, 1.5)


@pytest.mark.parametrize("output", [told(error=5), told(total=0), "fio: no such engine\n"])
def test_a_run_of_fio_that_failed_is_no_result(output: str) -> None:
    with pytest.raises(Fault, match="fio: error"):
        fio_counts(output)


def test_every_jobs_log_is_read(tmp_path: Path) -> None:
    logs = [tmp_path / f"log_clat.{job}.log" for job in (1, 2)]
    logs[0].write_text("1795868455507, 5318, 0, 4096, 0\n1795868455508, 1522, 0, 4096, 0\n")
    logs[1].write_text("1795868455509, 2000, 0, 4096, 0\n")
    latency_us, ended_s = fio_log(logs)
    assert list(latency_us) == [5.318, 1.522, 2.0]
    assert list(ended_s) == [1795868455.507, 1795868455.508, 1795868455.509]
    assert [each.size for each in fio_log([])] == [0, 0]


def test_rows_of_reads_that_were_done_are_read_by_the_same_clock() -> None:
    columns = [("start_ns", "<i8"), ("end_ns", "<i8"), ("outcome", "u1")]
    table = np.array([(1_000, 6_000, 0), (2_000, 3_000, 1), (10_000, 11_500, 0)], dtype=columns)
    latency_us, ended_s = rows_of(table, 1_795_868_455_000_000_000)
    assert list(latency_us) == [5.0, 1.5], "the second one failed"
    assert list(ended_s) == pytest.approx([1_795_868_455.000006, 1_795_868_455.0000115], abs=1e-6)


def test_what_one_did_alone_is_left_out() -> None:
    # Ours began later and was slow then; the peer went on for longer, alone on the device and fast.
    ours, theirs = evenly(100.5, 102.5), evenly(100.0, 102.0)
    theirs.service_us[:50] = 1.0
    mine, peer = shared(ours, theirs, seconds=2)
    for run in (mine, peer):
        assert run.ended_s.min() >= 100.55 - 1e-9 and run.ended_s.max() < 101.95
        assert run.transactions == run.ended_s.size == run.service_us.size and run.tps == pytest.approx(100, rel=0.02)
    assert set(peer.service_us) == {10.0}, "what it did before ours had begun"
    assert mine.cpu_us == pytest.approx(ours.cpu_us, rel=0.01), "CPU time an operation is that of the whole run"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(evenly(0, 2), evenly(1.2, 3.2)), (evenly(0, 2), evenly(5, 7)), (timed([]), evenly(0, 2))],
)
def test_two_that_hardly_met_are_not_compared(ours: TimedRun, theirs: TimedRun) -> None:
    with pytest.raises(Apart):
        shared(ours, theirs, seconds=2)


def runs(cpu_us: float, tps: float = 1_000.0, latency_us: float = 100.0) -> list[Run]:
    """Three, nearly alike."""
    found = []
    for times in (0.999, 1.0, 1.001):
        latency = np.full(100, latency_us * times)
        found.append(Run(1_000, 1_000 / tps, round(cpu_us * times * 1e6), latency, latency))
    return found


@pytest.mark.parametrize(
    ("case", "ours", "holds"),
    [
        ("sync", {"cpu_us": 0.85}, [True, True]),
        ("sync", {"cpu_us": 0.95}, [False, True]),
        ("io_uring", {"cpu_us": 0.95}, [True, True]),
        ("io_uring", {"cpu_us": 1.05}, [False, True]),
        ("sync", {"cpu_us": 0.85, "tps": 900.0}, [True, False]),
        ("direct", {"cpu_us": 2.0, "tps": 500.0}, [True, True]),
        ("direct", {"cpu_us": 1.0, "latency_us": 107.0}, [False, False]),
        ("direct", {"cpu_us": 1.0, "latency_us": 93.0}, [False, False]),
    ],
)
def test_each_case_has_its_bounds(case: str, ours: dict[str, float], holds: list[bool | None]) -> None:
    ratios, bounds = judged(case, runs(**ours), runs(cpu_us=1.0))
    assert [bound.holds for bound in bounds] == holds, bounds
    assert [ratio.what for ratio in ratios][-2:] == ["CPU an operation", "throughput"]


def test_pairs_that_scatter_decide_nothing() -> None:
    ours = [Run(1_000, 1.0, round(cpu_us * 1e6)) for cpu_us in (0.5, 0.9, 1.6)]
    _, bounds = judged("sync", ours, runs(cpu_us=1.0))
    assert bounds[0].holds is None
