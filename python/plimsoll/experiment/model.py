"""The experiment file as a type: its settings, and what of them is varied.

The file is the contract with the user, so unknown keys are refused by name and never ignored.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from plimsoll.experiment.factors import AnyFactor, each_once
from plimsoll.experiment.guest import fits
from plimsoll.experiment.settings import Settings


class Experiment(Settings):
    """One question with everything needed to answer it."""

    factors: list[AnyFactor] = Field(default_factory=list, max_length=8)
    quick: dict[str, Any] = Field(default_factory=dict, description="what --quick sets, path by path")

    @field_validator("factors")
    @classmethod
    def _can_be_varied_on_its_kernel(cls, value: list[AnyFactor], info: ValidationInfo) -> list[AnyFactor]:
        environment = info.data.get("environment")
        if environment is not None and environment.kernel == "guest":
            fits.check_factors(factor.paths for factor in value)
        return value

    @model_validator(mode="after")
    def _each_factor_once(self) -> Experiment:
        each_once(self.factors)
        return self

    @model_validator(mode="after")
    def _something_lies_on_each_place(self) -> Experiment:
        """A place that no level puts anything on was forgotten, or its name misspelt where it was meant."""
        below = [name for place in self.environment.places.values() for name in place.below]
        named = [*self.target.files.given.values(), *below]
        for factor in self.factors:
            for path, value in (pair for level in factor.levels for pair in factor.settings_of(level).items()):
                if path.startswith("target.files.") or path.endswith((".log", ".nfs.on")):
                    named += value.values() if isinstance(value, dict) else [value]
        idle = [name for name in self.environment.places if name not in named]
        if idle:
            raise ValueError(
                f"environment.places.{idle[0]}: nothing lies on it; allowed: name it in target.files, or leave it out"
            )
        return self
