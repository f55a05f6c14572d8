"""Estimates of a plan, against sums by hand."""

from plimsoll.experiment import load, plan_trials
from plimsoll.run.planning.needs import needs_of

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
