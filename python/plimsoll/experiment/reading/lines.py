"""Where a value of an experiment stands: tomllib gives no positions, so the text is looked at again, simply."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Lines:
    """Where a value stands: in the file, or on the command line (`given`, by path)."""

    path: Path
    text: str
    given: dict[str, str] = field(default_factory=dict)
    chosen: dict[str, list[int]] = field(default_factory=dict)  # places in the file of the levels that were chosen
    left: set[str] = field(default_factory=set)  # places of storage that only levels name which were not chosen

    def where(self, parts: list[str]) -> str:
        """ "path:line" of a key, or the option that gave it."""
        key = ".".join(parts)
        if parts[:1] == ["factors"] and parts[2:3] == ["levels"] and len(parts) > 3 and parts[1] in self.chosen:
            parts = [*parts[:3], str(self.chosen[parts[1]][int(parts[3])]), *parts[4:]]
        for path, option in self.given.items():
            if key == path or key.startswith(path + ".") or (path.startswith(key + ".")):
                return option
        return f"{self.path}:{line_of(self.text, parts)}"


def line_of(text: str, parts: list[str]) -> int:
    """The line of a key: of the header or key that shares the longest beginning with it."""
    wanted = ".".join(parts).split(".")
    best, length = 1, 0
    counts: dict[str, int] = {}
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[(\[?)\s*([^\]]+?)\s*\]", line):
            at = table = _numbered(header[2].replace('"', ""), counts, is_array=bool(header[1]))
        elif key := re.match(r"\s*([A-Za-z0-9_\".-]+)\s*=", line):
            at = [*table, *key[1].replace('"', "").split(".")]
        else:
            continue
        shared = min(len(at), len(wanted))
        if shared > length and wanted[:shared] == at[:shared]:
            best, length = number, shared
    return best


def _numbered(name: str, counts: dict[str, int], *, is_array: bool) -> list[str]:
    """A header's path with the places in arrays of tables: "factors.levels" is ["factors", "1", "levels", "0"]."""
    parts = name.split(".")
    path: list[str] = []
    for place, part in enumerate(parts):
        path.append(part)
        key = ".".join(path)
        if is_array and place == len(parts) - 1:
            counts[key] = counts.get(key, -1) + 1
        if key in counts:
            path.append(str(counts[key]))
    return path
