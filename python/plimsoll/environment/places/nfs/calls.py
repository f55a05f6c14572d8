"""Calls of NFS that wait for a server that is gone: given up, with the processes that made them.

The constraint: calls of a hard mount are sent again for ever, and a process that waits for what is still to be written
ends by no signal. The kernel gives calls up when a mount is unmounted by force (umount2(2), MNT_FORCE), and unmounts
it in the same stroke where nobody uses it: what is written then waits where nothing reaches it any more. So a copy of
the mount, in a namespace of its own, is unmounted by force, as often as needed; ours stays until nothing waits.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from plimsoll.environment.fault import Fault
from plimsoll.environment.groups import group
from plimsoll.environment.places import machine

PAUSE_SECONDS = 0.2
END_SECONDS = 30.0
_COMMAND_SECONDS = 5.0
_LOOK_SECONDS = 0.05


def is_mounted(point: Path) -> bool:
    """Whether anything is mounted there; nobody is asked but this kernel."""
    return any(mount.point == str(point) for mount in machine.HERE.mounts())


def abort(point: Path) -> None:
    """Every call of the mount that is under way fails with EIO. It stays mounted, and what comes later waits again."""
    with suppress(Fault):  # the copy is in use, or has gone meanwhile: the calls were given up before that is told
        machine.HERE.call(
            *("unshare", "--mount", "--propagation", "private", "umount", "-i", "-c", "-f", str(point)),
            seconds=_COMMAND_SECONDS,
        )


def give_up(points: Sequence[Path], folders: Sequence[Path]) -> list[int]:
    """One round: processes of the control group are told to end, and the calls that they wait for fail. Those that
    were there."""
    left = group.end_once(folders)
    for point in points:
        abort(point)
    return left


def end(points: Sequence[Path], folders: Sequence[Path], seconds: float = END_SECONDS) -> bool:
    """Until no process of the group is left, and nothing that was written waits to be sent; false where time was up."""
    deadline = time.monotonic() + seconds
    while give_up(points, folders):
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE_SECONDS)
    # What nobody waits for is still to be written: it is sent now, and given up. By sync(2), which asks for no path
    # on the mount.
    sending = subprocess.Popen(["sync"], stdin=subprocess.DEVNULL)
    while sending.poll() is None:
        if time.monotonic() > deadline:
            sending.kill()  # and not waited for
            return False
        give_up(points, folders)
        time.sleep(PAUSE_SECONDS)
    return True


def take_away(point: Path) -> None:
    """Unmounts what no server answers for; where it is still in use it goes out of sight, and ends with its users.

    It is out of sight before the program ends, which then takes leave of a server that is gone: that is not waited for.
    """
    for options in (["-f"], ["-f", "-l"]):
        if not is_mounted(point):
            return
        ending = machine.HERE.start("umount", "-i", "-c", *options, str(point))
        deadline = time.monotonic() + _COMMAND_SECONDS
        while ending.poll() is None and is_mounted(point) and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        ending.kill()  # and not waited for
