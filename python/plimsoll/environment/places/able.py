"""What this machine has for places, for `plimsoll doctor`: programs, layers of the kernel, and NFS."""

from __future__ import annotations

from plimsoll.environment.places import arrays, machine

_PROGRAMS = ("losetup", "blkid", "wipefs", "mount", "mke2fs", "mkfs.xfs", "mkfs.btrfs")
_OF_LAYERS = {"mdadm": "md_mod", "dmsetup": "dm_mod", "lvm": "dm_mod"}  # programs that are of use with the module alone
_LAYERS = {"md RAID": ("md_mod",), "dm-linear": ("dm_mod",), "dm-delay": ("dm_delay",), "dm-flakey": ("dm_flakey",)}


def programs() -> tuple[bool, str, str]:
    """Whether they are there, what was found, and the remedy."""
    here = machine.HERE
    wanted = [*_PROGRAMS, *(name for name, module in _OF_LAYERS.items() if here.has_module(module))]
    missing = [name for name in wanted if not here.has_program(name)]
    if missing:
        packages = " ".join(dict.fromkeys(machine.package_of(name) for name in missing))
        return False, f"without {', '.join(missing)}", f"install {packages}; without it such a file system is no place"
    return True, ", ".join(wanted), ""


def layers() -> tuple[bool | None, str, str]:
    """The same of md and device-mapper: a machine without them is none the worse for other places."""
    there = [name for name, modules in _LAYERS.items() if machine.HERE.has_module(*modules)]
    if len(there) == len(_LAYERS):
        return True, ", ".join(there), ""
    missing = ", ".join(name for name in _LAYERS if name not in there)
    found = f"{', '.join(there) or 'none'}; this kernel ({machine.HERE.release()}) lacks {missing}"
    return None, found, "places with these layers need another kernel; a plan that asks for them says so"


def nfs() -> tuple[bool | None, str, str]:
    """The same of NFS: its client by version, and the kernel's own server, for `nfs.on`."""
    here = machine.HERE
    versions = [name for name, module in (("3", "nfsv3"), ("4", "nfsv4")) if here.has_module(module)]
    client = here.has_module("nfs") and bool(versions)
    there = [f"client of versions {' and '.join(versions)}"] if client else []
    there += ["server"] if here.has_module("nfsd") else []
    if missing := why_no_nfs():
        found = f"{', '.join(there) or 'none'}; {missing}"
        return None, found, 'places with nfs.on need another kernel, such as a guest\'s (environment.kernel = "guest")'
    if serves := here.serves_nfs():
        remedy = "stop it for places with nfs.on, or name what it exports in nfs.server"
        return None, f"{', '.join(there)}, which is in use: {serves}", remedy
    return True, ", ".join(there), ""


def why_no_nfs() -> str:
    """What this kernel lacks for a place with `nfs.on`; empty where it has all."""
    here = machine.HERE
    parts = {"client": here.has_module("nfs") and here.has_module("nfsv3", "nfsv4"), "server": here.has_module("nfsd")}
    lacking = [name for name, there in parts.items() if not there]
    return f"this kernel ({here.release()}) has no NFS {' and no NFS '.join(lacking)}" if lacking else ""


def why_no_array(level: int) -> str:
    """What this kernel lacks for an array of that level; empty where it has all."""
    lacks = not arrays.has_level(level)
    return f"this kernel ({machine.HERE.release()}) has no md RAID of level {level}" if lacks else ""
