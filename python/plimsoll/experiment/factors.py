"""Factors of the experiment file: what is varied, by its path or as a named group of settings.

The fact that constrains it: a factor sets what a trial has of its own. Which paths these are is read off the tables
(paths.py), and what the trials of a run share says so at its field.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator

from plimsoll.experiment.paths import paths_of
from plimsoll.experiment.settings import Settings
from plimsoll.experiment.strict import Strict

PATHS = paths_of(Settings)


def _check_path(value: str) -> str:
    PATHS.check(value)
    return value


def _check_set_path(value: str) -> str:
    try:
        return _check_path(value)
    except ValueError as error:
        raise ValueError(f"{error}; each path in quotation marks, as one key") from None


FactorPath = Annotated[str, AfterValidator(_check_path)]
SetPath = Annotated[str, AfterValidator(_check_set_path)]


class Varied(Strict):
    """What every factor has."""

    label: str | None = None
    compare: bool = Field(True, description="false: the report shows one figure per level instead of comparing levels")
    where_possible: bool = Field(
        False,
        description="true: levels with CPUs, memory, a preemption model, md or NFS that this machine has not are left "
        "out, and the plan says so",
    )


class Factor(Varied):
    """What is varied, and the values it takes."""

    path: FactorPath = Field(description="such as environment.memory")
    levels: list[Any] = Field(min_length=1, max_length=100)

    @property
    def key(self) -> str:
        """What the factor is called in a plan and on the command line."""
        return self.path

    @property
    def paths(self) -> list[str]:
        """Every setting that some level sets."""
        return [self.path]

    def settings_of(self, level: Any) -> dict[str, Any]:
        """What a level sets, path by path."""
        return {self.path: level}


class NamedLevel(Strict):
    """A level that sets several things at once."""

    label: str = Field(min_length=1, max_length=80)
    set: dict[SetPath, Any] = Field(
        min_length=1, description='path by path, such as "environment.sysctl.vm.dirty_bytes" = "0.2 x memory"'
    )


class NamedFactor(Varied):
    """Several settings varied together, and the named levels they take."""

    name: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60, description="such as writeback")
    levels: list[NamedLevel] = Field(min_length=1, max_length=100)

    @field_validator("levels")
    @classmethod
    def _each_label_once(cls, value: list[NamedLevel]) -> list[NamedLevel]:
        labels = [level.label for level in value]
        for label in labels:
            if labels.count(label) > 1:
                raise ValueError(f"the level {label!r} is given twice; allowed: each label once")
        return value

    @property
    def key(self) -> str:
        """What the factor is called in a plan and on the command line."""
        return self.name

    @property
    def paths(self) -> list[str]:
        """Every setting that some level sets."""
        return list(dict.fromkeys(path for level in self.levels for path in level.set))

    def settings_of(self, level: NamedLevel) -> dict[str, Any]:
        """What a level sets, path by path."""
        return dict(level.set)


def _kind_of_factor(value: Any) -> str:
    named = "name" in value if isinstance(value, dict) else isinstance(value, NamedFactor)
    return "[named]" if named else "[path]"


AnyFactor = Annotated[
    Annotated[Factor, Tag("[path]")] | Annotated[NamedFactor, Tag("[named]")], Discriminator(_kind_of_factor)
]


def each_once(factors: list[AnyFactor]) -> None:
    """Raises ValueError where two factors are one, or set the same."""
    keys = [factor.key for factor in factors]
    for key in keys:
        if keys.count(key) > 1:
            raise ValueError(f"the factor {key} is given twice; allowed: each once")
    seen: dict[str, str] = {}
    for factor in factors:
        for path in factor.paths:
            other = next((known for known in seen if _overlap(path, known)), None)
            if other is not None:
                raise ValueError(
                    f"{path} is set by two factors, {seen[other]} and {factor.key}; allowed: each setting by one"
                )
        seen |= dict.fromkeys(factor.paths, factor.key)


def _overlap(one: str, other: str) -> bool:
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")
