"""What surrounds the server: knobs that are shown, set and put back, the undo journal, the fingerprint, the doctor.

The constraint: importing this package must declare how every kind of change is put back, because `undo` runs in a
process that knows nothing but the journal.
"""

from plimsoll.environment import places, readahead, scheduler, server, units  # noqa: F401 (they declare their kinds)
from plimsoll.environment.boots import once  # noqa: F401 (it declares its kinds)
from plimsoll.environment.fault import Fault
from plimsoll.environment.folders import placed, work_dir  # noqa: F401 (they declare their kinds)
from plimsoll.environment.groups import group  # noqa: F401 (they declare their kinds)
from plimsoll.environment.groups.cgroups import Limits
from plimsoll.environment.groups.group import Group, GroupKnob
from plimsoll.environment.journal.journal import Entry, Journal, PutBackFailed, Undone
from plimsoll.environment.journal.recovery import live_runs, undo
from plimsoll.environment.knob import Availability, Knob, Part, Site
from plimsoll.environment.memory import huge_page_pool, huge_pages, swap, sysctl  # noqa: F401 (they declare their kinds)
from plimsoll.environment.memory.huge_pages import TransparentHugePages
from plimsoll.environment.memory.swap import SwapFile
from plimsoll.environment.memory.sysctl import Sysctl
from plimsoll.environment.readahead import ReadAhead
from plimsoll.environment.state import StateDir

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
