"""Places by NFS without a kernel that has it: what is refused, what the kernel would be told, what is told of it."""

from __future__ import annotations

import socket
import struct
from pathlib import Path
from typing import Any

import pytest
from fake_machine import WITH_EVERYTHING, Disk, FakeMachine

from plimsoll.analysis.places.layers import layers_of
from plimsoll.environment import StateDir, places
from plimsoll.environment.places import machine
from plimsoll.environment.places.nfs import mounting, nfsd, rpc
from plimsoll.environment.places.nfs.mounting import Server
from plimsoll.experiment import Experiment
from plimsoll.experiment.places import Place
from plimsoll.run.surroundings import knobs

LOOPBACK = Server("127.0.0.1", "127.0.0.1", "/t.at-disk", 2049)


def on(**given: Any) -> Experiment:
    document = {"name": "x", "title": "x", "workload": {"name": "bank", "scale": 1}, "measure": {"seconds": 1}}
    tables = {"environment": {"places": {"disk": {"image": "1 GiB"}, **given}}, "target": {"files": {"data": "filer"}}}
    return Experiment.model_validate(document | tables)


def filer(mount: dict[str, Any] | None = None, **nfs: Any) -> dict[str, Any]:
    return {"nfs": {"on": "disk", **nfs}, "mount": mount or {}}


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (filer({"noac": True, "actimeo": 3}), "noac is actimeo = 0 and sync"),
        (filer({"soft": True, "hard": True}), "opposites"),
        (filer({"vers": "3"}), "nfs.version"),
        (filer({"port": 111}), "nfs.on or nfs.server"),
        (filer({"nolock": True}), "of version 3, and nfs.version is 4.2"),
        (filer({"lock": True}, version=3), "daemons of its own"),
        (filer({"sec": "krb5"}), "tickets"),
        (filer({"proto": "udp"}), "TCP alone"),
        (filer({"acregmin": 9, "acregmax": 3}), "is above acregmax"),
        (filer(export={"sync": False, "wdelay": False}), "delays nothing anyway"),
        (filer(version="2"), "'3', '4.0', '4.1' or '4.2'"),
        (filer(on="there"), "no such other place"),
        (filer(on="filer"), "no such other place"),
        ({"nfs": {"server": "filer"}}, "an address and an absolute path"),
        ({"nfs": {"server": "filer:/vol", "export": {"sync": False}}}, "of what this kernel serves"),
        ({"nfs": {"on": "disk"}, "image": "1 GiB"}, "image and nfs"),
        ({"nfs": {"on": "disk"}, "mkfs": {"stride": 4}}, "mkfs: of devices"),
    ],
)
def test_what_cannot_be_meant_is_refused(place: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        on(filer=place)
    assert said in str(refused.value)


def test_two_mounts_of_one_export_have_its_options() -> None:
    two = on(filer=filer()).model_dump()
    two["environment"]["places"]["other"] = filer(export={"sync": False})
    two["target"]["files"]["wal"] = "other"
    with pytest.raises(ValueError, match="with other export options"):
        Experiment.model_validate(two)


def test_the_kernel_is_told_addresses_and_nothing_is_negotiated() -> None:
    place = Place.model_validate(filer({"rsize": 8192, "noac": True, "hard": False}, version=4.0))
    options = mounting.options(place, LOOPBACK)
    assert options == ["proto=tcp", "addr=127.0.0.1", "port=2049", "clientaddr=127.0.0.1", "vers=4.0", "rsize=8192",
                       "noac"]  # fmt: skip
    third = Place.model_validate(filer(version="3"))
    argv = mounting.command(third, Server("127.0.0.1", "127.0.0.1", "/x", 2049, 700), Path("/mnt"))
    assert argv[:4] == ["mount", "-t", "nfs", "-i"] and argv[-2:] == ["127.0.0.1:/x", "/mnt"]
    told = "nolock,mountport=700,vers=3"
    assert argv[5] == f"proto=tcp,addr=127.0.0.1,port=2049,mountaddr=127.0.0.1,mountproto=tcp,mountvers=3,{told}"
    assert Server("::1", "::1", "/x").source == "[::1]:/x"


def test_what_is_in_force_otherwise_is_found() -> None:
    found = [
        "rw",
        "sync",
        "vers=4.2",
        "rsize=4096",
        "wsize=8192",
        "acregmin=0",
        "acregmax=0",
        "acdirmin=0",
        "acdirmax=0",
        "noac",
        "hard",
    ]
    assert mounting.differences({"vers": "4.2", "noac": True, "wsize": "8192", "hard": True}, found) == {}
    assert mounting.differences({"actimeo": "0"}, found) == {}
    assert mounting.differences({"rsize": "512"}, found) == {"rsize": ("512", "4096")}
    assert mounting.differences({"soft": True, "ac": True}, found) == {"soft": ("on", "not told"), "ac": ("on", "noac")}
    assert mounting.differences({"nconnect": "4", "lookupcache": "all"}, found) == {"nconnect": ("4", "1")}
    assert mounting.differences({"acdirmax": "60"}, ["rw"]) == {}


def test_the_server_is_told_everything_beforehand() -> None:
    assert nfsd.versions_text(["4.2"]) == "-3 +4 -4.0 -4.1 +4.2"
    assert nfsd.versions_text(["3"]) == "+3 -4"
    exported = [nfsd.Exported("/w/t.at-a b", sync=True, wdelay=True), nfsd.Exported("/w/c", sync=False, wdelay=True)]
    wanted = nfsd.Wanted("/w/n", "/w/clients", "/w", exported, ["4.2"], 8, 2049, None)
    assert nfsd.Wanted.of(wanted.as_json()) == wanted
    lines = [*nfsd.cache_lines(wanted)]
    assert lines[0] == ("auth.unix.ip", "nfsd 127.0.0.1 2147483647 plimsoll")
    assert ("nfsd.export", f"plimsoll /w 2147483647 {0x1 | 0x400 | 0x2000 | 0x10000} 65534 65534 0") in lines
    assert ("nfsd.export", f"plimsoll /w/t.at-a\\040b 2147483647 {0x20 | 0x400 | 0x2000} 65534 65534 1") in lines
    assert ("nfsd.export", f"plimsoll /w/c 2147483647 {0x10 | 0x400 | 0x2000} 65534 65534 2") in lines
    handle = struct.pack("=I", 2).hex()
    assert lines[-1] == ("nfsd.fh", f"plimsoll 1 \\x{handle} 2147483647 /w/c")


def test_the_largest_block_by_default_follows_from_the_memory() -> None:
    sizes = {256 << 20: 64 << 10, 1 << 30: 256 << 10, 4 << 30: 1 << 20, 64 << 30: 1 << 20, 1 << 20: 8 << 10}
    assert {memory: nfsd.default_block_bytes(memory) for memory in sizes} == sizes


def call(program: int, procedure: int) -> bytes:
    """With credentials of five bytes, which are padded."""
    head = struct.pack(">6I", 7, 0, 2, program, 3, procedure)
    return head + struct.pack(">2I", 1, 5) + b"abcde\0\0\0" + struct.pack(">2I", 0, 0)


def test_a_mountd_that_answers_as_long_as_it_is_asked() -> None:
    with (
        rpc.answering(rpc.MOUNT, rpc.mount(b"handle")) as port,
        socket.create_connection(("127.0.0.1", port)) as asking,
        asking.makefile("rb") as heard,
    ):
        for procedure, status, result in (
            (0, 0, b""),
            (1, 0, struct.pack(">2I", 0, 6) + b"handle\0\0" + struct.pack(">2I", 1, 1)),
            (5, 3, b""),
        ):
            asked = call(rpc.MOUNT, procedure)
            # In two fragments, as TCP may have it.
            asking.sendall(
                struct.pack(">I", 10) + asked[:10] + struct.pack(">I", 1 << 31 | len(asked) - 10) + asked[10:]
            )
            length = struct.unpack(">I", heard.read(4))[0] & ~(1 << 31)
            assert heard.read(length) == struct.pack(">6I", 7, 1, 0, 0, 0, status) + result
    with pytest.raises(OSError):
        socket.create_connection(("127.0.0.1", port), 1)
    assert rpc.reply(call(99, 0), rpc.MOUNT, rpc.mount(b""))[-4:] == struct.pack(">I", 1)  # type: ignore[index]
    assert rpc.reply(b"short", rpc.MOUNT, rpc.mount(b"")) is None


def against(monkeypatch: pytest.MonkeyPatch, state: StateDir, modules: tuple[str, ...], served: str) -> list[str]:
    class Here(FakeMachine):
        def serves_nfs(self) -> str:
            return served

        def has_taken(self, port: int) -> bool:
            return port != 2049

        def refused_option(self, fs: str, name: str, value: str | None) -> str | None:
            return f"{fs}: no" if (name, value) == ("nconnect", "99") else None

    monkeypatch.setattr(machine, "HERE", Here({"/dev/sdb": Disk()}, modules))
    site = knobs.site_of(on(filer=filer({"nconnect": 99})), state, "plan")
    return [text for knob in places.KNOBS for text in knob.obstacles(site) if "filer" in text]


def test_what_the_machine_lacks_is_said_by_the_plan(monkeypatch: pytest.MonkeyPatch, state: StateDir) -> None:
    whole = (*WITH_EVERYTHING, "nfsd", "nfs", "nfsv4")
    (said,) = against(monkeypatch, state, whole, "")
    assert "filer.mount.nconnect = 99: NFS refuses it: nfs4: no" in said
    (used, _) = against(monkeypatch, state, whole, "it runs with 8 threads")
    assert "is in use (it runs with 8 threads)" in used
    server, client = against(monkeypatch, state, WITH_EVERYTHING, "")
    assert "has no NFS server" in server and "CONFIG_NFSD" in server and "NFS client of version 4.2" in client


def test_the_picture_has_the_mount_over_what_it_is_of() -> None:
    below = {"name": "disk", "folder": None, "file_system": "ext4", "mount": [], "devices": [{"name": "sdb"}]}
    place = {
        "folder": None, "file_system": "nfs4", "mount": [], "mount_given": ["vers=4.2", "rsize=512"], "devices": [],
        "nfs": {"version": "4.2", "server": None, "on": "disk", "threads": 8, "export": ["rw", "async"]},
        "differs": {"rsize": {"asked": "512", "in_force": "4096"}}, "exported": below,
    }  # fmt: skip
    layers = layers_of("filer", {"parts": {"data": "filer"}, "places": {"filer": place}, "logs": {}})
    assert [layer.row for layer in layers] == ["part", "nfs", "file system", "device"]
    assert layers[1].title == "NFS 4.2" and "rsize in force: 4096" in layers[1].lines
    assert any("async (unsafe)" in line for line in layers[1].lines)
