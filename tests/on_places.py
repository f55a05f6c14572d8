"""What tests of places share: an experiment whose files lie on them, and their layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plimsoll.environment import places
from plimsoll.environment.knob import Knob
from plimsoll.experiment import Experiment


def on_places(tables: Mapping[str, Mapping[str, Any]], files: Mapping[str, str]) -> Experiment:
    """With these places by name, and which part of the target lies on which."""
    document = {"name": "x", "title": "x", "workload": {"name": "bank", "scale": 1}, "measure": {"seconds": 1}}
    return Experiment.model_validate(document | {"environment": {"places": tables}, "target": {"files": files}})


def up_to(knob: Knob[Any]) -> tuple[Knob[Any], ...]:
    """The layers from the bottom to this one."""
    return places.KNOBS[: places.KNOBS.index(knob) + 1]
