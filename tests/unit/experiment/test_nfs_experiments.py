"""The shipped experiments on NFS, as they are planned: what is varied, and what of it stands still."""

from pathlib import Path

import pytest

from plimsoll.experiment import ExperimentError, Source, load
from plimsoll.experiment.design import show_level
from plimsoll.experiment.reading.source import find

OF_MOUNT = "environment.places.filer.mount"


def mounts(source: Source) -> dict[str, dict[str, object]]:
    """The options of the mount by level of attribute caching, all else at its first level."""
    first = {factor.key: show_level(factor.levels[0]) for factor in source.experiment.factors}
    found = {}
    for one in source.treatments:
        shown = {key: show_level(level) for key, level in one.levels.items()}
        if {key: value for key, value in shown.items() if key != "attributes"} == {
            key: value for key, value in first.items() if key != "attributes"
        }:
            found[shown["attributes"]] = dict(one.settings.environment.places["filer"].mount)
    return found


def test_both_halves_of_noac_are_there_alone() -> None:
    found = mounts(load("nfs-options", quick=True))
    sizes = {"rsize": 8192, "wsize": 8192}
    assert found["default"] == sizes | {"noac": False}
    assert {
        name: {key: value for key, value in options.items() if key not in sizes} for name, options in found.items()
    } == {
        "default": {"noac": False},
        "actimeo=0": {"actimeo": 0},
        "sync": {"sync": True},
        "noac": {"noac": True},
    }


def test_the_studys_matrix_can_be_had_whole() -> None:
    sets = ['design.kind="full factorial"', 'files="all by NFS"', "workload.clients=1"]
    source = load("nfs-options", sets=sets)
    assert len(source.treatments) == 4 * 5 * 4
    sizes = {one.settings.environment.places["filer"].mount["rsize"] for one in source.treatments}
    assert sizes == {1024 << power for power in range(5)}
    assert all(one.settings.environment.kernel == "guest" for one in source.treatments)


@pytest.mark.parametrize("quick", [True, False])
def test_options_are_varied_one_at_a_time(quick: bool) -> None:
    source = load("nfs-options", quick=quick)
    base = source.treatments[0].levels
    assert all(sum(one.levels[key] != base[key] for key in base) == 1 for one in source.treatments[1:])
    placed = {(one.settings.target.files.data, one.settings.target.files.wal) for one in source.treatments}
    assert placed == {("filer", "filer"), ("filer", "disk"), ("disk", "disk")}


def test_each_query_is_asked_alone_of_data_that_fit_and_that_do_not() -> None:
    source = load("nfs-queries", quick=True)
    asked = {(one.settings.workload.files[0].path, one.settings.workload.scale) for one in source.treatments}
    names = ("scan", "join", "clustered", "unclustered")
    assert asked == {(f"{name}.sql", scale) for name in names for scale in (1, 5)}
    assert all(one.settings.workload.files[0].text for one in source.treatments)
    assert {len(one.settings.workload.files) for one in source.treatments} == {1}


def test_a_place_of_levels_that_were_not_chosen_is_left_out_and_a_misspelt_one_is_refused(tmp_path: Path) -> None:
    local = load("pgbench-storage", quick=True, sets=['database="one disk"', 'wal="first disk"'])
    assert set(local.experiment.environment.places) == {"first"}
    path = tmp_path / "experiment.toml"
    text = find("pgbench-storage").read_text().replace('"target.files.wal" = "second"', '"target.files.wal" = "first"')
    path.write_text(text.replace("[environment.places.second]", "[environment.places.secnod]"))
    with pytest.raises(ExperimentError) as caught:
        load(str(path), sets=['database="one disk"', "environment.places.secnod.image=1 GiB"])
    assert "environment.places.secnod: nothing lies on it" in str(caught.value)


def test_what_levels_leave_may_be_used_by_a_later_setting() -> None:
    sets = ['database="one disk"', 'wal="first disk"', 'target.files.temp="second"']
    for given in (sets, sets[::-1]):
        source = load("pgbench-storage", quick=True, sets=given)
        assert set(source.experiment.environment.places) == {"first", "second"}
        assert source.experiment.target.files.temp == "second"


def test_cells_can_be_chosen_of_which_none_lies_where_the_file_puts_it_at_first() -> None:
    source = load("pgbench-storage", quick=True, sets=['database="NFS"', 'wal="NFS"'])
    assert {tuple(sorted(one.settings.environment.places)) for one in source.treatments} == {("filer", "served")}
    assert {one.settings.target.files.data for one in source.treatments} == {"filer"}
    with pytest.raises(ExperimentError) as caught:  # versions of NFS with nothing on it are no experiment
        load("nfs-options", quick=True, sets=['files="all local"'])
    assert "environment.places.filer: nothing lies on it" in str(caught.value)
