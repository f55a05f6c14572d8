"""Table [environment.guest]: the kernel beside the host's that a run may be on.

The fact that constrains it: a guest is booted once for a run, so its trials share it, and no factor may name it.
"""

from __future__ import annotations

import re
from typing import Final

from pydantic import Field, field_validator

from plimsoll.experiment import size
from plimsoll.experiment.strict import Fixed, Size, Strict

KERNELS: Final = ("host", "guest")
MEMORY_MIN = 256 << 20
# What the guest is booted with, and its first program and its consoles are found by. Those that begin with con are left
# out of the fingerprint, too, since they differ from boot to boot.
OURS: Final = frozenset(
    {
        "mem", "ubda", "root", "rootfstype", "rootflags", "ro", "rw", "init", "rdinit", "initrd", "uml_dir", "umid",
        "panic", "loglevel", "PLIMSOLL_GUEST",
    }
)  # fmt: skip
OURS_BEGIN: Final = ("con", "ubd", "hostfs")
PARAMETERS_MAX: Final = 16  # the kernel itself panics where it knows none of 32
_PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(=[^\s\"']+)?")
OF_THE_RUN = Fixed("a run is on one kernel, which all of its trials share; compare it with a run on the other")


class GuestMachine(Strict):
    """What the guest kernel is given."""

    memory: Size = Field("1 GiB", description="of the guest, out of the host's; what sizes relative to memory refer to")
    minutes: float | None = Field(
        None, gt=0, le=100_000, description="after so many the run is stopped, to be resumed; by default no such limit"
    )

    parameters: str = Field(
        "",
        description="of the guest kernel at its boot, as on a boot loader's line; unknown ones are refused",
    )

    @field_validator("parameters")
    @classmethod
    def _are_the_users(cls, value: str) -> str:
        allowed = 'names and name=value with blanks between them, such as "transparent_hugepage=never"'
        for word in value.split():
            if not _PARAMETER.fullmatch(word):
                raise ValueError(f"{word!r} is no parameter of a kernel; allowed: {allowed}")
            name = word.partition("=")[0]
            if name in OURS or name.startswith(OURS_BEGIN):
                raise ValueError(f"{name} is what the guest itself is booted with; allowed: other parameters")
        if len(value.split()) > PARAMETERS_MAX:
            raise ValueError(f"{len(value.split())} parameters; allowed: at most {PARAMETERS_MAX}")
        return " ".join(value.split())

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
