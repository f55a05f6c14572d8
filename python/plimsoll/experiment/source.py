"""Reading experiment files: TOML, values from the command line, and faults named by file, line and key.

tomllib gives no positions, so the line of a key is found by a second, simple look at the text.
"""

from __future__ import annotations

import copy
import math
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from plimsoll.experiment import size
from plimsoll.experiment.design import Treatment, combinations, show_level
from plimsoll.experiment.errors import ExperimentError, Problem
from plimsoll.experiment.model import Experiment
from plimsoll.record.redaction import redact

TRIALS_MAX = 10_000
EXPERIMENTS = Path(__file__).resolve().parents[3] / "experiments"


@dataclass
class Lines:
    """Where a value stands: in the file, or on the command line (`given`, by path)."""

    path: Path
    text: str
    given: dict[str, str] = field(default_factory=dict)

    def where(self, parts: list[str]) -> str:
        """ "path:line" of a key, or the option that gave it."""
        key = ".".join(parts)
        for path, option in self.given.items():
            if key == path or key.startswith(path + ".") or (path.startswith(key + ".")):
                return option
        return f"{self.path}:{_line_of(self.text, parts)}"


@dataclass(frozen=True)
class Source:
    """An experiment as read: the resolved model, and one resolved model a treatment."""

    path: Path
    experiment: Experiment
    treatments: list[Treatment]
    quick: bool
    changed: bool = False  # by --set: no longer the experiment that ships under this name


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
            _override(raw, key, value, str(path))
    for item in sets or []:
        key, value = _parse_set(item)
        lines.given[key] = f"--set {redact(item)}"
        _override(raw, key, value, lines.given[key])
    if blocks is not None:
        lines.given["design.blocks"] = f"--blocks {blocks}"
        _override(raw, "design.blocks", blocks, "--blocks")
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


def _override(raw: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Sets one path. A path that is a factor's takes new levels: a list, or one value that fixes it."""
    factors = raw.get("factors")
    for factor in factors if isinstance(factors, list) else []:
        if isinstance(factor, dict) and factor.get("path") == key:
            factor["levels"] = value if isinstance(value, list) else [value]
            return
    alternative = {"measure.seconds": "transactions", "measure.transactions": "seconds"}.get(key)
    if alternative and isinstance(raw.get("measure"), dict):
        raw["measure"].pop(alternative, None)
    _set_path(raw, key, value, where)


def _set_path(raw: dict[str, Any], key: str, value: Any, where: str) -> None:
    parts = key.split(".")
    # vm.* names hold dots of their own: environment.sysctl.vm.swappiness is one key inside sysctl.
    if parts[:2] == ["environment", "sysctl"] and len(parts) > 3:
        parts = [*parts[:2], ".".join(parts[2:])]
    table = raw
    for part in parts[:-1]:
        table = table.setdefault(part, {})
        if not isinstance(table, dict):
            raise ExperimentError([Problem(where, key, f"{part} is a value, not a table", "the path of a setting")])
    table[parts[-1]] = value


def _treatments(raw: dict[str, Any], experiment: Experiment, lines: Lines) -> list[Treatment]:
    count = math.prod(len(factor.levels) for factor in experiment.factors)
    if experiment.design.kind == "full factorial" and count * experiment.design.blocks > TRIALS_MAX:
        what = f"{count} treatments in {experiment.design.blocks} blocks"
        allowed = f"at most {TRIALS_MAX} trials: fewer levels, or one factor at a time"
        raise ExperimentError([Problem(lines.where(["factors"]), "factors", what, allowed)])
    treatments = []
    problems: list[Problem] = []
    for number, levels in enumerate(combinations(experiment), start=1):
        settings = copy.deepcopy(raw)
        for factor_path, level in levels.items():
            _set_path(settings, factor_path, level, str(lines.path))
        try:
            model = Experiment.model_validate(settings)
        except ValidationError as error:
            shown = ", ".join(f"{key} = {show_level(level)}" for key, level in levels.items())
            for problem in _problems(error, lines):
                where = next((lines.given[key] for key in levels if key in lines.given), lines.where(["factors"]))
                found = Problem(where, problem.key, f"{problem.message} (with {shown})", problem.allowed)
                if not any(known.key == found.key for known in problems):
                    problems.append(found)
            continue
        treatments.append(Treatment(f"t{number}", levels, model))
    if problems:
        raise ExperimentError(problems)
    return treatments


def _validate(raw: dict[str, Any], lines: Lines) -> Experiment:
    try:
        return Experiment.model_validate(raw)
    except ValidationError as error:
        raise ExperimentError(_problems(error, lines)) from None


def _problems(error: ValidationError, lines: Lines) -> list[Problem]:
    found: dict[str, Problem] = {}
    for item in error.errors():
        parts = [part for part in item["loc"] if not (isinstance(part, str) and _is_union_arm(part))]
        key = ".".join(str(part) for part in parts) or "file"
        message, allowed = _in_words(item, parts)
        known = found.get(key)
        if known is not None:
            # One key, several types allowed: the faults of the arms of a union are one fault.
            both = " or ".join(dict.fromkeys(part for part in (known.allowed, allowed) if part))
            found[key] = Problem(known.where, key, known.message, both or None)
            continue
        found[key] = Problem(lines.where([str(part) for part in parts]), key, message, allowed)
    return list(found.values())


def _is_union_arm(part: str) -> bool:
    return "[" in part or part in {"int", "str", "bool", "float", "Zipf", "constrained-int"}


def _in_words(item: Any, parts: list[Any]) -> tuple[str, str | None]:
    kind, context = item["type"], item.get("ctx", {})
    value = item.get("input")
    if kind == "extra_forbidden":
        return "there is no such key", ", ".join(_keys_beside(parts)) or None
    if kind == "missing":
        return "is missing", None
    if kind == "literal_error":
        return f"{value!r} is not allowed", context["expected"]
    if kind == "value_error":
        message, _, allowed = str(context["error"]).partition("; allowed: ")
        return message, allowed or None
    message = item["msg"][0].lower() + item["msg"][1:]
    return f"{value!r}: {message}" if not isinstance(value, dict | list) else message, message.replace(
        "input should be ", ""
    )


def _keys_beside(parts: list[Any]) -> list[str]:
    """The keys that the table of `parts` allows."""
    model: Any = Experiment
    for part in parts[:-1]:
        if isinstance(part, int):
            continue
        field = getattr(model, "model_fields", {}).get(part)
        annotation = getattr(field, "annotation", None)
        arguments = getattr(annotation, "__args__", ())
        model = next((one for one in (annotation, *arguments) if hasattr(one, "model_fields")), None)
        if model is None:
            return []
    return sorted(getattr(model, "model_fields", {}))


def _line_of(text: str, parts: list[str]) -> int:
    """The line of a key: the table's header, then the key below it; the nearest of them that exists."""
    names = [part for part in parts if not part.isdigit()]
    wanted = [int(part) for part in parts if part.isdigit()]
    best = 1
    table: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
            name = header[1]
            seen[name] = seen.get(name, -1) + 1
            table = name.split(".") if not wanted or seen[name] == wanted[0] else ["?"]
            if names[: len(table)] == table:
                best = number
        elif (key := re.match(r"\s*([A-Za-z0-9_\".-]+)\s*=", line)) and [*table, key[1].strip('"')] in (
            names[: len(table) + 1],
            [*names[: len(table)], ".".join(names[len(table) :])],
        ):
            best = number
    return best


def memory_of(experiment: Experiment, host_memory: int) -> int:
    """What "memory" means in relative sizes: the group's limit, or the host's memory without one."""
    if experiment.environment.memory == "unlimited":
        return host_memory
    return size.parse(experiment.environment.memory, host_memory)
