"""Decision support in sentences: the figures under DBT-3's names, what is absent and why, drift, plans that differ."""

from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.decision_support.document import (
    DecisionSupport,
    QueryChange,
    TimesAsLong,
    TreatmentOfTests,
    Trend,
)
from plimsoll.analysis.decision_support.metrics import LOAD
from plimsoll.analysis.trial.answers import wrong_answers
from plimsoll.words.part import Sentences

Json = dict[str, Any]
_ABSENT_SHOWN = 3
_CHANGES_SHOWN = 3
AGAINST = {"known": "the known ones", "duckdb": "DuckDB's"}


def lines(verdict: Json, labels: dict[str, str]) -> list[str]:
    """A line with the figures of the first treatment that has any, then absences, drift and plans; [] without tests."""
    support = _support(verdict)
    if not support:
        return []
    said = [
        line
        for name, treatment in support["treatments"].items()
        if (line := figures_line(treatment, labels.get(name, name)))
    ][:1]
    return [
        *said,
        *answer_lines(support),
        *absent_lines(support, labels),
        *drift_lines(support, labels),
        *plan_lines(support),
    ]


def _support(verdict: Json) -> DecisionSupport | None:
    return verdict.get("decision_support")


def answer_lines(support: DecisionSupport) -> list[str]:
    """How many answers were compared with what, and in which trials some were wrong; [] where none was."""
    answered = [(trial["number"], trial["answers"]) for trial in support["trials"] if trial["answers"]]
    if not answered:
        return []
    checks = [check for _, answers in answered for check in answers["checks"]]
    right = sum(bool(check["ok"]) for check in checks)
    against = " and ".join(dict.fromkeys(AGAINST[answers["against"]] for _, answers in answered))
    trials = f"{len(answered)} trial" + ("s" if len(answered) > 1 else "")
    said = [f"answers of {trials} as loaded, compared with {against}: {right:,} of {len(checks):,} right"]
    return said + [f"trial {number}: {wrong}" for number, answers in answered if (wrong := wrong_answers(answers))]


def figures_line(treatment: TreatmentOfTests, label: str) -> str | None:
    """The figures of a treatment; None where it has none."""
    parts = []
    for metric, about in treatment["metrics"].items():
        estimate = about["estimate"]
        if estimate is None:
            continue
        unit = " s" if metric == LOAD else ""
        interval = "" if estimate["low"] is None else f" [{estimate['low']:,.1f}, {estimate['high']:,.1f}]"
        parts.append(f"{metric.removesuffix('_seconds').partition('_')[0]} {estimate['value']:,.1f}{unit}{interval}")
    if not parts:
        return None
    streams = f", {treatment['streams']} streams" if treatment["streams"] else ""
    return f"DBT-3-like, scale factor {treatment['scale_factor']:g}{streams} ({label}): {', '.join(parts)}"


def absent_lines(support: DecisionSupport, labels: dict[str, str]) -> list[str]:
    """Trials of which a test has no figure, with the reason."""
    said = [
        f"{labels.get(name, name)}, trial {absent['trial']}: {metric.partition('_')[0]}: {absent['why']}"
        for name, treatment in support["treatments"].items()
        for metric, about in treatment["metrics"].items()
        for absent in about["absent"]
        if not metric.startswith("composite")
    ]
    more = len(said) - _ABSENT_SHOWN
    return said[:_ABSENT_SHOWN] + ([f"and {more} more figures are absent, in the report"] if more > 0 else [])


def drift_lines(support: DecisionSupport, labels: dict[str, str]) -> list[str]:
    """The trend over the throughput tests and the last against the first, of each treatment that repeated them."""
    said = [
        trend_line(treatment["trend"], labels.get(name, name))
        for name, treatment in support["treatments"].items()
        if treatment["trend"]
    ]
    for name, treatment in support["treatments"].items():
        if not treatment["drift"]:
            continue
        last = treatment["drift"][-1]
        change = last["change"]
        if change is None:
            said.append(f"{labels.get(name, name)}: drift unknown: a throughput test has no figure")
            continue
        between = "" if change["low"] is None else f" [{change['low']:+.2%}, {change['high']:+.2%}]"
        against = f"throughput test {last['run']} against the first: {change['value']:+.2%}{between}"
        said.append(f"{labels.get(name, name)}: {against}: {last['verdict']}")
    return said


def trend_line(trend: Trend, label: str) -> str:
    """What became of throughput over a series."""
    if trend["a_test"] is None or trend["over_all"] is None:
        return f"{label}: {trend['verdict']} whether throughput drifts: too few throughput tests have a figure"
    a_test, over_all = (
        f"{estimate['value']:+.2%} [{estimate['low']:+.2%}, {estimate['high']:+.2%}]"
        for estimate in (trend["a_test"], trend["over_all"])
    )
    return (
        f"{label}: throughput over {trend['tests']} tests: {trend['verdict']} "
        f"(by the trend {a_test} from test to test, {over_all} over all)"
    )


def plan_lines(support: DecisionSupport) -> list[str]:
    """Which queries have other plans, by pair of treatments, and which of them are told to be slower or faster."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for plan in support["plans"]:
        if plan["is_told"]:
            pairs.setdefault((plan["first_label"], plan["second_label"]), []).append(
                plan["query"] + _told(plan["change"])
            )
    return [
        f"plans at {second} that differ from those at {first}: {', '.join(names)}"
        for (first, second), names in pairs.items()
    ]


def _told(change: TimesAsLong | None) -> str:
    if change is None or change["verdict"] not in ("slower", "faster"):
        return ""
    return f" ({change['verdict']}: {change['ratio']:.2f} [{change['low']:.2f}, {change['high']:.2f}] times as long)"


def change_lines(support: DecisionSupport) -> list[str]:
    """The queries that take longer or shorter than at the best level, those that differ most, by pair and test."""
    pairs: dict[tuple[str, str, str], list[QueryChange]] = {}
    for change in support["changes"]:
        if change["verdict"] in ("slower", "faster"):
            pairs.setdefault((change["second_label"], change["first_label"], change["test"]), []).append(change)
    lines = []
    for (second, first, test), changes in pairs.items():
        changes.sort(key=lambda change: -max(change["ratio"], 1 / change["ratio"]))
        named = [
            f"{change['query']} {change['ratio']:.2f} [{change['low']:.2f}, {change['high']:.2f}]" for change in changes
        ]
        more = f" and {len(named) - _CHANGES_SHOWN} more" if len(named) > _CHANGES_SHOWN else ""
        shown = ", ".join(named[:_CHANGES_SHOWN])
        lines.append(f"{second} against {first}, {test} test, times as long: {shown}{more}")
    return lines


def _leads(verdict: Json) -> list[str]:
    """Of a run that compares nothing its series are the answer."""
    support = _support(verdict)
    return drift_lines(support, treatment_labels(verdict)) if support and not verdict["comparisons"] else []


def _explains(verdict: Json) -> list[str]:
    support = _support(verdict)
    return [*change_lines(support)[:1], *plan_lines(support)[:1]] if support else []


def _adds(verdict: Json) -> list[str]:
    """The figures, and of levels compared what drifts; what is absent or wrong is a warning."""
    support, labels = _support(verdict), treatment_labels(verdict)
    if not support:
        return []
    figures = (figures_line(treatment, labels.get(name, name)) for name, treatment in support["treatments"].items())
    drift = drift_lines(support, labels) if verdict["comparisons"] else []
    return [*[line for line in figures if line][:1], *drift]


def _warns(verdict: Json) -> list[str]:
    support, labels = _support(verdict), treatment_labels(verdict)
    if not support:
        return []
    answers = answer_lines(support)
    # The first counts them; what is wrong follows it.
    return [*(answers if len(answers) > 1 else []), *absent_lines(support, labels)]


SENTENCES = Sentences(
    "decision_support", leads=_leads, explains=_explains, adds=_adds, warns=_warns, section="decision-support"
)
