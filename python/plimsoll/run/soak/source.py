"""What a soak is made of: an experiment with one treatment, its rounds, and what the command line sets.

The fact that constrains it: a soak is not tuned for detail. Probes that cost or fill the record are off, and the
kernel's log and memory are watched; what a soak finds is looked into with a run of the experiment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from plimsoll.analysis.capacity.kind import KIND as CAPACITY
from plimsoll.experiment import Experiment, ExperimentError, Problem, Source, Treatment, load
from plimsoll.experiment.servers.registry import facts_of
from plimsoll.experiment.soaking import LENGTH, seconds_of
from plimsoll.record import Run, open_run
from plimsoll.record.run import read_json
from plimsoll.run.soak.series import ROUNDS_MAX
from plimsoll.run.soak.work import TEST, WORK

Json = dict[str, Any]
# Of an experiment that says nothing of soaks: so many rounds, none shorter or longer than these.
ROUNDS: Final = 56
ROUND_S_MIN, ROUND_S_MAX = 10.0, 6 * 3600.0
# Every transaction is in the histograms; the rows are for looking at single ones.
ROWS_MAX, SAMPLE_ONE_IN = 10_000, 1000
LATE_LIMIT_MS = 10_000.0
_HERE: Final = "command line"


@dataclass(frozen=True)
class Asked:
    """The options of the command line; None: as the experiment has it."""

    length: str | None = None
    round_length: str | None = None
    between: str | None = None
    goes_on: bool | None = None
    rate: float | None = None
    line: Path | None = None
    share: float | None = None


def source_of(name: str, asked: Asked, *, quick: bool = False, sets: list[str] | None = None) -> Source:
    """The experiment as a soak. Raises ExperimentError with every fault found."""
    problems: list[Problem] = []
    length, round_s = (_seconds(key, text, problems) for key, text in _durations(asked))
    rate = _rate(asked, problems)
    if problems:
        raise ExperimentError(problems)
    source = load(name, quick=quick, sets=sets)
    if problems := [*_unfit(source)]:
        raise ExperimentError(problems)
    document = _document(source.treatments[0].settings, asked)
    _set_rounds(document, source, length, round_s)
    if rate is not None:
        document["schedule"] = {"kind": "poisson", "rate": rate, "late_limit_ms": LATE_LIMIT_MS}
    try:
        settings = Experiment.model_validate(document)
    except ValidationError as error:
        told = [(".".join(map(str, one["loc"])), str(one["msg"])) for one in error.errors()]
        raise ExperimentError([Problem(_HERE, key, what) for key, what in told]) from None
    _check_rounds(source, settings)
    treatment = Treatment(source.treatments[0].id, {}, settings)
    return replace(source, experiment=settings, treatments=[treatment])


def _durations(asked: Asked) -> list[tuple[str, str | None]]:
    return [("--for", asked.length), ("--round", asked.round_length)]


def _seconds(key: str, text: str | None, problems: list[Problem]) -> float | None:
    try:
        return None if text is None else seconds_of(text)
    except ValueError as error:
        what, _, allowed = str(error).partition("; allowed: ")
        problems.append(Problem(_HERE, key, what, allowed))
        return None


def _rate(asked: Asked, problems: list[Problem]) -> float | None:
    """Of an open loop: as given, or a share of a load line that was found."""
    if (asked.line is None) != (asked.share is None):
        problems.append(Problem(_HERE, "--line", "a share of a load line takes both", "--line RUN --share 0.7"))
        return None
    if asked.rate is not None and asked.line is not None:
        problems.append(Problem(_HERE, "--rate", "the load line gives the rate already", "--rate, or --line"))
        return None
    if asked.line is None:
        if asked.rate is not None and not asked.rate > 0:
            problems.append(Problem(_HERE, "--rate", f"{asked.rate:g} is no rate", "transactions a second, above 0"))
        return asked.rate
    if not 0 < (asked.share or 0) <= 2:
        problems.append(Problem(_HERE, "--share", f"{asked.share:g} is out of range", "above 0, at most 2"))
        return None
    found = _line_of(open_run(asked.line))
    if found is None:
        what = "it is no search that has found a load line"
        problems.append(Problem(_HERE, f"--line {asked.line}", what, "the folder of a run of `capacity`"))
        return None
    return found * float(asked.share or 0)


def _line_of(run: Run) -> float | None:
    if run.data.get("kind") != CAPACITY:
        return None
    rate = ((read_json(run.path / "capacity.json") or {}).get("line") or {}).get("rate")
    return None if rate is None else float(rate)


def _unfit(source: Source) -> list[Problem]:
    """Why no soak can be made of the experiment."""
    where = str(source.path)
    found = [
        Problem(
            where,
            factor.key,
            f"has {len(factor.levels)} levels, and a soak is of one treatment",
            f"one of them: --set '{factor.key}=LEVEL'",
        )
        for factor in source.experiment.factors
        if len(factor.levels) > 1
    ]
    settings = source.treatments[0].settings
    if settings.kernel_kind != "host":
        what = "a guest kernel shows mechanism, and no soak"
        found.append(Problem(where, "environment.kernel", what, '"host"'))
    if not facts_of(settings.target).recovers:
        named = "target.dsn" if settings.target.dsn is not None else "target.server"
        what = "a soak goes on after kills with the data that it had, and this server is not ours to start again"
        if settings.target.dsn is None:
            what = f"a soak goes on after kills with the data that it had, and {settings.target.server} keeps none"
        found.append(Problem(where, named, what, 'target.server = "postgresql", without target.dsn'))
    if settings.workload.made_of not in WORK:
        what = f"trials of {settings.workload.name} are {settings.workload.made_of}"
        found.append(Problem(where, "workload.name", what, "a workload of transactions, or decision support"))
    tests = getattr(settings.workload, "tests", [TEST])
    if TEST not in tests:
        found.append(Problem(where, "workload.tests", "a soak repeats the throughput test", f'with "{TEST}"'))
    return found


def _document(settings: Experiment, asked: Asked) -> Json:
    """Settings as an experiment file has them, the factors already in their places, with one trial."""
    document = settings.model_dump(mode="json", by_alias=True) | {"factors": [], "quick": {}}
    document["design"] |= {"kind": "full factorial", "blocks": 1, "duplicate": False, "repeat_share_max": 0}
    off = {name: False for name, value in document["probes"].items() if value is True}
    document["probes"] |= off | {"kernel": True, "machine_speed": True}
    soak = document["soak"] or {"length": LENGTH}
    given = {"length": asked.length, "between": asked.between}
    if asked.goes_on is not None:
        given["after_crash"] = "go on" if asked.goes_on else "end"
    document["soak"] = soak | {key: value for key, value in given.items() if value is not None}
    if "reconnect" in document["workload"]:
        document["workload"]["reconnect"] = True  # a server that recovers by itself is gone on with
    return document


def _set_rounds(document: Json, source: Source, length: float | None, round_s: float | None) -> None:
    """How long a round measures; whole tests are as long as they are."""
    settings = source.treatments[0].settings
    if settings.workload.own_seconds(1.0) is not None:
        return
    total = length or seconds_of(document["soak"]["length"])
    if round_s is None:
        has_said = settings.soak is not None and settings.measure.seconds is not None
        usual = min(max(total / ROUNDS, ROUND_S_MIN), ROUND_S_MAX)
        round_s = settings.measure.seconds if has_said else usual
    document["measure"] = {"seconds": round_s, "rows_max": ROWS_MAX, "sample_one_in": SAMPLE_ONE_IN}


def _check_rounds(source: Source, settings: Experiment) -> None:
    each = settings.measure.seconds
    assert settings.soak is not None  # it was set
    if each is not None and settings.soak.seconds / each > ROUNDS_MAX:
        longer = f"--round of at least {settings.soak.seconds / ROUNDS_MAX:.0f}s"
        what = f"rounds of {each:g} s are more than {ROUNDS_MAX} in {settings.soak.length}"
        raise ExperimentError([Problem(str(source.path), "measure.seconds", what, longer)])
