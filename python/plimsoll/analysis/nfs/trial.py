"""Calls of NFS of one trial: by operation, by file class, by transaction, and beside the client's own account.

The fact that constrains it: what the capture and the client count differs where a call was under way as the client's
account was read. So each call that may lie on either side of that moment is counted as such, and a difference beyond
those is not explained.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from plimsoll.analysis.captures.density import Cell, cells, groups_of
from plimsoll.analysis.captures.mountstats import MountstatsError, both_accounts, moved
from plimsoll.analysis.nfs.document import NfsAccount, NfsMounted
from plimsoll.record import MISSING, Segment, Trial, read_table
from plimsoll.record.run import read_json

Json = dict[str, Any]
PROBE: Final = "nfs_calls"
UNKNOWN: Final = "unknown"
# A call ends for its client some time after its reply was seen: the client has to be given the CPU.
SLACK_NS: Final = 200_000_000
# Calls that a client makes for itself, and counts for no mount.
OF_CLIENT: Final = frozenset(
    {
        "BIND_CONN_TO_SESSION", "CREATE_SESSION", "DESTROY_CLIENTID", "DESTROY_SESSION", "EXCHANGE_ID", "NULL",
        "RECLAIM_COMPLETE", "RENEW", "SEQUENCE", "SETCLIENTID", "SETCLIENTID_CONFIRM", "CB_NULL", "CB_COMPOUND",
    }
)  # fmt: skip
# Options of a mount that decide which calls are made.
SHOWN: Final = (
    "vers", "rsize", "wsize", "sync", "noac", "acregmin", "acregmax", "acdirmin", "acdirmax", "actimeo", "lookupcache",
    "nconnect", "nocto", "hard", "soft", "proto",
)  # fmt: skip
STRETCHES, TIMES = 80, 40
_PROGRAMS: Final = {100_003: "nfs", 100_227: "nfsacl"}


@dataclass(frozen=True)
class NfsTasks:
    """The same calls as the kernel's client counts them."""

    report: Mapping[str, Any]  # what the probe says of them
    rows: np.ndarray

    @cached_property
    def names(self) -> list[tuple[str, str]]:
        """Protocol and the client's name of each operation."""
        return [(_protocol(one), str(one["name"])) for one in self.report["operations"]]

    @property
    def lost(self) -> dict[str, int]:
        """What is missing, by what."""
        return _losses(self.report)

    def of(self, operation: tuple[str, str]) -> np.ndarray:
        """The rows of an operation."""
        places = [place for place, name in enumerate(self.names) if name == operation]
        found: np.ndarray = self.rows[np.isin(self.rows["operation"], places)]
        return found


def _protocol(operation: Mapping[str, Any]) -> str:
    program = int(operation["program"])
    name = _PROGRAMS.get(program, f"program {program} version ")
    return f"{name}{operation['version']}"


def _losses(report: Mapping[str, Any]) -> dict[str, int]:
    return {what: int(count) for what, count in (report.get("lost") or {}).items() if count}


@dataclass(frozen=True)
class NfsTrial:
    """What a trial recorded of its calls."""

    number: int
    told: Json  # nfs.json
    report: Mapping[str, Any]  # what the probe says of itself
    calls: np.ndarray
    segment: Segment
    texts: tuple[str, str] | None = field(repr=False, default=None)  # mountstats
    tasks: NfsTasks | None = None  # where the kernel has the tracepoint

    @cached_property
    def answered(self) -> np.ndarray:
        """Which calls have a reply."""
        found: np.ndarray = self.calls["reply_ns"] != MISSING
        return found

    @cached_property
    def reply_ns(self) -> np.ndarray:
        """How long each took; 0 of those without a reply."""
        return np.where(self.answered, self.calls["reply_ns"] - self.calls["sent_ns"], 0)

    @property
    def names(self) -> list[tuple[str, str]]:
        """Protocol and name of each operation."""
        return [(str(one["protocol"]), str(one["name"])) for one in self.told["operations"]]

    @cached_property
    def file_class(self) -> tuple[list[str], np.ndarray]:
        """The classes, and the place of each call's among them."""
        named = self.told["named_files"]
        names = [*sorted({str(one["class"]) for one in named} - {UNKNOWN}), UNKNOWN]
        of_file = np.full(int(self.told["files"]) + 1, len(names) - 1)  # the last one: no file
        for one in named:
            of_file[int(one["file"])] = names.index(str(one["class"]))
        return names, of_file[np.minimum(self.calls["file"], int(self.told["files"]))]

    @property
    def transactions(self) -> int | None:
        """Done in the segment; None where there are none."""
        return self.segment.identity.get("done") or None

    @property
    def lost(self) -> dict[str, int]:
        """What is missing, by what."""
        return _losses(self.report)


def read(trial: Trial) -> NfsTrial | None:
    """What the measured segment recorded; None where the probe was not on, or no file of the target lies on NFS."""
    folder, report = trial.measure.path, trial.measure.probes.get(PROBE) or {}
    if report.get("status") != "on" or not report.get("mounts"):
        return None
    told, calls = read_json(folder / "nfs.json"), read_table(folder / "nfs_calls.npy")
    if told is None or calls is None:
        return None
    paths = [folder / f"mountstats-{name}.txt" for name in ("before", "after")]
    texts = None
    if all(path.exists() for path in paths):
        before, after = (path.read_text(encoding="utf-8", errors="replace") for path in paths)
        texts = (before, after)
    return NfsTrial(trial.number, told, report, calls, trial.measure, texts, _tasks(folder, report))


def _tasks(folder: Path, report: Mapping[str, Any]) -> NfsTasks | None:
    of_client = report.get("tasks")
    rows = read_table(folder / "nfs_tasks.npy") if of_client else None
    return None if rows is None or not of_client else NfsTasks(of_client, rows)


# A place of the run's own kernel, made anew for each trial: its name stands behind the trial's.
_OWN_PLACE: Final = re.compile(r"^(?P<server>[^/]+):/.*-\d+\.at-(?P<name>[^/]+)$")


def _source(mount: Mapping[str, Any]) -> str:
    """As it was mounted; of a place of the run's own the place's name, which is that of every trial."""
    source = str(mount["source"])
    own = _OWN_PLACE.match(source)
    return source if own is None else f"{own['server']}:{own['name']}"


def mounts(report: Mapping[str, Any]) -> list[NfsMounted]:
    """The mounts with the options that bear on calls; what client and kernel add to say nothing new is left out."""
    found: list[NfsMounted] = []
    for mount in report.get("mounts") or []:
        options = [one for one in str(mount["options"]).split(",") if one.split("=")[0] in SHOWN]
        entry: NfsMounted = {
            "source": _source(mount),
            "options": list(dict.fromkeys(options)),
            "is_targets": bool(mount["is_targets"]),
        }
        if entry not in found:
            found.append(entry)
    return found


def _places(one: NfsTrial) -> list[str]:
    """One place of each mount: those that share a device share what the client counts."""
    by_device = {str(mount["device"]): str(mount["place"]) for mount in reversed(one.report["mounts"])}
    return sorted(by_device.values())


def bytes_moved(one: NfsTrial) -> dict[str, int] | None:
    """By the client's account, of the mounts that hold files of the target; None where it cannot be read."""
    targets = {str(mount["device"]) for mount in one.report["mounts"] if mount["is_targets"]}
    by_device = {str(mount["device"]): str(mount["place"]) for mount in reversed(one.report["mounts"])}
    if one.texts is None:
        return None
    try:
        return moved(*one.texts, [place for device, place in by_device.items() if device in targets])
    except MountstatsError:
        return None


def accounts(one: NfsTrial) -> list[NfsAccount] | None:
    """Both counts of each operation; None where the client's account cannot be read."""
    before, after = one.report.get("before_ns"), one.report.get("after_ns")
    if one.texts is None or not before or not after:
        return None
    replied = one.calls["reply_ns"]
    inside = one.answered & (replied > before[1]) & (replied <= after[0])
    early = one.answered & (replied > before[0] - SLACK_NS) & (replied <= before[1])
    later = one.answered & (replied > after[0]) & (replied <= after[1])
    late = inside & (replied > after[0] - SLACK_NS)
    counted = [_by_name(one, chosen) for chosen in (inside, early | later, late)]
    operations = [
        (protocol, name, int(np.count_nonzero(mine)), int(one.calls["retransmissions"][mine].sum()))
        for place, (protocol, name) in enumerate(one.names)
        for mine in (inside & (one.calls["operation"] == place),)
        if mine.any()
    ]
    try:
        rows = both_accounts(*one.texts, operations, _places(one))
    except MountstatsError:
        return None
    without_call = int(one.told["totals"]["replies_without_call"])
    found: list[NfsAccount] = []
    for row in rows:
        name, is_of_mount = row["operation"], row["operation"] not in OF_CLIENT
        more, fewer = counted[1][name] + without_call, counted[2][name]
        explained = not is_of_mount or -more <= row["difference"] <= fewer
        found.append(
            {**row, "more_max": more, "fewer_max": fewer, "is_of_mount": is_of_mount, "is_explained": explained}
        )
    return found


def _by_name(one: NfsTrial, chosen: np.ndarray) -> Counter[str]:
    counts = np.bincount(np.minimum(one.calls["operation"][chosen], len(one.names)), minlength=len(one.names) + 1)
    found: Counter[str] = Counter()
    for (_, name), count in zip(one.names, counts.tolist(), strict=False):
        found[name] += count
    return found


def scatter(one: NfsTrial) -> list[Cell]:
    """Study S2's, in seconds of the segment."""
    groups = groups_of([name for _, name in one.names], one.calls["operation"])
    if not one.answered.any():
        return []
    sent_s = (one.calls["sent_ns"] - one.calls["sent_ns"].min()) / 1e9
    chosen = one.answered
    return list(cells(sent_s[chosen], one.reply_ns[chosen] / 1e6, groups[chosen], STRETCHES, TIMES))


def by_transaction(one: NfsTrial) -> dict[str, tuple[int, np.ndarray]]:
    """By kind how many transactions there were, and which calls were sent while one of them was under way.

    Empty where transactions were under way at once, so that nobody can tell whose a call is, or not all have a row.
    """
    rows = read_table(one.segment.path / "transactions.npy")
    offset = one.segment.told.get("epoch_minus_monotonic_ns")
    if rows is None or offset is None or len(rows) < 1 or not one.segment.kinds:
        return {}
    begun = rows[(rows["start_ns"] != MISSING) & (rows["end_ns"] != MISSING) & (rows["kind"] < len(one.segment.kinds))]
    begun = begun[np.argsort(begun["start_ns"], kind="stable")]
    identity = one.segment.identity
    done = (identity.get("done") or 0) + (identity.get("failed") or 0)
    starts, ends = begun["start_ns"] + offset, begun["end_ns"] + offset
    if len(begun) != done or not done or (starts[1:] < ends[:-1]).any():
        return {}
    place = np.searchsorted(starts, one.calls["sent_ns"], "right") - 1
    within = (place >= 0) & (one.calls["sent_ns"] <= ends[np.maximum(place, 0)])
    kind_of = begun["kind"][np.maximum(place, 0)]
    return {
        name: (int(np.count_nonzero(begun["kind"] == number)), within & (kind_of == number))
        for number, name in enumerate(one.segment.kinds)
        if (begun["kind"] == number).any()
    }
