"""Who speaks of the parts of a verdict, in the order in which they do: a new one is a file, and a line here."""

from plimsoll.words import places, windows
from plimsoll.words.guest import sentences as guest
from plimsoll.words.kernel import sentences as kernel
from plimsoll.words.nfs import sentences as nfs_calls
from plimsoll.words.part import Sentences
from plimsoll.words.probes import breakdown, caches, spinlocks, syncs
from plimsoll.words.soak import sentences as soak
from plimsoll.words.studies import clients, scaling
from plimsoll.words.workloads import decision_support, files, order_entry, web

SENTENCES: tuple[Sentences, ...] = (
    soak.SENTENCES,
    guest.SENTENCES,
    kernel.SENTENCES,
    clients.SENTENCES,
    places.PROMISE,
    places.CELLS,
    windows.SENTENCES,
    breakdown.SENTENCES,
    scaling.SENTENCES,
    scaling.MEMORY,
    syncs.SENTENCES,
    nfs_calls.SENTENCES,
    spinlocks.SENTENCES,
    caches.SENTENCES,
    order_entry.SENTENCES,
    decision_support.SENTENCES,
    files.PHASES,
    files.OPERATIONS,
    files.WAITS,
    web.SENTENCES,
    web.WORKERS,
)
