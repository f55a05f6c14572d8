"""Mounts of places by NFS, from this kernel's own server or from one that exists.

The constraint: a hard mount whose server is gone waits for ever, in ways that only SIGKILL ends and that what is still
to be written survives. So whatever asks a mount is a program with a limit of time, the server of ours is up again
before anything is put back, and of another's that does not answer the mount is taken away from sight.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from plimsoll.environment import devices, kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, ChangedSince, puts_back
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.network_mounts import answers
from plimsoll.environment.places import machine
from plimsoll.environment.places import mounts as local
from plimsoll.environment.places.layer import not_in_this_kernel
from plimsoll.environment.places.nfs import calls, exports, mounting, nfsd, rpc
from plimsoll.environment.places.nfs.mounting import Server
from plimsoll.environment.places.nfs.nfsd import Wanted
from plimsoll.environment.places.nfs.silence import Watch, Watched
from plimsoll.environment.places.stack import Stack, nfs_stacks_of

MOUNT_SECONDS, UMOUNT_SECONDS = 60.0, 30.0
REVIVED_SECONDS = 30.0  # a client waits some seconds between two tries to connect
_PORT = 2049
# Of the mount and not of the file system: what mount(8) itself makes of them every kernel takes.
_OF_THE_MOUNT = {*local.OF_THE_MOUNT, "sync"}


class NfsMounts(Knob[Mapping[str, Path]]):
    name = "place_nfs_mounts"
    keys = tuple(f"environment.places.*.nfs.{name}" for name in ("server", "version", "silence_seconds_max"))
    after = ("place_exports",)
    why_shared = ""

    def alone(self, site: Site) -> Iterator[str]:
        for stack in nfs_stacks_of(site):
            yield f"{stack.key}: an NFS server that stops answering would hold up the windows of every server"

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
    if calls.is_mounted(point) and not answers(point):
        calls.end([point], [])  # else what is still to be written would wait in unmounting, for ever
        calls.take_away(point)
    for options in ([], ["-f"], ["-f", "-l"]):
        if not calls.is_mounted(point):
            break
        with suppress(Fault):
            here.call("umount", "-i", "-c", *options, str(point), seconds=UMOUNT_SECONDS)
        step("after umount")
    if calls.is_mounted(point):
        raise Fault(
            f"{point}: cannot be unmounted", remedy=f"`fuser -vm {point}` names who uses it; then `plimsoll undo`"
        )
    return local.remove_point(point)


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
        for point, server in _servers(site):
            journal.record("place_nfs_server", point=point, server=server)


ANSWERING = Answering()


def _servers(site: Site) -> list[tuple[str, dict[str, Any] | None]]:
    """By mount point, what this kernel's own server is; None of another's."""
    served = site.made_by(exports.KNOB)
    own = None if served is None else served.as_json()
    return [(str(stack.point), own if stack.place.nfs.on is not None else None) for stack in nfs_stacks_of(site)]


def watched(site: Site, group: Sequence[Path]) -> Watch:
    """What watches the servers of a trial's mounts; ends what is in the group where one is given up."""
    served = site.made_by(exports.KNOB)
    return Watch(
        [
            Watched(
                stack.name,
                machine.real_path(stack.point),
                server_of(stack, site, served).address,
                stack.place.nfs.silence_seconds_max,
            )
            for stack in nfs_stacks_of(site)
        ],
        group,
    )


def record_users(site: Site, journal: Journal, group: Sequence[Path]) -> None:
    """To be recorded last, and so put back first: processes of this control group may wait for a server that is gone,
    and whatever looks at the mounts to put something back would wait like them."""
    if servers := _servers(site):
        mounts = [{"point": point, "server": server} for point, server in servers]
        journal.record("place_nfs_calls", mounts=mounts, group=[str(folder) for folder in group])


@puts_back("place_nfs_calls", survives_reboot=False)
def _nobody_waits(args: Args) -> str:
    silent: dict[Path, bool] = {}  # whether it is this kernel's own
    for one in args["mounts"]:
        point = local.point_of_ours(one)
        if not _answers_again(point, one["server"]):
            silent[point] = one["server"] is not None
    if not silent:
        return "no call waits for an NFS server that is gone"
    calls.end([*silent], [Path(folder) for folder in args["group"]])
    step("after calls ended")
    for point in silent:
        calls.take_away(point)
        step("after taken away")
    what = f"{', '.join(map(str, silent))}: no NFS server answers; calls that waited for it were ended"
    if all(silent.values()):
        return what  # what it served goes with the place below
    raise ChangedSince(what, "what the run has made there is left: remove it when the server answers again")


@puts_back("place_nfs_server", survives_reboot=False)
def _server_answers(args: Args) -> str:
    point = local.point_of_ours(args)
    if _answers_again(point, args["server"]):
        return f"nothing waits for the server of {point}"
    raise ChangedSince(f"{point}: its NFS server does not answer", "what the run has made there is left")


def _answers_again(point: Path, server: dict[str, Any] | None) -> bool:
    """Whether what is mounted there answers, if anything is; where it is ours, once it was started again.

    Whoever has stopped it: what waits for it ends in no better way. Where packets to it are lost, starting it helps
    nobody, and whether it answers is known from that.
    """
    if not calls.is_mounted(point):
        return True
    if server is not None and not machine.HERE.reaches_itself(nfsd.ADDRESS, server["port"]):
        return False
    if answers(point):
        return True
    if server is None:
        return False
    nfsd.stop(Path(server["files"]))
    nfsd.start(Wanted.of(server))
    return answers(point, REVIVED_SECONDS)
