"""Levels that are never up at once, compared through the reference which all groups of treatments have.

Each of the two is set against the reference in the blocks of its own group. What those blocks have in common with one
another, and the reference's own level, cancel; the difference carries the errors of both comparisons, which are of
different blocks and so independent of one another. Of two levels that have a block in common nothing is changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from plimsoll.analysis.comparing.compare import Pairs
from plimsoll.analysis.comparing.noise import Noise
from plimsoll.record import Run


@dataclass(frozen=True)
class Through:
    """`reference` is the place of that level in an array; `levels` is how many of the first are compared."""

    reference: int
    levels: int
    groups: int

    def noise(self, found: Noise) -> Noise:
        """With the reference's own variance about its mean in each group, not about one of all its blocks."""
        blocks = found.blocks[..., self.reference, self.reference]
        own = found.own.copy()
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = np.where(blocks > self.groups, (blocks - 1) / (blocks - self.groups), 1.0)
        own[..., self.reference] *= factor
        return replace(found, own=own)

    def joined(self, found: np.ndarray, direct: np.ndarray) -> np.ndarray:
        """[..., i, j]: as found where they are `direct`, else the sum of i with the reference and of it with j."""
        return np.where(direct, found, self._legs(found)[0] + self._legs(found)[1])

    def pairs(self, found: Pairs) -> Pairs:
        """With the pairs that have no block in common; their blocks are those of the comparison that has fewer."""
        direct = is_direct(found.blocks)
        one, two = self._legs(found.blocks)
        variance = self.joined(found.sd**2, direct)
        return replace(
            found,
            mean=self.joined(found.mean, direct),
            sd=np.sqrt(variance),
            blocks=np.where(direct, found.blocks, np.minimum(one, two)),
        )

    def _legs(self, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        place = slice(self.reference, self.reference + 1)
        return found[..., :, place], found[..., place, :]


def is_direct(blocks: np.ndarray) -> np.ndarray:
    """[..., i, j]: they have a block in common, or are one level."""
    return (blocks > 0) | np.eye(blocks.shape[-1], dtype=bool)


@dataclass(frozen=True)
class GroupsOfRun:
    """How a run's treatments were up: `count` groups, one a block; without groups a block is all that there is."""

    count: int = 1
    reference: str | None = None

    def replicate(self, block: int) -> int:
        """How many times all treatments had run by the end of a block."""
        return block // self.count

    def through(self, levels: Sequence[str]) -> tuple[list[str], Through | None]:
        """The columns of an array of these levels, with the reference among them, and its place there."""
        if self.reference is None:
            return list(levels), None
        columns = list(dict.fromkeys([*levels, self.reference]))
        return columns, Through(columns.index(self.reference), len(levels), self.count)


def groups_of(run: Run) -> GroupsOfRun:
    """As plan.json has them."""
    known: Mapping[str, Any] | None = run.plan.get("groups")
    return GroupsOfRun(len(known["members"]), str(known["reference"])) if known else GroupsOfRun()
