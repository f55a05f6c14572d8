"""CPU time that the server spends waiting for spinlocks, its own and the kernel's, from the stacks of the profile.

The fact that constrains it: a spinlock that is free is taken in line and leaves no trace; what has a name is the wait.
A server that gives up spinning sleeps, which no profile of the CPUs shows.
"""

from collections.abc import Mapping

from plimsoll.analysis.probes.document import Share, Spinlocks
from plimsoll.analysis.statistics.distributions import share_interval
from plimsoll.analysis.statistics.intervals import CONFIDENCE

Stack = tuple[str, ...]
# PostgreSQL: its wait for a spinlock, and for the bit that locks the header of a buffer.
SERVERS = frozenset({"s_lock", "perform_spin_delay", "WaitBufHdrUnlocked"})
_KERNEL, _SLOW = "_[k]", "queued_spin_lock_slowpath"


def of_server(stack: Stack) -> bool:
    """Whether the server waits for one of its own."""
    return any(frame in SERVERS for frame in stack)


def of_kernel(stack: Stack) -> bool:
    """Whether the kernel waits for one of its own, on the server's behalf."""
    return stack[-1].endswith(_KERNEL) and any(frame.removesuffix(_KERNEL).endswith(_SLOW) for frame in stack)


def has_names(stacks: Mapping[Stack, int]) -> bool:
    """Whether functions of the server have names. The first frame is a process's role."""
    return any(not frame.endswith(_KERNEL) and not frame.startswith("[") for stack in stacks for frame in stack[1:])


def spinlocks(stacks: Mapping[Stack, int]) -> Spinlocks:
    """The `spinlocks` of a treatment's profile."""
    samples = sum(stacks.values())

    def waiting(is_one: frozenset[Stack]) -> Share | None:
        count = sum(stacks[stack] for stack in is_one)
        if not samples:
            return None
        low, high = share_interval(count, samples, CONFIDENCE)
        return {"value": count / samples, "low": low, "high": high}

    own = frozenset(stack for stack in stacks if of_server(stack)) if has_names(stacks) else None
    return {
        "server": None if own is None else waiting(own),
        "kernel": waiting(frozenset(stack for stack in stacks if of_kernel(stack))),
    }
