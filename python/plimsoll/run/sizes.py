"""What the sizes of an experiment come to on this machine, in bytes: "memory" is the group's limit, or the host's."""

from __future__ import annotations

from plimsoll.experiment import Experiment, size
from plimsoll.experiment.environment import AS_FOUND, Environment
from plimsoll.experiment.reading.source import memory_of
from plimsoll.experiment.servers.registry import facts_of
from plimsoll.run.host import HERE


def memory_bytes(experiment: Experiment) -> int:
    """What "memory" means in this treatment's relative sizes: the group's limit, or the host's memory."""
    return memory_of(experiment, HERE.memory_bytes())


def swap_bytes(experiment: Experiment) -> int | None:
    """Swap the group may use; None: as the machine has it."""
    wanted = experiment.environment.swap
    return None if wanted == AS_FOUND else size.parse(wanted, memory_bytes(experiment))


def environment_in_bytes(experiment: Experiment) -> Environment:
    """The environment of this treatment, relative sizes resolved."""
    memory = memory_bytes(experiment)
    table = size.in_bytes(experiment.environment.model_dump(mode="json"), memory)
    if experiment.environment.memory != "unlimited":
        table["memory"] = memory  # which was relative to the host's
    return Environment.model_validate(table)


def data_bytes(experiment: Experiment) -> int:
    """The size of the data set, relative sizes resolved; what a setup file adds is not known."""
    columnar = facts_of(experiment.target).is_columnar
    return experiment.workload.estimated_bytes(memory_bytes(experiment), columnar=columnar)
