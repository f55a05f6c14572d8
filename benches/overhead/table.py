"""What is printed: computed from pairs and estimates, decided elsewhere."""

from __future__ import annotations

from collections import Counter
from typing import Any

from overhead.arms import Pair
from overhead.judge import Rule, percent

CPU, HOST, TPS = "CPU time a transaction", "the same, whole machine", "throughput"
RUN = "run time of the programs"


def figures(pairs: list[Pair], rule: Rule) -> dict[str, Any]:
    """The figures of one workload: means over pairs, ratios with the interval of one look."""
    without, arm_with = [pair.arm_without for pair in pairs], [pair.arm_with for pair in pairs]
    accounted = [arm for arm in arm_with if any(number for number, _ in arm.runs.values())] or arm_with
    transactions = sum(arm.transactions for arm in accounted)
    programs: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for arm in accounted:
        for name, (number, run_ns) in arm.runs.items():
            runs[name] += number
            programs[name] += run_ns
    run_us = sum(programs.values()) / transactions / 1e3
    host_ns = sum(arm.cpu.host_ns for arm in (*without, *arm_with))
    return {
        "pairs": len(pairs),
        "transactions_an_arm": round(_mean([arm.transactions for arm in arm_with])),
        "work_us": {"without": _mean([a.work_us for a in without]), "with": _mean([a.work_us for a in arm_with])},
        "host_us": {"without": _mean([a.host_us for a in without]), "with": _mean([a.host_us for a in arm_with])},
        "tps": {"without": _mean([a.tps for a in without]), "with": _mean([a.tps for a in arm_with])},
        "percent": {
            CPU: _interval(rule, [pair.work_ratio for pair in pairs]),
            HOST: _interval(rule, [pair.host_ratio for pair in pairs if pair.has_ticks]),
            TPS: _interval(rule, [pair.tps_ratio for pair in pairs]),
            RUN: _interval(rule, [ratio for pair in pairs if (ratio := pair.run_ratio) is not None]),
        },
        "run_us": run_us,
        "run_share_percent": 100 * run_us * transactions * 1e3 / sum(arm.cpu.work_ns for arm in accounted),
        "programs": {
            name: {"runs": runs[name] / transactions, "run_ns": ns / runs[name] if runs[name] else None}
            for name, ns in programs.items()
        },
        "steal_percent": 100 * sum(arm.cpu.steal_ns for arm in (*without, *arm_with)) / host_ns,
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _interval(rule: Rule, ratios: list[float]) -> dict[str, float | None] | None:
    estimate = rule.interval(ratios)
    if estimate is None:
        return None
    ends = {"low": estimate.low, "high": estimate.high}
    return {"value": percent(estimate.value)} | {
        name: None if end is None else percent(end) for name, end in ends.items()
    }


def of(result: dict[str, Any]) -> str:
    """One workload in text."""
    found, (one, two) = result["figures"], result["arms"]
    lines = [
        f"{result['title']}",
        f"  {found['pairs']} pairs of windows with about {found['transactions_an_arm']} transactions each",
        f"  {'':26}{one:>10}{two:>10}   change, {result['confidence']:.2%} interval",
    ]
    for name, key, unit in ((CPU, "work_us", "us"), (HOST, "host_us", "us"), (TPS, "tps", "/s")):
        values = found[key]
        change = _text(found["percent"][name])
        lines.append(f"  {name:26}{values['without']:>10.2f}{values['with']:>10.2f}   {change}   ({unit})")
    if (change := found["percent"][RUN]) is not None:
        lines.append(f"  {RUN:26}{'beside those of the other build':>38} {_text(change)}")
    lines.append(
        f"  run time of its programs  {found['run_us']:>20.3f}   {found['run_share_percent']:+.2f} % of the CPU time"
    )
    for name, program in sorted(found["programs"].items()):
        each = f"{program['run_ns']:.0f} ns a run" if program["run_ns"] is not None else "never run"
        lines.append(f"    {name:38}{program['runs']:>8.3f} runs a transaction, {each}")
    if result["recorder"] is not None:
        lines += _recorder(result["recorder"])
    lines.append(f"  lost: {result['lost']} events; not in the page cache: {result['uncached_bytes']} bytes")
    lines.append(f"  highest load average {result['load_average']:.1f}; steal {found['steal_percent']:.2f} %")
    lines.append(f"  bound {result['bound_percent']:g} %: {result['verdict']}: {result['why']}")
    return "\n".join(lines)


def _recorder(found: dict[str, Any]) -> list[str]:
    """What the agent took beside the load, which is in no window."""
    part = "" if found["unwinding_us"] is None else f", {found['unwinding_us']:.3f} us of it unwinding"
    lost = ", ".join(f"{count} {what}" for what, count in found["lost"].items()) or "nothing"
    share = f"{found['agent_cpu_percent']:.2f} % of one CPU"
    return [
        f"  the agent's own CPU time   {found['agent_us']:>19.3f}   {share}{part}",
        f"    in {found['seconds']:.0f} s with {found['transactions']:.0f} transactions it lost {lost}",
    ]


def _text(interval: dict[str, float | None] | None) -> str:
    if interval is None or interval["low"] is None:
        return "no interval"
    return f"{interval['value']:+.2f} % ({interval['low']:+.2f} to {interval['high']:+.2f})"
