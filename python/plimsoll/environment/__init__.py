"""What surrounds the server: knobs that are shown, set and put back, the undo journal, the fingerprint, the doctor.

The constraint: importing this package must declare how every kind of change is put back, because `undo` runs in a
process that knows nothing but the journal.
"""

from . import group, huge_pages, placed, readahead, server, swap, sysctl, work_dir  # noqa: F401 (they declare their kinds)
from .cgroups import Limits
from .fault import Fault
from .group import Group, GroupKnob
from .huge_pages import TransparentHugePages
from .journal import Entry, Journal, PutBackFailed, Undone
from .knob import Availability, Knob, Part, Site
from .readahead import ReadAhead
from .recovery import live_runs, undo
from .state import StateDir
from .swap import SwapFile
from .sysctl import Sysctl

__all__ = [
    "Availability",
    "Entry",
    "Fault",
    "Group",
    "GroupKnob",
    "Journal",
    "Knob",
    "Limits",
    "Part",
    "PutBackFailed",
    "ReadAhead",
    "Site",
    "StateDir",
    "SwapFile",
    "Sysctl",
    "TransparentHugePages",
    "Undone",
    "live_runs",
    "undo",
]
