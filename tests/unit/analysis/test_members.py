"""What came to each member of an array: counters by hand, whose sums are known."""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.files import members
from plimsoll.report.files.cells import members_words

Json = dict[str, Any]


def layout(*names: str) -> Json:
    devices = [{"name": name} for name in names]
    return {"parts": {"data": "disk"}, "places": {"disk": {"raid": {"level": 0}, "devices": devices}}}


def counters(before: dict[str, tuple[int, ...]], after: dict[str, tuple[int, ...]]) -> Json:
    """Reads, sectors read, writes, sectors written, as diskstats has them in its columns."""

    def columns(named: dict[str, tuple[int, ...]]) -> Json:
        return {name: [one[0], 0, one[1], 0, one[2], 0, one[3], 0] for name, one in named.items()}

    return {"before": columns(before), "after": columns(after)}


def test_members_are_told_by_their_place_and_not_by_their_name() -> None:
    first = members.moved(
        layout("loop4", "loop3"),
        counters({"loop3": (1, 8, 0, 0), "loop4": (0, 0, 0, 0)}, {"loop3": (1, 8, 5, 80), "loop4": (2, 16, 3, 48)}),
    )
    assert first == [
        {"member": 1, "reads": 2, "read_bytes": 8192, "writes": 3, "written_bytes": 24576},
        {"member": 2, "reads": 0, "read_bytes": 0, "writes": 5, "written_bytes": 40960},
    ]
    second = members.moved(
        layout("loop0", "loop1"),
        counters({"loop0": (0, 0, 0, 0), "loop1": (0, 0, 0, 0)}, {"loop0": (1, 8, 0, 0), "loop1": (0, 0, 1, 8)}),
    )
    both = members.together([first, second])
    assert [(one["reads"], one["writes"], one["written_bytes"]) for one in both] == [(3, 3, 24576), (0, 6, 45056)]
    assert first[0]["reads"] == 2, "what is added up is not changed"
    assert members_words({"members": both}) == "written: 0.0 in 3 | 0.0 in 6; read: 0.0 in 3 | 0.0 in 0"  # type: ignore[typeddict-item]


def test_where_there_is_no_array_nothing_is_told() -> None:
    assert members.moved(None, None) == []
    assert members.moved(layout("loop0"), None) == []
    assert members.moved(layout("loop0", "loop1"), counters({"loop0": (0,) * 4}, {"loop0": (1,) * 4})) == []
    assert members_words({"members": []}) == ""  # type: ignore[typeddict-item]
