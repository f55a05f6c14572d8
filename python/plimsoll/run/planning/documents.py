"""The documents a run writes about itself: plan.json and the parts of run.json that come from the machine."""

from __future__ import annotations

from typing import Any

from plimsoll.experiment import Experiment, Plan, size
from plimsoll.experiment.design import level_unit, level_value, show_level
from plimsoll.experiment.factors import AnyFactor
from plimsoll.experiment.reading.source import memory_of
from plimsoll.experiment.settings import Design
from plimsoll.run.host import HERE
from plimsoll.run.sizes import data_bytes, environment_in_bytes, memory_bytes


def plan_document(plan: Plan) -> dict[str, Any]:
    """plan.json (schema/record.md)."""
    experiment = plan.experiment
    memory = memory_of(experiment, HERE.memory_bytes())
    return {
        "kind": experiment.design.kind,
        "blocks": experiment.design.blocks,
        "relevant_ratio": experiment.design.relevant_ratio,
        "judged": experiment.judged,
        "windows": windows_document(experiment.design),
        **({"groups": plan.groups.document()} if plan.groups else {}),
        "factors": [
            {
                "path": factor.key,
                "paths": factor.paths,
                "label": factor.label or factor.key.rsplit(".", 1)[-1],
                "unit": level_unit(factor),
                "compare": factor.compare,
                "levels": [
                    {"label": _level_label(level, factor, memory), "value": level_value(level, memory)}
                    for level in factor.levels
                ],
            }
            for factor in experiment.factors
        ],
        "treatments": {
            treatment.id: {
                "label": treatment.label,
                "levels": _labels(plan, treatment.levels, memory),
                **({"without": list(treatment.without)} if treatment.without else {}),
            }
            for treatment in plan.treatments
        },
        "trials": [
            {
                "number": trial.number,
                "block": trial.block,
                "position": trial.position,
                **({} if trial.group is None else {"group": trial.group}),
                "treatment": trial.treatment.id,
                "duplicate": trial.duplicate,
                "levels": _labels(plan, trial.treatment.levels, memory),
                "resolved": resolved(trial.treatment.settings),
            }
            for trial in plan.trials
        ],
    }


def windows_document(design: Design) -> dict[str, Any] | None:
    """What a design of windows asks for; None of any other."""
    if design.kind != "windows":
        return None
    return {
        "seconds": design.window_seconds,
        "lead_in_seconds": design.lead_in_seconds,
        "rounds": design.rounds,
        "minutes": design.minutes,
        "stop": design.stop,
    }


def resolved(experiment: Experiment) -> dict[str, Any]:
    """The settings of one treatment, every size in bytes."""
    document = experiment.model_dump(
        mode="json",
        include={"environment", "target", "workload", "schedule", "probes", "warmup", "measure"},
        exclude={"target": {"dsn"}},
    )
    document["environment"] = environment_in_bytes(experiment).model_dump(mode="json")
    target = document["target"]
    target["settings"] = size.in_bytes(target["settings"], memory_bytes(experiment))
    workload = document["workload"]
    if "size" in workload:
        workload["size"] = data_bytes(experiment)
    # experiment.json has the texts of files; here, once a trial, they would only fill the disk.
    workload.pop("setup_text", None)
    for file in workload.get("files", []):
        file.pop("text", None)
    return document


def _level_label(level: Any, factor: AnyFactor, memory: int) -> str:
    """A level as the file has it; a size relative to memory also says what it comes to."""
    if level_unit(factor) == "bytes" and isinstance(level, str) and "memory" in level:
        return f"{level} ({size.show(size.parse(level, memory))})"
    return show_level(level)


def _labels(plan: Plan, levels: dict[str, Any], memory: int) -> dict[str, str]:
    factors = {factor.key: factor for factor in plan.experiment.factors}
    return {key: _level_label(level, factors[key], memory) for key, level in levels.items()}
