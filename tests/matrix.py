"""Which combinations of a matrix of parameters the default run takes: each test one of them, chosen by its name.

Six combinations of file system and way of watching ask the same code the same question nearly every time; over the
tests each combination still has its share in every run. Tests that depend on the file system (marked
`every_file_system`) take every one, and the way in turn. `--matrix full` takes all (./test --long, and ./test --since
for a change of what the matrix is about).
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

# A test has either or both of them; what else it is parametrised by is a test of its own.
AXES = ("file_system", "paths")
EVERY_FILE_SYSTEM = "every_file_system"


@dataclass(frozen=True)
class Case:
    """One item: its test with all that is not an axis, and where on each axis it stands."""

    test: str
    place: Mapping[str, int]
    every_file_system: bool = False


def in_turn(cases: Sequence[Case]) -> list[bool]:
    """Whether each case is taken; at least one of every test is, and the same ones in every run."""
    of_test: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        of_test[case.test].append(case)
    taken = {test: _taken(test, group) for test, group in of_test.items()}
    return [_point(case) in taken[case.test] for case in cases]


def _point(case: Case) -> tuple[int, ...]:
    """Where it stands on each axis; 0 on one that it does not have."""
    return tuple(case.place.get(axis, 0) for axis in AXES)


def _taken(test: str, group: Sequence[Case]) -> set[tuple[int, ...]]:
    """The points of one test that run."""
    turn = zlib.crc32(test.encode())
    file_systems, ways = (sorted(set(values)) for values in zip(*map(_point, group), strict=True))
    if group[0].every_file_system:
        return {(place, ways[(turn + number) % len(ways)]) for number, place in enumerate(file_systems)}
    points = list(product(file_systems, ways))
    return {points[turn % len(points)]}
