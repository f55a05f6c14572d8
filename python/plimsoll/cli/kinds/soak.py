"""Soaks: one server for days, judged and drawn as a run of an experiment is."""

from __future__ import annotations

from pathlib import Path

from plimsoll.analysis.soak import kind
from plimsoll.cli.kinds.experiment import ExperimentRuns
from plimsoll.cli.kinds.kind import Refusal


class Soaks(ExperimentRuns):
    """What `soak` makes."""

    key = kind.KIND
    did = "soaked one server"
    no_comparison = Refusal(
        "a soak sets its own rounds against one another, and varied nothing",
        "two runs of an experiment, or of capacity",
    )
    no_treatments = "a soak varied nothing and has no treatments to compare"

    def resume(self, out: Path, as_json: bool, metrics: int | None, draws: bool, does_failed_again: bool) -> int:
        """The rounds that its time is enough for."""
        from plimsoll.cli import soak

        del metrics, does_failed_again  # a soak has one trial, and tells no metrics
        return soak.resume(out, as_json=as_json, draws=draws)


KIND = Soaks()
