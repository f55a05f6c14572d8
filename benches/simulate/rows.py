"""A bound, what was found, and whether it holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """One line of the table; `found` and `bound` are shares. `runs` is of how many simulated runs (0: none apply)."""

    section: str
    case: str
    found: float
    bound: float
    at_most: bool
    runs: int

    @property
    def error(self) -> float:
        """Standard error of `found`; 0 where it is no share of runs."""
        return math.sqrt(max(self.found * (1 - self.found), 1e-12) / self.runs) if self.runs else 0.0

    @property
    def holds(self) -> bool:
        """Within the bound, or beyond it by no more than a simulation of so many runs scatters (two errors)."""
        beyond = self.found - self.bound if self.at_most else self.bound - self.found
        return bool(beyond <= 2 * self.error)  # a share may be of NumPy, whose truth no JSON holds

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {**self.__dict__, "error": self.error, "holds": self.holds}

    def text(self) -> str:
        """For people."""
        side = "<=" if self.at_most else ">="
        said = "holds" if self.holds else "BROKEN"
        found = f"{self.found:7.2%} +- {self.error:.2%}"
        return f"{self.section:32} {self.case:46} {found:18} {side} {self.bound:5.1%}  {said}"


@dataclass(frozen=True)
class Section:
    """Rows that are made one case at a time: `cases` are functions of the seed and the number of runs."""

    name: str
    cases: tuple[tuple[str, Callable[[int, int], list[Row]]], ...]
    runs: int

    def rows(self, seed: int, share: float, again: int) -> Iterator[list[Row]]:
        """Each case's rows, with this share of the usual number of runs; those that miss their bound are of other runs,
        `again` times as many."""
        runs = max(20, round(self.runs * share))
        for _, case in self.cases:
            rows = case(seed, runs)
            if not all(row.holds for row in rows):
                asked_again = case(seed + 1, again * runs)
                rows = [row if row.holds else second for row, second in zip(rows, asked_again, strict=True)]
            yield rows
