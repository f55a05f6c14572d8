"""Files that an experiment names: their text becomes a part of the experiment, so that a record is whole without them.

An experiment that is read back from a record has the texts already and finds no file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plimsoll.experiment.errors import Problem
from plimsoll.experiment.reading.lines import Lines
from plimsoll.experiment.workloads.script import TEXT_MAX


def read_files(raw: dict[str, Any], lines: Lines) -> list[Problem]:
    """Puts the texts into `raw`, in place; returns what could not be read. Wrong types are left to the model."""
    problems: list[Problem] = []
    folder = lines.path.parent
    workload = raw.get("workload")
    if isinstance(workload, dict):
        _scripts(workload.get("files"), folder, ["workload", "files"], lines, problems)
        setup = workload.get("setup")
        if isinstance(setup, str) and workload.get("setup_text") is None:
            text = _text(folder, setup, ["workload", "setup"], lines, problems)
            if text is not None:
                workload["setup_text"] = text
    factors = raw.get("factors")
    for number, factor in enumerate(factors if isinstance(factors, list) else []):
        levels = factor.get("levels") if isinstance(factor, dict) else None
        for place, level in enumerate(levels if isinstance(levels, list) else []):
            where = ["factors", str(number), "levels", str(place)]
            if factor.get("path") == "workload.files":
                _scripts(level, folder, where, lines, problems)
            elif isinstance(level, dict) and isinstance(level.get("set"), dict):
                _scripts(level["set"].get("workload.files"), folder, [*where, "set"], lines, problems)
    return problems


def _scripts(entries: Any, folder: Path, where: list[str], lines: Lines, problems: list[Problem]) -> None:
    for number, entry in enumerate(entries if isinstance(entries, list) else []):
        if isinstance(entry, dict) and isinstance(entry.get("path"), str) and entry.get("text") is None:
            text = _text(folder, entry["path"], [*where, str(number), "path"], lines, problems)
            if text is not None:
                entry["text"] = text


def _text(folder: Path, name: str, where: list[str], lines: Lines, problems: list[Problem]) -> str | None:
    path = folder / name
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for without end
            wrong = "is not a file"
        else:
            with path.open(encoding="utf-8") as file:
                text = file.read(TEXT_MAX + 1)
            wrong = "contains a NUL byte" if "\0" in text else f"is longer than {TEXT_MAX} characters"
            if len(text) <= TEXT_MAX and "\0" not in text:
                return text
    except OSError as error:
        wrong = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        wrong = "is not text in UTF-8"
    allowed = "a file of text; a relative path counts from the experiment's folder"
    problems.append(Problem(lines.where(where), ".".join(where), f"{path} {wrong}", allowed))
    return None
