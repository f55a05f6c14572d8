"""Rows of the report's tables: values of the verdict and the record, given their unit."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from plimsoll.record import Run

NONE = "–"


def number(value: float | None, form: str = ",.1f", scale: float = 1.0) -> str:
    return NONE if value is None else format(value * scale, form)


def trials_words(numbers: list[int]) -> str:
    return f"trial {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} trials"


def interval(mean: Mapping[str, Any] | None, form: str = ",.1f", scale: float = 1.0) -> str:
    """value [low, high]; "at least value" where a percentile is unbounded in some block, or a rate "at most"."""
    if not mean:
        return NONE
    text = format(mean["value"] * scale, form)
    if mean.get("unbounded") or mean.get("bound"):
        return f"{'at most' if mean.get('stood_still') else 'at least'} {text}"
    if mean.get("low") is None:
        return text
    return f"{text} [{format(mean['low'] * scale, form)}, {format(mean['high'] * scale, form)}]"


def short_form(value: float | None) -> str:
    """A form that shows about three significant digits."""
    magnitude = abs(value or 0)
    return ",.0f" if magnitude >= 100 else ".1f" if magnitude >= 10 else ".2f"


def percent(value: float | None) -> str:
    """By tenths; below one by hundredths, since the rarest kind of a mix is 0.15 % of it."""
    return NONE if value is None else f"{value:{'.2%' if 0 < abs(value) < 0.01 else '.1%'}}"


def flat(tree: Any, prefix: str = "") -> list[tuple[str, str]]:
    """A nested document as rows of path and value."""
    if isinstance(tree, dict):
        return [row for key, value in tree.items() for row in flat(value, f"{prefix}{'.' if prefix else ''}{key}")]
    if isinstance(tree, list):
        if all(not isinstance(item, dict | list) for item in tree):
            return [(prefix, ", ".join(str(item) for item in tree) or "none")]
        return [row for index, value in enumerate(tree) for row in flat(value, f"{prefix}[{index}]")]
    return [(prefix, "unknown" if tree is None else str(tree))]


def durability(run: Run) -> list[tuple[str, str]]:
    """The settings that decide durability, with every value that was in force in some trial."""
    seen: dict[str, list[str]] = {}
    for trial in run.trials:
        told = dict((trial.data.get("server") or {}).get("durability") or {})
        for name, place in ((trial.data.get("layout") or {}).get("places") or {}).items():
            if export := (place.get("nfs") or {}).get("export"):
                told[f"NFS export of {name}"] = "async (unsafe)" if "async" in export else "sync"
        for key, value in told.items():
            values = seen.setdefault(str(key), [])
            if str(value) not in values:
                values.append(str(value))
    return [(key, " and ".join(values)) for key, values in seen.items()]


def server_settings(run: Run) -> list[tuple[str, str]]:
    """Settings that are not default: the value, or how many values where it was varied."""
    seen: dict[str, list[str]] = {}
    for trial in run.trials:
        server = trial.data.get("server") or {}
        for key, value in {"version": server.get("version"), **(server.get("settings") or {})}.items():
            values = seen.setdefault(str(key), [])
            if value is not None and str(value) not in values:
                values.append(str(value))
    return [(key, ", ".join(values)) for key, values in seen.items() if values]


def when(epoch_ns: int | None) -> str:
    """A point in time, in UTC."""
    if not epoch_ns:
        return NONE
    return datetime.fromtimestamp(epoch_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")
