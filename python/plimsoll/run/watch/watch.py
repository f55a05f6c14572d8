"""Watching a server that runs its own load: the agent's live lines and looks at pg_stat_activity, for a while.

Nothing of the server or the machine is changed, so nothing is journalled: what ends this process ends the agent and the
looks with it, and the kernel takes the programs away with the agent.
"""

from __future__ import annotations

import contextlib
import os
import queue
import resource
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from plimsoll.analysis.watch.heard import AgentLine, Look
from plimsoll.analysis.watch.kind import KIND
from plimsoll.analysis.watch.live import Picture
from plimsoll.environment.fingerprint import fingerprint
from plimsoll.record import writer
from plimsoll.run import agent
from plimsoll.run.host import HERE
from plimsoll.run.observer import Observer
from plimsoll.run.versions import versions
from plimsoll.run.watch.tables import LiveTables
from plimsoll.target.activity_sampler import ActivitySampler, Way
from plimsoll.target.running import RunningServer

Json = dict[str, Any]
INTERVAL_MS = 1000
START_SECONDS, END_SECONDS, LAST_LOOK_SECONDS = 30.0, 10.0, 0.4
_CLOSED = {"event": "closed"}
_OLD_AGENT = "the agent is older than this Plimsoll or was built without its probes; ./plimsoll setup rebuilds it"


class CannotWatch(Exception):
    """This server, or this machine, does not let it; nothing was started."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Asked:
    """What is watched, for how long, and how its sessions may be asked."""

    server: RunningServer
    way: Way
    seconds: float
    top: int

    def document(self) -> Json:
        """The `breakdown` of run.json."""
        server = self.server
        described = {"pid": server.pid, "data_directory": str(server.data), "major": server.major, "port": server.port}
        return {
            "server": described | {"owner": server.owner},
            "seconds": self.seconds,
            "top": self.top,
            "ended_early": None,
        }


@dataclass
class Watch:
    """One watch into the folder `out`."""

    asked: Asked
    out: Path
    observer: Observer
    is_stopping: Callable[[], bool]
    command: list[str]
    picture: Picture = field(default_factory=Picture)
    session: Json = field(default_factory=dict)
    _heard: queue.Queue[tuple[str, Json]] = field(default_factory=queue.Queue)
    _watched: Json | None = None
    _begun_ns: int = 0
    _told: bool = False
    _ended_early: str | None = None
    _agent_cpu_ns: int | None = None

    def run(self) -> str:
        """Watches, and leaves the record; returns "finished", "stopped" or "failed". Raises CannotWatch."""
        folder = writer.trial_folder(self.out, 1) / "measure"
        folder.mkdir(parents=True)
        # Before any thread is started: a copy of a process has only the thread that made it.
        self._sampler = ActivitySampler(self.asked.way)
        self._tables = LiveTables(folder)
        self._document = self._opened()
        try:
            self._agent = agent.Agent("watch", self._request(folder))
        except OSError as error:
            self._sampler.finish()
            raise CannotWatch(f"{agent.PROGRAM}: {error.strerror}; ./plimsoll setup builds it") from None
        around = threading.Thread(target=self._surroundings, daemon=True)
        around.start()
        try:
            for name, lines in (("agent", self._agent.lines()), ("looks", self._sampler.lines())):
                threading.Thread(target=self._hear, args=(name, lines), daemon=True).start()
            self.observer.event("started")
            self._follow()
            self._look_once_more()
        except BaseException:
            self._agent.kill()
            with contextlib.suppress(agent.AgentFailed):
                self._agent.finish()
            raise
        else:
            self._end_agent()
        finally:
            self._sampler.finish()
            around.join(END_SECONDS)
        return self._closed()

    # --- what is heard ----------------------------------------------------------------------------------------------

    def _request(self, folder: Path) -> Json:
        probe = {"data_directory": str(self.asked.server.data), "live": True}
        return {"out": str(folder), "interval_ms": INTERVAL_MS, "probes": {"breakdown": probe}}

    def _hear(self, name: str, lines: Iterator[Json]) -> None:
        try:
            for line in lines:
                self._heard.put((name, line))
        finally:
            self._heard.put((name, _CLOSED))

    def _follow(self) -> None:
        """Until the agent has ended: in time, when told to by the user, or by itself."""
        until, is_open = time.monotonic() + START_SECONDS, True
        while is_open:
            try:
                name, line = self._heard.get(timeout=0.05)
            except queue.Empty:
                name, line = "", {}
            if name == "agent":
                is_open = line is not _CLOSED
                self._of_agent(line)
            elif name == "looks":
                self._of_looks(line)
            if self._begun_ns and not self._told:
                until = time.monotonic() + END_SECONDS
                if self.is_stopping() or self._is_over():
                    self._stop()
            elif self.is_stopping() and not self._told:
                self._stop()
            if time.monotonic() > until:
                self._agent.kill()
                raise CannotWatch(f"the agent has sent nothing for {END_SECONDS:.0f} s; {_OLD_AGENT}")

    def _look_once_more(self) -> None:
        """A look behind the last line tells what went on through all of it."""
        until = time.monotonic() + LAST_LOOK_SECONDS
        while (left := until - time.monotonic()) > 0 and self.picture.looked and "lost" not in self.session:
            try:
                name, line = self._heard.get(timeout=left)
            except queue.Empty:
                return
            if name == "looks":
                self._of_looks(line)
                if line is _CLOSED or int(line.get("t_ns") or 0) > (self.picture.last_ns or 0):
                    return

    def _stop(self) -> None:
        """Told once; what the agent has used of a CPU is read while it is still there."""
        self._told = True
        self._agent_cpu_ns = HERE.cpu_ns(self._agent.pid)
        self._agent.stop()

    def _is_over(self) -> bool:
        """The agent tells the rest when it is told to stop."""
        return time.monotonic_ns() >= self._begun_ns + self.asked.seconds * 1e9

    def _of_agent(self, line: Json) -> None:
        event = line.get("event")
        if event == "watching":
            self._check(line["probes"])
            self._begun_ns = time.monotonic_ns()
            self.observer.event("watching", probe=line["probes"]["breakdown"])
        elif event == "breakdown":
            self._tables.line(line)
            self.picture.line(cast(AgentLine, line))
            if line.get("server_ended"):
                self._ended_early = "the server ended while it was watched"
                self._stop()
            self.observer.event("picture", picture=self.picture, session=self.session)
        elif event == "watched":
            self._watched = line["probes"]

    def _check(self, probes: Json) -> None:
        """A refusal ends it here."""
        probe = probes.get("breakdown") or {}
        if probe.get("status") != "on":
            reason, remedy = probe.get("reason") or "it reported nothing about the breakdown probe", probe.get("remedy")
            raise CannotWatch(f"the probe was refused: {reason}" + (f"; {remedy}" if remedy else ""))

    def _of_looks(self, line: Json) -> None:
        event = line.get("event")
        if event == "look":
            self._tables.look(line)
            self.picture.look(cast(Look, line))
        elif event == "session":
            self.session |= {key: value for key, value in line.items() if key != "event"}
            self.picture.own_pids.add(int(line["pid"]))
        elif event == "own":
            self.picture.own_pids.add(int(line["pid"]))
        elif event == "no session":
            self.session["why"] = line["why"]
            self.observer.event("no session", why=line["why"])
        elif event == "lost":
            self.session["lost"] = line["why"]
        elif line is _CLOSED and not self._told and not self.session.keys() & {"why", "lost"}:
            self.session["lost"] = "the process that reads pg_stat_activity ended without a word: was it killed?"

    # --- the record -------------------------------------------------------------------------------------------------

    def _opened(self) -> Json:
        self._cpu_before = resource.getrusage(resource.RUSAGE_SELF)
        document = {
            "id": self.out.name,
            "kind": KIND,
            "experiment": KIND,
            "title": "Where the server's time goes",
            "status": "running",
            "started_epoch_ns": time.time_ns(),
            "ended_epoch_ns": None,
            "seed": None,
            "command": self.command,
            "plimsoll": None,
            "quick": False,
            "breakdown": self.asked.document(),
        }
        plan: Json = {
            "trials": [{"number": 1, "block": 1, "position": 1, "treatment": "t1", "levels": {}}],
            "factors": [],
        }
        plan |= {"treatments": {"t1": {"label": "as found", "levels": {}}}}
        writer.create_run(self.out, document, plan)
        return document

    def _surroundings(self) -> None:
        """What it was watched on, found out while the agent gets ready."""
        self._document["plimsoll"] = versions()
        machine = fingerprint([self.asked.server.data, self.out], agent=agent.PROGRAM)
        writer.write_json(self.out / "fingerprint.json", machine)

    def _end_agent(self) -> None:
        try:
            self._agent.finish()
        except agent.AgentFailed as error:
            if not self._begun_ns:
                reason = _OLD_AGENT if error.code == agent.EXIT_BAD_REQUEST else error.message
                raise CannotWatch(f"{reason} ({error.message})" if reason is _OLD_AGENT else reason) from None
            self._ended_early = self._ended_early or f"the agent ended early: {error.message or error.code}"

    def _closed(self) -> str:
        """Everything that is known at the end; the status of the run."""
        self.picture.close()
        self._tables.close(self.picture.own_pids, self.session)
        if self._watched is not None and not self._told:
            self._ended_early = self._ended_early or "the agent ended by itself, before the time was up"
        stopped = self.is_stopping() and self._ended_early is None
        status = "stopped" if stopped else "finished" if self._watched is not None else "failed"
        measure = writer.trial_folder(self.out, 1) / "measure"
        writer.write_json(measure / "summary.json", self._summary())
        trial = {"number": 1, "block": 1, "treatment": "t1", "duplicate": False, "status": status}
        trial |= {"reason": self._ended_early, "server": self.session.get("settings")}
        writer.write_trial(self.out, trial)
        self._document["breakdown"]["ended_early"] = self._ended_early
        self._document |= {"status": status, "ended_epoch_ns": time.time_ns()}
        writer.write_run(self.out, self._document)
        return status

    def _summary(self) -> Json:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        before = self._cpu_before
        front = usage.ru_utime + usage.ru_stime - before.ru_utime - before.ru_stime
        own = self.picture.own
        instrument = {
            "cpus": os.cpu_count(),
            "front_cpu_ns": int(front * 1e9),
            "agent_cpu_ns": self._agent_cpu_ns,
            "looker_cpu_ns": int(self._sampler.cpu_seconds * 1e9),
            "session_cpu_ns": own.buckets.get("cpu", 0),
        }
        epoch = time.time_ns() - time.monotonic_ns()
        return {
            "format": 1,
            "workload": None,
            "kinds": [],
            "started_ns": self._begun_ns or None,
            "ended_ns": self.picture.last_ns,
            "epoch_minus_monotonic_ns": epoch,
            "probes": self._watched or {},
            "instrument": instrument,
        }
