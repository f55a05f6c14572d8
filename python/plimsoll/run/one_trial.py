"""One trial from beginning to end, on whichever server and made of whatever segments: the registries say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.run.segments import segments_of
from plimsoll.run.trial.at_work import TrialServer
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.segment import Progress, perform
from plimsoll.run.trial.series import carry

if TYPE_CHECKING:
    from plimsoll.run.context import RunContext


def run_trial(context: RunContext, log: TrialLog, server: TrialServer) -> None:
    """Raises TrialFailed when it has no result, Stopped when the run is to end; everything is put back."""
    segments = segments_of(log.trial.treatment.settings)
    if server.data_outlive_kills:
        carry(context, log, server, segments)
        return
    with server.opened(log) as at:
        perform(segments, at, log, Progress())
