"""Servers that stop answering while a trial runs on their mounts: noticed, told, and after a stated time given up.

The constraint: nothing may be asked of a mount to find out, since whoever asks waits too, and what is asked would be
among the calls that are measured. So the client's own account is read: replies that have come, and whether calls wait
for more. A client that has lost its connection has nothing under way that it tells of; then its server's port is tried.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from plimsoll.environment import kernel_files
from plimsoll.environment.places.nfs import calls

LOOK_SECONDS: Final = 0.25
TOLD_SECONDS: Final = 3.0  # less is a disk that takes its time
GAP_SECONDS_MAX: Final = 2.0  # between two looks: where we stood still ourselves, so may have the client
_TRY_SECONDS: Final = 1.0
_ACCOUNT: Final = Path("/proc/self/mountstats")
_TRANSPORTS: Final = Path("/sys/kernel/sunrpc/xprt-switches")
_DEVICE: Final = re.compile(r"device (\S+) mounted on (\S+) with fstype nfs4? ")
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_WAITING: Final = re.compile(r"(?:binding|sending|pending|backlog)_q_len=([1-9])")
_PORT: Final = re.compile(r"dst_port=(\d+)")
_SENT_AT: Final = {"tcp": 6, "rdma": 6, "udp": 3}  # of a line xprt: the word that counts calls sent; replies follow
NFS_PORT: Final = 2049


@dataclass(frozen=True)
class Told:
    """What the client tells of one mount: calls sent and replies that have come, over all its connections."""

    source: str
    options: tuple[str, ...]
    sent: int
    replies: int

    def option(self, name: str) -> str | None:
        """The value of a mount option that has one."""
        return next((one.partition("=")[2] for one in self.options if one.startswith(f"{name}=")), None)


@dataclass(frozen=True)
class Silence:
    """A time without a reply. `seconds`: of it that we looked on; the times are CLOCK_REALTIME; `ended_ns` None: it
    lasted as long as was looked."""

    place: str
    server: str
    began_ns: int
    ended_ns: int | None
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """As trial.json has it."""
        return {
            "place": self.place,
            "server": self.server,
            "began_epoch_ns": self.began_ns,
            "ended_epoch_ns": self.ended_ns,
            "seconds": round(self.seconds, 2),
        }

    def words(self) -> str:
        """For people."""
        said = f"{self.place}: the server at {self.server} did not answer for {self.seconds:.1f} s"
        if self.ended_ns is None:
            return f"{said} (from {_clock(self.began_ns)} UTC, and had not until the trial ended)"
        return f"{said} (from {_clock(self.began_ns)} until {_clock(self.ended_ns)} UTC)"


def _clock(epoch_ns: int) -> str:
    return f"{datetime.fromtimestamp(epoch_ns / 1e9, UTC):%H:%M:%S.%f}"[:-5]


def parse(text: str) -> dict[str, Told]:
    """The mounts of NFS in a text of mountstats, by where they are mounted."""
    found: dict[str, Told] = {}
    point = ""
    for line in text.splitlines():
        if line.startswith("device "):
            head = _DEVICE.match(line)
            point = "" if head is None else _OCTAL.sub(lambda one: chr(int(one[1], 8)), head[2])
            if head is not None:
                found[point] = Told(head[1], (), 0, 0)
        elif point:
            before, words = found[point], line.split()
            if words[:1] == ["opts:"]:
                found[point] = Told(before.source, tuple(words[-1].split(",")), before.sent, before.replies)
            elif words[:1] == ["xprt:"] and (at := _SENT_AT.get(words[1])) is not None:
                sent, replies = int(words[at + 1]), int(words[at + 2])
                found[point] = Told(before.source, before.options, before.sent + sent, before.replies + replies)
    return found


@dataclass
class Account:
    """Of one mount: from look to look, when its server fell silent and whether it answers again. Pure."""

    replies: int | None = None
    looked_s: float = 0.0
    since_s: float | None = None  # the last look at which it had answered, or nobody waited
    seconds: float = 0.0

    def see(self, at_s: float, replies: int, *, waits: bool) -> tuple[float, float] | None:
        """A look; of a silence that has just ended since when and how long it was."""
        gap, before = at_s - self.looked_s, self.replies
        last, self.looked_s, self.replies = self.looked_s, at_s, replies
        if before is None:
            return None
        if waits and replies == before:
            if self.since_s is None:
                self.since_s = last
            self.seconds += min(gap, GAP_SECONDS_MAX)
            return None
        ended = None if self.since_s is None else (self.since_s, self.seconds)
        self.since_s, self.seconds = None, 0.0
        return ended


@dataclass(frozen=True)
class Watched:
    """A mount to be watched. `seconds_max`: of a silence, after which the trial is given up."""

    place: str
    point: Path
    address: str
    seconds_max: float


@dataclass
class _Client:
    """What is asked about one server beside the account."""

    address: str
    port: int | None = None
    lost: int = 0  # calls sent that never had a reply, as far as is known
    tried_s: float = float("-inf")
    refuses: bool = False

    def waits(self, told: Told, *, has_grown: bool, at_s: float) -> bool:
        """Whether calls wait for a reply, or would."""
        if has_grown:
            self.refuses = False
            self.lost = min(self.lost, told.sent - told.replies)
            return False
        transports = [*_transports(self.address)]
        ports = [port for port, _, _ in transports if port]
        if NFS_PORT in ports or (self.port is None and ports):
            self.port = NFS_PORT if NFS_PORT in ports else ports[0]
        wanted = int(told.option("port") or 0) or self.port
        if wanted is None and told.option("vers") != "3":
            wanted = NFS_PORT
        ours = [one for one in transports if one[0] in (None, wanted)]
        if any(waiting for _, waiting, _ in ours):
            return True
        if not transports and told.sent - told.replies > self.lost:  # a kernel that tells of no transports
            return True
        if any(connected for port, _, connected in ours if port == wanted) or wanted is None:
            self.refuses = False
        elif at_s - self.tried_s >= _TRY_SECONDS:
            self.refuses, self.tried_s = not _listens(self.address, wanted), at_s
        return self.refuses


def _transports(address: str) -> Iterator[tuple[int | None, bool, bool]]:
    """Of each connection to the address: its port (None while it is closed), whether calls wait, whether it stands."""
    for folder in sorted(_TRANSPORTS.glob("*/xprt-*")):
        if (kernel_files.read(folder / "dstaddr") or "").strip() != address:
            continue
        info, state = kernel_files.read(folder / "xprt_info") or "", kernel_files.read(folder / "xprt_state") or ""
        port = _PORT.search(info)
        yield (None if port is None else int(port[1])), _WAITING.search(info) is not None, "CONNECTED" in state.split()


def _listens(address: str, port: int) -> bool:
    """No call is made: a connection is all that is asked for."""
    try:
        socket.create_connection((address, port), _TRY_SECONDS).close()
    except OSError:
        return False
    return True


@dataclass
class Watch:
    """Looks on while a trial runs, in a thread of its own. `group`: what is to end once a server is given up."""

    mounts: Sequence[Watched]
    group: Sequence[Path]
    account: Path = _ACCOUNT
    give_up: Callable[[Sequence[Path], Sequence[Path]], object] = calls.give_up
    silences: list[Silence] = field(default_factory=list)  # that have ended, and were long enough to be told
    given_up: Silence | None = None
    _accounts: dict[str, Account] = field(default_factory=dict)
    _clients: dict[str, _Client] = field(default_factory=dict)
    _began: tuple[float, int] = field(default_factory=lambda: (time.monotonic(), time.time_ns()))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _is_over: threading.Event = field(default_factory=threading.Event)

    @property
    def reason(self) -> str | None:
        """Why the trial is given up; None as long as it is not."""
        if (silence := self.given_up) is None:
            return None
        bound = next(one.seconds_max for one in self.mounts if one.place == silence.place)
        return (
            f"{silence.place}: the server at {silence.server} has not answered for {silence.seconds:.1f} s (since "
            f"{_clock(silence.began_ns)} UTC), and nfs.silence_seconds_max is {bound:g}; calls that waited for it were "
            "ended; look after the server and the network, then run again"
        )

    def told(self) -> list[Silence]:
        """All that there is to tell: those that have ended, and what lasts."""
        lasting = [found for one in self.mounts if (found := self._lasting(one)) is not None]
        return [*self.silences, *lasting]

    def begin_anew(self) -> None:
        """What comes now is put back: it has its own time."""
        with self._lock:
            self.given_up = None
            self._accounts.clear()

    def look(self) -> None:
        """Once."""
        told, at_s = parse(self.account.read_text(errors="replace")), time.monotonic()
        for one in self.mounts:
            if (found := told.get(str(one.point))) is None:
                self._accounts.pop(one.place, None)  # not mounted yet, or no more
                continue
            account = self._accounts.setdefault(one.place, Account())
            client = self._clients.setdefault(one.place, _Client(one.address, lost=found.sent - found.replies))
            has_grown = account.replies is None or found.replies != account.replies
            waits = client.waits(found, has_grown=has_grown, at_s=at_s)
            ended = account.see(at_s, found.replies, waits=waits)
            if ended is not None and ended[1] >= TOLD_SECONDS:
                client.lost = found.sent - found.replies
                self.silences.append(self._silence(one, *ended, ended_s=at_s))
            if account.seconds > one.seconds_max and self.given_up is None:
                self.given_up = self._lasting(one)

    def _lasting(self, one: Watched) -> Silence | None:
        account = self._accounts.get(one.place)
        if account is None or account.since_s is None or account.seconds < TOLD_SECONDS:
            return None
        return self._silence(one, account.since_s, account.seconds, ended_s=None)

    def _silence(self, one: Watched, since_s: float, seconds: float, *, ended_s: float | None) -> Silence:
        ended_ns = None if ended_s is None else self._epoch_ns(ended_s)
        return Silence(one.place, one.address, self._epoch_ns(since_s), ended_ns, seconds)

    def _epoch_ns(self, at_s: float) -> int:
        return self._began[1] + round((at_s - self._began[0]) * 1e9)

    def _run(self) -> None:
        while not self._is_over.wait(LOOK_SECONDS if self.given_up is None else calls.PAUSE_SECONDS):
            with self._lock:
                if self.given_up is None:
                    self.look()
                else:  # again and again: what was ended tries anew, until its process has ended
                    self.give_up([one.point for one in self.mounts], self.group)

    @contextmanager
    def on(self) -> Iterator[Watch]:
        """Inside it looks on."""
        if not self.mounts:
            yield self
            return
        thread = threading.Thread(target=self._run, name="nfs silence", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._is_over.set()
            thread.join()
