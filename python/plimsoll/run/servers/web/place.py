"""Where a web server's files are in a trial, and what watches them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from plimsoll.environment.memory import page_cache
from plimsoll.experiment import Experiment
from plimsoll.run.requests import machine_probes
from plimsoll.run.surroundings.arranged import PrivatePlace

SITE: Final = "site"  # the document root, in the data
PROGRAM: Final = "program"  # the folder of the program's files
FILE_SET: Final = "file_set"  # of the document root: what the load asks for (crates/web)
CLASSES: Final = 4
POSTS: Final = "posts"  # in the record, of the log of POSTs; a class of files is there by its name
# What the page-cache probe tells apart: the classes of the set of files, and what the program behind the server writes.
_OWN: Final = [
    *({"class": f"class{number}", "begins": f"class{number}_", "within": "data"} for number in range(CLASSES)),
    {"class": POSTS, "begins": "post.log", "within": "other"},
]


@dataclass
class WebPlace(PrivatePlace):
    """The place of one trial; `processes`: of the server, once it is started."""

    processes: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, place: PrivatePlace) -> WebPlace:
        """The same place as a web server's."""
        return cls(**{one.name: getattr(place, one.name) for one in fields(place)})

    @property
    def site(self) -> Path:
        """The document root."""
        return self.data / SITE

    @property
    def program(self) -> Path:
        """Of users, advertisements and the log of POSTs."""
        return (self.locations.program or self.data) / PROGRAM

    def probes(self, settings: Experiment) -> dict[str, Any] | None:
        """Those that need no database: they are told the folders with their files."""
        wanted, folder = settings.probes, str(self.locations.data)
        trees = [{"path": str(self.site / FILE_SET), "class": "data"}]
        if self.program.is_dir():
            trees.append({"path": str(self.program), "class": "other"})
        return {
            "page_cache": {"trees": trees, "own": _OWN, "scratch": folder} if wanted.page_cache else None,
            "buffer_heads": {"path": folder} if wanted.buffer_heads else None,
            "throttle": {"path": folder} if wanted.throttle else None,
            "nfs_calls": {"trees": trees} if wanted.nfs_calls else None,
            "worker_waits": self.processes if wanted.breakdown and self.processes else None,
            **machine_probes(settings),
        }

    def residency_by_class(self) -> list[dict[str, int]]:
        """What of each class of files is in the page cache."""
        found = [[0, 0] for _ in range(CLASSES)]
        for path in page_cache.files_of(self.site / FILE_SET):
            one = page_cache.residency(path)
            of_class = found[int(path.name.removeprefix("class")[0])]
            of_class[0] += one.resident_bytes
            of_class[1] += one.total_bytes
        return [{"resident_bytes": resident, "total_bytes": total} for resident, total in found]
