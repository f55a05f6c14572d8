"""The objective a load line is asked for: `p99 <= 20ms and errors <= 0.1%`, read and refused by name.

An operation that failed, was lost, or was skipped because it would have started too late met no objective: it counts
as slower than any limit. With an `errors` term the failed ones count against that term alone.

`conforming >= 95%` asks for something else than a rate: for how many connections, each with a line's speed, so many
get their answers fast enough.
"""

import re
from dataclasses import dataclass

from plimsoll.analysis.capacity.document import ObjectiveAsked, PercentileLimit

LEVEL_MIN, LEVEL_MAX = 50.0, 99.99
LIMIT_NS_MAX = 3_600_000_000_000
ALLOWED = (
    "p50 to p99.99 with a time, such as 'p99 <= 20ms', and 'errors <= 0.1%'; several joined by 'and' or commas; units "
    "us, ms and s; or of web serving 'conforming >= 95%' alone"
)
_UNITS = {"us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_TERM = re.compile(r"^(?P<what>[a-zA-Z]+)\s*(?P<level>[\d.]*)\s*(?P<sign><=|≤|<|>=|≥|>|==|=)\s*(?P<value>.+)$")
_NUMBER = re.compile(r"^(\d+(?:\.\d+)?)\s*([a-zA-Zµ%]*)$")


@dataclass(frozen=True)
class Percentile:
    """At least `level` per cent of the operations take no longer than `limit_ns`, from planned start to last reply."""

    level: float
    limit_ns: float

    @property
    def name(self) -> str:
        """p99, p99.9"""
        return f"p{self.level:g}"

    @property
    def share(self) -> float:
        """The level as a share of 1."""
        return self.level / 100

    def __str__(self) -> str:
        return f"{self.name} <= {time_words(self.limit_ns)}"


@dataclass(frozen=True)
class Objective:
    """What has to hold at once. `errors` is a share of 1, None where no term speaks of errors.

    `conforming`: the share of connections that have to conform; then it is the only term, and None elsewhere.
    """

    percentiles: tuple[Percentile, ...]
    errors: float | None
    conforming: float | None = None

    def __str__(self) -> str:
        if self.conforming is not None:
            return f"conforming >= {self.conforming * 100:g}%"
        terms = [str(one) for one in self.percentiles]
        return " and ".join(terms + ([] if self.errors is None else [f"errors <= {self.errors * 100:g}%"]))

    @property
    def limit_ns_max(self) -> float:
        """The loosest limit: how long an operation may be under way and still meet some term; 0 without any."""
        return max((one.limit_ns for one in self.percentiles), default=0.0)

    def as_json(self) -> ObjectiveAsked:
        """The objective as capacity.json keeps it."""
        terms: list[PercentileLimit] = [{"level": one.level, "limit_ns": one.limit_ns} for one in self.percentiles]
        asked: ObjectiveAsked = {"text": str(self), "percentiles": terms, "errors": self.errors}
        return asked if self.conforming is None else {**asked, "conforming": self.conforming}


def time_words(ns: float) -> str:
    """20 ms, 1.5 s, 800 us: three significant digits."""
    for unit, factor in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= factor or unit == "us":
            return f"{ns / factor:.3g} {unit}"
    raise AssertionError  # the last unit takes everything


def from_json(document: ObjectiveAsked) -> Objective:
    """The objective that `as_json` wrote."""
    terms = tuple(Percentile(float(one["level"]), float(one["limit_ns"])) for one in document["percentiles"])
    return Objective(
        terms, None if document["errors"] is None else float(document["errors"]), document.get("conforming")
    )


def parse(text: str) -> Objective:
    """Reads an objective. Raises ValueError that names the term and what is wrong with it."""
    parts = [part.strip() for part in re.split(r"\band\b|,", text)]
    if not any(parts):
        raise ValueError("is empty")
    percentiles: list[Percentile] = []
    errors: float | None = None
    if len(parts) == 1 and (term := _TERM.match(parts[0])) is not None and term["what"] == "conforming":
        return Objective((), None, _conforming(parts[0], term))
    for part in parts:
        if not part:
            raise ValueError(f"{text!r} has an empty term")
        term = _TERM.match(part)
        if term is None:
            raise ValueError(f"{part!r} is not a term")
        if term["what"] == "conforming":
            raise ValueError(f"{part!r} asks for connections and the other terms for a rate: give it alone")
        if term["sign"] not in ("<=", "≤"):
            raise ValueError(f"{part!r}: {term['sign']!r} is not allowed, an objective is an upper limit: '<='")
        if term["what"] == "errors" and not term["level"]:
            if errors is not None:
                raise ValueError(f"{part!r}: errors are given twice")
            errors = _share(part, term["value"])
        elif term["what"] == "p":
            wanted = Percentile(_level(part, term["level"]), _time_ns(part, term["value"]))
            if any(known.level == wanted.level for known in percentiles):
                raise ValueError(f"{part!r}: {wanted.name} is given twice")
            percentiles.append(wanted)
        elif term["what"] in ("mean", "avg", "average"):
            raise ValueError(f"{part!r}: a mean hides the slow operations; name a percentile")
        else:
            raise ValueError(f"{part!r}: {term['what']}{term['level']} is not known")
    if not percentiles:
        raise ValueError(f"{text!r} names no percentile: without a limit of time every rate would hold")
    return Objective(tuple(sorted(percentiles, key=lambda wanted: wanted.level)), errors)


def _conforming(part: str, term: re.Match[str]) -> float:
    if term["sign"] not in (">=", "≥") or term["level"]:
        raise ValueError(f"{part!r}: {term['sign']!r} is not allowed, of conforming connections it is at least: '>='")
    share = _share(part, term["value"])
    if not share:
        raise ValueError(f"{part!r}: the share has to be above 0%")
    return share


def _level(part: str, text: str) -> float:
    if not re.fullmatch(r"\d+(\.\d{1,2})?", text):
        raise ValueError(f"{part!r}: {text or 'nothing'!r} is not a percentile (at most two decimals)")
    level = float(text)
    if not LEVEL_MIN <= level <= LEVEL_MAX:
        raise ValueError(f"{part!r}: p{level:g} is outside p{LEVEL_MIN:g} to p{LEVEL_MAX:g}")
    return level


def _time_ns(part: str, text: str) -> float:
    amount = _NUMBER.match(text.strip())
    if amount is None:
        raise ValueError(f"{part!r}: {text.strip()!r} is not a time")
    if amount[2] not in _UNITS:
        raise ValueError(
            f"{part!r}: {amount[2]!r} is not a unit of time" if amount[2] else f"{part!r}: the unit is missing"
        )
    limit = float(amount[1]) * _UNITS[amount[2]]
    if not 0 < limit <= LIMIT_NS_MAX:
        raise ValueError(f"{part!r}: the limit has to be above 0 and at most an hour")
    return limit


def _share(part: str, text: str) -> float:
    amount = _NUMBER.match(text.strip())
    if amount is None or amount[2] != "%":
        raise ValueError(f"{part!r}: {text.strip()!r} is not a percentage")
    share = float(amount[1]) / 100
    if not 0 <= share < 1:
        raise ValueError(f"{part!r}: the share has to be at least 0% and below 100%")
    return share
