"""What a verdict on a guest kernel cannot say, from what the record tells of the guest.

The fact that constrains it: a guest of user-mode-linux is processes of the host. Counts, orders and mechanisms are
those of a kernel like any other; times are those of a host that emulates it.
"""

from typing import Any

from plimsoll.analysis.guest.document import ClockOfBoot, GuestOfRun
from plimsoll.analysis.part import Context, Part

Json = dict[str, Any]
KEY = "guest"
SPEED, CPUS, TICK, PROBES, IMAGES, SWEEPS = "speed", "cpus", "tick", "probes", "images", "sweeps"
CANNOT = (SPEED, CPUS, TICK, PROBES, IMAGES, SWEEPS)
DRIFT_PPM_MAX = 1000.0  # a time that is wrong by a thousandth changes no verdict


def clock_of(boot: Json) -> ClockOfBoot:
    """Both comparisons of a boot in one."""
    start, end = boot.get("start"), boot.get("end")
    comparisons = [comparison for comparison in (start, end) if comparison]
    clock: ClockOfBoot = {
        "skew_start_ns": start["skew_ns"] if start else None,
        "skew_end_ns": end["skew_ns"] if end else None,
        "uncertain_ns": max(comparison["round_trip_ns"] for comparison in comparisons) // 2 if comparisons else None,
        "drift_ppm": None,
    }
    if start and end and (passed := end["host_epoch_ns"] - start["host_epoch_ns"]) > 0:
        clock["drift_ppm"] = (end["skew_ns"] - start["skew_ns"]) / passed * 1e6
    return clock


def guest_of(told: Json) -> GuestOfRun:
    """From the `guest` of run.json."""
    hz, traced, cpus = told.get("hz"), bool(told.get("probes_in_the_kernel")), int(told.get("cpus") or 1)
    boots = [clock_of(boot) for boot in told.get("boots") or []]
    accelerator = told.get("accelerator")  # of QEMU alone, whose timers are finer than a tick
    is_fast = accelerator == "kvm"
    absent = {
        SPEED: is_fast, CPUS: cpus > 1, TICK: not hz or accelerator is not None, PROBES: traced,
        SWEEPS: accelerator is not None,
    }  # fmt: skip
    return {
        "kernel": str(told.get("kernel")),
        "version": str(told.get("version")),
        "memory_bytes": int(told.get("memory_bytes") or 0),
        "parameters": str(told.get("parameters") or ""),
        "cpus": cpus,
        "accelerator": None if accelerator is None else str(accelerator),
        "tick_ms": 1000 / hz if hz and accelerator is None else None,
        "probes_in_the_kernel": traced,
        "cannot": [name for name in CANNOT if not absent.get(name)],
        "boots": boots,
        "drifts": any(abs(boot["drift_ppm"] or 0) > DRIFT_PPM_MAX for boot in boots),
    }


def _judge(context: Context) -> GuestOfRun | None:
    told = context.run.data.get(KEY)
    return guest_of(told) if isinstance(told, dict) else None


PART = Part(KEY, judge=_judge)
