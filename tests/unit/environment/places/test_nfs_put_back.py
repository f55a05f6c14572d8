"""NFS is put back where packets of the loopback are lost: what would be waited for in vain is not."""

from __future__ import annotations

import socket
import struct
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from fake_machine import FakeMachine

from plimsoll.environment import Fault, StateDir
from plimsoll.environment.devices import Mount
from plimsoll.environment.journal import registry
from plimsoll.environment.places import machine
from plimsoll.environment.places.nfs import calls, mounts, registered, rpc

FOR_EVER = ("sleep", "600")


class Here(FakeMachine):
    """A machine whose programs are others, and whose loopback loses its packets."""

    def __init__(self, does: Sequence[str]) -> None:
        super().__init__({})
        self.does = does
        self.started: list[subprocess.Popen[str]] = []
        self.asked: list[tuple[str, ...]] = []

    def start(self, *argv: str) -> subprocess.Popen[str]:
        self.asked.append(argv)
        pipe = subprocess.PIPE
        self.started.append(subprocess.Popen(self.does, stdout=pipe, stderr=pipe, text=True))
        return self.started[-1]

    def reaches_itself(self, address: str, port: int) -> bool:
        del address, port
        return False


def test_a_server_is_started_where_an_rpcbind_is_seen_by_nobody_else(
    needs: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("mount namespaces")
    monkeypatch.setattr(registered, "_is_there", lambda: False)
    before, answers = _seen(), []

    def ask() -> None:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(registered.SOCKET))
            call = struct.pack(">6I", 7, 0, 2, rpc.RPCBIND, 4, 2) + struct.pack(">4I", 0, 0, 0, 0)
            asking.sendall(struct.pack(">I", 1 << 31 | len(call)) + call)
            answers.append(asking.recv(64))

    with registered.rpcbind_for(ask):
        assert _seen() == before  # by this thread, as long as we answer, too
    granted = struct.pack(">7I", 7, 1, 0, 0, 0, 0, 1)
    assert answers == [struct.pack(">I", 1 << 31 | len(granted)) + granted]
    assert _seen() == before


def _seen() -> tuple[list[str], str]:
    return sorted(path.name for path in registered.SOCKET.parent.iterdir()), Path("/proc/self/mountinfo").read_text()


def test_what_fails_there_is_told_here() -> None:
    def fail() -> None:
        raise Fault("the kernel refuses", remedy="see `dmesg`")

    with pytest.raises(Fault, match="the kernel refuses"), registered.rpcbind_for(fail):
        pass


def test_where_mounts_of_our_own_are_not_to_be_had_it_is_found_at_the_loopback_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[Any, ...]] = []
    monkeypatch.setattr(registered, "_hides", lambda: False)
    monkeypatch.setattr(registered, "_is_there", lambda: False)
    monkeypatch.setattr(rpc, "answering", lambda *given: asked.append(given) or nullcontext(111))
    with registered.rpcbind_for(lambda: asked.append(("done",))):
        pass
    assert asked == [(rpc.RPCBIND, rpc.rpcbind, 111), ("done",)]


def test_a_mount_that_is_out_of_sight_is_taken_away_before_its_program_ends(tmp_path: Path) -> None:
    class Hiding(Here):
        def mounts(self) -> list[Mount]:
            here = Mount("127.0.0.1:/x", str(tmp_path), "nfs4", [], "/", "0:9")
            return [] if self.started else [here]

    here, began = Hiding(FOR_EVER), time.monotonic()
    with machine.asked_instead(here):
        calls.take_away(tmp_path)
    assert here.started[0].wait() == -9 and time.monotonic() - began < 4
    assert here.asked == [("umount", "-i", "-c", "-f", str(tmp_path))]


def test_a_mount_that_stays_goes_out_of_sight_by_force(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "is_mounted", lambda _: True)
    here = Here(("false",))
    with machine.asked_instead(here):
        calls.take_away(tmp_path)
    assert [argv[3:-1] for argv in here.asked] == [("-f",), ("-f", "-l")]


def test_a_server_of_ours_whose_packets_are_lost_is_not_asked(state: StateDir, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "is_mounted", lambda _: True)
    monkeypatch.setattr(mounts, "answers", lambda *_: pytest.fail("asked"))
    args = {"point": str(state.work / "1.at-filer"), "server": {"port": 2049, "files": "/x"}}
    with machine.asked_instead(Here(FOR_EVER)), pytest.raises(registry.ChangedSince, match="does not answer"):
        registry.find("place_nfs_server").action(args)
