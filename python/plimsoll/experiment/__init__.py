"""The question: what is varied, on what, under what load, how often. Pure: reads one file, touches no machine."""

from plimsoll.experiment.design import Plan, PlannedTrial, Treatment, plan_trials
from plimsoll.experiment.errors import ExperimentError, Problem
from plimsoll.experiment.model import Experiment
from plimsoll.experiment.reading.source import Source, load, shipped

__all__ = [
    "Experiment",
    "ExperimentError",
    "Plan",
    "PlannedTrial",
    "Problem",
    "Source",
    "Treatment",
    "load",
    "plan_trials",
    "shipped",
]
