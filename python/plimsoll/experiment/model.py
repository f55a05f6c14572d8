"""The experiment file as a type: its settings, and what of them is varied.

The file is the contract with the user, so unknown keys are refused by name and never ignored.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, model_validator

from plimsoll.experiment.factors import AnyFactor, each_once
from plimsoll.experiment.settings import Settings


class Experiment(Settings):
    """One question with everything needed to answer it."""

    factors: list[AnyFactor] = Field(default_factory=list, max_length=8)
    quick: dict[str, Any] = Field(default_factory=dict, description="what --quick sets, path by path")

    @model_validator(mode="after")
    def _each_factor_once(self) -> Experiment:
        each_once(self.factors)
        return self
