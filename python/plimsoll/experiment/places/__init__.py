"""Places as an experiment names them: which device, what is laid over it, which file system, how it is mounted."""

from plimsoll.experiment.places.layers import Mapper, Mkfs, Raid, Volume
from plimsoll.experiment.places.nfs import Export, Nfs, Nfsd
from plimsoll.experiment.places.place import NO_FILE_SYSTEM, PLACES, Place
from plimsoll.experiment.places.used import check_places, is_name, used_places

__all__ = [
    "NO_FILE_SYSTEM",
    "PLACES",
    "Export",
    "Mapper",
    "Mkfs",
    "Nfs",
    "Nfsd",
    "Place",
    "Raid",
    "Volume",
    "check_places",
    "is_name",
    "used_places",
]
