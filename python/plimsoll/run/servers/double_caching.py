"""Double caching: which parts of each relation are in the server's cache, in Linux's page cache, and in both.

Read just before and just after the measured segment, outside the exact readings of the counters and without a
transaction in the database under test. What cannot be had is absent, with why; the trial goes on.

The definition: a block of the server (8 KiB) counts in both caches with those of its pages (4 KiB) that are resident,
when the block is in the server's cache. So `both_bytes` is memory that holds the same bytes twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from plimsoll.environment.memory import page_cache
from plimsoll.environment.memory.page_cache import PageMap
from plimsoll.run.trial.log import TrialLog
from plimsoll.target import Connection, buffers
from plimsoll.target.buffers import Buffers, Layout, Relation

if TYPE_CHECKING:
    import numpy as np

OTHERS = Relation("(catalogs and others)", "other")
NOT_ASKED = "switched off: probes.double_caching is false"
EXISTING = "existing server: no extension is created in it, and where its files are is not known"


@dataclass
class _Sums:
    bytes: int = 0
    server_bytes: int = 0
    page_cache_bytes: int = 0
    both_bytes: int = 0

    def add(self, other: _Sums) -> None:
        """Adds another's."""
        self.bytes += other.bytes
        self.server_bytes += other.server_bytes
        self.page_cache_bytes += other.page_cache_bytes
        self.both_bytes += other.both_bytes


@dataclass
class Watch:
    """Reads both caches of one private server, whose cluster is in `data`."""

    connection: Connection
    data: Path
    layout: Layout | None = None
    absent: str | None = None

    def prepare(self, *, wanted: bool = True) -> None:
        """Creates the extension and learns the names of the files; before the counters and the caches matter."""
        if not wanted:
            self.absent = NOT_ASKED
            return
        try:
            self.absent = buffers.refusal(self.connection)
            if self.absent is None:
                self.layout = buffers.read_layout(self.connection)
        except psycopg.Error as error:
            self.absent = f"the server refused: {_first_line(error)}"

    def read(self) -> dict[str, Any] | None:
        """One reading as trial.json has it; None when it cannot be had, and `absent` says why."""
        if self.layout is None:
            return None
        started = time.monotonic_ns()
        try:
            # The page cache first: looking at it takes no memory of the server's group, asking the server does.
            files = list(_page_maps(self.data / self.layout.folder))
            held = buffers.read_buffers(self.connection, self.layout.database)
        except (psycopg.Error, OSError) as error:
            self.absent = f"a reading failed: {_first_line(error)}"
            return None
        return {**combine(self.layout, held, files), "read_ns": time.monotonic_ns() - started}

    @contextmanager
    def around(self, log: TrialLog) -> Iterator[None]:
        """Reads before and after what is done inside; after it only when it succeeded."""
        readings: dict[str, Any] = {"before_measure": self.read(), "after": None}
        log.facts["double_caching"] = {**readings, "absent": self.absent}
        yield
        log.facts["double_caching"] = {**readings, "after": self.read(), "absent": self.absent}


def none(why: str) -> dict[str, Any]:
    """The `double_caching` of a trial where it is not read."""
    return {"before_measure": None, "after": None, "absent": why}


def _page_maps(folder: Path) -> Iterator[tuple[str, PageMap]]:
    """The files of a database with their pages. One that vanishes meanwhile (a server at work) is left out."""
    for file in sorted(folder.iterdir()):
        if not file.is_file():
            continue
        try:
            yield file.name, page_cache.page_map(file)
        except FileNotFoundError:
            continue


def combine(layout: Layout, held: Buffers, files: Iterable[tuple[str, PageMap]]) -> dict[str, Any]:
    """Sums by relation. The main forks of the schema under test by name; all else of the database is one relation.

    Files are found below the database's own folder: relations in other tablespaces, which a private server has none
    of, would be missing from the page cache's side.
    """
    sums: dict[Relation, _Sums] = {}
    for (node, fork), blocks in held.blocks.items():
        relation = _named(layout, node, fork)
        sums.setdefault(relation, _Sums()).add(_Sums(server_bytes=len(blocks) * layout.block_bytes))
    for name, pages in files:
        part = buffers.parse_file(name)
        of_file = _Sums(bytes=pages.size_bytes, page_cache_bytes=pages.resident_bytes)
        relation = OTHERS
        if part is not None:
            (node, fork), segment = part
            relation = _named(layout, node, fork)
            if (node, fork) in held.blocks:
                inside = held.blocks[node, fork] - segment * layout.segment_blocks
                inside = inside[(inside >= 0) & (inside < layout.segment_blocks)]
                of_file.both_bytes = both_bytes(pages.resident, inside, layout.block_bytes)
        sums.setdefault(relation, _Sums()).add(of_file)
    total = _Sums()
    for of_relation in sums.values():
        total.add(of_relation)
    listed = sorted(sums.items(), key=lambda item: (item[0] == OTHERS, -item[1].bytes, item[0].name))
    return {
        "block_bytes": layout.block_bytes,
        "source": "mincore",
        "relations": [
            {"relation": relation.name, "kind": relation.kind, **vars(of_relation)}
            for relation, of_relation in listed
            if of_relation.bytes or of_relation.server_bytes
        ],
        "total": vars(total),
        "elsewhere_bytes": held.elsewhere * layout.block_bytes,
    }


def both_bytes(
    resident: np.ndarray, blocks: np.ndarray, block_bytes: int, page_bytes: int = page_cache.PAGE_BYTES
) -> int:
    """Bytes of a file's `blocks` in the server's cache that the page cache holds too (`resident`: one bool a page).

    Blocks beyond the file's end are in no page cache: the file was cut, or grew after its pages were read.
    """
    import numpy as np

    if page_bytes > block_bytes:  # arm64 has pages of 16 and 64 KiB: each holds several blocks
        resident, page_bytes = np.repeat(resident, page_bytes // block_bytes), block_bytes
    pages_each = block_bytes // page_bytes
    whole = np.zeros(-(-len(resident) // pages_each) * pages_each, bool)
    whole[: len(resident)] = resident
    pages = whole.reshape(-1, pages_each).sum(axis=1)
    return int(pages[blocks[blocks < len(pages)]].sum()) * page_bytes


def _named(layout: Layout, node: int, fork: int) -> Relation:
    return layout.relations.get(node, OTHERS) if fork == buffers.MAIN else OTHERS


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
