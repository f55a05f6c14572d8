"""Which process is a server: told by its folder and its own number, never by its name alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.target import Connection, running


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "PG_VERSION").write_text("15\n")
    return folder


@pytest.fixture
def process(data: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that works in the folder, with a child that does too."""
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    started = subprocess.Popen([sys.executable, "-c", code], cwd=data, start_new_session=True)
    yield started
    os.killpg(started.pid, 9)
    started.wait()


def write_pid_file(data: Path, pid: int, sockets: str = "/tmp/sockets") -> None:
    (data / "postmaster.pid").write_text(f"{pid}\n{data}\n1700000000\n5433\n{sockets}\n\n  12345 6\nready   \n")


def child_of(pid: int) -> int:
    for _ in range(200):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if found:
            return int(found[0])
        subprocess.run(["sleep", "0.05"], check=True)
    raise AssertionError("no child")


def test_the_first_process_and_any_of_its_children(data: Path, process: subprocess.Popen[bytes]) -> None:
    write_pid_file(data, process.pid)
    for pid in (process.pid, child_of(process.pid)):
        found = running.by_pid(pid)
        assert (found.pid, found.data, found.major, found.port) == (process.pid, data, "15", 5433)
        assert (found.socket_folder, found.started_epoch, found.uid) == ("/tmp/sockets", 1_700_000_000, os.geteuid())


def test_a_socket_folder_beside_the_data(data: Path, process: subprocess.Popen[bytes]) -> None:
    write_pid_file(data, process.pid, "..")
    assert running.by_pid(process.pid).socket_folder == str(data.parent)
    users = [(one.user, one.dbname, one.host, one.port) for one in running.sockets_of(running.by_pid(process.pid))]
    assert ("postgres", "postgres", str(data.parent), 5433) in users


def test_a_server_without_a_socket_has_no_way(data: Path, process: subprocess.Popen[bytes]) -> None:
    write_pid_file(data, process.pid, "")
    assert running.sockets_of(running.by_pid(process.pid)) == []


def test_a_file_left_by_another_process_proves_nothing(data: Path, process: subprocess.Popen[bytes]) -> None:
    write_pid_file(data, process.pid + 1)
    with pytest.raises(running.NotFound, match="is not a PostgreSQL process"):
        running.by_pid(process.pid)


def test_a_number_that_is_nobodys() -> None:
    with pytest.raises(running.NotFound, match=r"--pid 4194305: there is no such process"):
        running.by_pid(4194305)


def test_an_answer_from_elsewhere_is_told(data: Path, process: subprocess.Popen[bytes]) -> None:
    """The number of a backend there may be that of a process here: the time of the server's begin tells."""
    write_pid_file(data, process.pid)
    there = Connection(host="db1", port=5432, user="u", dbname="d")
    assert running._checked(there, process.pid, 1_700_000_001.5).pid == process.pid
    for backend, started in ((process.pid, 1_700_000_900.0), (4194305, 1_700_000_000.0)):
        with pytest.raises(running.Elsewhere, match="db1, port 5432 does not run on this machine"):
            running._checked(there, backend, started)
