"""Estimates of a plan, against sums by hand."""

from dataclasses import replace

import pytest

from plimsoll.experiment import load, plan_trials
from plimsoll.experiment.schedule import Poisson
from plimsoll.run.planning.needs import needs_of
from plimsoll.run.planning.obstacles import remarks

SETS = [
    "design.kind=full factorial",
    "environment.memory=1 GiB",
    "workload.size=500 MiB",
    "warmup.until=none",
    "measure.transactions=100000",
    "design.duplicate=false",
    "target.settings.shared_buffers=64 MiB",
]


def seconds(clients: int) -> float:
    source = load("buffer-cache", quick=True, sets=[*SETS, f"workload.clients={clients}"], blocks=1)
    plan = plan_trials(source.experiment, source.treatments, 1)
    assert len(plan.trials) == 1
    return needs_of(plan, plan.trials, [], has_tables=lambda _trial: False).seconds


def test_transactions_take_a_millisecond_each_and_four_run_at_once() -> None:
    # Beside them a second to clone 500 MiB and 6 s around a trial.
    assert seconds(clients=1) == 100 + 7
    assert seconds(clients=2) == 50 + 7
    assert seconds(clients=4) == seconds(clients=64) == 25 + 7


def test_what_transactions_write_needs_room() -> None:
    source = load("buffer-cache", quick=True, sets=[*SETS, "environment.swap=0"], blocks=1)
    plan = plan_trials(source.experiment, source.treatments, 1)
    # A clone with a fifth to spare, 1 GiB, and 5 KiB for each of 100,000 transactions.
    assert (
        needs_of(plan, plan.trials, [], has_tables=lambda _trial: False).disk_bytes
        == 600 * 2**20 + 2**30 + 100_000 * 5 * 2**10
    )


def test_images_need_room_where_they_lie() -> None:
    sets = [*SETS, "environment.swap=0", 'target.files.data="disk"', 'target.files.wal="log"']
    sets += ['environment.places.disk.image="2 x memory"', 'environment.places.log.image="1 GiB"']
    sets += ["environment.places.log.images=2", 'environment.places.log.mapper.kind="linear"']
    source = load("buffer-cache", quick=True, sets=[*sets, 'environment.places.log.images_in="/mnt"'], blocks=1)
    plan = plan_trials(source.experiment, source.treatments, 1)
    needs = needs_of(plan, plan.trials, [], has_tables=lambda _trial: False)
    writes = 2**30 + 100_000 * 5 * 2**10
    assert needs.disk_bytes == 2 * 2**30 + writes, "the clone lies in the image"
    assert needs.placed_bytes == {"/mnt": 2 * 2**30}


def by_nfs(*sets: str) -> float:
    """Of one trial in a guest."""
    wanted = ["measure.transactions_per_client=1000", 'files="all by NFS"', "workload.scale=1", *sets]
    source = load("nfs-options", sets=[*wanted, "environment.places.filer.nfs.version=3"], blocks=1)
    plan = plan_trials(source.experiment, source.treatments, 1)
    (trial,) = [one for one in plan.trials if one.treatment.settings.workload.clients == 1][:1]
    return needs_of(plan, [trial], [], has_tables=lambda _trial: False).seconds


def test_a_guest_takes_longer_and_what_is_copied_by_nfs_is_paid_by_the_call() -> None:
    one = ['attributes=["default"]', "workload.clients=1"]
    eight, one_kib = (by_nfs(*one, f'size=["{size}"]') for size in ("8 KiB", "1 KiB"))
    # A boot of 10 s, 8 s around a trial, 6.5 s more by NFS, 1000 transactions of 4 ms; then 0.28 ms for each 8 KiB.
    copied = (62 + 15) * 2**20
    assert eight == pytest.approx(10 + 8 + 6.5 + 4 + copied / 8192 * 0.00028, abs=0.7)
    assert one_kib - eight == pytest.approx(copied * (1 / 1024 - 1 / 8192) * 0.00028, rel=0.1)
    source = load("append-log", quick=True, sets=['environment.kernel="guest"', "measure.seconds=5"], blocks=1)
    plan = plan_trials(source.experiment, source.treatments, 1)
    assert not any(one.treatment.settings.environment.places for one in plan.trials)
    told = needs_of(plan, plan.trials[:1], [], has_tables=lambda _trial: False).seconds
    assert told == pytest.approx(10 + 8 + 5, abs=0.7)


def test_what_a_script_takes_is_said_to_be_unknown() -> None:
    source = load("nfs-queries", quick=True, blocks=1)
    plan = plan_trials(source.experiment, source.treatments, 1)
    (said,) = [text for text in remarks(plan) if "time: " in text]
    assert "4 ms are assumed" in said
    by_rate = plan.experiment.model_copy(update={"schedule": Poisson(kind="poisson", rate=5)})
    assert not [text for text in remarks(replace(plan, experiment=by_rate)) if "time: " in text], "the rate says it"
    bank = load("nfs-options", quick=True, blocks=1)
    assert not [text for text in remarks(plan_trials(bank.experiment, bank.treatments, 1)) if "time: " in text]
