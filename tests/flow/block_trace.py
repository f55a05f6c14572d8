"""Requests as the kernel's own tracepoint tells them, where each begins and how long it is: no probe of ours is asked.

The constraint: tracefs may be mounted nowhere. It is mounted where nobody else sees it, and the instance is removed.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECTOR = 512
_WATCH = """mount --make-rprivate /sys
test -d /sys/kernel/tracing/events || mount -t tracefs tracefs /sys/kernel/tracing
here=/sys/kernel/tracing/instances/{name}
mkdir $here && echo mono >$here/trace_clock && echo 8192 >$here/buffer_size_kb || exit 1
echo 1 >$here/events/block/block_rq_issue/enable
cat $here/trace_pipe &
reader=$!
trap 'kill $reader; wait $reader; echo 0 >$here/events/block/block_rq_issue/enable; rmdir $here' TERM
echo READY
wait"""
_LINE = re.compile(r"(?P<at>\d+\.\d+): block_rq_issue: (?P<device>\d+,\d+) (?P<kind>\w+) \d+ .*\) (?P<sector>\d+) \+ "
                   r"(?P<count>\d+) .*\[(?P<program>.+)\]$")  # fmt: skip


@dataclass(frozen=True)
class Request:
    """One request as it was handed to its device; sectors of 512 bytes."""

    at_ns: int
    device: str  # major,minor
    kind: str  # such as WS: a synchronous write
    first: int
    beyond: int
    program: str


class Watched:
    """What was seen; whole once the watching has ended."""

    def __init__(self) -> None:
        self.requests: list[Request] = []


@contextmanager
def requests_watched(out: Path, name: str) -> Iterator[Watched]:
    """Watches every request of the machine into a file."""
    found = Watched()
    apart = ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", _WATCH.format(name=name)]
    with out.open("wb") as file:
        watcher = subprocess.Popen(apart, stdout=file, stderr=subprocess.PIPE)
    try:
        while b"READY" not in out.read_bytes():
            assert watcher.poll() is None, watcher.communicate()
        yield found
    finally:
        watcher.send_signal(signal.SIGTERM)
        watcher.communicate(timeout=60)
    for line in out.read_text(errors="replace").splitlines():
        if told := _LINE.search(line):
            first, count = int(told["sector"]), int(told["count"])
            at_ns = round(float(told["at"]) * 1e9)
            found.requests.append(Request(at_ns, told["device"], told["kind"], first, first + count, told["program"]))
