"""What workloads on files share: they are on a folder, and are made of operations or of phases."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.experiment import size
from plimsoll.experiment.schedule import Closed, Schedule
from plimsoll.experiment.strict import Size
from plimsoll.experiment.workloads.base import FILES, PHASES, AnyWorkload, Json, NotAsked

Engine = Literal["sync", "io_uring"]
NOT_VERIFIED = "not verified: what is read is not compared with what was written (verify = false)"
Clients = Annotated[int, Field(ge=1, le=10_000)]
BLOCK_BYTES = 4096
SECTOR_BYTES = 512
# A guess, of a disk that is not slow: what a phase moves in a second.
PHASE_BYTES_PER_S = 200 * 2**20


class OnFiles(AnyWorkload, ABC):
    """A workload on files of a folder."""

    on: ClassVar[str] = FILES
    clients_called: ClassVar[str] = "sessions"


class PassesOverFiles(OnFiles, ABC):
    """A workload whose trials are phases one after the other, each with a beginning and an end of its own."""

    made_of: ClassVar[str] = PHASES

    verify: bool = Field(
        True,
        description="whether what is read is compared with what was written; false: it is not, which costs no CPU time",
    )

    @abstractmethod
    def phases_run(self) -> list[str]:
        """Its phases, in their order."""

    @abstractmethod
    def phase_request(self, phase: str, memory_bytes: int) -> Json:
        """The agent's `workload` object of one of them."""

    @abstractmethod
    def phase_clients(self, phase: str) -> int:
        """How many sessions perform it."""

    def request(self, memory_bytes: int) -> Json:
        """Of the first: by it the files are laid out and checked, which is the same whatever the phase."""
        return self.phase_request(self.phases_run()[0], memory_bytes)

    def load_request(self, cpus: int) -> Json:
        """Without what differs from phase to phase."""
        del cpus
        return {"threads": 1}

    def caveats(self) -> list[str]:
        return [] if self.verify else [NOT_VERIFIED]

    def written_bytes(self) -> int:
        """They write the files that are counted as its data."""
        return 0

    def own_seconds(self, load_bytes_per_s: float) -> float:
        """Of all phases, about."""
        del load_bytes_per_s
        return len(self.phases_run()) * self.estimated_bytes(2**30) / PHASE_BYTES_PER_S

    def judged(self, schedule: Schedule) -> str:
        """The rate of writing where it writes, else that of its first phase."""
        del schedule
        phases = self.phases_run()
        return rate_of("write" if "write" in phases else phases[0])

    def check_judged(self, judged: str) -> None:
        able = [name for phase in self.phases_run() for name in (rate_of(phase), f"{phase}_cpu_ns_per_mb")]
        if judged not in able:
            raise ValueError(f"judged is {judged}, which these phases do not measure; allowed: {', '.join(able)}")

    def check_measure(self, ends_given: int) -> None:
        if ends_given:
            raise ValueError(f"the phases of {self.name} are measured whole; allowed: no seconds and no transactions")

    def check_warmup(self, until: str, *, prewarm: bool) -> None:
        del prewarm
        if until != "none":
            raise ValueError(
                f'{self.name} has no warm-up, for each of its phases counts; allowed: warmup.until = "none"'
            )

    def check_schedule(self, schedule: Schedule) -> None:
        if schedule != Closed():
            raise ValueError(
                f"each phase of {self.name} goes on from one operation to the next; allowed: no [schedule]"
            )

    def no_load_line(self) -> NotAsked | None:
        what = f"{self.name} passes over files, but a load line needs operations that arrive at a rate"
        return NotAsked("workload.name", what, 'another workload, such as "files"')


def rate_of(phase: str) -> str:
    """The metric that is the rate of a phase: bytes a second, and of seeks how many of them."""
    return "seeks_per_second" if phase == "seeks" else f"{phase}_bytes_per_second"


def metrics_of(phases: tuple[str, ...]) -> tuple[str, ...]:
    """The metrics that a workload of these phases has."""
    return tuple(name for phase in phases for name in (rate_of(phase), f"{phase}_cpu_ns_per_mb"))


def in_order(given: list[str], order: tuple[str, ...], what: str) -> None:
    """Raises ValueError where something is given twice or out of order."""
    if given != [one for one in order if one in given]:
        names = ", ".join(f'"{one}"' for one in order)
        raise ValueError(f"{what} given twice or out of order; allowed: of {names} some, in this order")


def bytes_of(value: Size | tuple[Size, Size], memory_bytes: int = 0) -> int | list[int]:
    """A size, or the least and the most, in bytes."""
    if isinstance(value, tuple):
        return [size.parse(one, memory_bytes) for one in value]
    return size.parse(value, memory_bytes)


def mean_of(value: int | list[int]) -> float:
    """Of a size; of a range that of sizes uniform in the logarithm."""
    if isinstance(value, int):
        return float(value)
    least, most = value
    return float(least) if least == most else (most - least) / math.log(most / least)


def check_multiple(key: str, value: Size | tuple[Size, Size], *, of: int = BLOCK_BYTES) -> None:
    """Raises ValueError where a size is no multiple of a block. Sizes relative to memory are rounded instead."""
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, str) and "memory" in one:
            continue
        found = size.parse(one)
        if found < of or found % of:
            raise ValueError(f"{key} = {one} is not a multiple of {of} bytes; allowed: {of}, {2 * of}, {3 * of}, ...")
    if isinstance(value, tuple) and not any(isinstance(one, str) and "memory" in one for one in value):
        least, most = (size.parse(one) for one in value)
        if least > most:
            raise ValueError(f"{key}: the first is larger than the second; allowed: [least, most]")
