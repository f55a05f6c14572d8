"""The verbs that take a run's folder know kinds of runs by their list alone."""

import json
from pathlib import Path

import pytest

from plimsoll.cli import records
from plimsoll.cli.kinds import registry
from plimsoll.cli.kinds.kind import Compared, Judged, Refusal, RunKind
from plimsoll.experiment import ExperimentError
from plimsoll.record import RecordError, Run


class Toy(RunKind):
    """A kind that nothing but the list knows."""

    key = "toy"
    did = "played"
    no_files = Refusal("a toy has no figures", "no --figures")

    def judge(self, folder: Path, is_with_files: bool) -> Judged:
        page = folder / "toy.html"
        page.write_text(f"drawn, with files: {is_with_files}")
        return Judged({"toy": folder.name}, page)

    def show(self, judged: Judged) -> None:
        print(f"a toy: {judged.document['toy']}")

    def resume(self, out: Path, as_json: bool, metrics: int | None, draws: bool, does_failed_again: bool) -> int:
        print(f"played on in {out.name}, {as_json}, {metrics}, {draws}, {does_failed_again}")
        return 7

    def compare(self, first: Run, second: Run, force: bool, page: Path | None) -> Compared:
        return Compared({"force": force, "page": page}, [f"{first.path.name} is {second.path.name}"])

    def compare_treatments(self, run: Run, first: str, second: str, page: Path | None) -> Compared:
        return Compared({"page": page}, [f"{first} and {second} of {run.path.name}"])


def made(folder: Path, kind: str | None) -> Path:
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps({"format": 1, "id": folder.name} | ({"kind": kind} if kind else {})))
    return folder


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setattr(registry, "KINDS", (Toy(), *registry.KINDS))
    return made(tmp_path / "one", "toy"), made(tmp_path / "two", "toy")


def test_a_kind_is_added_by_the_list_alone(toys: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    one, two = toys
    assert records.report(one, as_json=False) == 0
    assert records.report(one, as_json=True) == 0
    assert records.resume(one, False, 9, False) == 7
    assert records.compare(one, two, force=True, as_json=False) == 0
    assert records.compare(one, two, force=True, as_json=True) == 0
    assert records.compare_treatments(one, "a", "b", as_json=False) == 0
    assert capsys.readouterr().out.splitlines() == [
        "a toy: one", '{"toy": "one"}', "played on in one, False, 9, False, False", "one is two",
        '{"force": true, "page": null}', "a and b of one",
    ]  # fmt: skip
    assert (one / "toy.html").read_text() == "drawn, with files: False"


def test_what_a_kind_refuses_it_is_not_asked(toys: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="--figures: a toy has no figures; allowed: no --figures"):
        records.report(toys[0], as_json=False, is_with_files=True)
    assert not (toys[0] / "toy.html").exists()
    with pytest.raises(ExperimentError, match="the report of a watch has its figures inside"):
        records.report(made(tmp_path / "watch", "breakdown"), as_json=True, is_with_files=True)


REFUSED = {
    ("breakdown", "resume"): "--resume: a watch cannot be resumed; allowed: ./plimsoll report",
    ("capacity", "resume"): "--resume: a load-line search cannot be resumed: the machine may have changed since",
    ("breakdown", "treatments"): "a watch varied nothing and has no treatments",
    ("capacity", "treatments"): "a load-line search has no treatments; give two such runs to compare",
    ("breakdown", "compare"): "one of the two is a watch of a server's own load",
    ("capacity", "compare"): "one of the two searched for a load line and the other compared settings",
    ("capacity", "page"): "--page: a load-line search has none; allowed: no --page",
    ("newer", "report"): "a run of the kind 'newer', which this version does not know",
}


@pytest.mark.parametrize(("kind", "verb"), REFUSED)
def test_what_cannot_be_done_is_said_with_what_can(kind: str, verb: str, tmp_path: Path) -> None:
    run, other = made(tmp_path / "run", kind), made(tmp_path / "other", None)
    verbs = {
        "resume": lambda: records.resume(run, False),
        "treatments": lambda: records.compare_treatments(run, "a", "b", as_json=True),
        "compare": lambda: records.compare(other, run, False, True),
        "page": lambda: records.compare(run, run, False, True, tmp_path / "page.html"),
        "report": lambda: records.report(run, True),
    }
    with pytest.raises((ExperimentError, RecordError)) as caught:
        verbs[verb]()
    assert REFUSED[kind, verb] in str(caught.value)
