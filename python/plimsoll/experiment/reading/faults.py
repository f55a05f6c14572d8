"""What pydantic found wrong, in the user's words: place, key, what is wrong, what is allowed."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import ValidationError

from plimsoll.experiment.errors import Problem
from plimsoll.experiment.model import Experiment
from plimsoll.experiment.reading.lines import Lines
from plimsoll.experiment.strict import NamedTables

_TYPES = {"int", "str", "bool", "float", "constrained-int", "constrained-float", "Zipf", "Exponential", "Uniform"}
# Tables that are one of several, and the key that says which: pydantic puts that key's value into the place.
_TOLD_BY = {"workload": "name", "schedule": "kind"}


def problems(error: ValidationError, lines: Lines) -> list[Problem]:
    """Every fault once; the faults of the arms of a union are one fault."""
    found: dict[str, Problem] = {}
    for item in error.errors():
        parts = place(item["loc"])
        if item["type"] in ("union_tag_invalid", "union_tag_not_found"):
            parts.append(_TOLD_BY.get(str(parts[-1]), ""))
        key = ".".join(str(part) for part in parts) or "file"
        message, allowed = _in_words(item)
        known = found.get(key)
        if known is not None:
            both = " or ".join(dict.fromkeys(part for part in (known.allowed, allowed) if part))
            found[key] = Problem(known.where, key, known.message, both or None)
            continue
        found[key] = Problem(lines.where([str(part) for part in parts]), key, message, allowed)
    return list(found.values())


def place(location: tuple[Any, ...]) -> list[Any]:
    """A location as the file has it: without the arms of unions."""
    parts = [*location[:1], *location[2:]] if _has_tag(location) else list(location)
    return [part for part in parts if not (isinstance(part, str) and ("[" in part or part in _TYPES))]


def _has_tag(location: tuple[Any, ...]) -> bool:
    return len(location) > 1 and location[0] in _TOLD_BY and location[1] in _arms(location[0])


def _arms(table: str) -> dict[str, Any]:
    """The types a table may have, by the value of the key that tells them apart."""
    key = _TOLD_BY[table]
    return {
        str(tag): model
        for model in _models(Experiment.model_fields[table].annotation)
        if key in model.model_fields
        for tag in get_args(model.model_fields[key].annotation)
    }


def _in_words(item: Any) -> tuple[str, str | None]:
    kind, context = item["type"], item.get("ctx", {})
    value = item.get("input")
    if kind == "extra_forbidden":
        return "there is no such key", ", ".join(_keys_beside(item["loc"])) or None
    if kind == "missing":
        return "is missing", None
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        allowed = ", ".join(_arms(str(item["loc"][-1]))) if item["loc"][-1] in _TOLD_BY else None
        return (f"{context['tag']!r} is not known" if "tag" in context else "is missing"), allowed
    if kind == "literal_error":
        return f"{value!r} is not allowed", context["expected"]
    if kind == "value_error":
        message, _, allowed = str(context["error"]).partition("; allowed: ")
        return message, allowed or None
    message = item["msg"][0].lower() + item["msg"][1:]
    return f"{value!r}: {message}" if not isinstance(value, dict | list) else message, message.replace(
        "input should be ", ""
    )


def _keys_beside(location: tuple[Any, ...]) -> list[str]:
    """The keys that the table of a location allows."""
    models: list[Any] = [Experiment]
    if _has_tag(location):
        models, location = [_arms(location[0])[location[1]]], location[2:]
    is_named = False  # the next part is the user's own name of a table
    for part in place(location)[:-1]:
        if is_named:
            is_named = False
        elif not isinstance(part, int):
            fields = [field for model in models for name, field in _named(model).items() if name == part]
            models = [model for field in fields for model in _models(field.annotation)]
            is_named = any(isinstance(mark, NamedTables) for field in fields for mark in field.metadata)
    return sorted({name for model in models for name in _named(model)})


def _named(model: Any) -> dict[str, Any]:
    """A table's fields by the names that the file uses."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _models(annotation: Any) -> list[Any]:
    """The tables that a type is made of."""
    if hasattr(annotation, "model_fields"):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]
