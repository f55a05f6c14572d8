"""The sections of a run's page, in their order. A new one is an object in its room, and a line here."""

from plimsoll.report.breakdown import part as breakdown
from plimsoll.report.caches import both, double_caching, reconcile
from plimsoll.report.decision_support import part as decision_support
from plimsoll.report.every_run import caveats, levels, load, machine, method, trials
from plimsoll.report.files import file_waits, operations, passes, phases
from plimsoll.report.guest import part as guest
from plimsoll.report.kernel import part as kernel
from plimsoll.report.nfs import calls as nfs_calls
from plimsoll.report.order_entry import part as order_entry
from plimsoll.report.places import cells, layout, promise
from plimsoll.report.probes import block_figures, instruments, profile, syscalls_figures, writeback
from plimsoll.report.section import Section
from plimsoll.report.soak import part as soak
from plimsoll.report.studies import clients, scaling_figures
from plimsoll.report.web import serving, workers
from plimsoll.report.windows import part as windows

SECTIONS: tuple[Section, ...] = (
    soak.SECTION,
    promise.SECTION,
    cells.SECTION,
    clients.SECTION,
    scaling_figures.SECTION,
    levels.SECTION,
    layout.SECTION,
    windows.SECTION,
    guest.SECTION,
    kernel.SECTION,
    caveats.SECTION,
    order_entry.SECTION,
    decision_support.SECTION,
    phases.SECTION,
    passes.SECTION,
    operations.SECTION,
    file_waits.SECTION,
    serving.SECTION,
    workers.SECTION,
    breakdown.SECTION,
    profile.SECTION,
    nfs_calls.SECTION,
    syscalls_figures.SECTION,
    block_figures.SECTION,
    writeback.SECTION,
    both.SECTION,
    reconcile.SECTION,
    double_caching.SECTION,
    load.SECTION,
    trials.SECTION,
    machine.SECTION,
    instruments.SECTION,
)
# Below the list of what could not be drawn.
CLOSING: tuple[Section, ...] = (method.SECTION,)
