"""The metrics of decision support as levels are compared by them, under DBT-3's names; other workloads have none."""

from dataclasses import replace

from plimsoll.analysis.metric import PROGRESS, Display, Metric

LIKE = "DBT-3-like, derived from TPC-H, not comparable to published results"
WORKLOAD = "decision_support"
LOAD, POWER = "load_test_seconds", "power_queries_per_hour"
THROUGHPUT, COMPOSITE = "throughput_queries_per_hour", "composite_queries_per_hour"
_ABSENT = "absent where a query or refresh function of it failed or timed out"

_METRICS = [
    Metric(
        LOAD,
        "load test",
        "s",
        "log",
        "lower",
        "from the creation of the tables to the end of ANALYZE, rows generated meanwhile and streamed into COPY, keys "
        "and indexes made",
    ),
    Metric(
        POWER,
        "power",
        "queries/hour x scale factor",
        "log",
        "higher",
        "3600 times the scale factor, divided by the geometric mean of the seconds that the 22 queries and two refresh "
        f"functions of one session took; {_ABSENT}",
    ),
    Metric(
        THROUGHPUT,
        "throughput",
        "queries/hour x scale factor",
        "log",
        "higher",
        "streams times 22 queries times 3600 times the scale factor, divided by the seconds from the start of the "
        f"first stream to the end of the last work; of several throughput tests of a trial the first; {_ABSENT}",
    ),
    Metric(
        COMPOSITE,
        "composite",
        "queries/hour x scale factor",
        "log",
        "higher",
        f"geometric mean of power and throughput; {_ABSENT}",
    ),
]
_RATE = Display("queries/hour x scale factor", short_unit="queries/hour × SF")
_TIME = Display("s")
DECISION_SUPPORT_METRICS = [
    replace(
        metric,
        display=_TIME if metric.key == LOAD else _RATE,
        worse="longer" if metric.better == "lower" else "slower",
        figure="tests-judged",
        remark="DBT-3-like, not comparable to published results.",
        beside=("first test", "queries"),
        work="row" if metric.key == LOAD else "query",
        workloads=(WORKLOAD,),
        shown_in=(PROGRESS,),
    )
    for metric in _METRICS
]
NAMES = {metric.key: metric.label for metric in DECISION_SUPPORT_METRICS}
