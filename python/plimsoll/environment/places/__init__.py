"""Places: image, loop, array, device-mapper target, queue, file system, mount, export and mount by NFS, each a knob
over the one before it.

The constraint: a wrong step destroys somebody's data. Nothing is ever formatted that the run has not made itself or
that the user has not named twice, and a device that holds anything is refused with what was found on it.
"""

from plimsoll.environment.places import (
    arrays,
    file_systems,
    images,
    loops,
    mapped,
    mounts,
    queues,
    users_devices,
    volumes,
)
from plimsoll.environment.places.describe import caveats_of, described, members_of
from plimsoll.environment.places.layer import size_of
from plimsoll.environment.places.nfs import exports
from plimsoll.environment.places.nfs import mounts as nfs_mounts
from plimsoll.environment.places.nfs.exports import at_the_server
from plimsoll.environment.places.nfs.mounts import record_users, watched
from plimsoll.environment.places.nfs.silence import Watch
from plimsoll.environment.places.stack import Stack, mount_point, stacks_of

KNOBS = (
    users_devices.KNOB, images.KNOB, loops.KNOB, arrays.KNOB, volumes.KNOB, mapped.KNOB, queues.KNOB,
    file_systems.KNOB, mounts.KNOB, exports.KNOB, nfs_mounts.KNOB, nfs_mounts.ANSWERING,
)  # fmt: skip

__all__ = [
    "KNOBS",
    "Stack",
    "Watch",
    "at_the_server",
    "caveats_of",
    "described",
    "members_of",
    "mount_point",
    "record_users",
    "size_of",
    "stacks_of",
    "watched",
]
