"""Layouts as trial.json has them."""

from typing import Any

Json = dict[str, Any]
MIB = 1 << 20


def image(size_bytes: int = 512 * MIB, name: str = "loop3", **more: Any) -> Json:
    """A loop device over an image."""
    below = {"blocks": "written", "file_system": "ext4", "devices": ["vda"]}
    queue = {"scheduler": "none", "nr_requests": 128, "write_cache": "write back", "loop_direct_io": 1}
    return {"name": name, "size_bytes": size_bytes, **queue, "image": below, **more}


def disk(name: str) -> Json:
    """A disk of the user's."""
    return {"name": name, "size_bytes": 1 << 40, "scheduler": "mq-deadline", "nr_requests": 256}


def place(fs: str, *devices: Json, **more: Json | list[str] | str) -> Json:
    """A place that was made."""
    return {"folder": None, "file_system": fs, "mount": ["rw"], "mount_given": [], "mkfs": {}, "devices": [*devices],
            "read_ahead_kib": 128, **more}  # fmt: skip


def together(loop: str = "loop3") -> Json:
    """Database and log on one image."""
    return {
        "parts": {"data": "first", "wal": "first"},
        "logs": {},
        "places": {"first": place("ext4", image(name=loop))},
    }


def apart() -> Json:
    """Each on an image of its own, and the database's journal on a third."""
    journal = {"place": "journal", "devices": [image(64 * MIB)]}
    first = place("ext4", image(), mount_given=["data=journal", "noatime"], mkfs={"stride": 16}, log=journal)
    places = {"first": first, "second": place("xfs", image())}
    return {"parts": {"data": "first", "wal": "second"}, "logs": {"first": "journal"}, "places": places}


def striped() -> Json:
    """Two disks in an array under a delay, and the log in a folder of the network."""
    raid = {"level": 0, "chunk": 131072, "bitmap": "none", "device": "/dev/md/x"}
    mapper = {"kind": "delay", "read_delay_ms": 5, "write_delay_ms": 10, "device": "/dev/mapper/x"}
    made = place("ext2", disk("sdb"), disk("sdc"), raid=raid, mapper=mapper)
    folder = {"folder": "/mnt/log", "source": "filer:/log", "file_system": "nfs4", "mount": ["rw", "hard"],
              "devices": [{"name": "0:51"}]}  # fmt: skip
    return {"parts": {"data": "disk", "wal": "/mnt/log"}, "logs": {}, "places": {"disk": made, "/mnt/log": folder}}
