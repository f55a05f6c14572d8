"""What configuring and starting a private server touches, without a server: what lies in its cluster is its user's."""

from __future__ import annotations

import os
import pwd
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from plimsoll.environment import Fault
from plimsoll.target.postgres import PostgresServer, ServerFailed

USER = pwd.getpwuid(os.geteuid()).pw_name
OF_INITDB = (
    "# max_wal_size\nmax_connections = 100\ntimezone = 'Etc/UTC'\n\ninclude 'plimsoll.conf'\ninclude_dir = 'x'\n"
)


class _Launched(list[Any]):
    """Notes what is launched; it says a word into its log and ends."""

    def __call__(self, argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        self.append(argv)
        process = subprocess.Popen(["echo", "from the server"], stdout=options["stdout"])
        process.wait()
        return process


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A folder of ours, 0755, with a cluster that an earlier version has made."""
    folder = tmp_path / "0a1b2c3d-0001"
    (folder / "data").mkdir(parents=True)
    (folder / "data/postgresql.conf").write_text(OF_INITDB)
    (folder / "data/plimsoll.conf").write_text("fsync = 'off'\n")
    return folder


def _server(cluster: Path, launch: Any = None, *, tcp: bool = False) -> PostgresServer:
    return PostgresServer(
        Path("/bin"), cluster / "data", cluster, USER, _Launched() if launch is None else launch, tcp=tcp
    )


@pytest.mark.parametrize("tcp", [False, True])
def test_configuring_writes_nothing_into_the_cluster(cluster: Path, tmp_path: Path, *, tcp: bool) -> None:
    precious = tmp_path / "precious"
    precious.write_text("secret")
    precious.chmod(0o600)
    for name in ("plimsoll.conf", "pg_hba.conf"):
        (cluster / "data" / name).unlink(missing_ok=True)
        (cluster / "data" / name).symlink_to(precious)
    server = _server(cluster, tcp=tcp)
    server.configure({"shared_buffers": "8 MiB"}, None)
    assert (precious.read_text(), precious.stat().st_mode & 0o777) == ("secret", 0o600)
    assert (cluster / "data/postgresql.conf").read_text() == OF_INITDB
    lines = (cluster / "postgresql.conf").read_text().splitlines()
    assert lines[:2] == ["max_connections = 100", "timezone = 'Etc/UTC'"]
    assert f"unix_socket_directories = '{cluster}/s'" in lines and lines.count("shared_buffers = '8192kB'") == 1
    assert not [line for line in lines if "include" in line or "fsync" in line]
    assert (f"hba_file = '{cluster}/pg_hba.conf'" in lines) == tcp == (cluster / "pg_hba.conf").exists()


def test_a_cluster_s_settings_that_are_a_link_are_not_read(cluster: Path, tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("secret")
    (cluster / "data/postgresql.conf").unlink()
    (cluster / "data/postgresql.conf").symlink_to(tmp_path / "precious")
    with pytest.raises(Fault, match=r"data/postgresql.conf: refused"):
        _server(cluster).configure({}, None)
    assert (tmp_path / "precious").read_text() == "secret"


def test_the_log_is_ours_and_no_link_is_read_in_its_place(
    cluster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psycopg, "connect", lambda **_: pytest.fail("it has ended"))
    launched = _Launched()
    server = _server(cluster, launched)
    assert server.log_tail() == ""
    server.configure({}, None)
    with pytest.raises(ServerFailed, match="from the server"):
        server.start()
    assert launched == [
        ["/bin/postgres", "-D", f"{cluster}/data", "-c", f"config_file={cluster}/postgresql.conf"],
    ]
    assert server.log_tail() == "from the server"
    (tmp_path / "precious").write_text("secret")
    (cluster / "server.log").unlink()
    (cluster / "server.log").symlink_to(tmp_path / "precious")
    with pytest.raises(Fault, match=r"server.log: refused"):
        server.log_tail()


@pytest.mark.parametrize(
    ("prefix", "epoch_ns"),
    [
        ("2026-11-26 06:00:00.512 UTC [7] ", 1_795_672_800_512_000_000),
        ("2026-11-26 07:00:00.512 CET [7] ", None),
        ("", None),
    ],
)
def test_a_crash_has_the_time_of_the_log(cluster: Path, prefix: str, epoch_ns: int | None) -> None:
    server = _server(cluster)
    server.configure({}, None)
    settings = (cluster / "postgresql.conf").read_text()
    assert "log_line_prefix = '%m [%p] '" in settings and "log_timezone = 'UTC'" in settings
    line = f"{prefix}LOG:  server process (PID 9) was terminated by signal 9: Killed"
    said = f"{prefix}LOG:  all server processes terminated; reinitializing"
    (cluster / "server.log").write_text(f"{line}\n{said}\n")
    assert server.crashes() == [(line, epoch_ns)]


def test_a_folder_that_the_server_s_user_may_write_is_refused(cluster: Path) -> None:
    cluster.chmod(0o775)
    server = _server(cluster)
    with pytest.raises(Fault, match=rf"^{cluster}: users other than"):
        server.configure({}, None)


def test_of_a_stopped_server_only_its_data_stay(cluster: Path) -> None:
    server = _server(cluster, tcp=True)
    server.configure({}, None)
    (cluster / "s/.s.PGSQL.1.lock").touch()
    (cluster / "server.log").touch()
    server.leave_only_data()
    assert [path.name for path in cluster.iterdir()] == ["data"]
