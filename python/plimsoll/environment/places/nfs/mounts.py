"""Mounts of places by NFS, from this kernel's own server or from one that exists.

The constraint: a hard mount whose server is gone waits for ever, in ways that only SIGKILL ends and that what is still
to be written survives. So whatever asks a mount is a program with a limit of time, the server of ours is up again
before anything is put back, and of another's that does not answer the mount is taken away from sight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from plimsoll.environment import devices, kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, ChangedSince, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.network_mounts import answers
from plimsoll.environment.places import machine
from plimsoll.environment.places import mounts as local
from plimsoll.environment.places.layer import not_in_this_kernel
from plimsoll.environment.places.nfs import exports, mounting, nfsd, rpc
from plimsoll.environment.places.nfs.mounting import Server
from plimsoll.environment.places.nfs.nfsd import Wanted
from plimsoll.environment.places.stack import Stack, nfs_stacks_of

MOUNT_SECONDS, UMOUNT_SECONDS = 60.0, 30.0
_PORT = 2049
# Of the mount and not of the file system: what mount(8) itself makes of them every kernel takes.
_OF_THE_MOUNT = {*local.OF_THE_MOUNT, "sync"}


class NfsMounts(Knob[Mapping[str, Path]]):
    name = "place_nfs_mounts"
    keys = ("environment.places.*.nfs.server", "environment.places.*.nfs.version")
    after = ("place_exports",)
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        here = machine.HERE
        for stack in nfs_stacks_of(site):
            nfs, kind = stack.place.nfs, mounting.type_of(stack.place)
            if not here.is_root:
                yield f"{stack.key}: only root mounts file systems; run as root, or name a folder"
                return
            module, option = ("nfsv3", "CONFIG_NFS_V3") if nfs.version == "3" else ("nfsv4", "CONFIG_NFS_V4")
            if not (here.has_module("nfs") and here.has_module(module)):
                yield not_in_this_kernel(stack, "nfs", f"NFS client of version {nfs.version}", option)
                continue
            for name, value in mounting.asked(stack.place).items():
                if name in _OF_THE_MOUNT:
                    continue
                said = here.refused_option(kind, name, None if value is True else str(value))
                if said is not None:
                    given = name if value is True else f"{name} = {value}"
                    yield f"{stack.key}.mount.{given}: NFS refuses it: {said}; see nfs(5) for what it takes"
            if nfs.server is not None:
                # The ports of version 3 are its rpcbind's to tell.
                port = None if nfs.version == "3" else _PORT
                if why := here.unreachable(_split(nfs.server)[0], port=port):
                    yield f"{stack.key}.nfs.server = {nfs.server}: {why}; name one that answers"

    def arrange(self, site: Site, journal: Journal) -> Mapping[str, Path]:
        served = site.made_by(exports.KNOB)
        return {stack.name: _mount(stack, site, served, journal) for stack in nfs_stacks_of(site)}


def _split(server: str) -> tuple[str, str]:
    host, _, path = server.rpartition(":/")
    return host.strip("[]"), f"/{path}"


def server_of(stack: Stack, site: Site, served: Wanted | None) -> Server:
    """Whom it is mounted from."""
    nfs = stack.place.nfs
    if nfs.server is None:
        assert served is not None and nfs.on is not None
        export = str(machine.real_path(site.made_by(local.KNOB)[nfs.on]))
        path = export if nfs.version == "3" else nfsd.path_of(export, served.root)
        return Server(nfsd.ADDRESS, nfsd.ADDRESS, path, served.port)
    host, path = _split(nfs.server)
    address = machine.HERE.address_of(host)
    return Server(address, machine.HERE.own_address(address), path)


def _mount(stack: Stack, site: Site, served: Wanted | None, journal: Journal) -> Path:
    point, place, here = stack.point, stack.place, machine.HERE
    server = server_of(stack, site, served)
    here.load("nfs")
    here.load("nfsv3" if place.nfs.version == "3" else "nfsv4")
    local.new_point(point)
    handle = None
    if place.nfs.version == "3" and place.nfs.on is not None and served is not None:
        handle = nfsd.handle_of(Path(served.files), server.path)

    def act() -> None:
        point.mkdir(mode=0o755)
        step("after mount point")
        with nullcontext() if handle is None else rpc.answering(rpc.MOUNT, rpc.mount(handle)) as port:
            here.call(*mounting.command(place, replace(server, mount_port=port), point), seconds=MOUNT_SECONDS)

    journal.change("place_nfs_mount", act, point=str(point))
    if place.read_ahead != "as found":  # of this mount alone, and gone with it
        for device in devices.devices_of(point):
            if device.read_ahead is not None:
                kernel_files.write(device.read_ahead, str(int(place.read_ahead) // 1024))
    return point


KNOB = NfsMounts()


@puts_back("place_nfs_mount", survives_reboot=True)
def _put_back(args: Args) -> str:
    point, here = local.point_of_ours(args), machine.HERE
    for options in ([], ["-f"], ["-f", "-l"]):
        if not _is_mounted(point):
            break
        with suppress(Fault):
            here.call("umount", "-i", "-c", *options, str(point), seconds=UMOUNT_SECONDS)
        step("after umount")
    if _is_mounted(point):
        raise Fault(
            f"{point}: cannot be unmounted", remedy=f"`fuser -vm {point}` names who uses it; then `plimsoll undo`"
        )
    return local.remove_point(point)


def _is_mounted(point: Path) -> bool:
    return any(mount.point == str(point) for mount in machine.HERE.mounts())


class Answering(Knob[None]):
    """Nothing but a line in the journal, put back before all that lies on the mounts: whether their servers answer."""

    name = "place_nfs_answers"
    keys = ()
    after = ("files",)
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        del site
        yield from ()

    def arrange(self, site: Site, journal: Journal) -> None:
        served = site.made_by(exports.KNOB)
        for stack in nfs_stacks_of(site):
            revived = served.as_json() if served is not None and stack.place.nfs.on is not None else None
            journal.record("place_nfs_server", point=str(stack.point), server=revived)


ANSWERING = Answering()


@puts_back("place_nfs_server", survives_reboot=False)
def _server_answers(args: Args) -> str:
    point = local.point_of_ours(args)
    if not _is_mounted(point) or answers(point):
        return f"the server of {point} answers"
    if args["server"] is not None:
        # Whoever has stopped it: what waits for it ends no other way.
        nfsd.stop(Path(args["server"]["files"]))
        nfsd.start(Wanted.of(args["server"]))
        if answers(point):
            return f"the server of {point} was started again, so that what waits for it ends"
    raise ChangedSince(f"{point}: its NFS server does not answer", "what the run has made there is left")
