"""From an experiment to the agent's requests (schema/agent.md): workload, data, schedule. Pure."""

from __future__ import annotations

from typing import Any

from plimsoll.experiment import Experiment
from plimsoll.experiment.model import Bank, DecisionSupport, OrderEntry, Script, WpiOrders
from plimsoll.experiment.schedule import Closed, Open, Ramp, Steps
from plimsoll.experiment.workload import Zipf
from plimsoll.run import planning


def workload_request(settings: Experiment) -> dict[str, Any]:
    """What is done: the agent's `workload` object."""
    workload = settings.workload
    if isinstance(workload, WpiOrders):
        request: dict[str, Any] = {
            "name": workload.name,
            "size_bytes": planning.data_bytes(settings),
            "seed": workload.seed,
            "keys": _keys(workload.keys),
            "access": workload.access,
            "draw": workload.draw,
        }
        return request if workload.mix is None else {**request, "mix": workload.mix}
    if isinstance(workload, Bank):
        done = {"transaction": workload.transaction} if workload.mix is None else {"mix": workload.mix}
        return _bank_data(workload) | {"keys": _keys(workload.keys)} | done
    if isinstance(workload, OrderEntry):
        return _order_entry(workload)
    if isinstance(workload, DecisionSupport):
        return {key: getattr(workload, key) for key in ("name", "scale_factor", "seed", "ranges")}
    # As pgbench does, the scale is a variable; one that the user gives is the user's.
    scale = {} if workload.scale is None else {"scale": workload.scale}
    return {
        "name": workload.name,
        "scripts": [{"name": one.path, "text": one.text or "", "weight": one.weight} for one in workload.files],
        "variables": scale | workload.variables,
        "seed": workload.seed,
        "client_count": workload.clients,
    }


def data_request(settings: Experiment) -> dict[str, Any] | None:
    """What fills the tables: a `workload` object for `populate`; None where the agent fills none."""
    workload = settings.workload
    if isinstance(workload, Bank):
        return _bank_data(workload)
    if isinstance(workload, OrderEntry):
        return _order_entry_data(workload)
    if isinstance(workload, DecisionSupport):
        return {"name": workload.name, "scale_factor": workload.scale_factor}
    if isinstance(workload, Script):
        if workload.scale is None:
            return None
        return _bank_data(Bank(name="bank", scale=workload.scale, seed=workload.seed))
    return workload_request(settings)


def setup_text(settings: Experiment) -> str | None:
    """SQL that is run once when the data are made; None where there is none."""
    return settings.workload.setup_text if isinstance(settings.workload, Script) else None


def bank_scale(settings: Experiment) -> int | None:
    """The scale of the tables of pgbench that the workload needs; None where it needs none of them."""
    return settings.workload.scale if isinstance(settings.workload, Bank | Script) else None


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


def load_request(settings: Experiment, cpus: int) -> dict[str, Any]:
    """How the load speaks and what it keeps: keys of the agent's `load`. `cpus`: how many the load may use."""
    workload, measure = settings.workload, settings.measure
    assert not isinstance(workload, DecisionSupport)  # it has streams, and no mix of transactions
    return {
        "clients": workload.clients,
        "threads": min(workload.threads or cpus, workload.clients),
        "mode": workload.mode,
        "describe": workload.describe,
        "retries_max": workload.retries_max,
        "reconnect": workload.reconnect,
        "rows_max": measure.rows_max,
        "sample_one_in": measure.sample_one_in,
    }


def streams_request(workload: DecisionSupport, test: str) -> dict[str, Any]:
    """What is run: keys of the agent's `streams`. `test`: "power", "throughput", or "plans", a pass under EXPLAIN."""
    return {
        "test": "throughput" if test == "throughput" else "power",
        "streams": workload.streams_run if test == "throughput" else 1,
        "refresh": workload.refresh and test != "plans",
        "timeout_seconds": workload.query_timeout_seconds,
        "explain": test == "plans",
    }


def _bank_data(workload: Bank) -> dict[str, Any]:
    return {
        "name": workload.name,
        "scale": workload.scale,
        "seed": workload.seed,
        "partitions": workload.partitions,
        "partition_method": workload.partition_method,
        "unlogged": workload.unlogged,
        "fillfactor": workload.fillfactor,
    }


def _order_entry_data(workload: OrderEntry) -> dict[str, Any]:
    """One data set serves statements and functions, with users' times and without."""
    return {
        "name": workload.name,
        "warehouses": workload.warehouses,
        "seed": workload.seed,
        "foreign_keys": workload.foreign_keys,
    }


def _order_entry(workload: OrderEntry) -> dict[str, Any]:
    request = _order_entry_data(workload) | {
        "statements": workload.statements,
        "isolation": workload.isolation,
        "mix": workload.mix,
        "keying_and_think": workload.keying_and_think,
        "ledger": workload.ledger,
    }
    given = {"time_scale": workload.time_scale, "delivery": workload.delivery}
    return request | {key: value for key, value in given.items() if value is not None}


def _keys(keys: Any) -> Any:
    return {"zipf": keys.zipf} if isinstance(keys, Zipf) else keys
