"""This kernel's NFS server and what it exports of the places below: started for a trial, and stopped after it.

The constraint: a kernel has one NFS server (in a network namespace). One that somebody runs is left alone and nothing
is added to it, and servers under test that are up at once cannot each have theirs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from plimsoll.environment import kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.folders import work_dir
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import machine, mounts
from plimsoll.environment.places.layer import not_in_this_kernel
from plimsoll.environment.places.nfs import nfsd
from plimsoll.environment.places.nfs.nfsd import Exported, Wanted
from plimsoll.environment.places.stack import Stack, mount_point, nfs_stacks_of

_AS_FOUND = "as found"
_FILES = ".nfsd"  # the place whose mount is nfsd's own file system: no name of a user's


class Exports(Knob[Wanted | None]):
    name = "place_exports"
    keys = ("environment.nfsd", "environment.places.*.nfs.on", "environment.places.*.nfs.export")
    after = ("place_mounts",)
    why_shared = "this kernel has one NFS server"

    def obstacles(self, site: Site) -> Iterator[str]:
        stacks = _exporting(site)
        if not stacks:
            return
        stack, port, here = stacks[0], site.settings.environment.nfsd.port, machine.HERE
        if not here.has_module("nfsd"):
            yield not_in_this_kernel(stack, "nfs.on", "NFS server", "CONFIG_NFSD")
        if found := here.serves_nfs():
            yield (
                f"{stack.key}.nfs.on: this kernel's NFS server is in use ({found}); stop it, or name what it exports "
                "in nfs.server"
            )
        elif here.has_taken(port):
            yield f"environment.nfsd.port = {port}: somebody listens on it already; stop that, or choose another"

    def alone(self, site: Site) -> Iterator[str]:
        for stack in _exporting(site):
            yield f"{stack.key}.nfs.on: this kernel has one NFS server, which serves one trial at a time"

    def arrange(self, site: Site, journal: Journal) -> Wanted | None:
        stacks = _exporting(site)
        if not stacks:
            return None
        machine.HERE.load("nfsd")
        if found := machine.HERE.serves_nfs():
            raise Fault(f"{stacks[0].key}.nfs.on: an NFS server is in use ({found})", remedy="stop it, then try again")
        files = mount_point(site.state.work, site.name, _FILES)
        mounts.mount_at(files, ["mount", "-t", "nfsd", "nfsd", str(files)], journal)
        clients = site.state.work / f"{site.name}.nfs-clients"
        work_dir.make(site.state, journal, clients, mode=0o700)
        wanted = _wanted(site, stacks, files, clients)
        found_there = {name: kernel_files.read(files / name) for name in nfsd.SETTINGS}
        if found_there["max_block_size"] == "0":
            found_there["max_block_size"] = str(nfsd.default_block_bytes(_memory_bytes()))
        journal.change("place_nfsd", lambda: nfsd.start(wanted), files=str(files), found=found_there)
        _check(wanted)
        return wanted


def at_the_server(site: Site, folders: Iterable[Path]) -> list[Path]:
    """Where folders that lie on such mounts lie in what this kernel exports; others are left out."""
    local, found = site.made_by(mounts.KNOB), []
    for stack in _exporting(site):
        found += [
            local[str(stack.place.nfs.on)] / folder.relative_to(stack.point)
            for folder in folders
            if stack.point in folder.parents
        ]
    return found


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _exporting(site: Site) -> list[Stack]:
    return [stack for stack in nfs_stacks_of(site) if stack.place.nfs.on is not None]


def _wanted(site: Site, stacks: list[Stack], files: Path, clients: Path) -> Wanted:
    points = site.made_by(mounts.KNOB)
    server, exports = site.settings.environment.nfsd, {}
    for stack in stacks:
        nfs = stack.place.nfs
        path = str(machine.real_path(points[str(nfs.on)]))
        exports[path] = Exported(path, nfs.export.sync, nfs.export.wdelay)
    return Wanted(
        files=str(files),
        clients=str(machine.real_path(clients)),
        root=str(machine.real_path(points[str(stacks[0].place.nfs.on)]).parent),
        exports=list(exports.values()),
        versions=sorted({stack.place.nfs.version for stack in stacks}),
        threads=server.threads,
        port=server.port,
        max_block_bytes=None if server.max_block_size == _AS_FOUND else int(server.max_block_size),
    )


def _check(wanted: Wanted) -> None:
    """What was written is in force."""
    found = nfsd.in_force(Path(wanted.files), wanted.exports[0].path)
    if found["threads"] != wanted.threads:
        raise Fault(
            f"environment.nfsd.threads = {wanted.threads}: {found['threads']} run", remedy="choose fewer; see `dmesg`"
        )
    for one in wanted.exports:
        if (told := nfsd.in_force(Path(wanted.files), one.path).get("export")) is None:
            raise Fault(f"{one.path}: the kernel does not list it as exported", remedy="see `dmesg`")
        if ("async" in told) is one.sync:
            raise Fault(f"{one.path}: exported as {', '.join(told)}, and not as asked", remedy="see `dmesg`")


KNOB = Exports()


@puts_back("place_nfsd", survives_reboot=False)
def _put_back(args: Args) -> str:
    files, found = Path(args["files"]), args["found"]
    if not (files / "threads").exists():
        return "the NFS server's files are not there: nothing was started"
    nfsd.stop(files)
    for name in nfsd.SETTINGS:
        if name == "nfsv4recoverydir" and not Path(found.get(name) or "").is_dir():
            continue  # the kernel takes no folder that is not there: it has none now, as it had none before
        if found.get(name) is not None and kernel_files.read(files / name) != found[name]:
            # The kernel tells of 4.0 only where it is off.
            more = " +4.0" if name == "versions" and "4.0" not in found[name] else ""
            kernel_files.write(files / name, f"{found[name]}{more}\n")
            step(f"after {name}")
    return "NFS server stopped, nothing exported"
