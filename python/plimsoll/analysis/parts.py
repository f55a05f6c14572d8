"""The parts of a verdict, in the order in which they are judged: a new one is a room, and a line here.

A part stands behind those it needs. The order is also that of the caveats of a trial.
"""

from plimsoll.analysis.breakdown import breakdown
from plimsoll.analysis.caches import double_caching, reconcile
from plimsoll.analysis.decision_support import run as decision_support
from plimsoll.analysis.files import file_waits, operations, phases
from plimsoll.analysis.guest import part as guest
from plimsoll.analysis.kernel import part as kernel
from plimsoll.analysis.next_steps import next_steps
from plimsoll.analysis.nfs import part as nfs_calls
from plimsoll.analysis.order_entry import order_entry
from plimsoll.analysis.part import Part
from plimsoll.analysis.places import cells, layout, promise
from plimsoll.analysis.probes import block_requests, instruments, profile, syscalls
from plimsoll.analysis.soak import part as soak
from plimsoll.analysis.studies import clients, memory_scaling, scaling
from plimsoll.analysis.web import serving, workers
from plimsoll.analysis.windows import part as windows

PARTS: tuple[Part, ...] = (
    instruments.PART,
    reconcile.PART,
    double_caching.PART,
    double_caching.ABSENT,
    layout.PART,
    cells.PART,
    promise.PART,
    clients.PART,
    scaling.PART,
    memory_scaling.PART,
    breakdown.PART,
    profile.PART,
    profile.OFF_CPU,
    order_entry.PART,
    decision_support.PART,
    phases.PART,
    operations.PART,
    file_waits.PART,
    serving.PART,
    workers.PART,
    syscalls.PART,
    block_requests.PART,
    nfs_calls.PART,
    windows.PART,
    guest.PART,
    kernel.PART,
    soak.PART,
    next_steps.PART,
)
