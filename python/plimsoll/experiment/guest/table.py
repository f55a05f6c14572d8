"""Table [environment.guest]: the kernel beside the host's that a run may be on.

The fact that constrains it: a guest is booted once for a run, so its trials share it, and no factor may name it.
"""

from __future__ import annotations

from typing import Final

from pydantic import Field, field_validator

from plimsoll.experiment import size
from plimsoll.experiment.strict import Fixed, Size, Strict

KERNELS: Final = ("host", "guest")
MEMORY_MIN = 256 << 20
OF_THE_RUN = Fixed("a run is on one kernel, which all of its trials share; compare it with a run on the other")


class GuestMachine(Strict):
    """What the guest kernel is given."""

    memory: Size = Field("1 GiB", description="of the guest, out of the host's; what sizes relative to memory refer to")
    minutes: float | None = Field(
        None, gt=0, le=100_000, description="after so many the run is stopped, to be resumed; by default no such limit"
    )

    @field_validator("memory")
    @classmethod
    def _absolute(cls, value: int | str) -> int | str:
        allowed = f'an absolute size of at least {size.show(MEMORY_MIN)}, such as "1 GiB"'
        try:
            given = size.parse(value)
        except ValueError as error:
            raise ValueError(f"{error}; allowed: {allowed}") from None
        if given < MEMORY_MIN:
            raise ValueError(f"{value!r} is too little to start a kernel and a server in; allowed: {allowed}")
        return value

    @property
    def memory_bytes(self) -> int:
        """Of the guest."""
        return size.parse(self.memory)
