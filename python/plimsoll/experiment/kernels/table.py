"""Tables [environment.kernels.NAME] and [environment.boot]: kernels that a run boots, and how.

The fact that constrains it: all of them are booted one way, since what a kernel does in an emulator says nothing of
what it does on the machine; so the way is the run's, and the kernel is the trial's.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import Field, field_validator

from plimsoll.experiment.guest.table import KERNELS, PARAMETERS_MAX
from plimsoll.experiment.strict import Fixed, FreeKeys, Strict

QEMU, KEXEC, BOOT_LOADER = "qemu", "kexec", "boot loader"
CPUS_MAX: Final = 255
# What our own entries, QEMU's line and the first program are found by.
OURS: Final = frozenset(
    {"root", "rootfstype", "rootflags", "ro", "rw", "init", "rdinit", "initrd", "console", "panic", "mem", "maxcpus",
     "BOOT_IMAGE", "PLIMSOLL_GUEST", "PLIMSOLL_CHANNEL"}
)  # fmt: skip
# What a machine does not come up by whose unit is to go on with the run.
_NOT_UP: Final = frozenset({"single", "s", "S", "rescue", "emergency", "systemd.unit"})
OF_THE_RUN = Fixed("all kernels of a run are there from its begin; name them all, and vary environment.kernel")
KERNEL_NAMES = FreeKeys(
    r"[a-z0-9][a-z0-9-]{0,39}", "a name for a kernel", "small letters, digits and dashes", is_varied_whole=False
)
_PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*(=[^\s\"']+)?")


class NamedKernel(Strict):
    """One kernel: a build of it, and what it is booted with. Two with one release differ in their parameters."""

    release: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9.+~_-]*$", max_length=64, description='as `uname -r` says it: "6.1.0-56-amd64"'
    )
    folder: str = Field(
        "/",
        pattern=r"^/",
        description="under which its package is unpacked: boot/vmlinuz-RELEASE, boot/config-RELEASE and "
        "lib/modules/RELEASE; kernels of the host itself are under /",
    )
    parameters: str = Field("", description="of its boot, beside the machine's own, as on a boot loader's line")

    @field_validator("parameters")
    @classmethod
    def _are_the_users(cls, value: str) -> str:
        allowed = 'names and name=value with blanks between them, such as "transparent_hugepage=never"'
        words = value.split()
        for word in words:
            if not _PARAMETER.fullmatch(word):
                raise ValueError(f"{word!r} is no parameter of a kernel; allowed: {allowed}")
            if (name := word.partition("=")[0]) in OURS:
                raise ValueError(f"{name} is what it is booted by; allowed: other parameters")
            if name in _NOT_UP:
                raise ValueError(f"{name} boots it without services, and nothing goes on; allowed: other parameters")
        if len(words) > PARAMETERS_MAX:
            raise ValueError(f"{len(words)} parameters; allowed: at most {PARAMETERS_MAX}")
        return " ".join(words)


class Boot(Strict):
    """How named kernels are booted."""

    by: Literal["qemu", "kexec", "boot loader"] = Field(
        "qemu",
        description="qemu: in a guest, with KVM where the machine has it, and else emulated, which shows mechanism and "
        "not speed; kexec, or the boot loader's entry for one boot: the machine itself, which is rebooted",
    )
    cpus: Annotated[int, Field(ge=1, le=CPUS_MAX)] = Field(2, description="of a guest of QEMU")
    reboots: bool = Field(
        False, description="true: this machine may be rebooted, as often as the plan says; asked for by kexec and the "
        "boot loader"
    )  # fmt: skip


def check_name(value: str, kernels: dict[str, NamedKernel]) -> None:
    """Raises ValueError where there is no kernel of this name."""
    if value not in KERNELS and value not in kernels:
        named = ", ".join(f'"{name}"' for name in (*KERNELS, *kernels))
        raise ValueError(f"{value!r} is no kernel; allowed: {named}, or a name of environment.kernels")


def check_levels(levels: list[object], kernels: dict[str, NamedKernel]) -> None:
    """Raises ValueError where kernels that a factor varies cannot be compared with each other."""
    for level in levels:
        if not isinstance(level, str) or level not in kernels:
            named = ", ".join(f'"{name}"' for name in kernels) or "none yet"
            raise ValueError(
                f"environment.kernel cannot be varied to {level!r}: a run boots kernels that environment.kernels "
                f"names, all one way; allowed: names of environment.kernels ({named})"
            )
    builds = [(kernels[str(level)].release, kernels[str(level)].parameters) for level in levels]
    if len(set(builds)) < len(builds):
        raise ValueError(
            "two kernels of environment.kernels are one, by release and parameters; allowed: kernels that differ"
        )
