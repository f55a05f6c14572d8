"""The experiment file as a type: its settings, and what of them is varied.

The file is the contract with the user, so unknown keys are refused by name and never ignored.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from plimsoll.experiment.factors import AnyFactor, each_once
from plimsoll.experiment.guest import fits
from plimsoll.experiment.guest.table import GuestMachine
from plimsoll.experiment.kernels.table import QEMU, check_levels
from plimsoll.experiment.settings import Settings

KERNEL = "environment.kernel"
GUESTS = ("guest", QEMU)


def kernels_of(factors: list[AnyFactor]) -> list[Any] | None:
    """The kernels that a factor varies, each once; None where none does."""
    of_kernel = [factor for factor in factors if KERNEL in factor.paths]
    if not of_kernel:
        return None
    given = [settings[KERNEL] for factor in of_kernel for level in factor.levels
             if KERNEL in (settings := factor.settings_of(level))]  # fmt: skip
    return list(dict.fromkeys(one if isinstance(one, str) else str(one) for one in given))


class Experiment(Settings):
    """One question with everything needed to answer it."""

    factors: list[AnyFactor] = Field(default_factory=list, max_length=8)
    quick: dict[str, Any] = Field(default_factory=dict, description="what --quick sets, path by path")

    @property
    def kernel_kind(self) -> str:
        """Who carries a run of it out: on the host, in a guest, or by booting kernels in one of the ways there are."""
        environment = self.environment
        return environment.kernel_kind if kernels_of(self.factors) is None else environment.boot.by

    @property
    def guest_machine(self) -> GuestMachine | None:
        """What a guest is given; None where there is none."""
        return None if self.kernel_kind not in GUESTS else self.environment.guest or GuestMachine()

    @field_validator("factors")
    @classmethod
    def _can_be_varied_on_its_kernel(cls, value: list[AnyFactor], info: ValidationInfo) -> list[AnyFactor]:
        environment = info.data.get("environment")
        if environment is not None and environment.kernel == "guest":
            fits.check_factors(factor.paths for factor in value)
        if environment is not None and (levels := kernels_of(value)) is not None:
            check_levels(levels, environment.kernels)
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
