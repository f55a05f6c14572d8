"""The record carried out of a guest: what is new, in an order that a kill cannot make wrong."""

import os
from pathlib import Path

import pytest

from plimsoll.run.guest import carrying
from plimsoll.run.guest.carrying import Carried


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def files(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def carried(tmp_path: Path) -> Carried:
    there = tmp_path / "there"
    write(there / "run.json", "{}")
    write(there / "trials/0001/trial.json", "first")
    write(there / "trials/0001/measure/latency.npy", "large")
    write(there / "trials/0001.attempt-1/repeat.json", "why")
    found = Carried(tmp_path / "here", there)
    found.carry_in()
    return found


def test_what_is_carried_in_are_the_words_and_not_the_tables(carried: Carried) -> None:
    assert set(files(carried.here)) == {"run.json", "trials/0001/trial.json", "trials/0001.attempt-1/repeat.json"}


def test_a_trial_of_which_it_is_not_chosen_whether_it_stands_is_carried_in_whole(tmp_path: Path) -> None:
    there = tmp_path / "there"
    for name in ("trial.json", "repeat.json", "measure/latency.npy"):
        write(there / "trials/0001" / name, "kept")
    carried = Carried(tmp_path / "here", there)
    carried.carry_in()
    assert set(files(carried.here)) == {
        f"trials/0001/{name}" for name in ("trial.json", "repeat.json", "measure/latency.npy")
    }
    (carried.here / "trials/0001/repeat.json").unlink()
    carried.carry_out()
    assert set(files(carried.there)) == {"trials/0001/trial.json", "trials/0001/measure/latency.npy"}


def test_what_has_changed_goes_out_and_what_was_not_carried_in_stays(carried: Carried) -> None:
    write(carried.here / "run.json", '{"status": 1}')
    write(carried.here / "trials/0002/trial.json", "second")
    write(carried.here / "trials/0002/.trial.json.12.tmp", "being written")
    carried.carry_out()
    assert files(carried.there) == {
        "run.json": '{"status": 1}',
        "trials/0001/trial.json": "first",
        "trials/0001/measure/latency.npy": "large",
        "trials/0001.attempt-1/repeat.json": "why",
        "trials/0002/trial.json": "second",
    }


def test_a_kill_while_a_trial_is_set_aside_leaves_no_result_of_it(
    carried: Carried, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(carried.here / "trials/0002/trial.json", "spoilt")
    carried.carry_out()
    (carried.here / "trials/0002").rename(carried.here / "trials/0002.attempt-1")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(carrying, "_write", killed)
    with pytest.raises(KeyboardInterrupt):
        carried.carry_out()
    assert not (carried.there / "trials/0002/trial.json").exists()


def test_a_trial_that_is_set_aside_is_so_on_the_host(carried: Carried) -> None:
    write(carried.here / "trials/0002/trial.json", "spoilt")
    write(carried.here / "trials/0002/measure/old.npy", "spoilt")
    carried.carry_out()
    (carried.here / "trials/0002").rename(carried.here / "trials/0002.attempt-1")
    carried.carry_out()
    assert not (carried.there / "trials/0002").exists()
    write(carried.here / "trials/0002/trial.json", "again")
    carried.carry_out()
    found = files(carried.there / "trials")
    assert {name: text for name, text in found.items() if name.startswith("0002")} == {
        "0002/trial.json": "again",
        "0002.attempt-1/trial.json": "spoilt",
        "0002.attempt-1/measure/old.npy": "spoilt",
    }


def test_what_says_that_a_trial_is_finished_comes_last(carried: Carried, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "run.json",
        "events.jsonl",
        "trials/0002/trial.json",
        "trials/0002/measure/transactions.npy",
        "zz.json",
    ):
        write(carried.here / name, f"new {name}")
    order: list[str] = []
    real = carrying._write

    def seen(source: Path, place: Path) -> None:
        order.append(str(source.relative_to(carried.here)))
        real(source, place)

    monkeypatch.setattr(carrying, "_write", seen)
    carried.carry_out()
    assert set(order[:2]) == {"trials/0002/measure/transactions.npy", "zz.json"}
    assert order[-1] == "run.json" and set(order[2:4]) == {"events.jsonl", "trials/0002/trial.json"}
    carried.carry_out()
    assert len(order) == 5  # nothing has changed


def test_a_full_disk_leaves_the_file_of_before(carried: Carried, monkeypatch: pytest.MonkeyPatch) -> None:
    write(carried.here / "trials/0001/trial.json", "longer than before")

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        carried.carry_out()
    assert (carried.there / "trials/0001/trial.json").read_text() == "first"
    assert not list(carried.there.rglob("*.tmp"))
