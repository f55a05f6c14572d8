"""Treatments whose servers cannot all be up at once, in groups that overlap in one of them: the reference. Pure.

What is never up together is compared through the reference, which is a member of every group.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Groups:
    """Ids of treatments; `reference` is a member of each group. `why` says why they are not up all at once."""

    reference: str
    members: tuple[tuple[str, ...], ...]
    why: str

    def document(self) -> Json:
        """As plan.json has them."""
        return {"reference": self.reference, "members": [list(one) for one in self.members], "why": self.why}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Groups:
        """From plan.json."""
        return cls(document["reference"], tuple(tuple(one) for one in document["members"]), document["why"])


def dealt(sizes: Mapping[str, int], reference: str, count: int, why: str) -> Groups:
    """So many groups of about the same size: each treatment, the largest first, goes where the least is.

    Treatments of one size are dealt out in turn, so that no group has two more than another.
    """
    others = [one for one in sizes if one != reference]
    places: list[list[str]] = [[] for _ in range(count)]
    for one in sorted(others, key=lambda name: -sizes[name]):
        least = min(places, key=lambda place: (sum(sizes[member] for member in place), len(place)))
        least.append(one)
    order = list(sizes)
    members = (sorted([reference, *place], key=order.index) for place in places)
    return Groups(reference, tuple(tuple(one) for one in members), why)


def fewest(sizes: Mapping[str, int], reference: str, why: str, fits: Callable[[Groups], bool]) -> Groups | None:
    """The fewest groups that all fit; None where not even two servers at a time do."""
    found = (dealt(sizes, reference, count, why) for count in range(2, len(sizes)))
    return next((groups for groups in found if fits(groups)), None)
