"""Files of the record on their way into the guest and out of it, so that what is finished is on the host at once.

The fact that constrains it: either side may be killed between any two instructions. So a file is written beside its
place, synced and renamed, and what makes a trial finished, its trial.json, comes after everything else of it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from plimsoll.run.trial import repeat

Stamp = tuple[int, int]
_LAST = ("trial.json", "events.jsonl", "run.json")
# What a run that goes on reads of the trials before; their tables stay on the host.
_TOLD = ("*.json", "*.jsonl", "trials/*/trial.json", "trials/*/repeat.json")


class Carried:
    """The record inside (`here`) and on the host (`there`); what is new here is carried there."""

    def __init__(self, here: Path, there: Path) -> None:
        self.here, self.there = here, there
        self._known: dict[Path, Stamp] = {}

    def carry_in(self) -> None:
        """What the run needs to know of itself, from the host."""
        for pattern in _TOLD:
            for path in self.there.glob(pattern):
                inside = self.here / path.relative_to(self.there)
                if path.name == repeat.FILE and path.parent.name.isdigit():  # whether it stands is chosen by its tables
                    shutil.copytree(path.parent, inside.parent, dirs_exist_ok=True)
                inside.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, inside)
        (self.here / "trials").mkdir(parents=True, exist_ok=True)
        self._known = self._files_here()

    def carry_out(self) -> None:
        """All that has changed here since it was carried last; what was carried and is no more is removed there."""
        files = self._files_here()
        gone = self._known.keys() - files.keys()
        for path in gone:  # a trial that was set aside has no result from here on, whatever else of it is still there
            if path.name == "trial.json":
                (self.there / path).unlink(missing_ok=True)
        for path in sorted(files, key=lambda file: (file.name in _LAST, file.name == "run.json", str(file))):
            if self._known.get(path) != files[path]:
                _write(self.here / path, self.there / path)
        for path in gone:
            (self.there / path).unlink(missing_ok=True)
        for folder in sorted({path.parent for path in gone}, reverse=True):
            if (self.there / folder).is_dir() and not any((self.there / folder).iterdir()):
                (self.there / folder).rmdir()
        self._known = files

    def _files_here(self) -> dict[Path, Stamp]:
        """The files here, each with what changes when it does; what is being written is not one yet."""
        files = {}
        for folder, _, names in os.walk(self.here):
            for name in names:
                path = Path(folder, name)
                if not name.endswith(".tmp"):
                    told = path.stat()
                    files[path.relative_to(self.here)] = (told.st_size, told.st_mtime_ns)
        return files


def _write(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.carried.tmp")
    try:
        shutil.copyfile(source, beside)
        handle = os.open(beside, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
