"""Whether the servers of a block can be up at once and take turns; why not, where trials take the place of windows.

The fact that constrains it: while one server has its turn the others stand still, and nothing of theirs may reach it.
So they differ only in what each has for itself, and all of them fit into memory and onto the disk together. Where they
do not the treatments are up in groups that do, and that share one (experiment/groups.py).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

from plimsoll.environment import StateDir
from plimsoll.environment.devices import existing
from plimsoll.environment.groups import cgroups, group_access
from plimsoll.environment.knob import Availability
from plimsoll.experiment import Experiment, Plan, size
from plimsoll.experiment.design import blocks_of
from plimsoll.experiment.environment import AS_FOUND
from plimsoll.experiment.groups import fewest
from plimsoll.experiment.paths import ANY
from plimsoll.experiment.replicates import in_groups
from plimsoll.experiment.workloads.base import TRANSACTIONS
from plimsoll.run import datasets
from plimsoll.run.host import HERE
from plimsoll.run.planning.needs import LOAD_MEMORY_BYTES, huge_pages_bytes, needs_of, server_memory_bytes
from plimsoll.run.servers.registry import kind_of, kinds_of
from plimsoll.run.sizes import data_bytes, memory_bytes, swap_bytes
from plimsoll.run.surroundings import knobs
from plimsoll.run.surroundings.file_locations import are_varied
from plimsoll.run.windows import turning

READ_AHEAD = "environment.read_ahead"
# Settings that no knob turns, and that servers which are up at once cannot differ in.
SHARED = {"environment.page_cache": "a server's files are cold or warm only when it starts"}
BUFFERS_BYTES, BESIDE_BYTES = 128 * 2**20, 256 * 2**20  # of a server whose memory nobody limits: by default, and beside


def arranged(plan: Plan, state: StateDir) -> tuple[Plan, list[str]]:
    """The plan as it can be had here, in groups where not all servers fit at once; and why it is carried out by trials.

    The reasons are all that there are, each with what would help; none where windows can be had.
    """
    reasons = [*_servers(plan), *_shared(plan, state)]
    freezer = _freezer()
    if not freezer.ok:
        reasons.append(f"servers cannot be frozen here: {freezer.reason}; {freezer.remedy}")
    if reasons:
        return plan, reasons
    missing = datasets.missing_bytes(plan, state)
    lacking = [*_room(plan, state, missing)]
    if not lacking:
        return plan, []
    sizes = {treatment.id: _server_bytes(treatment.settings) for treatment in plan.treatments}
    # The reference is up in every group, so it is what takes the least, and of several the first of the file.
    groups = fewest(
        sizes,
        min(sizes, key=lambda name: sizes[name]),
        "; ".join(lack.what for lack in lacking),
        lambda some: not any(_room(in_groups(plan, some), state, missing)),
    )
    return (plan, [lack.text for lack in lacking]) if groups is None else (in_groups(plan, groups), [])


def why_not(plan: Plan, state: StateDir) -> list[str]:
    """Every reason why this plan is carried out by trials."""
    return arranged(plan, state)[1]


def _servers(plan: Plan) -> Iterator[str]:
    if not kind_of(plan.experiment).is_private:
        yield "an existing server is not Plimsoll's to freeze; leave target.dsn out"
    yield from dict.fromkeys(kind.why_no_windows for kind, _ in kinds_of(plan) if kind.why_no_windows)
    if any(treatment.settings.workload.made_of != TRANSACTIONS for treatment in plan.treatments):
        yield f"workload {plan.experiment.workload.name} has tests that are measured whole, not transactions"
    if any(treatment.settings.probes.nfs_calls for treatment in plan.treatments):
        yield "packets of servers that are up at once cannot be told apart; set probes.nfs_calls = false"
    if max(map(len, blocks_of(plan.trials)), default=0) < 2:
        yield "there is one server in a block, and nothing to take turns with; vary something, or set design.duplicate"


def _freezer() -> Availability:
    hierarchy = cgroups.detect()
    able = group_access.available(hierarchy)
    return able if not able.ok or hierarchy is None else hierarchy.can_freeze()


def _shared(plan: Plan, state: StateDir) -> Iterator[str]:
    """What the treatments differ in though it is one for all servers, and no turn can set it."""
    shared = {key: knob.why_shared for knob in knobs.KNOBS if knob.why_shared for key in knob.keys} | SHARED
    settings = [treatment.settings for treatment in plan.treatments]
    turned = turning.varied(plan, state)
    for key, why in shared.items():
        values = [turning.left(_value(experiment, key), key, turned) for experiment in settings]
        if any(value != values[0] for value in values):
            yield f"{key} is varied, and {why}"
    sites = [knobs.site_of(one, state, "plan") for one in settings]
    yield from dict.fromkeys(why for site in sites for knob in knobs.KNOBS for why in knob.alone(site))
    if READ_AHEAD in turned and are_varied(plan.experiment):
        yield f"{READ_AHEAD} is varied, and the file locations are varied too"
    swaps = [experiment.environment.swap for experiment in settings]
    if AS_FOUND in swaps and any(swap_bytes(experiment) for experiment in settings):
        yield f'environment.swap is "{AS_FOUND}" in some treatments, which could use the swap file of others'


def _value(settings: Any, key: str) -> Any:
    """What the key says; of a key of every place a table by the place's name."""
    first, _, others = key.partition(f".{ANY}.")
    value = reduce(getattr, first.split("."), settings)
    return {name: _value(each, others) for name, each in value.items()} if others else value


@dataclass(frozen=True)
class _Lacking:
    """What there is not enough of, and what would help."""

    what: str
    remedy: str = ""

    @property
    def text(self) -> str:
        return f"{self.what}; {self.remedy}" if self.remedy else self.what


def _room(plan: Plan, state: StateDir, missing_bytes: list[int]) -> Iterator[_Lacking]:
    """What the servers of a block, of the one that takes most, need more than there is."""
    needs = needs_of(plan, plan.trials, missing_bytes, has_tables=lambda _: False)
    blocks = blocks_of(plan.trials)
    taken = [sum(_server_bytes(trial.treatment.settings) + LOAD_MEMORY_BYTES for trial in block) for block in blocks]
    needed, available = max(taken), HERE.available_bytes()
    servers = f"{max(map(len, blocks))} servers at once"
    if needed > available:
        yield _Lacking(
            f"{servers}, each with its load, need {size.show(needed)} of memory and {size.show(available)} are "
            "available",
            "choose a smaller environment.memory or fewer levels",
        )
    free = shutil.disk_usage(existing(state.root)).free
    if needs.disk_bytes > free:
        yield _Lacking(f"{servers} need {size.show(needs.disk_bytes)} of disk and {size.show(free)} are free")
    for place, wanted in needs.placed_bytes.items():
        if Path(place).is_dir() and wanted > (there := shutil.disk_usage(place).free):
            yield _Lacking(f"{servers} need {size.show(wanted)} in {place} and {size.show(there)} are free there")


def _server_bytes(settings: Experiment) -> int:
    """The memory that a server may take.

    Of one without a limit: both caches as large as they get, so that none takes the page cache of another.
    """
    huge = huge_pages_bytes(settings)
    if limit := server_memory_bytes(settings):
        return limit + huge
    buffers = settings.target.settings.get("shared_buffers")
    own = size.parse(str(buffers), memory_bytes(settings)) if size.is_size(buffers) else BUFFERS_BYTES
    return data_bytes(settings) + own + BESIDE_BYTES + huge
