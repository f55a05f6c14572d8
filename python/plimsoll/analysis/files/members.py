"""What came to each member of an array or mapped device, by the kernel's counters: how a stripe divides requests.

The constraint: numbers of loop devices differ from trial to trial. So members are told by their place in the stack.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from plimsoll.analysis.files.document import Member
from plimsoll.analysis.trial.readings import SECTOR_BYTES

Json = dict[str, Any]
# Places in a line of /proc/diskstats, after the name.
_PLACES: Final = {"reads": 0, "read_bytes": 2, "writes": 4, "written_bytes": 6}


def moved(layout: Json | None, counters: Mapping[str, Any] | None) -> list[Member]:
    """Of one segment, in the order of the members; empty where the files lay on no array.

    `layout`: of trial.json; `counters`: its `member_counters`, or those of a phase.
    """
    before, after = ((counters or {}).get(name) or {} for name in ("before", "after"))
    place = ((layout or {}).get("places") or {}).get(((layout or {}).get("parts") or {}).get("data")) or {}
    found: list[Member] = []
    for number, device in enumerate(place.get("devices") or [], start=1):
        old, new = before.get(device["name"]), after.get(device["name"])
        if old is None or new is None:
            return []
        grew = {key: int(new[at] - old[at]) * (SECTOR_BYTES if key.endswith("bytes") else 1)
                for key, at in _PLACES.items()}  # fmt: skip
        found.append(
            {
                "member": number,
                "reads": grew["reads"],
                "read_bytes": grew["read_bytes"],
                "writes": grew["writes"],
                "written_bytes": grew["written_bytes"],
            }
        )
    return found


def together(trials: Iterable[list[Member]]) -> list[Member]:
    """Counts of several trials added up, member by member."""
    sums: dict[int, Member] = {}
    for members in trials:
        for one in members:
            known = sums.get(one["member"])
            if known is None:
                sums[one["member"]] = one.copy()
            else:
                known["reads"] += one["reads"]
                known["read_bytes"] += one["read_bytes"]
                known["writes"] += one["writes"]
                known["written_bytes"] += one["written_bytes"]
    return [sums[number] for number in sorted(sums)]
