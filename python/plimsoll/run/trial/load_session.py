"""The agent's load against one server, segment after segment, and the check of what it has left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.experiment import Experiment
from plimsoll.run import agent, refusals
from plimsoll.run.observer import Observer
from plimsoll.run.requests import load_request, schedule_request
from plimsoll.run.signals import Stopped
from plimsoll.run.trial.place import Place
from plimsoll.target.server import LoadedServer


@dataclass
class LoadSession:
    """What the agent is asked to do in each segment of a trial."""

    server: LoadedServer
    workload: dict[str, Any]
    settings: Experiment
    place: Place
    folder: Path
    observer: Observer
    is_stopping: Callable[[], bool]
    next_index: int = 0
    summaries: list[Path] = field(default_factory=list)
    block: int = 1  # of the design: each has arrivals of its own
    asked: dict[str, Any] = field(default_factory=dict)  # keys of `load` that a segment has of its own
    is_checked: bool = True  # whether it is known what the data were before the load
    log_read: int | None = None  # of the kernel's log: the last record that an earlier segment has read

    def segment(
        self, name: str, stop: dict[str, Any], on_sample: Callable[[dict[str, Any]], bool] | None = None
    ) -> dict[str, Any]:
        """Runs one segment to its end. `on_sample` sees a line a second and ends the segment by returning True.

        Raises refusals.Refused where the server takes none of the workload's statements.
        """
        request = self.request(name, stop)

        def see(running: agent.Agent, line: dict[str, Any]) -> None:
            self.observer.event("sample", line=line)
            if self.is_stopping() or (on_sample is not None and on_sample(line)):
                running.stop()

        try:
            summary = agent.call("load", request, on_line=see, cpus=self.place.load_cpus, host=self.place.host)
        except agent.AgentFailed as error:
            if (refused := self.refused(error)) is not None:
                raise refused from error
            raise
        return self.ended(name, summary)

    def request(self, name: str, stop: dict[str, Any]) -> dict[str, Any]:
        """What the agent is asked for a segment, whose folder is made."""
        out = self.folder / name
        out.mkdir(parents=True, exist_ok=True)
        cpus = len(self.place.load_cpus or self.place.host.cpus())
        return {
            "target": self.server.load_connection.as_request(),
            "workload": self.workload,
            **load_request(self.settings, cpus),
            **self.asked,
            "first_index": self.next_index,
            "schedule": schedule_request(self.settings, self.block, warmup=name == "warmup"),
            "stop": stop,
            "out": str(out),
            "sample": self.place.sample(),
            "probes": self.probes(),
        }

    def probes(self) -> dict[str, Any] | None:
        """What the agent is asked to watch in the kernel; of its log also what came since an earlier segment."""
        asked = self.place.probes(self.settings)
        if asked and self.log_read is not None and asked.get("kernel_log") is not None:
            asked["kernel_log"] = {"after": self.log_read}
        return asked

    def refused(self, error: agent.AgentFailed) -> refusals.Refused | None:
        """What the agent has failed by as a refusal, if it is one."""
        return refusals.by_agent(error, self.settings)

    def ended(self, name: str, summary: dict[str, Any]) -> dict[str, Any]:
        """A segment has ended with this summary: what is checked and where the next one begins. Raises as `segment`."""
        path = self.folder / name / "summary.json"
        if path.is_file():
            self.summaries.append(path)
            self.next_index = int(summary.get("next_index", self.next_index))
        if self.is_stopping():
            raise Stopped
        if (refused := refusals.of_segment(summary, self.settings)) is not None:
            raise refused
        return summary

    def check(self) -> list[dict[str, Any]]:
        """Asks the agent whether the data agree with what it did since they were loaded; ends the limits on memory."""
        return self.check_with_ledger()[0]

    def check_as_loaded(self) -> list[dict[str, Any]]:
        """The same of data that the trial itself has loaded, before its other tests: the limits on memory stay."""
        return list(self._ask_check().get("checks", []))

    def check_with_ledger(self) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """The checks, and what became of the transactions in the durability ledger where one was kept."""
        if not (self.is_checked and self.settings.workload.is_checked):
            return [], None
        if self.place.group is not None:
            # They were the load's. A check sorts and hashes whole tables, and is not what was to be measured.
            self.place.group.lift()
        answer = self._ask_check()
        return list(answer.get("checks", [])), answer.get("ledger")

    def _ask_check(self) -> dict[str, Any]:
        request = {
            "target": self.server.load_connection.as_request(),
            "workload": self.workload,
            "segments": [str(path) for path in self.summaries],
        }
        return agent.call("check", request, cpus=self.place.load_cpus, host=self.place.host)
