"""A soak carried through whatever happens in a fortnight, by a clock that runs as the rounds say."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import shutil
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plimsoll.environment import Fault
from plimsoll.experiment import Experiment
from plimsoll.record.run import Trial, read_json
from plimsoll.run.observer import Silent
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.signals import Interrupts, Stopped
from plimsoll.run.soak import carry as of_soak
from plimsoll.run.soak import round as of_rounds
from plimsoll.run.soak.round import most_resident_bytes, resident_bytes
from plimsoll.run.soak.series import CRASH, FAILURES, ROUNDS, TIME, SoakSeries
from plimsoll.run.trial.at_work import TrialServer
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.series import FAILURES_MAX, FILE, KILLED, STOPPED
from plimsoll.target.server import CrashLine

Json = dict[str, Any]
ROUND_S = 3600.0
LOGGED_NS = 1_795_672_800_000_000_000  # when the server says that it crashed
What = Exception | str | None


class Killed(BaseException):
    """SIGKILL, as far as the front can play it: nothing of it is caught."""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def settings(length: str = "10h", after_crash: str = "end", **workload: Any) -> Experiment:
    document = {
        "name": "x",
        "title": "x",
        "workload": {"name": "bank", "scale": 1} | workload,
        "measure": {"seconds": ROUND_S},
        "warmup": {"until": "none"},
        "soak": {"length": length, "between": "vacuum", "after_crash": after_crash},
    }
    return Experiment.model_validate(document)


class PlayedServer(TrialServer):
    """A server without processes. Its data are a folder that outlives kills; `world.play` has what happens in each
    round that is begun: nothing, an exception, or a line of the server's log that tells of a crash."""

    data_outlive_kills = True

    def __init__(self, world: World) -> None:
        self.world = world

    @property
    def data(self) -> Path:
        return self.world.home / "data"

    def remove_data(self) -> None:
        shutil.rmtree(self.world.home, ignore_errors=True)

    @contextlib.contextmanager
    def opened(self, log: TrialLog, *, goes_on: bool = False) -> Iterator[Any]:
        del log
        self.world.sessions += 1
        assert goes_on == self.data.is_dir()
        self.data.mkdir(parents=True, exist_ok=True)
        self.world.log_lines.clear()
        yield AtWork(self.world)


class AtWork:
    """What a round asks of a server at work."""

    def __init__(self, world: World) -> None:
        self.world, self.settings, self.observer = world, world.settings, world
        self.folder = world.folder / "run" / "trials" / "0001"
        self.place = SimpleNamespace(devices=[], members=[], group=None, host=SimpleNamespace(device_counters=dict))
        self.place.host.device_counters = lambda _devices: {}
        self.server = SimpleNamespace(
            is_settled=lambda: True,
            counters=lambda: {"xact_commit": 1},
            sizes=lambda: {"database_bytes": 1},
            is_running=lambda: not world.is_gone,
            crashes=lambda: [CrashLine(line, LOGGED_NS) for line in world.log_lines],
            log_tail=lambda _size=0: "the last line",
        )

    @contextlib.contextmanager
    def watched(self, log: TrialLog) -> Iterator[None]:
        del log
        yield

    def vacuum(self) -> None:
        self.world.told.append("vacuum")
        self.world.clock.now += 60

    def checkpoint(self) -> None:
        raise AssertionError("not asked for")

    def check(self, log: TrialLog) -> None:
        log.facts["checks"] = []

    def end(self, log: TrialLog) -> None:
        del log


class World:
    """A soak whose rounds are played."""

    def __init__(self, folder: Path, play: list[What], **asked: Any) -> None:
        self.folder, self.play, self.settings = folder, play, settings(**asked)
        self.sessions, self.told, self.clock, self.log_lines = 0, list[str](), Clock(), list[str]()
        self.is_gone, self.samples = False, int(ROUND_S)
        self.trial = SimpleNamespace(number=1, treatment=SimpleNamespace(settings=self.settings))
        self.home = folder / "datasets" / "plimsoll-abc"
        (folder / "run").mkdir(exist_ok=True)
        self.runner: Any = SimpleNamespace(out=folder / "run", observer=self, interrupts=Interrupts(Silent()))

    def event(self, name: str, **info: Any) -> None:
        if name in ("round_end", "note"):
            self.told.append(f"{name} {info.get('number') or info.get('text')}")

    def perform(self, _at: AtWork, name: str, number: int, entry: Json) -> None:
        """A round that lasts as long as it is to, with a table a second."""
        del number, entry
        folder = self.folder / "run" / "trials" / "0001" / name
        folder.mkdir(parents=True)
        table = np.zeros(self.samples, [("t_ns", "<i8"), ("x", "<i8")])
        table["t_ns"] = np.arange(len(table)) * 10**9
        np.save(folder / "host.npy", table)
        happens = self.play.pop(0) if self.play else None
        if isinstance(happens, BaseException):
            self.is_gone = isinstance(happens, TrialFailed) and "server" in str(happens)
            raise happens
        if isinstance(happens, str):
            self.log_lines.append(happens)
        probes = {"kernel_log": {"boot_id": of_rounds.boot_id(), "last": 7}}
        (folder / "summary.json").write_text(json.dumps({"format": 1, "next_index": 5, "probes": probes}))
        self.clock.now += ROUND_S

    def run(self) -> TrialLog:
        self.log, self.is_gone = TrialLog(self.trial), False
        of_soak.carry(self.runner, self.log, _Gone(self), self.clock)
        return self.log

    @property
    def written(self) -> Json:
        found: Json = json.loads((self.folder / "run" / "trials" / "0001" / FILE).read_text())
        return found

    @property
    def rounds(self) -> list[int]:
        return [one.place for one in Trial(self.folder / "run" / "trials" / "0001", {}).rounds]


class _Gone(PlayedServer):
    """It is there again at each start."""

    @contextlib.contextmanager
    def opened(self, log: TrialLog, *, goes_on: bool = False) -> Iterator[Any]:
        self.world.is_gone = False
        with super().opened(log, goes_on=goes_on) as at:
            yield at


Made = Callable[..., World]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    def make(play: list[What] | None = None, **asked: Any) -> World:
        world = World(tmp_path, play or [], **asked)
        monkeypatch.setattr(of_rounds, "work_of", lambda _at: world.perform)
        monkeypatch.setattr(of_rounds.kernel_log, "position", lambda: ("boot", 3))
        return world

    return make


def test_rounds_follow_each_other_until_the_time_is_used_up(made: Made) -> None:
    world = made()
    found = world.run().facts
    # Ten hours: nine rounds with VACUUM between are 9 h 8 min, and of a tenth more than half is within the time.
    assert world.rounds == list(range(1, 11))
    assert world.told.count("vacuum") == 9
    assert (found["soak"]["ended_by"], found["sittings"], found["cut"]) == (TIME, 1, [])
    assert found["soak"]["spent_s"] == 10 * ROUND_S + 9 * 60
    assert found["measured_segment"] == "round-0001" and found["counters"]["after"] == {"xact_commit": 1}
    assert not world.home.exists() and not list(world.folder.rglob("reserve"))


def test_days_are_as_many_rounds_as_they_have_and_the_state_stays_small(made: Made) -> None:
    world = made(length="3d")
    world.samples = 12
    world.run()
    assert len(world.rounds) == pytest.approx(3 * 24 * 60 / 61, abs=1)
    folder = world.folder / "run" / "trials" / "0001"
    assert (folder / FILE).stat().st_size < 6_000, (
        "what is written at each step does not grow with the rounds' readings"
    )
    assert world.settings.soak is not None
    rounds = sum(path.stat().st_size for path in folder.rglob("round-*/*"))
    assert rounds < world.settings.soak.record_bytes_max


def test_kills_stops_and_agents_that_die_cost_a_round_each_and_no_time(made: Made) -> None:
    world = made([None, Killed(), None, TrialFailed("the agent was killed"), None, Stopped()])
    with pytest.raises(Killed):
        world.run()
    assert world.rounds == [1]
    with pytest.raises(Stopped):
        world.run()
    found = world.run().facts
    assert world.rounds == list(range(1, 11)) and found["soak"]["ended_by"] == TIME
    assert [(one["segment"], one["why"]) for one in found["cut"]] == [
        ("round-0002", KILLED),
        ("round-0003", "the agent was killed"),
        ("round-0004", STOPPED),
    ]
    assert found["soak"]["crashes"] == [] and world.sessions == found["sittings"] == 4
    # Time in which nothing was measured does not count.
    assert found["soak"]["spent_s"] == 10 * ROUND_S + 9 * 60


def test_a_crash_is_a_result_and_ends_the_soak_unless_it_is_to_go_on(made: Made) -> None:
    world = made([None, None, TrialFailed("the server ended")])
    found = world.run().facts
    assert world.rounds == [1, 2] and found["soak"]["ended_by"] == CRASH
    (crash,) = found["soak"]["crashes"]
    assert crash["round"] == 3 and "the server ended in round-0003; its log ends with: the last line" in crash["text"]
    assert crash["epoch_ns"] > 10**18 and not world.home.exists()


def test_a_soak_goes_on_after_crashes_that_the_server_recovers_from(made: Made) -> None:
    line = "2026-11-26 06:00:00.000 UTC [7] LOG:  server process (PID 9) was terminated by signal 9: Killed"
    world = made([None, line, TrialFailed("the server ended"), None], after_crash="go on")
    found = world.run().facts
    assert world.rounds == list(range(1, 11)) and found["soak"]["ended_by"] == TIME
    assert [crash["round"] for crash in found["soak"]["crashes"]] == [2, 3]
    trial = Trial(world.folder / "run" / "trials" / "0001", {})
    assert [bool(one.data["crashes"]) for one in trial.rounds][:4] == [False, True, False, False]
    first, second = found["soak"]["crashes"]
    assert first["text"] == line and first["epoch_ns"] == LOGGED_NS < second["epoch_ns"]


def test_a_crash_inside_a_round_that_ends_well_ends_the_soak_too(made: Made) -> None:
    world = made([None, "[7] PANIC:  could not write"])
    assert world.run().facts["soak"]["ended_by"] == CRASH
    assert world.rounds == [1, 2]


def test_what_fails_again_and_again_ends_it_with_what_was_done(made: Made) -> None:
    world = made([None, *(TrialFailed(f"failure {number}") for number in range(1, 9))])
    found = world.run().facts
    assert world.rounds == [1] and found["soak"]["ended_by"] == FAILURES
    assert found["soak"]["why"] == f"failure {FAILURES_MAX}" and world.written["result"] == "finished"


def test_a_soak_without_a_round_has_failed(made: Made) -> None:
    world = made([TrialFailed(f"failure {number}") for number in range(1, 9)])
    with pytest.raises(TrialFailed, match=f"failure {FAILURES_MAX}"):
        world.run()
    assert not world.home.exists()


def test_a_full_disk_thins_what_is_there_says_so_and_goes_on(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_soak.shutil, "disk_usage", lambda _path: SimpleNamespace(free=0))
    full = OSError(errno.ENOSPC, "No space left on device")
    world = made([None, None, full])
    found = world.run().facts
    assert world.rounds == list(range(1, 11)) and found["soak"]["ended_by"] == TIME
    (once,) = found["soak"]["full"]
    assert once["freed_bytes"] > 2 * 3000 * 16
    assert any("the disk of the record was full" in text for text in world.told)
    trial = Trial(world.folder / "run" / "trials" / "0001", {})
    assert {one.data["thinned"]["step_s"] for one in trial.rounds} == {300}
    assert {len(one.measure.series("host")) for one in trial.rounds} == {13}  # each 300 s, and the last sample


def test_a_disk_that_stays_full_ends_the_run_and_keeps_the_data(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_soak.shutil, "disk_usage", lambda _path: SimpleNamespace(free=0))
    world = made([None, *(Fault("the trial could not be recorded", remedy="") for _ in range(9))])
    with pytest.raises(Fault, match="the disk of the record is full"):
        world.run()
    assert (world.home / "data").is_dir() and world.written["result"] is None


def test_a_fault_that_is_no_full_disk_ends_the_run(made: Made) -> None:
    world = made([None, Fault("the machine could not be arranged", remedy="mend it")])
    with pytest.raises(Fault, match="could not be arranged"):
        world.run()
    assert world.rounds == [1]


def test_data_that_are_not_there_end_the_run(made: Made) -> None:
    world = made([None, Stopped()])
    with pytest.raises(Stopped):
        world.run()
    (world.home / "data").rename(world.folder / "elsewhere")
    with pytest.raises(Fault, match="PLIMSOLL_STATE"):
        world.run()


def test_a_result_is_not_made_twice(made: Made) -> None:
    world = made()
    first = world.run().facts
    assert world.run().facts["soak"] == first["soak"] and world.sessions == 1


def test_the_kernel_s_log_is_read_on_from_where_the_round_before_ended(made: Made) -> None:
    world = made(length="2h")
    world.run()
    assert world.written["log_read"] == {"boot_id": of_rounds.boot_id(), "last": 7}
    series = SoakSeries(world.folder / "run" / "trials" / "0001", Interrupts(Silent()), world.settings)
    assert series.log_read(of_rounds.boot_id()) == 7
    assert series.log_read("another boot") is None, "numbers begin anew at each boot"


def test_numbers_of_transactions_go_on_beyond_all_that_a_cut_can_have_used(tmp_path: Path) -> None:
    for name, index, planned in (("round-0001", 400, 300), ("round-0002", 2_000_400, 900_000)):
        (tmp_path / name).mkdir()
        told = {"next_index": index, "identity": {"planned": planned}}
        (tmp_path / name / "summary.json").write_text(json.dumps(told))
    load: Any = SimpleNamespace(next_index=0, is_checked=True)
    of_rounds._go_on(load, tmp_path)
    assert load.next_index == 2_000_400 + 10 * 900_000 and not load.is_checked


def test_refresh_sets_end_a_soak_of_decision_support(tmp_path: Path) -> None:
    document = {
        "name": "x", "title": "x", "warmup": {"until": "none"}, "soak": {"length": "14d"},
        "workload": {"name": "decision_support", "scale_factor": 1.0, "tests": ["throughput"], "streams": 300},
    }  # fmt: skip
    series = SoakSeries(tmp_path, Interrupts(Silent()), Experiment.model_validate(document))
    assert [series.ends(number) for number in (1, 3, 4)] == [None, None, ROUNDS]


def test_a_round_knows_what_the_front_takes(made: Made) -> None:
    world = made(length="1h")
    world.run()
    entry = read_json(world.folder / "run" / "trials" / "0001" / "round-0001" / "round.json")
    assert entry is not None and 10**7 < entry["front_bytes"] < 10**10
    held = bytearray(b"1" * (most_resident_bytes() - resident_bytes() + 64 * 2**20))
    del held
    assert most_resident_bytes() >= resident_bytes() + 32 * 2**20 and entry["front_most_bytes"] >= entry["front_bytes"]


@pytest.mark.long
def test_the_front_keeps_nothing_of_a_round_that_is_done(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two thousand rounds: what it holds after the last is what it held after the hundredth, but for their names."""
    world = made(length="366d")
    world.samples = 12
    monkeypatch.setattr(world.settings.soak.__class__, "seconds", property(lambda _self: 1e9))
    held: dict[int, int] = {}
    performed = world.perform

    def perform(at: AtWork, name: str, number: int, entry: Json) -> None:
        performed(at, name, number, entry)
        if number in (100, 2000):
            gc.collect()
            held[number] = tracemalloc.get_traced_memory()[0]

    world.perform = perform  # type: ignore[method-assign]
    tracemalloc.start()
    try:
        assert world.run().facts["soak"]["ended_by"] == ROUNDS
    finally:
        tracemalloc.stop()
    print({number: f"{size / 2**20:.2f} MiB" for number, size in held.items()})
    assert held[2000] - held[100] < 2**20
