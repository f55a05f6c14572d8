"""One trial from beginning to end, on whichever server and made of whatever segments: the registries say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.run.segments import segments_of
from plimsoll.run.servers.kind import ServerOfTrial
from plimsoll.run.trial.at_work import TrialServer
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.segment import Progress, perform
from plimsoll.run.trial.series import carry

if TYPE_CHECKING:
    from plimsoll.run.carrier import Carrier
    from plimsoll.run.context import RunContext


def carry_out(carrier: Carrier, server_of: ServerOfTrial) -> None:
    """Every trial that has no result, one after the other, each on a machine that was put back after the last."""
    for trial in carrier.left:
        carrier.one(trial, lambda log: run_trial(carrier, log, server_of(log)))


def run_trial(context: RunContext, log: TrialLog, server: TrialServer) -> None:
    """Raises TrialFailed when it has no result, Stopped when the run is to end; everything is put back."""
    segments = segments_of(log.trial.treatment.settings)
    if server.data_outlive_kills:
        carry(context, log, server, segments)
        return
    with server.opened(log) as at:
        perform(segments, at, log, Progress())
