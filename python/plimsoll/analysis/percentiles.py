"""The percentiles of latency that are stated, by the keys that records and verdicts have them under."""

PERCENTILES: dict[str, float] = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}
PERCENTILE_NAMES = {"p999": "p99.9", "p9999": "p99.99"}
