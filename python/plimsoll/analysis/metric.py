"""What a metric is: a name, a unit, a scale and a definition.

A metric's interval is a t interval over blocks on its scale: on logs where only ratios make sense, plain where zero is
a value (no swap at all is a finding, and has no logarithm).
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """One number of a trial. `better` says which way is better, or None where neither is."""

    key: str
    label: str
    unit: str
    scale: Literal["log", "plain"]
    better: Literal["higher", "lower"] | None
    definition: str
    ceiling: float | None = None
    floor: float | None = 0.0
