"""Table [probes] of the experiment file: what watches beside the series that are always taken.

The fact that constrains it: each has a price, which its page in crates/probe states; what costs much is off by default.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from plimsoll.experiment.strict import Strict


class Probes(Strict):
    """What watches beside the series that are always taken. What cannot be trusted here is absent, with its reason."""

    page_cache: bool = Field(True, description="pages asked for, missed, read ahead and evicted, by file class (BPF)")
    buffer_heads: bool = Field(
        False, description="study S1's own counter: lookups of buffer heads, mostly metadata (BPF)"
    )
    throttle: bool = Field(False, description="pauses of tasks that dirty pages faster than they are written (BPF)")
    breakdown: bool = Field(True, description="where each transaction's time goes (BPF)")
    breakdown_budget_percent: float = Field(
        0.5,
        ge=0,
        le=100,
        description="of the machine's CPU time: beyond it one slice of time in so many is watched; 0: always all of it",
    )
    breakdown_rows: Literal["transactions", "requests"] = Field(
        "transactions", description="what the breakdown records one by one: the server's transactions, or each request"
    )
    profile: bool = Field(
        False,
        description="in which functions the server, and the kernel on its behalf, spend CPU time: flame graphs (BPF)",
    )
    profile_hz: int = Field(99, ge=1, le=9_999, description="samples a second on each CPU")
    profile_locks: bool = Field(
        False, description="with the profile: waits for the kernel's own locks, by kind and by who wanted them (BPF)"
    )
    syscalls: bool = Field(False, description="the server's system calls by kind and file class (BPF)")
    syscalls_counted: Literal["slices", "files", "all"] = Field(
        "slices",
        description="which calls are counted one by one: none (slices of time stand for all of it), those that name "
        "files, or all; each costs the server more than the one before",
    )
    sync: bool = Field(False, description="each fsync and fdatasync of the server, with what it waited for (BPF)")
    block: bool = Field(False, description="disk requests for the server's files, by what they read or write (BPF)")
    nfs_calls: bool = Field(
        False, description="each call of NFS for the server's files, from the packets on the wire (a packet socket)"
    )
    kernel: bool = Field(
        False, description="the kernel's own log, and what it holds for itself: slab caches, page tables, open files"
    )
    kernel_every_seconds: int = Field(
        300, ge=1, le=3600, description="with it: how often what the kernel holds is read; its log is at every sample"
    )
    machine_speed: bool = Field(
        False,
        description="how fast the machine itself is while the load runs: three small pieces of work, timed four times "
        "a second on each CPU; a neighbour on the same hardware slows them, and steal need not tell of it",
    )
    double_caching: bool = Field(
        True, description="which blocks of each relation both caches hold, before and after the measured segment"
    )
