"""What a metric is: a name, a unit, a scale and a definition; and how people read and say it.

A metric's interval is a t interval over blocks on its scale: on logs where only ratios make sense, plain where zero is
a value (no swap at all is a finding, and has no logarithm). Values are in raw units; what is written is the value times
the factor of its display.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from plimsoll.record import Trial

EVIDENCE: Final = "evidence"  # what may explain a difference of levels, where nothing else does
PROGRESS: Final = "progress"  # the line of a trial that has just finished
# Units of work, as people call them.
TRANSACTION: Final = "transaction"
OPERATION: Final = "operation"
REQUEST: Final = "request"


@dataclass(frozen=True)
class Display:
    """How a metric is written: its value times `factor` in `unit`, by `form`, a format specification."""

    unit: str
    factor: float = 1.0
    form: str = ",.1f"
    # On axes and heads of columns, where room is short; `unit` where not given.
    short_unit: str = ""
    # Of figures: the form of a tooltip, of the axis, and whether the axis is logarithmic.
    tip: str = ",.1f"
    axis: str = ",~r"
    is_axis_log: bool = False

    def of(self, unit: str) -> "Display":
        """The same where a unit of work is a `unit`."""
        said = [text.replace(TRANSACTION, unit) for text in (self.unit, self.short_unit)]
        return replace(self, unit=said[0], short_unit=said[1])

    @property
    def axis_unit(self) -> str:
        """The unit where room is short."""
        return self.short_unit or self.unit


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
    # --- in words: the name in a line, where it is not the label; how it is written; what a worse level is
    short: str = ""
    display: Display | None = None
    worse: str = "slower"
    # --- as what is judged: whether that goes without saying, whether a value may be only the least it can be, the
    # name of its figure, and what always stands beside it
    is_usual: bool = False
    may_be_unbounded: bool = False
    is_of_windows: bool = False  # whether the windows of a run tell it themselves
    figure: str = ""
    remark: str = ""
    # What a trial's throughput is called beside it, and of what that is.
    beside: tuple[str, str] = ("throughput", "transactions")
    # --- what it is of, where it is a rate or a time of units of work; the workloads that alone have it; who shows it
    work: str | None = None
    workloads: tuple[str, ...] = ()
    shown_in: tuple[str, ...] = ()
    none_is_news: bool = True  # whether 0 is worth saying beside a workload's own figures

    @property
    def name(self) -> str:
        """What it is called in a sentence or a line."""
        return self.short or self.label

    def of(self, unit: str) -> "Metric":
        """The same where a unit of work is a `unit`: a request, an operation."""
        if unit == TRANSACTION:
            return self
        said = {key: getattr(self, key).replace(TRANSACTION, unit) for key in ("label", "unit", "definition", "short")}
        beside = (self.beside[0], self.beside[1].replace(TRANSACTION, unit))
        work = self.work and self.work.replace(TRANSACTION, unit)
        return replace(self, **said, beside=beside, display=self.display and self.display.of(unit), work=work)

    @property
    def shown(self) -> Display:
        """How it is written; in its raw unit where nothing else was said."""
        return self.display or Display(self.unit)


@dataclass(frozen=True)
class Measures:
    """What a room measures: its metrics, and their values for one trial (None: not known, absent: it has none)."""

    metrics: Sequence[Metric]
    values: Callable[[Trial], Mapping[str, float | None]]
