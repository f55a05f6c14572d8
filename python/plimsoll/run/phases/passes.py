"""The segments of a trial of phases: each is one load from its beginning to its end, between readings of its own.

The fact that constrains it: a phase works on what the one before it has left, on the device and in the page cache
alike. So they follow each other at once, and nothing is evicted between them.
"""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from plimsoll.environment.memory import page_cache
from plimsoll.experiment.workloads.on_files import PassesOverFiles
from plimsoll.run.host import Host
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.servers.files.at_work import told
from plimsoll.run.servers.residency import in_bytes
from plimsoll.run.sizes import memory_bytes
from plimsoll.run.trial.at_work import AtWork
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import read_counters
from plimsoll.run.trial.segment import Segment
from plimsoll.run.trial.transactions import load_of

Json = dict[str, Any]


@runtime_checkable
class HasFiles(Protocol):
    """A server at work whose files are known."""

    @property
    def data(self) -> Path:
        """Where they lie."""


def segments(workload: PassesOverFiles) -> list[Segment]:
    """Every phase of a trial. The first stands for the trial."""
    phases = [Phase(workload, name) for name in workload.phases_run()]
    phases[0].stands_for_trial = True
    return list(phases)


class Phase(Segment):
    """One phase. trial.json gets an entry of `passes` with its readings; those of the phase that stands for the trial
    are the trial's own, and `measured_segment` is its folder."""

    def __init__(self, workload: PassesOverFiles, name: str) -> None:
        self._workload = workload
        self.name = self.kind = name

    def perform(self, at: AtWork, log: TrialLog, about: Json) -> None:
        entry: Json = {"pass": self.kind, "segment": self.name, **about}
        log.facts.setdefault("passes", []).append(entry)
        load = load_of(at)
        if self.stands_for_trial:
            log.facts["measured_segment"] = self.name
        of_phase = replace(
            load,
            workload=self._workload.phase_request(self.name, memory_bytes(at.settings)),
            asked={"clients": self._workload.phase_clients(self.name)},
        )
        assert isinstance(at, HasFiles)  # the plan has paired the workload with files
        entry["residency"] = {"before": in_bytes(page_cache.residency(at.data))}
        _read(at, log, "before", entry)
        with log.phase(self.kind, at.observer):
            summary = of_phase.segment(self.name, {})
        self._refuse_a_part(summary, at.data)
        _read(at, log, "after", entry)
        entry["residency"]["after"] = in_bytes(page_cache.residency(at.data))
        if self.stands_for_trial:
            log.facts |= {key: value for key, value in entry.items() if key.endswith("counters")}

    def _refuse_a_part(self, summary: Json, data: Path) -> None:
        """A call that the kernel refuses ends a phase, and so does one that it never answers; the next one could only
        say that it knows of no whole one."""
        lost = (summary.get("identity") or {}).get("lost") or 0
        for error in summary.get("errors") or []:
            if lost or error["sqlstate"] in errno.errorcode.values():
                raise TrialFailed(told(f"the phase {self.kind} did not complete: {error['message']}", data))
        if lost:
            raise TrialFailed(told(f"the phase {self.kind} did not complete: {lost} of its operations were lost", data))


def _read(at: AtWork, log: TrialLog, name: str, entry: Json) -> None:
    read_counters(at.server, at.place, log, name, entry)
    entry.setdefault("host_cpu_ticks", {})[name] = cpu_ticks(at.place.host)


def cpu_ticks(host: Host) -> list[int]:
    """The line of all CPUs of /proc/stat, in the kernel's order: user, nice, system, idle, iowait, irq, softirq,
    steal."""
    first = host.read("/proc/stat").splitlines()[0].split()
    return [int(ticks) for ticks in first[1:9]]
