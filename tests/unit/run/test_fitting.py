"""Levels that a machine cannot give are left out and named; the rest is the experiment as it was."""

from dataclasses import replace
from pathlib import Path

import pytest
from fake_machine import FakeMachine

from plimsoll.environment.places import machine as places_machine
from plimsoll.experiment import Source, load
from plimsoll.run.planning.fitting import Machine, fitted

GIB = 2**30
TEXT = """format = 1
name = "mine"
title = "A question"
[workload]
name = "order_entry"
warehouses = 1
[measure]
seconds = 1
[[factors]]
path = "environment.target_cpus"
levels = ["0", "0-1", "0-3"]
where_possible = {cpus}
[[factors]]
path = "environment.memory"
levels = ["1 GiB", "2 GiB", "0.9 x memory"]
where_possible = {memory}
"""


def read(tmp_path: Path, *, cpus: str = "true", memory: str = "true") -> Source:
    path = tmp_path / "experiment.toml"
    path.write_text(TEXT.format(cpus=cpus, memory=memory))
    return load(str(path), sets=["workload.clients=2"])


def machine(cpus: int, gib: int) -> Machine:
    return Machine(frozenset(range(cpus)), gib * GIB, gib * GIB)


def levels(source: Source) -> list[list[str]]:
    return [list(factor.levels) for factor in source.experiment.factors]


def test_a_small_machine_runs_what_it_can(tmp_path: Path) -> None:
    found = fitted(read(tmp_path), machine(2, 2))
    assert levels(found) == [["0", "0-1"], ["1 GiB"]]
    assert len(found.treatments) == 2
    assert [one.levels["environment.target_cpus"] for one in found.treatments] == ["0", "0-1"]
    assert len(found.left_out) == 3
    assert "target_cpus 0-3 (no CPU 2-3)" in found.left_out[0]
    assert "2 GiB" in found.left_out[1]
    assert "0.9 x memory" in found.left_out[2], "1.8 GiB and the load generator are more than there is"
    assert found.changed
    assert found.experiment.workload.clients == 2


def test_a_large_one_runs_all(tmp_path: Path) -> None:
    source = read(tmp_path)
    assert fitted(source, machine(4, 64)) is source


def test_only_factors_that_say_so_lose_levels(tmp_path: Path) -> None:
    source = read(tmp_path, cpus="false")
    assert levels(fitted(source, machine(1, 2))) == [["0", "0-1", "0-3"], ["1 GiB"]]


def test_where_nothing_is_left_all_stays_and_the_plan_refuses(tmp_path: Path) -> None:
    source = read(tmp_path)
    assert fitted(source, Machine(frozenset({9}), GIB, 0)) is source


@pytest.mark.parametrize("name", ["cpu-scaling", "memory-scaling"])
def test_the_shipped_ones_run_from_two_cores_on(name: str) -> None:
    for quick in (False, True):
        small, large = (fitted(load(name, quick=quick), machine(*size)) for size in ((2, 4), (16, 64)))
        assert 2 <= len(small.treatments) <= len(large.treatments)
        assert large.left_out == ()
        assert small.experiment.workload == large.experiment.workload


def test_a_kernel_runs_the_preemption_models_that_it_offers(tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    factor = 'path = "environment.preemption"\nlevels = ["none", "lazy", "full"]\nwhere_possible = true\n'
    path.write_text(f"{TEXT.partition('[[factors]]')[0]}[[factors]]\n{factor}")
    source = load(str(path))

    def offered(*models: str) -> Source:
        return fitted(source, Machine(frozenset({0}), GIB, GIB, frozenset(models)))

    assert levels(offered("lazy", "full")) == [["lazy", "full"]]
    assert offered("lazy", "full").left_out == ("environment.preemption none (this kernel offers full, lazy)",)
    assert offered("none", "voluntary", "full", "lazy") is source
    assert offered("voluntary") is source, "the plan refuses what is left"
    closed = fitted(source, Machine(frozenset({0}), GIB, GIB, None, "it is locked down"))
    assert levels(closed) == [["as found"]]
    assert closed.left_out == ("environment.preemption, but as found (it is locked down)",)
    assert fitted(source, machine(1, 1)) is source, "a kernel that is not known to lack any"


ONE_LOAD = ["measure.transactions_per_client=50", "workload.clients=1"]
CELLS = 9 + 7 * 2  # of three layouts and three of the log without a stripe, and of those with one by its two chunks


def test_what_has_to_lie_on_nfs_is_left_out_where_the_kernel_has_none() -> None:
    source = load("pgbench-storage", quick=True, sets=ONE_LOAD)
    assert len(source.treatments) == CELLS
    without = replace(machine(2, 8), why_no_nfs="this kernel has no NFS server")
    found = fitted(source, without)
    assert len(found.treatments) == 4 + 5 * 2 and len(found.left_out) == 2
    assert all("NFS (this kernel has no NFS server)" in text for text in found.left_out)
    assert set(found.experiment.environment.places) == {"first", "second", "stripe"}, "of what nothing lies on is none"
    assert fitted(source, machine(2, 8)) is source
    in_a_guest = load("pgbench-storage", quick=True, sets=["environment.kernel=guest"])
    assert fitted(in_a_guest, without) is in_a_guest, "its kernel is not this one"


def test_what_has_to_lie_on_an_array_is_left_out_where_the_kernel_has_no_md_and_its_chunk_with_it() -> None:
    source = load("pgbench-storage", quick=True, sets=ONE_LOAD)
    without = replace(machine(2, 8), why_no_array={0: "this kernel has no md"})
    found = fitted(source, without)
    assert found.left_out == ("database RAID-0 (this kernel has no md)", "WAL RAID-0 (this kernel has no md)")
    assert "stripe" not in found.experiment.environment.places
    assert [factor.key for factor in found.experiment.factors] == [
        factor.key for factor in source.experiment.factors if not factor.key.endswith(".chunk")
    ]
    assert len(found.treatments) == 9 and all(not one.without for one in found.treatments)
    assert fitted(source, replace(without, why_no_array={5: "of level 5 it has none"})) is source
    alone = load("pgbench-storage", quick=True, sets=[*ONE_LOAD, "database=RAID-0", "wal=RAID-0"])
    assert fitted(alone, without) is alone, "nothing would be left: the plan refuses it"


def test_what_a_machine_lacks_comes_with_where_it_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places_machine, "HERE", FakeMachine({}, modules=("loop", "md_mod", "raid1")))
    here = Machine.here()
    assert set(here.why_no_array) == {0, 5, 10}
    assert "has no md RAID of level 0; a guest's has: --set 'environment.kernel=\"guest\"'" in here.why_no_array[0]
