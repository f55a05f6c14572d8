"""What root writes and reads beside a server stays in its own folder, whatever lies in a file's place."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll.environment import Fault
from plimsoll.environment.folders.own_folder import OwnFolder, read_theirs

GROUP = os.getegid()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "own"
    made.mkdir(mode=0o755)
    return made


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "precious"
    file.write_text("secret")
    file.chmod(0o600)
    return file


def _append(own: OwnFolder) -> None:
    with own.append("x") as file:
        file.write(b"more")


CALLS: dict[str, Callable[[OwnFolder], object]] = {
    "write": lambda own: own.write("x", "text", GROUP),
    "append": _append,
    "tail": lambda own: own.tail("x", 100),
    "make_folder": lambda own: own.make_folder("x", os.geteuid(), GROUP),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_link_in_a_file_s_place_is_not_followed(folder: Path, precious: Path, call: Callable[..., object]) -> None:
    (folder / "x").symlink_to(precious)
    with pytest.raises(Fault, match=rf"^{folder}/x: refused"):
        call(OwnFolder(folder))
    assert (precious.read_text(), precious.stat().st_mode & 0o777) == ("secret", 0o600)


@pytest.mark.parametrize("call", [CALLS[name] for name in ("write", "append", "tail")])
def test_a_pipe_in_a_file_s_place_is_refused_at_once(folder: Path, call: Callable[..., object]) -> None:
    os.mkfifo(folder / "x")
    with pytest.raises(Fault, match=rf"^{folder}/x: refused"):
        call(OwnFolder(folder))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_folder_that_others_may_write_is_refused(folder: Path, call: Callable[..., object]) -> None:
    folder.chmod(0o777)
    with pytest.raises(Fault, match=rf"^{folder}: users other than"):
        call(OwnFolder(folder))
    link = folder.with_name("link")
    folder.chmod(0o755)
    link.symlink_to(folder)
    with pytest.raises(Fault, match=rf"^{link}: "):
        call(OwnFolder(link))


def test_files_are_written_anew_and_the_log_grows(folder: Path) -> None:
    own = OwnFolder(folder)
    assert own.tail("log", 10) == "" == OwnFolder(folder / "none").tail("log", 10)
    own.write("conf", "a longer text", GROUP)
    own.write("conf", "short", GROUP)
    assert ((folder / "conf").read_text(), (folder / "conf").stat().st_mode & 0o777) == ("short", 0o640)
    for text in (b"one ", b"two"):
        with own.append("log") as file:
            file.write(text)
    assert (own.tail("log", 100), own.tail("log", 2)) == ("one two", "wo")
    assert (folder / "log").stat().st_mode & 0o777 == 0o600
    own.make_folder("s", os.geteuid(), GROUP)
    own.make_folder("s", os.geteuid(), GROUP)
    assert (folder / "s").stat().st_mode & 0o777 == 0o700


def test_of_the_server_s_files_only_its_own_are_read(folder: Path, precious: Path) -> None:
    mine = os.geteuid()
    (folder / "x").write_text("text")
    assert read_theirs(folder, "x", mine) == "text"
    with pytest.raises(Fault, match=f"server's user .{mine + 1}. alone"):
        read_theirs(folder, "x", mine + 1)
    os.link(precious, folder / "second")
    (folder / "link").symlink_to(precious)
    for name in ("second", "link", "none"):
        with pytest.raises(Fault, match=rf"^{folder}/{name}: refused"):
            read_theirs(folder, name, mine)
