"""From an experiment to the agent's requests (schema/agent.md): workload, data, schedule. Pure."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.experiment import Experiment
from plimsoll.experiment.schedule import Closed, Open, Ramp, Steps
from plimsoll.run.sizes import memory_bytes

LOADERS: Final = 2  # sessions that fill tables side by side


def workload_request(settings: Experiment) -> dict[str, Any]:
    """What is done: the agent's `workload` object."""
    return settings.workload.request(memory_bytes(settings))


def data_request(settings: Experiment) -> dict[str, Any] | None:
    """What fills the tables: a `workload` object for `populate`; None where the agent fills none."""
    return settings.workload.data_request(memory_bytes(settings))


def schedule_request(settings: Experiment, block: int, *, warmup: bool = False) -> dict[str, Any]:
    """The agent's `schedule` object. Each block has arrivals of its own, the same for all its trials.

    A warm-up under steps or a ramp runs at their first rate: there is nothing to measure in it yet.
    """
    schedule = settings.schedule
    request = schedule.model_dump(mode="json", exclude_none=True)
    if isinstance(schedule, Closed):
        return request
    request["seed"] = (schedule.seed + block - 1) % 2**63
    if warmup and isinstance(schedule, Steps | Ramp):
        first = schedule.steps[0].rate if isinstance(schedule, Steps) else schedule.first
        common = {name: request[name] for name in Open.model_fields if name in request}
        return {"kind": schedule.arrivals, "rate": first, **common}
    return request


def machine_probes(settings: Experiment) -> dict[str, Any]:
    """Probes of the kernel and the machine themselves: whatever the server, they are asked for alike."""
    wanted, every = settings.probes.kernel, {"every_seconds": settings.probes.kernel_every_seconds}
    return {
        "kernel_log": {} if wanted else None,
        "kernel_memory": every if wanted else None,
        "slabs": every if wanted else None,
        "machine_speed": {} if settings.probes.machine_speed else None,
    }


def load_request(settings: Experiment, cpus: int) -> dict[str, Any]:
    """How the load speaks and what it keeps: keys of the agent's `load`. `cpus`: how many the load may use."""
    measure = settings.measure
    kept = {"rows_max": measure.rows_max, "sample_one_in": measure.sample_one_in}
    return settings.workload.load_request(cpus) | kept
