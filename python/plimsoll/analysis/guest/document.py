"""What verdict.json has under `guest` (schema/verdict.md)."""

from typing import TypedDict


class ClockOfBoot(TypedDict):
    """The guest's clock less the host's over one boot; None where one of the two could not be asked."""

    skew_start_ns: int | None
    skew_end_ns: int | None
    uncertain_ns: int | None  # half of the longer round trip: each skew is known to so much
    drift_ppm: float | None


class GuestOfRun(TypedDict):
    """Of a run on a guest kernel."""

    kernel: str
    version: str
    memory_bytes: int
    parameters: str  # of its boot, those that the experiment asked for
    cpus: int
    accelerator: str | None  # of QEMU: kvm, whose times are times, or tcg, which emulates
    tick_ms: float | None  # to which its delays round
    probes_in_the_kernel: bool
    cannot: list[str]  # the names of what the verdict cannot say, in the order of part.CANNOT
    boots: list[ClockOfBoot]
    drifts: bool  # whether in any boot the clocks have moved apart by more than matters
