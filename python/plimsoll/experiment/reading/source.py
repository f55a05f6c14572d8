"""Reading experiment files: TOML, values from the command line, and faults named by file, line and key."""

from __future__ import annotations

import copy
import math
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plimsoll.experiment import size
from plimsoll.experiment.design import Treatment, combinations, show_level
from plimsoll.experiment.errors import ExperimentError, Problem
from plimsoll.experiment.factors import PATHS, NamedLevel
from plimsoll.experiment.model import Experiment
from plimsoll.experiment.reading.faults import problems
from plimsoll.experiment.reading.files import read_files
from plimsoll.experiment.reading.idle import idle, leave_out, named_only_at_first, without
from plimsoll.experiment.reading.lines import Lines, line_of
from plimsoll.record.redaction import redact

TRIALS_MAX = 10_000
COMBINATIONS_MAX = 5 * TRIALS_MAX  # of which some may be the same
MEASURES = {"measure.seconds", "measure.transactions", "measure.transactions_per_client"}  # one of them
EXPERIMENTS = Path(__file__).resolve().parents[4] / "experiments"


@dataclass(frozen=True)
class Source:
    """An experiment as read: the resolved model, and one resolved model a treatment."""

    path: Path
    experiment: Experiment
    treatments: list[Treatment]
    quick: bool
    changed: bool = False  # by --set: no longer the experiment that ships under this name
    left_out: tuple[str, ...] = ()  # levels that this machine cannot give (where_possible), each with its reason


def shipped() -> list[Path]:
    """The experiment files that ship with Plimsoll, by name."""
    return sorted(EXPERIMENTS.glob("*/experiment.toml"))


def find(name: str) -> Path:
    """The file of an experiment named by path or by the name of one that ships."""
    if "/" in name or name.endswith(".toml"):
        path = Path(name)
        path = path / "experiment.toml" if path.is_dir() else path
        if path.is_file():
            return path
        raise ExperimentError([Problem(name, "experiment", "there is no such file", "a path to an experiment.toml")])
    path = EXPERIMENTS / name / "experiment.toml"
    if path.is_file():
        return path
    names = ", ".join(file.parent.name for file in shipped())
    raise ExperimentError([Problem(name, "experiment", "no experiment of this name ships", f"{names}, or a path")])


def load(name: str, *, quick: bool = False, sets: list[str] | None = None, blocks: int | None = None) -> Source:
    """Reads, overrides and checks an experiment. Raises ExperimentError with every fault found."""
    path = find(name)
    try:
        text = path.read_text(encoding="utf-8")
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"line (\d+)", str(error))
        where = f"{path}:{line[1]}" if line else str(path)
        raise ExperimentError(
            [Problem(where, "file", f"not TOML: {error}", "see schema/experiment.schema.json")]
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ExperimentError([Problem(str(path), "file", f"cannot be read: {error}")]) from None
    lines = Lines(path, text)
    if quick:
        quick_part = raw.get("quick", {})
        if not isinstance(quick_part, dict) or not quick_part:
            raise ExperimentError([Problem(str(path), "quick", "there is no [quick] part", "a run without --quick")])
        for key, value in quick_part.items():
            _override(raw, key, value, f"{path}:{line_of(text, ['quick', key])}", lines)
    for item in sets or []:
        key, value = _parse_set(item)
        lines.given[key] = f"--set {redact(item)}"
        _override(raw, key, value, lines.given[key], lines)
    if blocks is not None:
        lines.given["design.blocks"] = f"--blocks {blocks}"
        _override(raw, "design.blocks", blocks, "--blocks", lines)
    if lines.left:
        leave_out(raw, idle(raw) - lines.left)  # a later override may have put something there
    experiment = _validate(raw, lines)
    return Source(path, experiment, _treatments(raw, experiment, lines), quick, changed=bool(sets))


def reload(raw: dict[str, Any], path: Path, quick: bool) -> Source:
    """An experiment as a run's record holds it, every override already in it."""
    lines = Lines(path, "")
    experiment = _validate(raw, lines)
    return Source(path, experiment, _treatments(raw, experiment, lines), quick)


def _parse_set(item: str) -> tuple[str, Any]:
    key, equals, value = item.partition("=")
    if not equals or not key.strip():
        raise ExperimentError(
            [Problem(f"--set {item}", key or "path", "no value", "path=value, such as workload.clients=16")]
        )
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def _override(raw: dict[str, Any], key: str, value: Any, where: str, lines: Lines) -> None:
    """Sets one path. A path that is a factor's takes new levels: a list, or one value that fixes it.

    Of a named factor levels are chosen by their labels, in the order of the file.
    """
    factors = raw.get("factors")
    for number, factor in enumerate(factors if isinstance(factors, list) else []):
        if not isinstance(factor, dict):
            continue
        wanted = value if isinstance(value, list) else [value]
        if factor.get("path") == key:
            idle_before = idle(raw)
            factor["levels"] = wanted
            lines.left |= idle(raw) - idle_before
            return
        named = [level for level in factor.get("levels") or [] if isinstance(level, dict)] if "name" in factor else []
        if named and factor["name"] == key:
            idle_before = idle(raw)
            factor["levels"], lines.chosen[str(number)] = _choose(named, wanted, key, where)
            lines.left |= idle(raw) - idle_before
            lines.given.pop(key, None)  # what is wrong with a level stands in the file
            return
        if any(key in level["set"] for level in named if isinstance(level.get("set"), dict)):
            name = factor["name"]
            allowed = f"a choice of its levels by label, such as --set '{name}=[\"{named[0].get('label')}\"]'"
            raise ExperimentError([Problem(where, key, f"is set by the levels of the factor {name}", allowed)])
    if key in MEASURES and isinstance(raw.get("measure"), dict):
        for other in MEASURES - {key}:
            raw["measure"].pop(other.partition(".")[2], None)
    _set_path(raw, key, value, where)


def _choose(levels: list[dict[str, Any]], wanted: list[Any], key: str, where: str) -> tuple[list[Any], list[int]]:
    labels = [level.get("label") for level in levels]
    for label in wanted:
        if label not in labels:
            raise ExperimentError(
                [Problem(where, key, f"{label!r} is none of its levels", ", ".join(map(repr, labels)))]
            )
    places = [place for place, label in enumerate(labels) if label in wanted]
    return [levels[place] for place in places], places


def _set_path(raw: dict[str, Any], key: str, value: Any, where: str) -> None:
    parts = PATHS.parts(key)
    table = raw
    for part in parts[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ExperimentError([Problem(where, key, f"{part} is a value, not a table", "the path of a setting")])
    table[parts[-1]] = value


def _treatments(raw: dict[str, Any], experiment: Experiment, lines: Lines) -> list[Treatment]:
    treatments: list[Treatment] = []
    faults: list[Problem] = []
    for number, (levels, settings, idle_factors) in enumerate(_rows(raw, experiment, lines), start=1):
        for name in named_only_at_first(settings, raw):
            del settings["environment"]["places"][name]
        try:
            model = Experiment.model_validate(settings)
        except ValidationError as error:
            shown = ", ".join(f"{key} = {show_level(level)}" for key, level in levels.items())
            for problem in problems(error, lines):
                where = next((lines.given[key] for key in levels if key in lines.given), None)
                where = where or _place_of_level(problem.key, levels, experiment, lines)
                found = Problem(where, problem.key, f"{problem.message} (with {shown})", problem.allowed)
                if not any(known.key == found.key for known in faults):
                    faults.append(found)
            continue
        treatments.append(Treatment(f"t{number}", levels, model, idle_factors))
    if faults:
        raise ExperimentError(faults)
    return treatments


def _rows(
    raw: dict[str, Any], experiment: Experiment, lines: Lines
) -> list[tuple[dict[str, Any], Any, tuple[str, ...]]]:
    """Of each treatment its levels, its settings as they are read, and the factors that vary nothing in it.

    Levels of such a factor beyond its first would be the same treatment once more, and are left out.
    """
    is_crossed, blocks = experiment.design.kind != "one factor at a time", experiment.design.blocks
    crossed = math.prod(len(factor.levels) for factor in experiment.factors)
    if is_crossed:
        _refuse_too_many(crossed, 1, COMBINATIONS_MAX, lines)  # too many to be looked at
    rows = []
    for levels in combinations(experiment):
        settings = copy.deepcopy(raw)
        for factor in experiment.factors:
            for path, value in factor.settings_of(levels[factor.key]).items():
                _set_path(settings, path, copy.deepcopy(value), str(lines.path))
        idle_factors = without(experiment.factors, settings)
        first = (factor for factor in experiment.factors if factor.key in idle_factors)
        if all(levels[factor.key] is factor.levels[0] for factor in first):
            rows.append((levels, settings, idle_factors))
    if is_crossed:
        _refuse_too_many(len(rows), blocks, TRIALS_MAX, lines)
    return rows


def _refuse_too_many(treatments: int, blocks: int, trials_max: int, lines: Lines) -> None:
    if treatments * blocks > trials_max:
        what = f"{treatments} treatments in {blocks} blocks"
        allowed = f"at most {TRIALS_MAX} trials: fewer levels, or one factor at a time"
        raise ExperimentError([Problem(lines.where(["factors"]), "factors", what, allowed)])


def _place_of_level(key: str, levels: dict[str, Any], experiment: Experiment, lines: Lines) -> str:
    """Where the level stands that a fault of a treatment comes from; the first factor where none fits."""
    for number, factor in enumerate(experiment.factors):
        for path in factor.settings_of(levels[factor.key]):
            if f"{key}.".startswith(f"{path}.") or f"{path}.".startswith(f"{key}."):
                place = str(factor.levels.index(levels[factor.key]))
                inside = ["set", path] if isinstance(levels[factor.key], NamedLevel) else []
                return lines.where(["factors", str(number), "levels", place, *inside])
    return lines.where(["factors"])


def _validate(raw: dict[str, Any], lines: Lines) -> Experiment:
    unread = read_files(raw, lines)
    try:
        experiment = Experiment.model_validate(raw)
    except ValidationError as error:
        raise ExperimentError(unread + problems(error, lines)) from None
    if unread:
        raise ExperimentError(unread)
    return experiment


def memory_of(experiment: Experiment, host_memory: int) -> int:
    """What "memory" means in relative sizes: the group's limit, or without one all of the host's or the guest's."""
    if (guest := experiment.guest_machine) is not None:
        host_memory = guest.memory_bytes
    if experiment.environment.memory == "unlimited":
        return host_memory
    return size.parse(experiment.environment.memory, host_memory)
