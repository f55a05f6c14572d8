"""What a treatment sets, whichever factor sets it: for analyses that know their experiment by what it varies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def factors_of(plan: Json) -> list[tuple[Json, set[str]]]:
    """Each factor of several levels with every setting it varies."""
    factors = [factor for factor in plan.get("factors") or [] if len(factor.get("levels") or []) > 1]
    return [(factor, {str(factor.get("path")), *(factor.get("paths") or [])}) for factor in factors]


def factor_of(plan: Json, path: str) -> Json | None:
    """The factor that varies a setting, by itself or among others."""
    return next((factor for factor, paths in factors_of(plan) if path in paths), None)


def settings_by_treatment(plan: Json, experiment: Json) -> dict[str, Json]:
    """The resolved settings of each treatment, from its first trial; of records without them the experiment's own."""
    found: dict[str, Json] = {}
    for trial in plan.get("trials") or []:
        found.setdefault(str(trial.get("treatment")), trial.get("resolved") or experiment)
    return {name: found.get(name, experiment) for name in plan.get("treatments") or {}}


def setting(settings: Mapping[str, Any], path: str) -> Any:
    """One setting by its path; None where there is none."""
    here: Any = settings
    for key in path.split("."):
        here = here.get(key) if isinstance(here, Mapping) else None
    return here


def level_value(plan: Json, treatment: str, path: str) -> Any:
    """The value of the level of a factor that varies one setting alone; None where none does."""
    mine = (((plan.get("treatments") or {}).get(treatment) or {}).get("levels") or {}).get(path)
    factor = factor_of(plan, path)
    if factor is None or factor.get("path") != path:
        return None
    return next((level.get("value") for level in factor["levels"] if str(level.get("label")) == str(mine)), None)


def others(plan: Json, treatment: str, without: list[Json | None]) -> tuple[dict[str, str], dict[str, str]]:
    """Levels of the other factors that vary, and what these are called: (`at`, `at_labels`)."""
    mine = ((plan.get("treatments") or {}).get(treatment) or {}).get("levels") or {}
    silent = {str(factor.get("path")) for factor in without if factor is not None}
    at, labels = {}, {}
    for factor, _ in factors_of(plan):
        path = str(factor.get("path"))
        if path not in silent and path in mine:
            at[path] = str(mine[path])
            labels[path] = str(factor.get("label") or path.rsplit(".", 1)[-1])
    return at, labels
