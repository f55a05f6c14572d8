"""What a load line is asked of: a workload by name with sensible defaults, or an experiment with one treatment."""

from __future__ import annotations

import json
import resource
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from plimsoll.analysis.capacity import objective as capacity_objective
from plimsoll.analysis.capacity.objective import Objective
from plimsoll.analysis.capacity.reading import Reading
from plimsoll.experiment import Experiment, ExperimentError, Problem, Source, Treatment, load, shipped
from plimsoll.experiment.reading.source import find
from plimsoll.experiment.workload import BY_NAME

WORKLOADS = {
    "bank": "capacity_bank.toml",
    "order_entry": "capacity_order_entry.toml",
    "wpi_orders": "capacity_wpi_orders.toml",
    "files": "capacity_files.toml",
    "web": "capacity_web.toml",
}
# Those whose connections have lines, where it is connections that are looked for.
WITH_LINES = {"web": "capacity_web_lines.toml"}
MINUTES, MINUTES_QUICK = 10.0, 3.0
MINUTES_MIN, MINUTES_MAX = 0.5, 24 * 60.0
ARRIVALS = ("poisson", "constant")
# Every operation is in the histograms; the rows are for looking at single ones.
ROWS_MAX, SAMPLE_ONE_IN = 100_000, 1000
LATE_FACTOR, LATE_MS_MIN = 10.0, 2000.0
CONNECTIONS_MAX, DESCRIPTORS_BESIDE = 10_000, 200


def objective_of(text: str) -> Objective:
    """The objective of --slo. Raises ExperimentError."""
    try:
        return capacity_objective.parse(text)
    except ValueError as error:
        raise ExperimentError([Problem("command line", "--slo", str(error), capacity_objective.ALLOWED)]) from None


def check_options(minutes: float | None, arrivals: str, clients: int | None) -> list[Problem]:
    """What is wrong with the options that no experiment file knows."""
    problems = []
    if minutes is not None and not MINUTES_MIN <= minutes <= MINUTES_MAX:
        allowed = f"{MINUTES_MIN:g} to {MINUTES_MAX:g}"
        problems.append(Problem("command line", "--minutes", f"{minutes:g} is out of range", allowed))
    if arrivals not in ARRIVALS:
        problems.append(Problem("command line", "--arrivals", f"{arrivals!r} is not known", " or ".join(ARRIVALS)))
    if clients is not None and not 1 <= clients <= 10_000:
        problems.append(Problem("command line", "--clients", f"{clients} is out of range", "1 to 10000"))
    return problems


def source_of(
    what: str,
    *,
    quick: bool,
    sets: list[str] | None,
    clients: int | None,
    dsn: str | None,
    has_lines: bool = False,
) -> Source:
    """Reads WHAT with what the command line sets. Raises ExperimentError with every fault found.

    `has_lines`: it is connections that are looked for.
    """
    given = list(sets or [])
    if clients is not None:
        given.append(f"workload.clients={clients}")
    if dsn is not None:
        given.append(f"target.dsn={json.dumps(dsn)}")
    path = _path(what, WORKLOADS | WITH_LINES if has_lines else WORKLOADS)
    source = load(str(path), quick=quick, sets=given)
    _one_treatment(source)
    treatment = source.treatments[0]
    _no_users(source, treatment.settings)
    _no_guest(source, treatment.settings)
    document = _document(treatment.settings)
    # They take time that operations would wait for.
    document["probes"] |= {name: False for name, value in document["probes"].items() if value is True}
    if what in WORKLOADS and treatment.settings.target.dsn:
        document["target"]["settings"] = {}  # ours, for a private server; --set target.settings is refused later
        document["warmup"]["prewarm"] = False
        chosen = [setting for setting in given if setting.partition("=")[0].strip().startswith("target.settings")]
        if chosen:
            allowed = "a private server, without --dsn"
            what_wrong = "an existing server is never configured"
            raise ExperimentError([Problem(f"--set {chosen[0]}", "target.settings", what_wrong, allowed)])
    settings = Experiment.model_validate(document)
    return replace(
        source,
        experiment=settings,
        treatments=[Treatment(treatment.id, {}, settings)],
        changed=bool(given),
    )


def _path(what: str, files: Mapping[str, str]) -> Path:
    if what in files:
        return Path(__file__).with_name(files[what])
    try:
        return find(what).absolute()
    except ExperimentError:
        if "/" in what or what.endswith(".toml"):
            raise
        known = ", ".join([*WORKLOADS, *(file.parent.name for file in shipped())])
        why = "neither a workload nor an experiment that ships has this name"
        if what in BY_NAME and BY_NAME[what].is_users_own:
            why = "scripts need an experiment file that names them"
        raise ExperimentError([Problem(what, "what", why, f"{known}, or a path to an experiment.toml")]) from None


def _one_treatment(source: Source) -> None:
    problems = [
        Problem(
            str(source.path),
            factor.key,
            f"has {len(factor.levels)} levels, but a load line is measured for one treatment",
            f"one of them: --set '{factor.key}=LEVEL'",
        )
        for factor in source.experiment.factors
        if len(factor.levels) > 1
    ]
    if problems:
        raise ExperimentError(problems)


def _no_users(source: Source, settings: Experiment) -> None:
    if (why := settings.workload.no_load_line()) is not None:
        raise ExperimentError([Problem(str(source.path), *why)])


def _no_guest(source: Source, settings: Experiment) -> None:
    if settings.kernel_kind != "host":
        what = "a load line is a rate, and a guest kernel shows mechanism and not speed"
        raise ExperimentError([Problem(str(source.path), "environment.kernel", what, '"host"')])


def _document(settings: Experiment) -> dict[str, Any]:
    """Settings as an experiment file has them, the factors already in their places; a search has a plan of its own."""
    document = settings.model_dump(mode="json", by_alias=True) | {"factors": [], "quick": {}}
    return document | {"design": document["design"] | {"kind": "full factorial"}, "soak": None}


def settings_for(
    base: Experiment,
    schedule: dict[str, Any],
    seconds: float,
    *,
    warm: bool,
    clients: int | None = None,
    has_lines: bool = True,
) -> Experiment:
    """The settings of one trial: this schedule for so long; `warm`: with the warm-up of the experiment.

    `clients`: of a search over connections how many, each with its line unless all are to take what comes.
    """
    document = _document(base)
    if clients is not None:
        document["workload"] = base.workload.with_connections(clients, has_lines=has_lines)
    document["schedule"] = schedule
    document["measure"] = {"seconds": seconds, "rows_max": ROWS_MAX, "sample_one_in": SAMPLE_ONE_IN}
    if not warm:
        document["warmup"] |= {"until": "none", "prewarm": False}
    return Experiment.model_validate(document)


def late_limit_ms(objective: Objective) -> float:
    """An operation that starts later than this is skipped: it broke the objective long ago, and bounds the queue."""
    return max(LATE_MS_MIN, LATE_FACTOR * objective.limit_ns_max / 1e6)


def lines_max() -> int:
    """How many connections a search may come to: as many as a load may have, and as the load has descriptors for."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS_MAX if most < 0 else max(1, min(CONNECTIONS_MAX, (most - DESCRIPTORS_BESIDE) // 2))


def lines_full(settings: Experiment, reading: Reading) -> float:
    """How many of the experiment's lines would be full with what a trial has received."""
    speed = settings.workload.line_speed()
    assert speed is not None  # a search over connections was refused without
    return (reading.received_bytes_per_second or 0.0) * 8 / speed


def check_lines(source: Source, objective: Objective) -> None:
    """Raises ExperimentError where connections are asked for of a workload whose connections have no speed."""
    settings = source.treatments[0].settings
    if objective.conforming is None or settings.workload.line_speed() is not None:
        return
    what = f"{objective} is about connections with a line's speed, and {settings.workload.name} gives them none"
    allowed = "web with workload.line_bits_per_s, or an objective of a percentile, such as 'p99 <= 20ms'"
    raise ExperimentError([Problem("command line", "--slo", what, allowed)])


def subject_of(what: str, settings: Experiment) -> str:
    """What the line is of, in a few words."""
    workload = settings.workload
    text = workload.subject()
    name = "" if what in WORKLOADS else f"{settings.name}: "
    mode = workload.how_sent().get("mode", "prepared")
    sent = "" if mode == "prepared" else f", {mode} statements"
    return f"{name}{text}, {workload.clients} {workload.clients_called}{sent}"
