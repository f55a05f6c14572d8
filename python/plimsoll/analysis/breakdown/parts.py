"""The parts that a transaction's latency is split into: their order, and what each is in plain words.

Buckets are the server's, as the record names them. Around them stand the parts that the load's own record gives: the
wait before the first byte was sent, and the way to the server and back.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.analysis.breakdown.document import Band

LAG, WAY_IN, WAY_OUT = "lag", "transport_in", "transport_out"
CPU, USER, KERNEL, RUN_QUEUE, CLIENT = "cpu", "cpu_user", "cpu_kernel", "run_queue", "client"
OTHER, UNATTRIBUTED = "other_wait", "unattributed"
OTHERS = "others"  # what has too little of the time for a name of its own in a legend
NAMED_MIN = 0.01
BUCKETS = (
    *(USER, KERNEL, RUN_QUEUE, "lock", "wal_sync", "wal_wait", "wal_write", "data_read", "data_write", "data_sync"),
    *("temp_io", "swap_in", "throttle", "network_send", CLIENT, OTHER, UNATTRIBUTED),
)
# What is counted otherwise than as a blocked interval, and so never stands among the waits of a request.
NEVER_BLOCKED = (USER, KERNEL, RUN_QUEUE)
PARTS = (LAG, WAY_IN, CPU, *BUCKETS, WAY_OUT)
TRANSPORT = (LAG, WAY_IN, WAY_OUT)

PLAIN = {
    LAG: "due and not yet sent",
    WAY_IN: "the first message on its way to the server",
    CPU: "on a CPU",
    USER: "on a CPU, in the server's own code",
    KERNEL: "on a CPU, in the kernel",
    RUN_QUEUE: "ready to run, and no CPU free",
    "lock": "waiting for a lock that another process holds",
    "wal_sync": "syncing the WAL",
    "wal_wait": "waiting for another process's sync of the WAL",
    "wal_write": "writing the WAL",
    "data_read": "reading data that neither cache held",
    "data_write": "writing data",
    "data_sync": "syncing data files",
    "temp_io": "reading and writing temporary files",
    "swap_in": "reading memory back from swap",
    "throttle": "paused by the kernel for dirtying pages or allocating memory too fast",
    "network_send": "waiting to send the answer",
    CLIENT: "waiting for the client inside a transaction",
    OTHER: "waiting for something else that the server names",
    UNATTRIBUTED: "blocked, and the server named no reason",
    WAY_OUT: "the last answer on its way to the client",
}

BY_CALLS = (
    "the server's wait events cannot be read: waits are named by the system call, and the file, in which a process "
    "blocks; locks of tables and rows, workers and sleeps are other_wait together, and waits for WALWriteLock are "
    "in lock"
)


def is_by_calls(probe: Mapping[str, Any]) -> bool:
    """Whether waits have no names of the server's."""
    return (probe.get("boundaries") or {}).get("waits") == "system_calls"


def in_order(names: set[str]) -> list[str]:
    """Parts in their order; those that this version does not know stand last, by name."""
    return [name for name in PARTS if name in names] + sorted(names - set(PARTS))


def split_cpu(ns: dict[str, float], user_ns: float, system_ns: float) -> dict[str, float]:
    """The parts with the time on a CPU split as the kernel's own counts of user and system time are."""
    shared = {name: value for name, value in ns.items() if name != CPU}
    user = ns[CPU] * user_ns / (user_ns + system_ns)
    return shared | {USER: user, KERNEL: ns[CPU] - user}


def named_among(wholes: Iterable[Mapping[str, float]], least: float = NAMED_MIN) -> set[str]:
    """The parts that are worth a name in a legend: those with at least this share of some of these {part: value}.

    One that stands alone below it keeps its name: as OTHERS it would say less and take as much room.
    """
    named: set[str] = set()
    there: set[str] = set()
    for whole in wholes:
        size = sum(abs(value) for value in whole.values())
        there |= {part for part, value in whole.items() if value}
        named |= {part for part, value in whole.items() if value and abs(value) >= least * size}
    return there if len(there - named) == 1 else named


def gathered(whole: Mapping[str, float], named: set[str]) -> dict[str, float]:
    """{part: value} with what has no name summed as OTHERS, where there is any."""
    found = {part: value for part, value in whole.items() if part in named}
    rest = [value for part, value in whole.items() if part not in named]
    return found | {OTHERS: sum(rest)} if any(rest) else found


def spent(segments: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """{part: nanoseconds} of a transaction's segments."""
    ns: dict[str, float] = {}
    for segment in segments:
        ns[segment["part"]] = ns.get(segment["part"], 0.0) + segment["ns"]
    return ns


def largest_share(part: str, bands: Iterable[Band]) -> float:
    """The largest share of the latency that a part has in some of these bands; 0 where it is in none."""
    shares = [abs(one["value"]) / band["latency"]["value"] for band in bands if (one := band["parts"].get(part))]
    return max(shares, default=0.0)
