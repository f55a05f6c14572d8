"""Requests of the block devices as curves: the shares of requests by time, and depth and device time second by second.

The sums of a series count from the first look, just before its first interval: a value is what they grew by.
"""

from typing import Any, TypedDict

import numpy as np

from plimsoll.record import Trial

_POINTS_MAX = 120


class Point(TypedDict):
    """One interval of one curve of a device: `how` is which curve, the value requests or milliseconds."""

    device: str
    how: str
    seconds: float
    value: float


class OverTime(TypedDict):
    """The curves of a trial's measured segment."""

    depth: list[Point]
    device: list[Point]


def cumulative(buckets: list[list[int]]) -> list[tuple[float, float]]:
    """Times in milliseconds, and the share of requests that took no longer."""
    total, seen, points = sum(count for _, count in buckets), 0, []
    every = max(1, len(buckets) // _POINTS_MAX)
    for place, (least, count) in enumerate(buckets):
        seen += count
        if place % every == 0 or place == len(buckets) - 1:
            points.append((max(least, 1) / 1e6, seen / total))
    return points


def of_trial(trial: Trial) -> OverTime | None:
    """The curves of a trial; None where it has no two looks."""
    devices = (((trial.measure.summary or {}).get("probes") or {}).get("block") or {}).get("devices") or []
    looks = trial.measure.series("block_depth")
    depth = depth_rows(looks, devices)
    if looks is None or not depth:
        return None
    return {
        "depth": depth,
        "device": device_rows(trial.measure.series("block"), devices, int(looks["t_ns"][0])),
    }


def depth_rows(table: Any, devices: list[str]) -> list[Point]:
    """Requests at a device in each interval: "mean" and "most"."""
    rows: list[Point] = []
    for place, device in enumerate(devices if table is not None else []):
        mine = table[table["device"] == place]
        began = mine["t_ns"][:-1]
        for at, (since, until) in enumerate(zip(began, mine["t_ns"][1:], strict=True), start=1):
            seconds = round(float(until - mine["t_ns"][0]) / 1e9, 2)
            mean = float(mine["depth_ns"][at] - mine["depth_ns"][at - 1]) / max(1.0, float(until - since))
            rows += [
                {"device": device, "how": "mean", "seconds": seconds, "value": round(mean, 4)},
                {"device": device, "how": "most", "seconds": seconds, "value": int(mine["depth_max"][at])},
            ]
    return rows


def device_rows(table: Any, devices: list[str], began_ns: int) -> list[Point]:
    """Mean milliseconds at the device of "reads", "writes" and "flushes" in each interval."""
    rows: list[Point] = []
    for place, device in enumerate(devices if table is not None else []):
        mine = table[table["device"] == place]
        for number, operation in enumerate(("reads", "writes", "flushes")):
            of = mine[mine["operation"] == number]
            moments, at = np.unique(of["t_ns"], return_inverse=True)
            count, times = (
                np.bincount(at, weights=of[column].astype(float), minlength=len(moments))
                for column in ("count", "device_ns")
            )
            grown, spent = np.diff(count, prepend=0), np.diff(times, prepend=0)
            for moment, more, ns in zip(moments, grown, spent, strict=True):
                if more > 0:
                    seconds, ms = float(moment - began_ns) / 1e9, float(ns / more) / 1e6
                    rows.append(
                        {"device": device, "how": operation, "seconds": round(seconds, 2), "value": round(ms, 4)}
                    )
    return rows
