"""The metrics of web serving, as levels are compared by them."""

from typing import Final

from plimsoll.analysis.metric import PROGRESS, Display, Metric

WEB: Final = "web"
CONFORMING, SPEED = "conforming_connections", "connection_bits_per_second"
WEB_METRICS: Final = [
    Metric(
        CONFORMING,
        "conforming connections",
        "connections",
        "log",
        "higher",
        "connections that got their answers at conforming_bits_per_s or faster, over all the time that they asked, "
        "with fewer than one error in a hundred requests",
        display=Display("connections", form=",.0f"),
        figure="conforming-judged",
        beside=("throughput", "requests"),
        work="connection",
        workloads=(WEB,),
        shown_in=(PROGRESS,),
    ),
    Metric(
        SPEED,
        "speed of a connection",
        "bits/s",
        "log",
        "higher",
        "bits that arrived, heads included, divided by the time in which connections waited for an answer or took it",
        display=Display("kbit/s", 1e-3, ",.0f"),
        figure="speed-judged",
        beside=("throughput", "requests"),
        work="bit",
        workloads=(WEB,),
    ),
]
