"""What pg_stat_activity says of the load's backends, a hundred times a second.

One session of the server does it by itself, so that next to nothing runs between the moment that was drawn and the
look: a look that takes its time is taken when others have begun to wait for the CPU. For the same reason it goes before
everything else on its CPU. The moments are random within each hundredth, or a load of constant rate would always be
seen at the same place.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

PER_SECOND = 100
ON_CPU = "on a CPU"
# A statement of a function is prepared once. Unless its snapshot is let go a transaction sees the same for ever.
# pg_sleep counts in milliseconds. A look that was held up leaves out those that were due meanwhile.
_MAKE = f"""
create or replace function pg_temp.looks(watched text, stop bigint)
returns table (number bigint, due timestamptz, at timestamptz, done timestamptz, pids int[], events text[]) as $$
declare
    start timestamptz := clock_timestamp();
begin
    number := 0;
    while not pg_try_advisory_lock(stop) loop
        due := start + (number + random()) * interval '{1 / PER_SECOND} s';
        perform pg_sleep(extract(epoch from due - clock_timestamp()));
        perform pg_stat_clear_snapshot();
        at := clock_timestamp();
        select array_agg(pid), array_agg(coalesce(wait_event_type || ':' || wait_event, '{ON_CPU}')) into pids, events
            from pg_stat_activity where datname = watched and backend_type = 'client backend';
        done := clock_timestamp();
        return next;
        number := greatest(number + 1, floor(extract(epoch from done - start) * {PER_SECOND}));
    end loop;
    perform pg_advisory_unlock(stop);
end $$ language plpgsql
"""
_ASK = (
    "select number, (extract(epoch from due) * 1e9)::int8, (extract(epoch from at) * 1e9)::int8, "
    "(extract(epoch from done) * 1e9)::int8, pids, events from pg_temp.looks(%s, %s)"
)
_PRIORITY = 50
LOOK_NS = 2_000_000  # from when one is due to its end, with a CPU at hand
_LOCK = 20_260


@dataclass(frozen=True)
class Sample:
    """One look, by CLOCK_MONOTONIC: when it was due, begun and done, and each backend's wait event."""

    due_ns: int
    begin_ns: int
    end_ns: int
    seen: dict[int, str]


@contextlib.contextmanager
def before_all_others(pid: int) -> Iterator[None]:
    """This process runs as soon as it has something to do."""
    os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))


def _cpu_times() -> tuple[int, int]:
    """Of all CPUs since the boot, in ticks: what the hypervisor took, and all of it."""
    times = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return times[7], sum(times)


class Sampler:
    """Looks from `with` until its end, by one session while another holds what stops it; both not of `watched`."""

    def __init__(self, session: psycopg.Connection, stopper: psycopg.Connection, watched: str) -> None:
        self.samples: list[Sample] = []
        self._session, self._stopper, self._watched = session, stopper, watched
        self._error: BaseException | None = None
        self._before = self._after = (0, 0)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._session.execute(_MAKE)
        self._session.execute("set work_mem = '256MB'")
        # That making it was a commit is told now, not in the midst of what is counted.
        self._session.execute("select pg_stat_force_next_flush()")
        self._stopper.execute("select pg_advisory_lock(%s)", [_LOCK])
        self._before = _cpu_times()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopper.execute("select pg_advisory_unlock(%s)", [_LOCK])
        self._thread.join()
        self._after = _cpu_times()
        if self._error is not None:
            raise self._error

    def unseen(self) -> float:
        """The share of the time in which looks say nothing of what backends did: a CPU that the hypervisor takes away
        keeps those that run and wait there where they are, and the look that would see it too, or it was held up
        otherwise."""
        stolen, all_of_it = (after - before for before, after in zip(self._before, self._after, strict=True))
        held_up = sum(max(0, each.end_ns - each.due_ns - LOOK_NS) for each in self.samples)
        lasted = self.samples[-1].end_ns - self.samples[0].due_ns
        print(f"the hypervisor took {stolen / all_of_it:.2%} of the CPUs, looks were held up {held_up / lasted:.2%}")
        return stolen / all_of_it + held_up / lasted

    def _run(self) -> None:
        try:
            with before_all_others(self._session.info.backend_pid):
                rows = self._session.execute(_ASK, [self._watched, _LOCK]).fetchall()
            offset = time.time_ns() - time.monotonic_ns()
            for _, due, at, done, pids, events in rows:
                seen = dict(zip(pids or (), events or (), strict=True))
                self.samples.append(Sample(due - offset, at - offset, done - offset, seen))
        except BaseException as error:
            self._error = error
