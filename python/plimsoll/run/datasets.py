"""Finding or building the data sets a plan needs (target/dataset.py says what one is)."""

from __future__ import annotations

from plimsoll.environment import StateDir
from plimsoll.environment.memory import page_cache
from plimsoll.experiment import Experiment, Plan
from plimsoll.run.observer import Observer
from plimsoll.run.servers.datasets import refusal
from plimsoll.run.servers.registry import kind_of
from plimsoll.run.signals import Interrupts
from plimsoll.run.sizes import data_bytes
from plimsoll.target.dataset import Dataset, find


def missing_bytes(plan: Plan, state: StateDir) -> list[int]:
    """Sizes of the data sets that this plan needs and that are not kept."""
    return [data_bytes(settings) for key, settings in _needed(plan).items() if not find(state.datasets, key)]


def bytes_of_all(plan: Plan, state: StateDir) -> int:
    """What the data sets of the plan take, kept or not."""
    found = {key: find(state.datasets, key) for key in _needed(plan)}
    kept = sum(dataset.bytes for dataset in found.values() if dataset is not None)
    return kept + sum(missing_bytes(plan, state))


def refusals(plan: Plan) -> list[str]:
    """What the agent will not do of this plan, in its words."""
    return sorted({reason for treatment in plan.treatments if (reason := refusal(treatment.settings))})


def build_all(plan: Plan, state: StateDir, observer: Observer, interrupts: Interrupts) -> dict[str, Dataset]:
    """Every data set of the plan by its key, built where it is not kept, cold in the page cache."""
    built = {}
    for key, settings in _needed(plan).items():
        dataset = find(state.datasets, key)
        dataset = dataset or kind_of(settings).build(settings, key, state, observer, interrupts)
        page_cache.evict(dataset.path)
        built[key] = dataset
    return built


def _needed(plan: Plan) -> dict[str, Experiment]:
    """One treatment's settings for each data set the plan needs, by key: target/dataset.py says what decides it."""
    settings = [treatment.settings for treatment in plan.treatments]
    return {key: experiment for experiment in settings if (key := kind_of(experiment).dataset_key(experiment))}
