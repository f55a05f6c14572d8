"""Where a trial's files lie, and that only folders of ours are ever made or removed at a place of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment import Fault, Journal, StateDir
from plimsoll.environment.folders import placed
from plimsoll.environment.journal.recovery import undo
from plimsoll.experiment import Experiment, load, plan_trials
from plimsoll.run.planning.needs import needs_of
from plimsoll.run.servers.postgresql.files import move_wal, temp_settings
from plimsoll.run.surroundings.file_locations import FileLocations, are_varied, is_series, locations_of


def made(repeats: int = 1, **files: str) -> Experiment:
    workload: dict[str, Any] = {"name": "decision_support", "scale_factor": 1.0, "repeats": repeats}
    document = {"name": "x", "title": "x", "workload": workload, "warmup": {"until": "none"}}
    return Experiment.model_validate(document | {"target": {"files": files}})


def test_everything_lies_in_the_work_folder_unless_it_is_said(tmp_path: Path) -> None:
    locations = locations_of(made(), StateDir(tmp_path), "abc-0001")
    assert locations == FileLocations.together(tmp_path / "work" / "abc-0001")
    assert locations.apart == [] and temp_settings(locations) == {}


def test_places_of_their_own(tmp_path: Path) -> None:
    locations = locations_of(made(data="/a", wal="/b", temp="/b"), StateDir(tmp_path), "abc-0001")
    assert [str(one) for one in locations.apart] == [
        "/a/plimsoll-abc-0001",
        "/b/plimsoll-abc-0001-wal",
        "/b/plimsoll-abc-0001-temp",
    ]
    assert temp_settings(locations) == {"temp_tablespaces": "plimsoll_temp"}


def test_a_series_lies_where_no_undo_removes_it(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    assert is_series(made(repeats=5)) and not is_series(made())
    assert locations_of(made(repeats=5), state, "abc-0001").data == tmp_path / "datasets" / "plimsoll-abc-0001"
    assert str(locations_of(made(repeats=5, data="/a"), state, "abc-0001").data) == "/a/plimsoll-abc-0001"


def test_places_are_varied_as_anything_else_is(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(
        'name = "x"\ntitle = "x"\nworkload = {name = "bank", scale = 1}\nmeasure = {seconds = 1}\n'
        '[[factors]]\npath = "target.files.data"\nlevels = ["/a", "/b"]\n'
        '[[factors]]\nname = "log"\n[[factors.levels]]\nlabel = "beside"\nset = {"workload.clients" = 1}\n'
        '[[factors.levels]]\nlabel = "apart"\nset = {"workload.clients" = 1, "target.files.wal" = "/log"}\n'
    )
    plan = plan_trials((source := load(str(file))).experiment, source.treatments, 1)
    found = [locations_of(one.settings, StateDir(tmp_path), "abc-0001") for one in plan.treatments]
    assert [[str(folder) for folder in locations.apart] for locations in found] == [
        ["/a/plimsoll-abc-0001"],
        ["/a/plimsoll-abc-0001", "/log/plimsoll-abc-0001-wal"],
        ["/b/plimsoll-abc-0001"],
        ["/b/plimsoll-abc-0001", "/log/plimsoll-abc-0001-wal"],
    ]
    needs = needs_of(plan, plan.trials, [], has_tables=lambda _: False)
    assert set(needs.placed_bytes) == {"/a", "/b"}
    assert all(are_varied(one.settings) for one in plan.treatments) and not are_varied(made(data="/a"))


@pytest.mark.parametrize("path", ["Log", "./log", "/mnt/../etc", ""])
def test_a_place_is_an_absolute_path(path: str) -> None:
    with pytest.raises(ValueError, match="not an absolute path"):
        made(wal=path)


def test_folders_of_a_journal_go_with_it_and_others_stay(state: StateDir, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    one, other = placed.folder_of(tmp_path, "one"), placed.folder_of(tmp_path, "other")
    journal = Journal.create(state, "placed-test")
    placed.make(one, journal=journal)
    placed.make(other, journal=None)
    placed.make(other, journal=None)  # it goes on with what is there
    (one / "file").write_text("x")
    with pytest.raises(Fault, match="exists already"):
        placed.make(one, journal=journal)
    assert [undone.ok for undone in undo(state, force=True)] == [True]
    assert not one.exists() and other.is_dir()
    assert placed.remove(other) and not placed.remove(other)


@pytest.mark.parametrize("path", ["relative/plimsoll-x", "/mnt/data", "/mnt/../plimsoll-x", "/"])
def test_nothing_else_is_removed(path: str) -> None:
    with pytest.raises(Fault):
        placed.remove(Path(path))


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "plimsoll-x").symlink_to(tmp_path / "precious")
    assert not placed.remove(tmp_path / "plimsoll-x")
    assert (tmp_path / "precious").is_dir()


def test_the_log_moves_and_leaves_a_link(tmp_path: Path) -> None:
    locations = FileLocations(tmp_path / "data", tmp_path / "wal", None, tmp_path)
    inside = tmp_path / "data" / "data" / "pg_wal"
    (inside / "archive_status").mkdir(parents=True)
    (inside / "000000010000000000000001").write_bytes(b"log" * 10_000)
    (tmp_path / "wal").mkdir()
    move_wal(locations, (-1, -1))
    assert inside.is_symlink()
    assert (tmp_path / "wal" / "pg_wal" / "000000010000000000000001").read_bytes() == b"log" * 10_000
    assert (inside / "archive_status").is_dir()
    move_wal(FileLocations.together(tmp_path), (-1, -1))  # nothing to do
