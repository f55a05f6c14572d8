"""What is watched beside a test of a server that no agent drives."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from plimsoll.experiment import Experiment
from plimsoll.run import agent
from plimsoll.run.requests import machine_probes
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.target.duckdb_server import DuckServer

Json = dict[str, Any]


class Watch:
    """The agent's `watch` beside a test: series of host, devices and group, and what probes can tell of any files."""

    def __init__(self, server: DuckServer, place: PrivatePlace, settings: Experiment, out: Path) -> None:
        wanted = settings.probes
        trees = [{"path": str(server.data), "class": "data"}, {"path": str(server.temp), "class": "temp"}]
        scratch = str(place.folder)
        self._request = place.sample() | {
            "out": str(out),
            "host": True,
            "probes": {
                "page_cache": {"trees": trees, "scratch": scratch} if wanted.page_cache else None,
                "buffer_heads": {"path": scratch} if wanted.buffer_heads else None,
                "throttle": {"path": scratch} if wanted.throttle else None,
                **machine_probes(settings),
            },
        }
        self._cpus, self._host = place.load_cpus, place.host
        self._latest: Json = {}
        self._watching = threading.Event()
        self.told: Json = {}

    def __enter__(self) -> Watch:
        self._agent = agent.Agent("watch", self._request, self._cpus, self._host)
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        try:
            self._watching.wait()
        except BaseException:  # a stop: nobody else would end it
            self._agent.kill()
            raise
        return self

    def _follow(self) -> None:
        try:
            for line in self._agent.lines():
                if line.get("event") == "progress":
                    self._latest = {key: line[key] for key in ("read_sectors", "swap_bytes") if key in line}
                elif line.get("event") == "watched":
                    self.told = {key: line[key] for key in ("probes", "samples", "sample_late_ns_max")}
                self._watching.set()
        finally:
            self._watching.set()  # where it could not begin, its exit says why

    def latest(self) -> Json:
        """The newest of what progress lines show."""
        return self._latest

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if kind is None:
            self._agent.stop()
            self._thread.join()
            self._agent.finish()
            return
        self._agent.kill()
        self._thread.join()
        with suppress(agent.AgentFailed):  # it is we who ended it
            self._agent.finish()
