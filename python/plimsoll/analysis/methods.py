"""How the levels of a run are told apart: a design whose trials tell more than a number each is a line here."""

from __future__ import annotations

from plimsoll.analysis.comparing.evidence import Method, by_trials
from plimsoll.analysis.metric import Metric
from plimsoll.analysis.windows import method as windows
from plimsoll.record import Run

DESIGNS = (windows.method_of,)


def method_of(run: Run, judged: Metric, floor: float) -> Method:
    """The first that the run's record is of; else its trials, one number each, with the noise of a stored A/A."""
    found = (design(run, judged) for design in DESIGNS)
    return next((method for method in found if method is not None), by_trials(floor))
