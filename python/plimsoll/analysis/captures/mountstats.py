"""The client's own account of its calls, /proc/self/mountstats before and after: by operation, and beside a capture's.

The fact that constrains it: the kernel counts calls by its own names, of which several are one operation on the wire of
NFS 4 (FSINFO and SERVER_CAPS are GETATTR there), and times in whole milliseconds, summed: means are told, never
percentiles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypedDict

_DEVICE = re.compile(r"device (\S+) mounted on (\S+) with fstype (nfs4?) statvers=(\d+\.\d+)$")
_PROGRAM = re.compile(r"RPC iostats version:\s+(\d+\.\d+)\s+p/v:\s+(\d+)/(\d+)")
_OPERATION = re.compile(r"\s*([A-Z][A-Z0-9_]*):((?:\s+\d+)+)$")
_OCTAL = re.compile(r"\\([0-7]{3})")
COLUMNS = ("calls", "sent", "timeouts", "bytes_sent", "bytes_received", "queue_ms", "rtt_ms", "execute_ms")
# Bytes that programs asked for, by the page cache and past it; that the server was asked for; pages.
MOVED = ("read", "written", "read_direct", "written_direct", "from_server", "to_server", "pages_read", "pages_written")
# What the kernel's names of NFS 4 are on the wire, where that is another one: the main operation of their compounds.
ON_THE_WIRE = {
    **dict.fromkeys(("FSINFO", "PATHCONF", "STATFS", "SERVER_CAPS", "LOOKUP_ROOT", "GETACL"), "GETATTR"),
    "OPEN_NOATTR": "OPEN",
    "SYMLINK": "CREATE",
    "SETACL": "SETATTR",
    "FS_LOCATIONS": "LOOKUP",
    "FSID_PRESENT": "GETFH",
}


class MountstatsError(ValueError):
    """A text that is not of mountstats, or two that do not belong together."""


class OperationGrown(TypedDict):
    """What an operation grew by between two readings."""

    calls: int
    retransmissions: int
    timeouts: int
    errors: int | None  # None of kernels that do not count them (before iostats 1.1)
    bytes_sent: int
    bytes_received: int
    queue_ms_mean: float | None
    rtt_ms_mean: float | None
    execute_ms_mean: float | None


class Compared(TypedDict):
    """An operation by both accounts; `difference`: the capture's calls over the client's."""

    operation: str
    client_calls: int
    capture_calls: int
    difference: int
    client_retransmissions: int
    capture_retransmissions: int


@dataclass(frozen=True)
class Mount:
    """A mount of NFS as one reading has it."""

    device: str
    place: str
    version: int  # of NFS: 3, 4
    options: tuple[str, ...]
    age_s: int | None
    operations: Mapping[str, tuple[int, ...]]
    moved: tuple[int, ...] = ()  # the line "bytes", whose columns are MOVED; empty where there is none


def parse(text: str) -> dict[str, Mount]:
    """The mounts of NFS by where they are mounted. Raises MountstatsError at a line that cannot be read."""
    mounts: dict[str, Mount] = {}
    head: re.Match[str] | None = None
    lines: list[str] = []
    for line in [*text.splitlines(), "device end"]:
        if line.startswith("device "):
            if head is not None:
                mount = _mount(head, lines)
                mounts[mount.place] = mount
            head, lines = _DEVICE.match(line.rstrip()), []
        else:
            lines.append(line)
    return mounts


def _mount(head: re.Match[str], lines: list[str]) -> Mount:
    device, place = (_OCTAL.sub(lambda found: chr(int(found[1], 8)), head[number]) for number in (1, 2))
    fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    operations: dict[str, tuple[int, ...]] = {}
    version, is_inside = 0, False
    for line in lines:
        if (program := _PROGRAM.search(line)) is not None:
            version = int(program[3])
        elif line.strip() == "per-op statistics":
            is_inside = True
        elif is_inside and line.strip():
            found = _OPERATION.match(line)
            numbers = tuple(int(number) for number in found[2].split()) if found else ()
            if found is None or len(numbers) < len(COLUMNS):
                raise MountstatsError(f"mountstats of {place}: {line.strip()!r} is not an operation with its counts")
            operations[found[1]] = numbers
    if not version or not is_inside:
        raise MountstatsError(f"mountstats of {place}: no version of NFS or no counts by operation; the text is cut")
    age = fields.get("age", "")
    options = tuple(fields.get("opts", "").split(","))
    moved = tuple(int(number) for number in fields.get("bytes", "").split())
    return Mount(device, place, version, options, int(age) if age.isdigit() else None, operations, moved)


def grown(before: Mount, after: Mount) -> dict[str, OperationGrown]:
    """What each operation grew by; those that did not are left out. Raises MountstatsError where they are not of one
    mount: another device, or one that was mounted anew in between."""
    if (before.device, before.place) != (after.device, after.place):
        raise MountstatsError(f"{before.device} on {before.place} and {after.device} on {after.place} are two mounts")
    rows: dict[str, OperationGrown] = {}
    for name, last in after.operations.items():
        first = before.operations.get(name, (0,) * len(last))
        grew = [new - old for new, old in zip(last, first, strict=False)]
        if min(grew) < 0:
            raise MountstatsError(f"{after.place}: {name} counts less than before; it was mounted anew in between")
        calls, sent, timeouts, bytes_sent, bytes_received, *times = grew[: len(COLUMNS)]
        if not any(grew):
            continue
        queue, rtt, execute = (time / calls if calls else None for time in times)
        rows[name] = {
            "calls": calls,
            "retransmissions": max(0, sent - calls),
            "timeouts": timeouts,
            "errors": grew[len(COLUMNS)] if len(grew) > len(COLUMNS) else None,
            "bytes_sent": bytes_sent,
            "bytes_received": bytes_received,
            "queue_ms_mean": queue,
            "rtt_ms_mean": rtt,
            "execute_ms_mean": execute,
        }
    return rows


def compare(
    client: Mapping[str, OperationGrown], capture: Mapping[str, tuple[int, int]], version: int
) -> list[Compared]:
    """Both accounts by operation on the wire; `capture`: calls and retransmissions by operation."""
    calls: Counter[str] = Counter()
    again: Counter[str] = Counter()
    for name, row in client.items():
        wire = ON_THE_WIRE.get(name, name) if version >= 4 else name
        calls[wire] += row["calls"]
        again[wire] += row["retransmissions"]
    rows: list[Compared] = []
    for name in sorted({*calls, *capture}):
        captured, captured_again = capture.get(name, (0, 0))
        rows.append(
            {
                "operation": name,
                "client_calls": calls[name],
                "capture_calls": captured,
                "difference": captured - calls[name],
                "client_retransmissions": again[name],
                "capture_retransmissions": captured_again,
            }
        )
    return rows


def all_grown(
    before: str, after: str, places: Collection[str] | None = None
) -> dict[int, list[dict[str, OperationGrown]]]:
    """What the mounts of NFS that both texts have grew by, by version of NFS; of `places` alone where they are given.
    Raises MountstatsError."""
    first, last = parse(before), parse(after)
    both = first.keys() & last.keys()
    found: dict[int, list[dict[str, OperationGrown]]] = {}
    for place in sorted(both if places is None else both.intersection(places)):
        found.setdefault(last[place].version, []).append(grown(first[place], last[place]))
    if not found:
        raise MountstatsError("no mount of NFS is in both texts of mountstats")
    return found


def moved(before: str, after: str, places: Collection[str]) -> dict[str, int] | None:
    """What the columns of MOVED grew by, of these mounts together; None where the kernel does not tell, or a mount is
    not in both texts."""
    first, last = parse(before), parse(after)
    sums = dict.fromkeys(MOVED, 0)
    for place in places:
        if place not in first or place not in last or len(last[place].moved) < len(MOVED):
            return None
        for name, new, old in zip(MOVED, last[place].moved, first[place].moved, strict=False):
            sums[name] += new - old
    return sums if places and min(sums.values()) >= 0 else None


def both_accounts(
    before: str, after: str, operations: list[tuple[str, str, int, int]], places: Collection[str] | None = None
) -> list[Compared]:
    """The client's account of its mounts beside a capture's; `operations`: protocol, name, calls, retransmissions."""
    rows: list[Compared] = []
    for version, mounts in sorted(all_grown(before, after, places).items()):
        of_version = [one for one in operations if one[0].startswith(f"nfs{version}") and "callback" not in one[0]]
        capture: dict[str, tuple[int, int]] = {}
        for _, name, calls, again in of_version:
            known = capture.get(name, (0, 0))
            capture[name] = (known[0] + calls, known[1] + again)
        rows += compare(_together(mounts), capture, version)
    return rows


def _together(mounts: list[dict[str, OperationGrown]]) -> dict[str, OperationGrown]:
    """Counts of several mounts, summed; times are left as those of the first."""
    summed: dict[str, OperationGrown] = {}
    for mount in mounts:
        for name, row in mount.items():
            known = summed.get(name)
            summed[name] = (
                row
                if known is None
                else {
                    **known,
                    "calls": known["calls"] + row["calls"],
                    "retransmissions": known["retransmissions"] + row["retransmissions"],
                }
            )
    return summed
