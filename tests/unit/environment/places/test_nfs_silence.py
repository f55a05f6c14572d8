"""Servers of NFS that stop answering: what is noticed from a client's account, and what is told of it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from plimsoll.environment.places.nfs import silence
from plimsoll.environment.places.nfs.silence import Account, Silence, Watch, Watched

SOME = """device proc mounted on /proc with fstype proc
device 10.0.0.7:/vol mounted on /data/t.at\\040a with fstype nfs4 statvers=1.1
	opts:	rw,vers=4.2,rsize=8192,hard,proto=tcp,port=PORT,timeo=600,addr=127.0.0.1
	age:	9
	xprt:	tcp 945 0 2 0 0 SENT REPLIES 0 58 0 2 0 0
	xprt:	tcp 946 0 2 0 0 100 100 0 58 0 2 0 0
	per-op statistics
		NULL: 1 1 0 44 24 0 0 0 0
device filer:/u mounted on /u with fstype nfs statvers=1.1
	opts:	rw,vers=3,proto=udp
	xprt:	udp 700 0 7 5 0 12 0
"""


def test_calls_and_replies_of_all_connections_are_read() -> None:
    text = SOME.replace("PORT", "2050").replace("SENT", "58").replace("REPLIES", "57")
    found = silence.parse(text)
    assert [*found] == ["/data/t.at a", "/u"]
    mine = found["/data/t.at a"]
    assert (mine.source, mine.sent, mine.replies) == ("10.0.0.7:/vol", 158, 157)
    assert mine.option("port") == "2050" and mine.option("vers") == "4.2" and mine.option("ac") is None
    assert (found["/u"].sent, found["/u"].replies) == (7, 5)
    assert silence.parse("no mounts of NFS") == {}


def test_a_silence_is_from_the_last_look_before_it_to_the_first_reply_after_it() -> None:
    account = Account()
    assert account.see(10.0, 5, waits=True) is None  # nothing is known before
    assert account.see(10.5, 6, waits=True) is None
    for at in (11.0, 11.5, 12.0):
        assert account.see(at, 6, waits=True) is None
    assert account.seconds == 1.5
    assert account.see(12.5, 9, waits=True) == (10.5, 1.5)
    assert account.see(13.0, 9, waits=False) is None and account.seconds == 0


def test_a_mount_that_nobody_uses_is_not_silent() -> None:
    account = Account()
    assert all(account.see(at, 6, waits=False) is None for at in (1.0, 2.0, 100.0))
    assert account.seconds == 0


def test_calls_that_were_given_up_end_a_silence() -> None:
    account = Account()
    for at in (1.0, 2.0, 3.0):
        account.see(at, 6, waits=True)
    assert account.see(4.0, 6, waits=False) == (1.0, 2.0)


def test_time_in_which_nobody_looked_is_no_silence() -> None:
    """A machine that stood still for an hour, and its client with it."""
    account = Account()
    account.see(1.0, 6, waits=True)
    account.see(3601.0, 6, waits=True)
    assert account.seconds == silence.GAP_SECONDS_MAX


def test_words_say_who_how_long_and_when() -> None:
    told = Silence("filer", "10.0.0.7", 1_700_000_000_100_000_000, 1_700_000_010_300_000_000, 10.2)
    assert told.words() == (
        "filer: the server at 10.0.0.7 did not answer for 10.2 s (from 22:13:20.1 until 22:13:30.3 UTC)"
    )
    lasting = Silence("filer", "10.0.0.7", 1_700_000_000_100_000_000, None, 10.2)
    assert "from 22:13:20.1 and had not when the trial ended UTC" not in lasting.words()
    assert "and had not until the trial ended" in lasting.words()


@pytest.fixture
def port() -> int:
    """Nobody listens there."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.fixture
def no_transports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(silence, "_TRANSPORTS", tmp_path / "switches")
    return tmp_path / "switches"


class World:
    """An account in a file, and a clock that stands still until it is told."""

    def __init__(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file, self.now, self.ended = file, time.monotonic(), list[tuple[list[Path], list[Path]]]()
        monkeypatch.setattr(silence.time, "monotonic", lambda: self.now)
        self.watch = Watch([Watched("filer", Path("/data/t.at a"), "127.0.0.1", 60)], [Path("/g")], file, self.give_up)

    def give_up(self, points: Sequence[Path], folders: Sequence[Path]) -> None:
        self.ended.append(([*points], [*folders]))

    def looks(self, number: int, *, sent: int, replies: int, port: int) -> None:
        text = SOME.replace("PORT", str(port)).replace("SENT", str(sent)).replace("REPLIES", str(replies))
        self.file.write_text(text)
        for _ in range(number):
            self.now += 0.5
            self.watch.look()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path / "mountstats", monkeypatch)


@pytest.mark.usefixtures("no_transports")
def test_calls_without_a_reply_are_a_silence_on_a_kernel_that_tells_of_no_transports(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = int(server.getsockname()[1])
        world.looks(2, sent=10, replies=10, port=port)
        world.looks(20, sent=12, replies=10, port=port)
        (lasting,) = world.watch.told()
        assert lasting.ended_ns is None and lasting.seconds == pytest.approx(10)
        world.looks(1, sent=14, replies=12, port=port)
        (told,) = world.watch.told()
        assert told.seconds == pytest.approx(10) and told.ended_ns is not None
        assert (told.ended_ns - told.began_ns) / 1e9 == pytest.approx(10.5)
        # Two calls were sent again: nothing waits any more, though more were sent than answered.
        world.looks(40, sent=14, replies=12, port=port)
        assert world.watch.told() == [told] and world.watch.reason is None


@pytest.mark.usefixtures("no_transports")
def test_a_server_that_refuses_connections_is_silent_and_one_that_takes_them_is_not(world: World, port: int) -> None:
    world.looks(2, sent=10, replies=10, port=port)
    world.looks(20, sent=10, replies=10, port=port)
    assert len(world.watch.told()) == 1
    with socket.create_server(("127.0.0.1", port)):
        world.looks(4, sent=10, replies=10, port=port)
    (told,) = world.watch.told()
    assert told.ended_ns is not None


def test_what_the_kernel_tells_of_its_transports_decides(world: World, no_transports: Path, port: int) -> None:
    """The one to our server; one that is closed has no port, and one to another port is somebody else's."""
    for name, port_there, pending, state in (("xprt-1", port, 0, "CONNECTED BOUND"), ("xprt-2", port + 1, 3, "BOUND")):
        folder = no_transports / "switch-0" / name
        folder.mkdir(parents=True)
        (folder / "dstaddr").write_text("127.0.0.1\n")
        (folder / "xprt_info").write_text(
            f"last_used=7\nsending_q_len=0\npending_q_len={pending}\ndst_port={port_there}\n"
        )
        (folder / "xprt_state").write_text(f"state= {state}\n")
    world.looks(20, sent=12, replies=10, port=port)
    assert world.watch.told() == []  # connected, and nothing waits: some reply was lost long ago
    ours = no_transports / "switch-0/xprt-1/xprt_info"
    ours.write_text(ours.read_text().replace("pending_q_len=0", "pending_q_len=1"))
    world.looks(20, sent=12, replies=10, port=port)
    assert len(world.watch.told()) == 1


@pytest.mark.usefixtures("no_transports")
def test_a_silence_beyond_its_bound_is_given_up_and_a_short_one_is_not_told(world: World, port: int) -> None:
    world.looks(2, sent=10, replies=10, port=port)
    world.looks(4, sent=12, replies=10, port=port)
    world.looks(1, sent=12, replies=12, port=port)
    assert world.watch.told() == []
    world.looks(120, sent=14, replies=12, port=port)
    assert world.watch.reason is None
    world.looks(1, sent=14, replies=12, port=port)
    assert world.watch.reason is not None and "has not answered for 60.5 s" in world.watch.reason
    assert "nfs.silence_seconds_max is 60;" in world.watch.reason and len(world.watch.told()) == 1
    world.watch.begin_anew()
    assert world.watch.reason is None


@pytest.mark.usefixtures("no_transports")
def test_what_waits_is_ended_again_and_again_until_the_trial_is_over(world: World, port: int) -> None:
    def until(condition: Callable[[], bool]) -> None:
        began = time.perf_counter()
        while not condition():
            assert time.perf_counter() - began < 60
            time.sleep(0.01)

    world.looks(2, sent=10, replies=10, port=port)
    world.looks(121, sent=14, replies=10, port=port)
    with world.watch.on() as watch:
        until(lambda: len(world.ended) >= 3)
        assert watch.reason is not None
    assert world.ended[0] == ([Path("/data/t.at a")], [Path("/g")])
    ended = len(world.ended)
    time.sleep(0.5)
    assert len(world.ended) == ended


def test_without_a_mount_nothing_looks_on(tmp_path: Path) -> None:
    with Watch([], [], tmp_path / "none").on() as watch:
        assert watch.told() == [] and watch.reason is None
