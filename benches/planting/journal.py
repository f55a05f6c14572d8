"""What was planted, a line each, on disk before anything of it is judged; and the soak's own way to say when.

The constraint: it is written by whoever planted and read by whoever judges, and nothing else passes between them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fault:
    """One fault as it was planted.

    `round`, `attempt`: which was under way; `pid`: of what was killed; `text`: of what was written to the kernel's log.
    """

    what: str
    epoch_ns: int
    round: str
    attempt: int
    pid: int | None = None
    text: str | None = None


def write(path: Path, fault: Fault) -> None:
    """Adds a line, on disk when this returns."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(fault)) + "\n")
        file.flush()
        os.fsync(file.fileno())


def read(path: Path) -> list[Fault]:
    """All of them, in the order in which they were planted; none of a file that is not there."""
    lines: Iterable[str] = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Fault(**json.loads(line)) for line in lines]
