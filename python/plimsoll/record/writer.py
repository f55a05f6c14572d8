"""Writer of the files the run stage owns: run.json, plan.json, trial.json, events.jsonl and their neighbours.

The machine may lose power at any point: a JSON file is written beside its place, synced and renamed, so that a reader
finds the old one or the new one and never half of one; an event is one appended, synced line.
"""

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plimsoll.record.format import FORMAT
from plimsoll.record.redaction import redact

Json = dict[str, Any]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Replace a file so that it survives a power loss whole."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def sync_tree(folder: Path) -> None:
    """What others have written below a folder is on disk when this returns; nothing where there is no such folder."""
    for place, _, names in os.walk(folder):
        for name in names:
            handle = os.open(Path(place, name), os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
        _sync_folder(Path(place))


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Replace a JSON file. NaN is refused: missing is null."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def create_run(folder: Path, run: Json, plan: Json, experiment: Json | None = None) -> Path:
    """A new run folder with its plan; run.json comes last, so that a folder that has one is whole."""
    folder = Path(folder)
    (folder / "trials").mkdir(parents=True, exist_ok=True)
    write_json(folder / "plan.json", plan)
    if experiment is not None:
        write_json(folder / "experiment.json", experiment)
    write_run(folder, run)
    return folder


def write_run(folder: Path, run: Json) -> None:
    """run.json, with the format and with passwords taken out of the command."""
    command = run.get("command")
    hidden = [redact(str(word)) for word in command] if isinstance(command, list) else command
    write_json(Path(folder) / "run.json", {"format": FORMAT, **run, "command": hidden})


def trial_folder(folder: Path, number: int) -> Path:
    return Path(folder) / "trials" / f"{number:04d}"


def write_trial(folder: Path, trial: Json) -> Path:
    """trial.json of the trial it numbers; makes the trial's folder where needed."""
    place = trial_folder(folder, int(trial["number"]))
    place.mkdir(parents=True, exist_ok=True)
    write_json(place / "trial.json", trial)
    return place


def append_event(folder: Path, event: str, **fields: Any) -> None:
    """One line in events.jsonl, on disk before this returns."""
    line = {"epoch_ns": time.time_ns(), "t_ns": time.monotonic_ns(), "event": event, **fields}
    data = (json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8", "backslashreplace")
    handle = os.open(Path(folder) / "events.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(handle, data)
        os.fsync(handle)
    finally:
        os.close(handle)
