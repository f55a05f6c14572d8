"""The metrics of loads on files, as levels are compared by them: rates in bytes, and the CPU time that a MB takes.

Of a phase (one pass over files) there is a metric each, because a trial has one of every phase.
"""

from typing import Final

from plimsoll.analysis.metric import PROGRESS, Display, Metric

RAW_STORAGE, SEQUENTIAL_IO = "raw_storage", "sequential_io"
FILES, FILE_SERVING = "files", "file_serving"
BYTES_RATE, CPU_COST = "bytes_per_second", "cpu_ns_per_mb"
MB = 1e6
# As Bonnie prints them; it performs the rewriting before the writing by blocks.
OF_BONNIE: Final = ("putc", "write", "rewrite", "getc", "read", "seeks")
OF_IOZONE: Final = (
    *("write", "rewrite", "read", "reread", "random_read", "random_write", "mixed", "backward_read", "stride_read"),
    *("pwrite", "pread"),
)
SEEKS: Final = "seeks"
_MB_PER_SECOND = Display("MB/s", 1 / MB, ",.1f")
_CPU = Display("ms/MB", 1e-6, ",.3f", tip=",.3f")
_BYTES = (
    "payload of the operations that were done, divided by the time from the common start to the last operation's end"
)
_COST = (
    "time not idle, iowait or steal of all CPUs of the host, the kernel's own threads included, for each 1,000,000 "
    "bytes of payload"
)


def rate_of(phase: str) -> str:
    """The metric that is a phase's rate."""
    return "seeks_per_second" if phase == SEEKS else f"{phase}_{BYTES_RATE}"


def cost_of(phase: str) -> str:
    """The metric that is a phase's CPU cost."""
    return f"{phase}_{CPU_COST}"


def name_of(phase: str) -> str:
    """A phase in words."""
    return phase.replace("_", " ")


def _workloads(phase: str) -> tuple[str, ...]:
    of = ((RAW_STORAGE, OF_BONNIE), (SEQUENTIAL_IO, OF_IOZONE))
    return tuple(workload for workload, phases in of if phase in phases)


def _of_phase(phase: str) -> list[Metric]:
    is_seeks = phase == SEEKS
    rate = Metric(
        rate_of(phase),
        name_of(phase),
        "seeks/s" if is_seeks else "bytes/s",
        "log",
        "higher",
        f"{name_of(phase)}: {'seeks, divided by the time of all of them' if is_seeks else _BYTES}",
        display=Display("seeks/s", form=",.1f") if is_seeks else _MB_PER_SECOND,
        figure="phase-judged",
        beside=("first phase", "operations"),
        work="seek" if is_seeks else "byte",
        workloads=_workloads(phase),
        shown_in=(PROGRESS,),
    )
    cost = Metric(
        cost_of(phase),
        f"CPU of {name_of(phase)}",
        "ns/MB",
        "log",
        "lower",
        f"{name_of(phase)}: {_COST}",
        display=_CPU,
        worse="dearer",
        figure="phase-judged",
        beside=("first phase", "operations"),
        work="MB",
        workloads=_workloads(phase),
    )
    return [rate, cost]


PHASE_METRICS: Final = [metric for phase in dict.fromkeys((*OF_BONNIE, *OF_IOZONE)) for metric in _of_phase(phase)]
MIX_METRICS: Final = [
    Metric(
        BYTES_RATE,
        "bytes moved",
        "bytes/s",
        "log",
        "higher",
        "bytes read and written by operations that were done in the measured segment, divided by its length",
        display=_MB_PER_SECOND,
        figure="bytes-judged",
        beside=("throughput", "operations"),
        work="byte",
        workloads=(FILES, FILE_SERVING),
        shown_in=(PROGRESS,),
    ),
    Metric(
        CPU_COST,
        "CPU of a MB",
        "ns/MB",
        "log",
        "lower",
        _COST,
        display=_CPU,
        worse="dearer",
        figure="bytes-judged",
        beside=("throughput", "operations"),
        work="MB",
        workloads=(FILES, FILE_SERVING),
    ),
]
