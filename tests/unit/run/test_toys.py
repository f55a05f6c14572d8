"""A server and a workload that only this file knows, run through the whole flow by lines in the registries alone.

The server is none: a tree of files. The workload writes, rewrites and reads one, and says that it goes on after kills.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest

from plimsoll.environment import StateDir
from plimsoll.environment.groups import cgroups
from plimsoll.experiment import Experiment, Source, Treatment
from plimsoll.experiment.servers import registry as servers
from plimsoll.experiment.servers.registry import ServerFacts
from plimsoll.experiment.strict import Fixed
from plimsoll.experiment.target import Target
from plimsoll.experiment.workloads.base import AnyWorkload
from plimsoll.record import open_run
from plimsoll.run import segments as of_segments
from plimsoll.run.host import ThisMachine
from plimsoll.run.observer import Silent
from plimsoll.run.runner import Impossible, Runner
from plimsoll.run.servers import registry
from plimsoll.run.servers.private import PrivateAtWork, PrivateKind
from plimsoll.run.signals import Stopped
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.run.trial.at_work import AtWork, trial_folder
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import read_counters
from plimsoll.run.trial.segment import Segment
from plimsoll.target.server import Server

Json = dict[str, Any]


class FileTree(Server):
    """No server: files, and how many there are."""

    def __init__(self, data: Path) -> None:
        self.data = data

    def describe(self) -> Json:
        return {"version": "a tree of files", "settings": {}, "durability": {}}

    def counters(self) -> dict[str, int]:
        return {"files": sum(path.is_file() for path in self.data.rglob("*"))}


class FileTrees(PrivateKind[FileTree]):
    """A tree of each trial's own."""

    caveats = ("a toy",)

    def version(self, settings: Experiment) -> str | None:
        del settings
        return "1"

    def server(self, place: PrivatePlace, settings: Experiment) -> FileTree:
        del settings
        return FileTree(place.data)

    def lay_out(self, server: FileTree, place: PrivatePlace, settings: Experiment, dataset: object) -> None:
        del place, settings
        assert dataset is None
        server.data.mkdir()

    def at_work(
        self, server: FileTree, place: PrivatePlace, settings: Experiment, context: Any, log: TrialLog
    ) -> PrivateAtWork:
        return PrivateAtWork(server, place, settings, trial_folder(context, log), context)

    def start(self, at: PrivateAtWork, log: TrialLog, *, is_new: bool) -> None:
        del is_new
        log.facts["server"] = at.server.describe()


class Written(AnyWorkload):
    """One file of so many bytes."""

    made_of: ClassVar[str] = "toy passes over a file"
    is_checked: ClassVar[bool] = False
    name: Annotated[Literal["toy"], Fixed("a toy")] = "toy"
    size_bytes: int = 4096
    clients: int = 1
    outlives_kills: bool = True

    def request(self, memory_bytes: int) -> Json:
        del memory_bytes
        return {}

    def estimated_bytes(self, memory_bytes: int, *, columnar: bool = False) -> int:
        del memory_bytes, columnar
        return self.size_bytes

    def goes_on_after_kills(self) -> bool:
        return self.outlives_kills

    def own_seconds(self, load_bytes_per_s: float) -> float:
        del load_bytes_per_s
        return 1.0

    def check_measure(self, ends_given: int) -> None:
        assert not ends_given

    def subject(self) -> str:
        return "a toy"


class ToyTarget(Target):
    server: Literal["toy tree"] = "toy tree"  # type: ignore[assignment]


class ToyExperiment(Experiment):
    target: ToyTarget = ToyTarget()
    workload: Written = Written()  # type: ignore[assignment]


class Pass(Segment):
    """One pass over the file. `happens`: what comes in its way, by the names of passes; each once."""

    def __init__(self, kind: str, happens: dict[str, Exception], done: list[str]) -> None:
        self.name = self.kind = kind
        self.stands_for_trial = kind == "rewrite"
        self._happens, self._done = happens, done

    def prepare(self, at: AtWork, log: TrialLog, before: Segment | None, *, was_interrupted: bool) -> None:
        del at, log
        self._done.append(f"{'again' if was_interrupted else 'after'} {before.name if before else 'nothing'}")

    def perform(self, at: AtWork, log: TrialLog, about: Json) -> None:
        entry = {"segment": self.name, **about}
        log.facts.setdefault("turns", []).append(entry)
        file = at.folder / self.name
        file.mkdir()
        read_counters(at.server, at.place, log, "before", entry)
        data = at.place.data / "file"  # type: ignore[attr-defined]
        if self.kind == "read":
            (file / "read").write_bytes(data.read_bytes())
        else:
            data.write_bytes(self.kind.encode())
        if (error := self._happens.pop(self.name, None)) is not None:
            raise error
        read_counters(at.server, at.place, log, "after", entry)
        self._done.append(self.name)


class Toys:
    """What was done, and what is to come in its way."""

    def __init__(self, folder: Path, state: StateDir) -> None:
        self.done: list[str] = []
        self.happens: dict[str, Exception] = {}
        self._folder, self.state = folder, state

    def segments(self, _workload: Written) -> list[Segment]:
        return [Pass(kind, self.happens, self.done) for kind in ("write", "rewrite", "read")]

    def runner(self, **workload: Any) -> Runner:
        document = {"name": "toys", "title": "Do toys run?", "workload": workload, "warmup": {"until": "none"}}
        settings = ToyExperiment.model_validate(document | {"design": {"blocks": 1}})
        source = Source(self._folder / "experiment.toml", settings, [Treatment("t1", {}, settings)], quick=False)
        return Runner(source, self._folder / "run", self.state, Silent(), [], 1)

    @property
    def trial(self) -> Json:
        (trial,) = open_run(self._folder / "run").trials
        return json.loads((trial.path / "trial.json").read_text())  # type: ignore[no-any-return]


@pytest.fixture
def toys(tmp_path: Path, state: StateDir, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toys]:
    made = Toys(tmp_path, state)
    monkeypatch.setattr(cgroups, "detect", lambda: None)
    monkeypatch.setattr(ThisMachine, "server_user", lambda _: getpass.getuser())
    # These lines are all that a room needs to be taken part of the flow.
    facts = ServerFacts(performs=frozenset({Written.made_of}), recovers=True)
    monkeypatch.setitem(servers.SERVERS, "toy tree", facts)
    monkeypatch.setitem(registry.KINDS, "toy tree", FileTrees())
    monkeypatch.setitem(of_segments.SEGMENTS, Written.made_of, made.segments)
    yield made
    assert list(state.work.iterdir()) == [] and list(state.journal.iterdir()) == []


PASSES = ["after nothing", "write", "after write", "rewrite", "after rewrite", "read"]


def test_a_server_that_is_none_is_run_as_any(toys: Toys) -> None:
    assert toys.runner(outlives_kills=False).run() == "finished"
    assert toys.done == PASSES
    trial = toys.trial
    assert trial["server"]["version"] == "a tree of files" and trial["caveats"] == ["a toy"]
    assert [(one["counters"]["before"], one["counters"]["after"]) for one in trial["turns"]] == [
        ({"files": 0}, {"files": 1}),
        *[({"files": 1}, {"files": 1})] * 2,
    ]
    assert "after" in trial["residency"], "what stands for the trial was watched"
    assert "cut" not in trial
    assert [phase["name"] for phase in trial["phases"]] == ["clone", "check", "stop", "put back"]


def test_an_interrupted_segment_is_done_again_on_the_data_that_it_left(toys: Toys) -> None:
    toys.happens["rewrite"] = Stopped()
    assert toys.runner().run() == "stopped"
    (kept,) = toys.state.datasets.iterdir()
    assert (kept / "data" / "file").read_bytes() == b"rewrite"
    assert toys.runner().run() == "finished"
    assert toys.done == [*PASSES[:2], "after write", "again write", *PASSES[3:]]
    trial = toys.trial
    assert [(one["segment"], one["attempt"], one["sitting"], one["begins_cold"]) for one in trial["turns"]] == [
        ("write", 1, 1, False),
        ("rewrite", 2, 2, True),
        ("read", 1, 2, False),
    ]
    assert [(one["segment"], one["left"]) for one in trial["cut"]] == [("rewrite", "rewrite.cut-1")]
    assert (toys.runner().out / "trials" / "0001" / "read" / "read").read_bytes() == b"rewrite"
    assert list(toys.state.datasets.iterdir()) == []


def test_without_kills_to_outlive_it_begins_anew(toys: Toys) -> None:
    toys.happens["rewrite"] = Stopped()
    assert toys.runner(outlives_kills=False).run() == "stopped"
    assert list(toys.state.datasets.iterdir()) == []


def test_a_workload_that_the_server_does_not_perform_is_an_obstacle(
    toys: Toys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(servers.SERVERS, "toy tree", ServerFacts())
    with pytest.raises(Impossible, match="it does not run toy"):
        toys.runner().run()
