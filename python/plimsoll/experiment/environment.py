"""Table [environment] of the experiment file: what surrounds the server.

The fact that constrains it: this is what a user asks for, read without a machine. What a key does to one, and whether
it can be had here, is said by the knob that names the key (run/surroundings/knobs.py).
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, ValidationInfo, field_validator

from plimsoll.experiment.guest.table import KERNELS, OF_THE_RUN, GuestMachine
from plimsoll.experiment.kernels import table as named
from plimsoll.experiment.kernels.table import Boot, NamedKernel
from plimsoll.experiment.places import PLACES, Nfsd, Place
from plimsoll.experiment.strict import Cpus, FreeKeys, Size, Strict

AS_FOUND: Final = "as found"
# One setting each, in bytes and in per cent: whoever writes one clears the other.
PAIRS: Final = (
    ("vm.dirty_bytes", "vm.dirty_ratio"),
    ("vm.dirty_background_bytes", "vm.dirty_background_ratio"),
    ("vm.overcommit_kbytes", "vm.overcommit_ratio"),
)
VM = FreeKeys(r"vm\.[a-z_]+", "a vm.* setting", "settings whose name begins with vm.")


class Environment(Strict):
    """What surrounds the server. Everything here is put back after the run."""

    memory: Size | Literal["unlimited"] = Field("unlimited", description="memory limit of the target's group")
    swap: Size | Literal["as found"] = Field(
        AS_FOUND, description="swap file made for the run, and how much of it the group may use; 0: none"
    )
    swappiness: Annotated[int, Field(ge=0, le=200)] | Literal["as found"] = Field(
        AS_FOUND, description="the group's swappiness (cgroup v1: memory.swappiness)"
    )
    target_cpus: Cpus = Field("all", description="CPUs of the server under test")
    load_cpus: Cpus = Field("all", description="CPUs of the load generator")
    page_cache: Literal["cold", "warm"] = Field("cold", description="state of the data files before the server starts")
    read_ahead: Size | Literal["as found"] = Field(AS_FOUND, description="read-ahead of the data's block device")
    transparent_huge_pages: Literal["always", "madvise", "never", "as found"] = AS_FOUND
    transparent_huge_pages_defrag: Literal["always", "defer", "defer+madvise", "madvise", "never", "as found"] = Field(
        AS_FOUND, description="whether memory is put together for transparent huge pages at once, later or not at all"
    )
    huge_pages: Size | Literal["as found"] = Field(
        AS_FOUND,
        description="explicit huge pages that are to be free for the server (vm.nr_hugepages), beside those of others; "
        "the server takes them by its own setting, and they do not count against memory",
    )
    preemption: Literal["none", "voluntary", "full", "lazy", "as found"] = Field(
        AS_FOUND, description="the kernel's preemption model, where it can be changed (debugfs sched/preempt)"
    )
    base_slice_us: Annotated[int, Field(ge=100, le=1_000_000)] | Literal["as found"] = Field(
        AS_FOUND, description="for how long a task may run before another is looked for (debugfs sched/base_slice_ns)"
    )
    sysctl: Annotated[dict[str, int | str], VM] = Field(default_factory=dict, description="vm.* settings of the kernel")
    places: Annotated[dict[str, Place], PLACES] = Field(
        default_factory=dict, description="devices with file systems, made and mounted for each trial, by name"
    )
    nfsd: Nfsd = Field(default_factory=Nfsd, description="this kernel's NFS server, of places with nfs.on")
    kernels: Annotated[dict[str, NamedKernel], named.KERNEL_NAMES, named.OF_THE_RUN] = Field(
        default_factory=dict, description="kernels that trials are booted into, by name"
    )
    boot: Annotated[Boot, named.OF_THE_RUN] = Field(default_factory=Boot, description="how they are booted")
    kernel: str = Field(
        "host",
        description="guest: a second kernel that runs as a process (user-mode-linux), with md, device-mapper, NFS and "
        "control groups of its own; it shows mechanism, not speed. A name of environment.kernels: that kernel, booted "
        "for the trial",
    )
    guest: Annotated[GuestMachine | None, OF_THE_RUN] = Field(
        None, description='with kernel = "guest", or boot.by = "qemu": what the guest is given'
    )

    @field_validator("sysctl")
    @classmethod
    def _one_of_each_pair(cls, value: dict[str, int | str]) -> dict[str, int | str]:
        for one, other in PAIRS:
            if one in value and other in value:
                raise ValueError(
                    f"{one} and {other} are one setting in two units, and to write one clears the other; "
                    "allowed: one of the two (in [environment] or in the levels of a factor)"
                )
        return value

    @field_validator("kernel")
    @classmethod
    def _is_there(cls, value: str, info: ValidationInfo) -> str:
        if "kernels" in info.data:
            named.check_name(value, info.data["kernels"])
        return value

    @field_validator("guest")
    @classmethod
    def _has_a_guest(cls, value: GuestMachine | None, info: ValidationInfo) -> GuestMachine | None:
        if value is not None and info.data.get("kernel") == "host" and not info.data.get("kernels"):
            raise ValueError('is given and kernel is "host"; allowed: with kernel = "guest"')
        return value

    @property
    def guest_machine(self) -> GuestMachine | None:
        """What the guest is given; None where the run is on the host's kernel."""
        if self.kernel == "host" or (self.named_kernel is not None and self.boot.by != named.QEMU):
            return None
        return self.guest or GuestMachine()

    @property
    def named_kernel(self) -> NamedKernel | None:
        """The kernel that a trial is booted into; None of the host's as it is, and of a guest kernel."""
        return None if self.kernel in KERNELS else self.kernels[self.kernel]

    @property
    def kernel_kind(self) -> str:
        """Who carries a run on it out: host, guest, or the way that named kernels are booted."""
        return self.kernel if self.kernel in KERNELS else self.boot.by
