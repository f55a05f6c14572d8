"""The agent's verb `watch` around a known piece of work, and what must hold of its result whatever the work was."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from page_oracle import BLOCK_PAGES, PAGE, File, resident
from watching import Watching

from plimsoll.record.npy import read_table

# Pages, unseen by us, in one test: a large folio goes as a whole, and read-ahead of 128 KiB makes some of 64 pages.
EVICTED_BY_OTHERS = 64
MAY_FALL = ("unsettled_pages", "read_calls_waited")  # put right when a range becomes known
MAY_BE_LATE = ("evicted_pages", "ahead_evicted_pages")
_MISSED = ("read_missed_pages", "fault_missed_pages")
_ADDED = (*_MISSED, "readahead_pages", "prefetch_pages", "write_pages", "other_pages", "unsettled_pages")
COLUMNS = (
    *("read_calls", "read_pages", "read_blocks", "read_missed_pages", "read_missed_blocks", "read_calls_missed"),
    *("read_calls_waited", "fault_pages", "fault_missed_pages", "readahead_pages", "prefetch_pages"),
    *("ahead_used_pages", "ahead_mapped_pages", "ahead_evicted_pages", "write_pages", "other_pages"),
    *("unsettled_pages", "added_pages", "evicted_pages", "dropped_pages"),
)


def refaults() -> int:
    """Pages of files that came back after they were evicted, of the whole machine, as the kernel counts them."""
    with contextlib.suppress(OSError):  # what each CPU has counted by itself is added up; some kernels refuse it
        Path("/proc/sys/vm/stat_refresh").read_bytes()
    lines = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return next(int(count) for name, count in lines if name == "workingset_refault_file")


class Watch(Watching):
    """`root` gets the folders data (class "data"), data/pg_wal (class "wal") and scratch; `with` starts and ends it."""

    probe = "page_cache"

    def __init__(self, root: Path, out: Path, *, requests: str = "auto", programs: str = "auto") -> None:
        super().__init__()
        self.root, self.out = root, out
        self.data, self.wal, self.scratch = root / "data", root / "data/pg_wal", root / "scratch"
        self.requests, self.programs = requests, programs
        self.may_lose = False  # set by a test that asks for more than the probe can keep
        self.begun, self.ending = self._look_first, self._look_last
        # Resident pages by class: before and after it began to watch, and before and after it ended.
        self._there: list[Counter[str]] = []
        self._refaults: list[int] = []
        for folder in (self.wal, self.scratch):
            folder.mkdir(parents=True, exist_ok=True)

    def request(self, **changed: Any) -> dict[str, Any]:
        """What the agent is asked for, some of the probe's fields changed."""
        trees = [{"path": str(self.data), "class": "data"}, {"path": str(self.wal), "class": "wal"}]
        probe = {"trees": trees, "scratch": str(self.scratch), "requests": self.requests, "programs": self.programs}
        return {"out": str(self.out), "interval_ms": 100, "probes": {"page_cache": probe | changed}}

    def introduce(self, *files: File) -> None:
        """Classic tracepoints know a file from its first read on; BTF tracepoints need nothing of the kind."""
        if self.watching["programs"] == "tracepoint":
            for file in files:
                file.introduce()

    def __enter__(self) -> Self:
        self._there, self._refaults = [self._resident()], [refaults()]
        return super().__enter__()

    def _look_first(self) -> None:
        self._there.append(self._resident())

    def _look_last(self) -> None:
        self._there.append(self._resident())

    def _resident(self) -> Counter[str]:
        """Pages that cachestat finds, by class."""
        found: dict[tuple[int, int], tuple[str, int]] = {}
        for path in self.data.rglob("*"):
            if path.is_file() and not path.is_symlink():
                with path.open("rb", buffering=0) as file:
                    status = os.fstat(file.fileno())
                    name = "wal" if self.wal in path.parents else "data"
                    found[status.st_dev, status.st_ino] = name, resident(file.fileno())
        pages: Counter[str] = Counter()
        for name, count in found.values():
            pages[name] += count
        return pages

    # What it found

    def found(self, name: str = "data") -> dict[str, int]:
        """The totals of a class."""
        return self.result["totals"][name]

    @property
    def lost(self) -> dict[str, int]:
        """What was lost, if anything: the figures are lower bounds then."""
        return {what: count for what, count in self.result["lost"].items() if count}

    @property
    def absent(self) -> set[str]:
        return set(self.result.get("absent", {}))

    def ahead_unused(self, name: str = "data") -> int:
        """Brought ahead and neither asked for, mapped nor gone yet."""
        found = Counter(self.found(name))
        return (
            found["readahead_pages"]
            + found["prefetch_pages"]
            - found["ahead_used_pages"]
            - found["ahead_mapped_pages"]
            - found["ahead_evicted_pages"]
        )

    def _judge(self) -> None:
        result = self.result
        self._there.append(self._resident())
        self._refaults.append(refaults())
        assert result["status"] == "on" and result["reason"] is None, result
        assert result["self_test"]["passed"] is True
        assert result["page_bytes"] == PAGE and result["block_bytes"] == BLOCK_PAGES * PAGE
        assert result["requests"] in (("get_pages", "system_calls") if self.requests == "auto" else (self.requests,))
        assert result["programs"] in (("tp_btf", "tracepoint") if self.programs == "auto" else (self.programs,))
        assert self.may_lose or not self.lost, result["lost"]
        for column, reason in result.get("absent", {}).items():
            assert reason and column in COLUMNS
        for name in result["classes"]:
            self._adds_up(name)
        self._series_ends_with_the_totals()
        if not self.lost:
            self._what_came_is_there_or_gone()

    def _what_came_is_there_or_gone(self) -> None:
        """The account closes against cachestat, whatever others evicted. It began and ended somewhere between looks."""
        there = [sum(one.values()) for one in self._there]
        totals = [self.found(name) for name in self.result["classes"]]
        came = sum(one["added_pages"] - one["evicted_pages"] - one["dropped_pages"] for one in totals)
        before, begun, ending, ended = there
        assert begun + came <= ending and ended <= before + came, (there, totals)

    def _lost_unseen(self, name: str, counts: Mapping[str, int]) -> int:
        """Pages of a class that should be there by these counts and are not: others evicted them, most likely in the
        time that the agent took to begin or to end."""
        change = counts.get("added_pages", 0) - counts.get("evicted_pages", 0) - counts.get("dropped_pages", 0)
        return max(0, self._there[0][name] + change - self._there[-1][name])

    def _adds_up(self, name: str) -> None:
        found = self.found(name)
        assert set(found) == set(COLUMNS) - self.absent
        assert min(found.values()) >= 0, found
        added = sum(found.get(column, 0) for column in _ADDED)
        identity = self.result["identity"][name]
        assert found["added_pages"] == added == identity["added"] == identity["accounted"], (name, found, identity)
        assert identity["holds"] is True
        for part, whole in (
            ("read_missed_pages", "read_pages"),
            ("read_missed_blocks", "read_blocks"),
            ("read_calls_missed", "read_calls"),
            ("fault_missed_pages", "fault_pages"),
        ):
            assert found.get(part, 0) <= found.get(whole, 0), (name, part, found)
        assert found["read_calls_missed"] + found["read_calls_waited"] <= found["read_calls"]
        if not self.absent & {"ahead_used_pages", "ahead_mapped_pages", "ahead_evicted_pages"}:
            assert self.ahead_unused(name) >= 0, (name, found)

    def _series_ends_with_the_totals(self) -> None:
        table = read_table(self.out / "page_cache.npy")
        assert table is not None and {"t_ns", "class"} <= set(table.dtype.names)
        assert set(table.dtype.names) - {"t_ns", "class"} == set(COLUMNS) - self.absent
        for index, name in enumerate(self.result["classes"]):
            gone = max(0, self._there[-2][name] - self._there[-1][name])
            rows = table[table["class"] == index]
            assert len(rows) > 0 and (rows["t_ns"][1:] > rows["t_ns"][:-1]).all()
            for column, total in self.found(name).items():
                if column not in MAY_FALL:
                    assert (rows[column][1:] >= rows[column][:-1]).all(), (name, column)
                # The totals are what came since the first row, and are taken after the last one; only what others evict
                # can come before the one or after the other.
                late = EVICTED_BY_OTHERS + gone if column in MAY_BE_LATE else 0
                grown = int(rows[column][-1] - rows[column][0])
                assert column in MAY_BE_LATE or rows[column][0] == 0, (name, column)
                assert 0 <= total - grown <= late, f"{name}: {column}: {total}, by its rows {grown}, late {late}"

    def counted(self, counts: Mapping[str, int], name: str = "data", *, open_columns: tuple[str, ...] = ()) -> None:
        """The class counted exactly this, and nothing in any other column but those left open.

        What somebody else evicts between two looks of ours (traps.md, 2) only the probe sees: few pages, but for those
        that are missing at the end, and those that the kernel, too, has seen come back. The other columns may differ by
        that and no more, but for `dropped_pages`, which eviction does not touch.
        """
        unseen = self.found(name)["evicted_pages"] - counts.get("evicted_pages", 0)
        at_most = EVICTED_BY_OTHERS + self._lost_unseen(name, counts) + self._refaults[-1] - self._refaults[0]
        assert 0 <= unseen <= at_most, f"{name}: evicted {self.found(name)}, seen {dict(counts)}, at most {at_most}"
        columns = set(COLUMNS) - self.absent - set(open_columns) - {"evicted_pages"}
        expected = {column: counts.get(column, 0) for column in columns}
        found = {column: self.found(name)[column] for column in columns}
        allowed = {column: 0 if column == "dropped_pages" else unseen for column in columns}
        if "ahead_evicted_pages" in columns:  # which of those evicted had been read ahead, only the probe sees
            allowed["ahead_evicted_pages"] = self.found(name)["evicted_pages"]
        differing = {
            each: (expected[each], found[each]) for each in columns if abs(expected[each] - found[each]) > allowed[each]
        }
        assert not differing, f"{name}: expected and found differ: {differing}\nfound {self.found(name)}"

    def counted_nothing(self, *names: str) -> None:
        """Nothing at all happened in these classes."""
        for name in names:
            self.counted({}, name)
