"""Rows of the report's tables: values of the verdict and the record, given their unit."""

from datetime import UTC, datetime
from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.comparing.unbounded import reading
from plimsoll.analysis.metric import TRANSACTION, Metric
from plimsoll.analysis.metrics import metric_of
from plimsoll.record import Run
from plimsoll.words.levels import NO_INTERVAL, at_words, ends

Json = dict[str, Any]
NONE = "–"
_TAIL_CHARS = 4000


def number(value: float | None, form: str = ",.1f", scale: float = 1.0) -> str:
    return NONE if value is None else format(value * scale, form)


def trials_words(numbers: list[int]) -> str:
    return f"trial {numbers[0]}" if len(numbers) == 1 else f"{len(numbers)} trials"


def interval(found: Json | None, form: str = ",.1f", scale: float = 1.0) -> str:
    """value [low, high]; "at least value" where a percentile is unbounded in some block"""
    if not found:
        return NONE
    text = format(found["value"] * scale, form)
    if found.get("unbounded") or found.get("bound"):
        return f"at least {text}"
    if found.get("low") is None:
        return text
    return f"{text} [{format(found['low'] * scale, form)}, {format(found['high'] * scale, form)}]"


def _short(value: float | None) -> str:
    """A form with about three significant digits."""
    magnitude = abs(value or 0)
    return ",.0f" if magnitude >= 100 else ".1f" if magnitude >= 10 else ".2f"


def level_tables(verdict: Json) -> list[Json]:
    """One table a comparison: the levels with what decides between them."""
    tables = []
    judged = metric_of(verdict["metric"])
    unit, form_judged, scale = _judged_form(judged)
    for comparison in verdict["comparisons"]:
        rows = []
        for level in comparison["levels"]:
            metrics = (verdict["treatments"].get(level["treatment"]) or {}).get("metrics") or {}
            throughput = metrics.get("throughput_per_second")
            form = _short(throughput and throughput["value"])
            slower = level["times_slower"]
            rows.append(
                {
                    "level": level["level"],
                    "best": level["in_best_set"],
                    "verdict": _word(level),
                    "judged": interval(metrics.get(judged.key), form_judged, scale) if unit else "",
                    "throughput": interval(throughput, form),
                    "slower": NONE if not slower else _times(slower),
                    "against": level["against"] or "",
                    "hit": interval(metrics.get("database_hit_ratio"), ".1f", 100),
                    "reads": interval(metrics.get("device_read_bytes_per_transaction"), ".1f", 1 / 1024),
                    "swap": number((metrics.get("swap_bytes_max") or {}).get("value"), ",.0f", 2.0**-20),
                    "blocks": level["blocks"],
                    "why": level["why"] or "",
                }
            )
        label = {"label": comparison["label"], "at": at_words(comparison)}
        by = {"by_time": judged.worse == "longer", "by_tests": judged.work != TRANSACTION}
        tables.append({**label, **by, "judged_unit": unit, "rows": rows})
    return tables


def _judged_form(judged: Metric) -> tuple[str, str, float]:
    """Unit, form and scale of what is judged; no unit where it is the throughput, which has a column anyway."""
    shown = judged.shown
    return ("", "", 1.0) if judged.is_usual else (shown.axis_unit, shown.form, shown.factor)


def _times(slower: Json) -> str:
    if slower["ratio"] is None:
        return "not known"
    bound = f"{slower['bound']} " if slower.get("bound") else ""
    return f"{bound}{slower['ratio']:.2f} ×" + (f" {ends(slower)}" if ends(slower) != NO_INTERVAL else "")


def _word(level: Json) -> str:
    if level["verdict"] == "cannot tell":
        return "not distinguishable from the best"
    return str(level["verdict"])


def _latency(trial: Json, key: str) -> str:
    """Milliseconds; of a percentile that has no bound the least it can be."""
    value, is_beyond = reading(trial, key)
    return ("> " if is_beyond else "") + number(value, ",.2f", 1e-6)


def trial_rows(verdict: Json) -> list[Json]:
    """Every trial, entered or not."""
    rows = []
    labels = treatment_labels(verdict)
    for trial in verdict["trials"]:
        metrics = trial["metrics"]
        label = labels.get(trial["treatment"], trial["treatment"])
        throughput = metrics.get("throughput_per_second")
        rows.append(
            {
                "number": trial["number"],
                "block": trial["block"],
                "label": label + (" (duplicate)" if trial["duplicate"] else ""),
                "status": "entered"
                if trial["admitted"]
                else "excluded"
                if trial["status"] == "finished"
                else trial["status"],
                "throughput": number(throughput, _short(throughput)),
                "within": _within(trial["throughput"]),
                "p50": _latency(trial, "latency_ns_p50"),
                "p99": _latency(trial, "latency_ns_p99"),
                "hit": number(metrics.get("database_hit_ratio"), ".1f", 100),
                "reads": number(metrics.get("device_read_bytes_per_transaction"), ",.1f", 1 / 1024),
                "wal": number(metrics.get("wal_bytes_per_transaction"), ",.0f"),
                "fpi": number(metrics.get("full_page_images_per_transaction"), ".2f"),
                "swap": number(metrics.get("swap_bytes_max"), ",.0f", 2.0**-20),
                "swap_in": number(metrics.get("swap_in_pages_per_transaction"), ".2f"),
                "swap_out": number(metrics.get("swap_out_pages_per_transaction"), ".2f"),
                "cpu": number(metrics.get("cpu_busy_share"), ".0f", 100),
                "steal": number(metrics.get("cpu_steal_share"), ".1f", 100),
                "warmup": number((trial["stationary"] or {}).get("warmup_seconds"), ".0f"),
                "commits": _commits(trial["commits"]),
            }
        )
    return rows


def _within(found: Json | None) -> str:
    """Half the interval of the mean of the trial's seconds, as a share of it."""
    if not found or found["high"] is None or not found["mean"]:
        return NONE
    return f"{100 * (found['high'] - found['mean']) / found['mean']:.1f}"


def _commits(found: Json) -> str:
    if not found or found.get("ok") is None:
        return NONE
    if not found["ok"]:
        return f"off by {found['excess']}"
    return f"equal (+{found['excess']})" if found["excess"] else "equal"


def exclusions(run: Run, verdict: Json) -> list[Json]:
    """What entered no verdict, with the server's last words."""
    labels = treatment_labels(verdict)
    tails = {trial.number: trial.data.get("server_log_tail") for trial in run.trials}
    return [
        {
            **entry,
            "label": labels.get(entry["treatment"], entry["treatment"]),
            "tail": str(tails.get(entry["trial"]) or "")[-_TAIL_CHARS:],
        }
        for entry in verdict["exclusions"]
    ]


def generator_rows(verdict: Json) -> list[tuple[str, str]]:
    """The generator's health, the worst of the trials that entered."""
    found = verdict["generator"]
    shared = {True: "yes", False: "no", None: NONE}[found["shares_cores"]]
    rows = [
        ("share of the core time it may use", _percent(found["core_share_max"])),
        ("share of the CPU time its threads could have", _percent(found["busy_share_max"])),
        ("mean lag as a share of the mean latency", _percent(found["lag_share_max"])),
        ("shares cores with the server", shared),
        ("CPUs the same in every arm", _placed(found.get("placement") or {})),
    ]
    if found.get("own_lag_share_max") is not None:
        rows.insert(3, ("lag while a connection was free, as a share", _percent(found["own_lag_share_max"])))
    if found.get("connections_busy_share_max") is not None:
        rows.append(("connections busy", _percent(found["connections_busy_share_max"])))
    if found["shares_cores"]:
        rows += [
            ("without it the server could be faster by at most", f"{number(found['explains_ratio_max'], '.2f')} ×"),
            (
                "what its share alone could explain between trials",
                f"{number(found['explains_between_trials_ratio'], '.2f')} ×",
            ),
        ]
    return rows


def _placed(found: Json) -> str:
    if found.get("varied"):
        return "varied by the experiment"
    return {True: "yes", False: "no: see what is excluded", None: NONE}[found.get("equal")]


def _percent(value: float | None) -> str:
    return NONE if value is None else f"{value:.1%}"


def flat(tree: Any, prefix: str = "") -> list[tuple[str, str]]:
    """A nested document as rows of path and value."""
    if isinstance(tree, dict):
        return [row for key, value in tree.items() for row in flat(value, f"{prefix}{'.' if prefix else ''}{key}")]
    if isinstance(tree, list):
        if all(not isinstance(item, dict | list) for item in tree):
            return [(prefix, ", ".join(str(item) for item in tree) or "none")]
        return [row for index, value in enumerate(tree) for row in flat(value, f"{prefix}[{index}]")]
    return [(prefix, "unknown" if tree is None else str(tree))]


def durability(run: Run) -> list[tuple[str, str]]:
    """The settings that decide durability, with every value that was in force in some trial."""
    seen: dict[str, list[str]] = {}
    for trial in run.trials:
        for key, value in ((trial.data.get("server") or {}).get("durability") or {}).items():
            values = seen.setdefault(str(key), [])
            if str(value) not in values:
                values.append(str(value))
    return [(key, " and ".join(values)) for key, values in seen.items()]


def server_settings(run: Run) -> list[tuple[str, str]]:
    """Settings that are not default: the value, or how many values where it was varied."""
    seen: dict[str, list[str]] = {}
    for trial in run.trials:
        server = trial.data.get("server") or {}
        for key, value in {"version": server.get("version"), **(server.get("settings") or {})}.items():
            values = seen.setdefault(str(key), [])
            if value is not None and str(value) not in values:
                values.append(str(value))
    return [(key, ", ".join(values)) for key, values in seen.items() if values]


def when(epoch_ns: int | None) -> str:
    """A point in time, in UTC."""
    if not epoch_ns:
        return NONE
    return datetime.fromtimestamp(epoch_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")
