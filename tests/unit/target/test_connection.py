"""What needs no server: connection strings, the password file, what of the settings is kept, the counters' names."""

from __future__ import annotations

import datetime
import os
from decimal import Decimal
from pathlib import Path

import pytest

from plimsoll.run.servers.postgresql import schema
from plimsoll.target.connection import Connection, as_counters, shown_setting, stored_password


@pytest.fixture(autouse=True)
def pgpass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A password file that is not there yet."""
    path = tmp_path / "pgpass"
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", str(path))
    return path


def write(path: Path, text: str, mode: int = 0o600) -> None:
    path.write_text(text)
    path.chmod(mode)


@pytest.mark.parametrize(
    ("dsn", "host", "port", "user", "dbname", "password"),
    [
        ("", "/var/run/postgresql", 5432, "postgres", "postgres", None),
        ("user=u", "/var/run/postgresql", 5432, "u", "u", None),
        ("postgresql://u:p@h:5433/d", "h", 5433, "u", "d", "p"),
        ("postgresql://u:p@/d?host=/tmp/s", "/tmp/s", 5432, "u", "d", "p"),
        ("host=h hostaddr=10.0.0.1 dbname=d user=u", "10.0.0.1", 5432, "u", "d", None),
        ("host=h password='a b' application_name=x connect_timeout=3", "h", 5432, "postgres", "postgres", "a b"),
        *(
            (f"host=h sslmode={mode}", "h", 5432, "postgres", "postgres", None)
            for mode in ("disable", "allow", "prefer")
        ),
    ],
)
def test_accepted(dsn: str, host: str, port: int, user: str, dbname: str, password: str | None) -> None:
    assert Connection.from_dsn(dsn) == Connection(host, port, user, dbname, password)


@pytest.mark.parametrize(
    ("dsn", "said"),
    [
        ("service=x", "service is refused; allowed: host, hostaddr, port"),
        ("host=h target_session_attrs=primary", "target_session_attrs is refused; allowed"),
        ("host=h options='-c a=b'", "options is refused; allowed"),
        ("host=h passfile=/x", "passfile is refused; allowed"),
        ("host=h nonsense=1", '"nonsense"; allowed: host'),
        ("postgresql://h/d?nonsense=1", '"nonsense"; allowed: host'),
        *(
            (f"host=h sslmode={mode}", f"sslmode={mode} is refused: no TLS: use a Unix socket or a tunnel")
            for mode in ("require", "verify-ca", "verify-full")
        ),
        ("host=a,b", "several servers"),
        ("postgresql://a,b/d", "several servers"),
        ("hostaddr=10.0.0.1,10.0.0.2", "several servers"),
        ("host=h port=abc", "port must be one number"),
        ("host=h port=5432,5433", "port must be one number"),
        ("host=h port=0", "port must be one number"),
        ("host=h port=65536", "port must be one number"),
        ("host=h password=s3 cr3t", "cannot be read"),
        ("postgresql://u:cr3t%zz@h/d", "cannot be read"),
        ("postgresql://u:cr3t", "port must be one number"),
    ],
)
def test_refused(dsn: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"target\.dsn") as caught:
        Connection.from_dsn(dsn)
    assert said in str(caught.value)
    assert "cr3t" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "password"),
    [
        ("h:5432:d:u:pw", "pw"),
        ("*:*:*:*:pw", "pw"),
        ("h:5432:d:u:pw\r", "pw"),
        (r"h:5432:d:u:a\:b\\c", r"a:b\c"),
        ("h:5432:d:u:a:ignored", "a"),
        ("x:5432:d:u:other\nh:5432:d:u:first\nh:*:d:u:second", "first"),
        ("# h:5432:d:u:no\n\nh:5432\n*:*:*:u:pw", "pw"),
        ("#:*:*:*:pw", None),
        (r"\*:5432:d:u:pw", None),
        ("h:5433:d:u:pw", None),
        ("h:5432:e:u:pw", None),
        ("h:5432:d:v:pw", None),
        ("localhost:5432:d:u:pw", None),
        ("h:5432:d:u:", None),
    ],
)
def test_password_file(pgpass: Path, line: str, password: str | None) -> None:
    write(pgpass, line + "\n")
    assert Connection.from_dsn("postgresql://u@h/d").password == password


def test_password_file_fields_are_unescaped(pgpass: Path) -> None:
    write(pgpass, "\\:\\:1:5432:d\\\\x:u:pw\n")
    assert stored_password("::1", 5432, "d\\x", "u") == "pw"


@pytest.mark.parametrize("folder", ["/var/run/postgresql", "/tmp/s"])
@pytest.mark.parametrize("entry", ["localhost", "itself"])
def test_a_socket_folder_is_localhost_in_the_password_file(pgpass: Path, folder: str, entry: str) -> None:
    write(pgpass, f"{folder if entry == 'itself' else entry}:5432:d:u:pw\n")
    assert Connection.from_dsn(f"host={folder} user=u dbname=d").password == "pw"


def test_an_address_is_looked_up_by_its_name(pgpass: Path) -> None:
    write(pgpass, "h:5432:d:u:pw\n")
    assert Connection.from_dsn("host=h hostaddr=10.0.0.1 user=u dbname=d").password == "pw"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_password_file_open_to_others_is_ignored(pgpass: Path, mode: int) -> None:
    write(pgpass, "*:*:*:*:pw\n", mode)
    assert Connection.from_dsn("host=h").password is None


def test_the_password_file_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPASSFILE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Connection.from_dsn("host=h").password is None
    write(tmp_path / ".pgpass", "*:*:*:*:pw\n")
    assert Connection.from_dsn("host=h").password == "pw"


def test_where_a_password_is_looked_for_first(pgpass: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(pgpass, "*:*:*:*:file\n")
    monkeypatch.setenv("PGPASSWORD", "environment")
    assert Connection.from_dsn("host=h password=dsn").password == "dsn"
    assert Connection.from_dsn("host=h").password == "environment"
    monkeypatch.setenv("PGPASSWORD", "")
    assert Connection.from_dsn("host=h").password == "file"


@pytest.mark.parametrize(
    "name",
    [
        "primary_conninfo",
        "archive_command",
        "restore_command",
        "ssl_passphrase_command",
        "ssl_key_file",
        "krb_server_keyfile",
        "primary_slot_name",
        "some_extension.Password",
    ],
)
def test_values_that_may_let_somebody_in_are_not_kept(name: str) -> None:
    assert "s3cr3t" not in shown_setting(name, "s3cr3t", None)


def test_other_settings_are_kept_without_passwords() -> None:
    assert shown_setting("shared_buffers", "16384", "8kB") == "16384 8kB"
    assert shown_setting("fsync", "on", None) == "on"
    shown = shown_setting("ext.server", "host=h password=s3cr3t postgresql://u:s3cr3t@h/d", None)
    assert "s3cr3t" not in shown
    assert "host=h" in shown


def test_counters_have_the_names_of_the_record() -> None:
    now = datetime.datetime.now(datetime.UTC)
    row = {"num_timed": 1, "num_requested": 2, "buffers_written": 3, "write_time": 4.5, "stats_reset": now}
    found = as_counters("pg_stat_checkpointer", row.items())
    assert found == {"checkpoints_timed": 1, "checkpoints_req": 2, "buffers_checkpoint": 3, "write_time": 4}
    old = {"checkpoints_timed": 1, "checkpoints_req": 2, "buffers_checkpoint": 3, "buffers_backend": None}
    assert as_counters("pg_stat_bgwriter", old.items()) == {key: value for key, value in old.items() if value}
    other = {"datid": 5, "datname": "d", "numbackends": 1, "num_timed": 7, "wal_bytes": Decimal(9)}
    assert as_counters("pg_stat_database", other.items()) == {"num_timed": 7, "wal_bytes": 9}


@pytest.mark.parametrize("run", ["own-server-2024.01.02", "A" * 100, "...", "a" * 39 + "-b"])
def test_a_runs_schema_has_a_name_of_its_own(run: str) -> None:
    names = {schema.schema_name(run) for _ in range(3)}
    assert len(names) == 3
    assert all(schema._OURS.fullmatch(name) and len(name) <= 63 for name in names)


@pytest.mark.parametrize("before", [None, "theirs"])
def test_the_password_is_in_the_environment_only_while_putting_back(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if before is not None:
        monkeypatch.setenv("PGPASSWORD", before)
    with pytest.raises(KeyError), schema.password_for_put_back("ours"):
        assert os.environ["PGPASSWORD"] == "ours"
        raise KeyError
    assert os.environ.get("PGPASSWORD") == before
