"""A trial on a private server: clone, start, warm, measure, check, stop, with the caches' state known throughout.

Everything that may charge memory (the server, its warm-up, a warm page cache) happens inside the trial's group: Linux
charges a page to whoever touched it first, and a page charged outside is a second, unlimited cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from plimsoll.environment import page_cache
from plimsoll.environment.clone import clone_tree
from plimsoll.environment.fault import Fault
from plimsoll.experiment.decision_support import DecisionSupport
from plimsoll.record import writer
from plimsoll.run import agent, answers, decision_support, double_caching, planning
from plimsoll.run.course import Course
from plimsoll.run.datasets import key_for
from plimsoll.run.placing import are_varied, make_temp_space, move_wal, temp_settings
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.requests import workload_request
from plimsoll.run.surroundings import PrivatePlace, arranged, dirty_limits_caveat
from plimsoll.run.trial import Load, Report, measure, warm_up
from plimsoll.target import PostgresServer, ServerFailed
from plimsoll.target.dataset import Dataset
from plimsoll.target.embedded import DuckServer

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext


START_SECONDS_MAX = 60
RECOVERY_SECONDS_MAX = 1800  # where the server was killed, WAL of many GB may have to be replayed
SPARE_CONNECTIONS = 20  # for the observer, and for backends that end late when connections are opened anew
WARM_SHARE = 0.9


@dataclass
class Private:
    """A private server at work: what talks to it, and where it lives."""

    load: Load
    server: PostgresServer
    place: PrivatePlace
    caches: double_caching.Watch


def run_private(context: RunContext, report: Report, built: dict[str, Dataset]) -> None:
    """One trial. Raises TrialFailed when it has no result, Stopped when the run is to end; puts everything back."""
    with opened(context, report, built) as private:
        load = private.load
        if isinstance(load.settings.workload, DecisionSupport):
            run_tests(private, load.settings.workload, report, Course())
        else:
            warm_up(load, report)
            with _caches_watched(private, report):
                measure(load, report)
            with report.phase("check", load.observer):
                report.found["checks"], report.found["ledger"] = load.check_with_ledger()
        with report.phase("stop", load.observer):
            private.server.abandon()


def run_tests(private: Private, workload: DecisionSupport, report: Report, course: Course) -> None:
    """The tests of a decision-support trial that are yet to be done, and their check."""
    load = private.load
    if load.settings.workload.loads_itself() and not course.is_done("load"):
        with course.step("load", "load", report):
            decision_support.load_test(load, report)
            if (against := workload.answers_against) is not None:
                with answers.of_postgresql(load.connection, workload.query_timeout_seconds) as ask:
                    answers.check(load, against, ask, report, private.place.folder, private.place.owner)
        private.caches.prepare(wanted=load.settings.probes.double_caching)  # now there are relations to know
        private.server.checkpoint()
    decision_support.run_tests(load, workload, report, lambda: _caches_watched(private, report), course)


@contextmanager
def _caches_watched(private: Private, report: Report) -> Iterator[None]:
    """What both caches hold and what left them, around what is measured."""
    with private.caches.around(report), residency_watched(report, private.server.data):
        yield


@contextmanager
def opened(
    context: RunContext, report: Report, built: dict[str, Dataset], *, goes_on: bool = False
) -> Iterator[Private]:
    """A server on its clone, started and empty of load; stopped and put back at the end, its log kept.

    `goes_on`: with the cluster that an earlier sitting of the same trial has left, of which the report knows.
    What goes wrong inside is told as what it means: TrialFailed, or a Fault that ends the run.
    """
    settings = report.trial.treatment.settings
    # A fault of the surroundings is not this trial's: it ends the run, since the next trial would meet it too.
    with arranged(context, settings, context.trial_name(report.trial), report) as place:
        install = planning.choose_server(settings)
        assert install is not None  # the plan has checked it
        folder = writer.trial_folder(context.out, report.trial.number)
        folder.mkdir(parents=True, exist_ok=True)
        user = planning.server_user()
        tcp = settings.target.transport == "tcp"
        server = PostgresServer(Path(install.bin_dir), place.data, place.folder, user, place.launch, tcp)
        load = Load(
            server.load_connection,
            workload_request(settings),
            settings,
            place,
            folder,
            context.observer,
            context.interrupts.is_stopping,
            block=report.trial.block,
        )
        try:
            dataset = None if settings.workload.loads_itself() else built[str(key_for(settings))]
            if goes_on:
                page_cache.evict(*place.homes.placed)  # what a sitting has read was charged to a group that is gone
            else:
                _make_cluster(report, load, place, server, dataset)
            # What is known of the trial's begin stays known.
            told = Report(report.trial) if goes_on else report
            caches = _start(told, load, place, server, is_new=not goes_on)
            if goes_on:
                report.found.setdefault("phases", []).extend(told.found["phases"])
            yield Private(load, server, place, caches)
        except (ServerFailed, agent.AgentFailed, psycopg.Error) as error:
            raise explained(error, place, server.log_tail(2000)) from error
        finally:
            keep_last(report, folder, place, server)


def keep_last(report: Report, folder: Path, place: PrivatePlace, server: PostgresServer | DuckServer) -> None:
    """What a server leaves that ends now, however it ended: its log's end, and what its group says."""
    report.log_tail = server.log_tail()
    writer.write_text(folder / "server.log", report.log_tail + "\n")
    report.found["group"] = place.describe_group()
    server.abandon()


def explained(error: Exception, place: PrivatePlace, log_tail: str) -> Exception:
    """What a failure means: the end of this trial, of the run, or a fault of Plimsoll."""
    if isinstance(error, agent.AgentFailed) and error.code == agent.EXIT_IDENTITY:
        return error
    full = "No space left on device"
    if (
        full in log_tail
        or full in str(error)
        or (isinstance(error, agent.AgentFailed) and error.code == agent.EXIT_RECORD)
    ):
        return Fault(
            f"the trial could not be recorded: {error}",
            remedy="free disk space, then resume: ./plimsoll run --resume RUN",
        )
    kills = place.oom_kills()
    cause = f"the kernel's out-of-memory killer ended {kills} process(es) of the server's group; " if kills else ""
    return TrialFailed(f"{cause}{error}")


def _make_cluster(
    report: Report, load: Load, place: PrivatePlace, server: PostgresServer, dataset: Dataset | None
) -> None:
    """Clones the data; an empty cluster where there is no data set."""
    with report.phase("clone", load.observer):
        if dataset is None:
            server.initdb()
        else:
            uid, gid = place.owner
            # Blocks can be shared with the data set on its own file system alone, and are copied at the first write:
            # a difference of the clones, not of the places.
            is_shared = not are_varied(load.settings)
            clone_tree(dataset.data, server.data, uid=uid, gid=gid, reflink=is_shared)
        move_wal(place.homes, place.owner)


def _start(
    report: Report, load: Load, place: PrivatePlace, server: PostgresServer, *, is_new: bool
) -> double_caching.Watch:
    """Starts the server on its cluster, its caches in the state that was asked for."""
    settings, observer = load.settings, load.observer
    before = page_cache.residency(server.data)
    report.found["residency"] = {"before_trial": _bytes(before)}
    for text in settings.workload.caveats():
        report.caveat(text)
    if settings.environment.page_cache == "warm":
        with report.phase("warm", observer):
            place.read_inside(server.data)
        _verify_warm(report, server.data, place)
    group = place.group if place.limits is not None and place.limits.memory_bytes else None
    if group is not None and (caveat := dirty_limits_caveat(settings, group.version)):
        report.caveat(caveat)
    if before.resident_bytes and not settings.workload.loads_itself():  # an empty cluster was made inside the group
        report.caveat(f"{before.resident_bytes} bytes of the data were in the page cache before the trial")
    with report.phase("start", observer):
        enough = {"max_connections": max(100, settings.workload.clients + SPARE_CONNECTIONS)}  # obstacles.py knows
        wanted = enough | settings.target.settings | temp_settings(place.homes)
        server.configure(wanted, planning.memory_bytes(settings))
        server.start(START_SECONDS_MAX if is_new else RECOVERY_SECONDS_MAX)
        make_temp_space(place.homes, server)
        if is_new and settings.workload.loads_itself():
            server.create_database()
        report.found["server"] = load.connection.describe()
        caches = double_caching.Watch(server.connection, server.data)
        caches.prepare(wanted=settings.probes.double_caching)
        server.checkpoint()
    if settings.warmup.prewarm:
        with report.phase("prewarm", observer):
            server.prewarm(load.connection.schema)
    return caches


def _verify_warm(report: Report, data: Path, place: PrivatePlace) -> None:
    """Warm means resident: as much of the data as the group has room for."""
    found = page_cache.residency(data)
    report.found["residency"]["after_warming"] = _bytes(found)
    limit = place.limits.memory_bytes if place.limits is not None else None
    room = min(found.total_bytes, limit or found.total_bytes)
    if found.resident_bytes < WARM_SHARE * room:
        report.caveat(f"cache not warm: {found.resident_bytes / 2**20:.1f} MiB of {room / 2**20:.1f} MiB resident")


@contextmanager
def residency_watched(report: Report, data: Path) -> Iterator[None]:
    """Reads residency around the measured segment and flags what left the page cache without being reclaimed.

    A DAMON scheme or another tool that pages out does that, and a result measured meanwhile is not the server's.
    """
    before, taken = page_cache.residency(data), _reclaimed_bytes()
    yield
    after = page_cache.residency(data)
    lost = page_cache.unexplained_loss(before, after, reclaimed_bytes=_reclaimed_bytes() - taken)
    report.found["residency"] |= {
        "before_measure": _bytes(before),
        "after": _bytes(after),
        "unexplained_loss_bytes": lost,
    }
    if lost:
        report.caveat(f"{lost} bytes of the data left the page cache without being reclaimed by the kernel: see DAMON")


def _reclaimed_bytes() -> int:
    """File pages the kernel's reclaim has taken since boot, whole host."""
    for line in Path("/proc/vmstat").read_text().splitlines():
        if line.startswith("pgsteal_file "):
            return int(line.split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _bytes(found: page_cache.Residency) -> dict[str, int]:
    return {"resident_bytes": found.resident_bytes, "total_bytes": found.total_bytes}
