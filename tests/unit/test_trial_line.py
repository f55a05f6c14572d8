"""The line of a finished trial: what metrics say of themselves."""

from plimsoll.analysis.metric import PROGRESS
from plimsoll.analysis.metrics import METRICS
from plimsoll.words.trial import trial_line


def test_a_trial_of_transactions() -> None:
    values = {"throughput_per_second": 1234.4, "database_hit_ratio": 0.981, "swap_bytes_max": 12.0 * 2**20}
    assert trial_line(values) == (
        "throughput   1,234 transactions/s  database hit ratio    98.1 %  peak swap      12 MiB"
    )
    assert trial_line({"throughput_per_second": 1.0, "database_hit_ratio": None}) == "throughput    1.00 transactions/s"
    assert trial_line({"throughput_per_second": 0.52}) == "throughput    0.52 transactions/s"


def test_nothing_swapped_is_shown_as_zero() -> None:
    assert trial_line({"swap_bytes_max": 0.0}) == "peak swap       0 MiB"


def test_a_workload_with_figures_of_its_own_has_no_rate_of_transactions_beside_them() -> None:
    own = next(metric for metric in METRICS.values() if metric.workloads and PROGRESS in metric.shown_in)
    line = trial_line({own.key: 12.34, "throughput_per_second": 1.0, "database_hit_ratio": 0.5})
    assert line.startswith("database hit ratio") and own.label in line and "12.3" in line and "throughput" not in line


def test_a_trial_of_a_web_server_has_its_requests_and_swap_only_where_it_swapped() -> None:
    values = {"throughput_per_second": 4167.2, "swap_bytes_max": 0.0, "conforming_connections": 16.0}
    said = "throughput   4,167 requests/s"
    assert trial_line(values) == f"{said}  conforming connections      16 connections"
    assert "peak swap       3 MiB" in trial_line(values | {"swap_bytes_max": 3.0 * 2**20})


def test_what_is_not_shown_in_progress_is_left_out() -> None:
    assert trial_line({"latency_ns_p99": 1e6}) == ""
