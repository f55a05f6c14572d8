"""A soak from wherever it stands to its end: start after start of its server, round after round.

The fact that constrains it: hardly anything that happens in a fortnight may end it. A part that was killed ends the
round that was under way; a crash of the server is a result, and the experiment says whether it ends the soak; a full
disk of the record thins what is there. What ends it early is only what happens again and again with no round between,
and then the rounds that were done are its result.
"""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from plimsoll.environment import Fault
from plimsoll.experiment import Experiment
from plimsoll.record import writer
from plimsoll.run.refusals import TrialFailed
from plimsoll.run.segments import segments_of
from plimsoll.run.signals import Stopped
from plimsoll.run.soak.round import SoakRound
from plimsoll.run.soak.series import CRASH, SoakSeries
from plimsoll.run.trial.at_work import TrialServer
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.segment import Segment, perform
from plimsoll.run.trial.series import FAILURES_MAX, STOPPED, at_work, begin_session, to_its_result

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext
    from plimsoll.run.soak.series import Clock

FULL_BYTES: Final = 16 * 2**20  # with less the disk is taken to be full


def carry(context: RunContext, log: TrialLog, server: TrialServer, clock: Clock = time.monotonic) -> None:
    """Raises TrialFailed when not a single round was done, Stopped when the run is to end."""
    folder = writer.trial_folder(context.out, log.trial.number)
    folder.mkdir(parents=True, exist_ok=True)
    series = SoakSeries(folder, context.interrupts, log.trial.treatment.settings, clock)
    series.keep_reserve()
    try:
        to_its_result(context, log, server, series, lambda: _until_over(context, log, server, series))
    finally:
        if series.state["result"] is not None:
            series.release_reserve()


def _until_over(context: RunContext, log: TrialLog, server: TrialServer, series: SoakSeries) -> None:
    while True:
        try:
            _one_session(log, server, series)
            return
        except TrialFailed as error:
            series.failures += 1
            series.interrupt(str(error), always=True)
            if series.state["crashes"] and series.state["ended_by"] is None:
                series.end_by_crash()
            if series.state["ended_by"] == CRASH and series.has_data:
                return
            if series.failures >= FAILURES_MAX or not series.has_data:
                raise
            context.observer.event("note", text=f"{error}; the soak continues")
        except Stopped:
            series.interrupt(STOPPED)
            raise
        except (Fault, OSError) as error:
            if not _has_filled_the_disk(context, error):
                series.interrupt(str(error))
                raise
            _make_room(context, series, error)


def _one_session(log: TrialLog, server: TrialServer, series: SoakSeries) -> None:
    """From a start of the server to its end."""
    is_continued = begin_session(log, server, series, "soak")
    series.has_just_started = True
    if is_continued and series.is_over:
        return
    with at_work(log, server, series, is_continued=is_continued) as at:
        perform(_segments(at.settings, series), at, log, series)


def _segments(settings: Experiment, series: SoakSeries) -> Iterator[Segment]:
    """The load of the tables where it is part of the trial, then rounds until the end; each is made when it is due."""
    if settings.workload.loads_itself():
        yield from takewhile(lambda segment: not segment.stands_for_trial, segments_of(settings))
    number = 1
    while (one := SoakRound(number, series)).is_due():
        yield one
        number += 1
    series.end_by(series.ends(number))


def _has_filled_the_disk(context: RunContext, error: Exception) -> bool:
    """That of the data may be full as well, and thinning the record would not help it."""
    if isinstance(error, OSError) and error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return False
    return getattr(error, "errno", None) == errno.EDQUOT or shutil.disk_usage(context.out).free < FULL_BYTES


def _make_room(context: RunContext, series: SoakSeries, error: Exception) -> None:
    """Says so, thins, and goes on. Raises Fault where nothing was left to be thinned."""
    given = series.make_room()
    series.failures += 1
    series.interrupt(f"the disk of the record was full: {error}", always=True)
    if series.failures >= FAILURES_MAX:
        raise Fault(
            f"{context.out}: the disk of the record is full, and its rounds are as thin as they can be",
            remedy="free disk space, then resume: ./plimsoll soak --resume RUN",
        ) from error
    series.keep_reserve()
    context.observer.event("note", text=f"the disk of the record was full: {given} bytes of rounds were thinned away")
