"""The verb `breakdown` from its words to its exit code, on a real server and with an agent that is a script.

So what is tried here is finding the server, the session as its own user, the looks, the record, the page and how it
ends; what the kernel tells is tried with the real agent (test_breakdown_live.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratory import ROOT, in_this_process
from live_server import LiveServer, live_server
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from plimsoll.analysis.watch.verdict import analyse_live
from plimsoll.record import open_run

Json = dict[str, Any]
AGENT = ROOT / "tests/flow/live_agent.py"
LINE = {
    "names": {"100": "IO:WALSync"},
    "processes": [
        {"pid": 1, "what": None, "transactions": 90, "requests": 90, "cpu_ns": 10**8, "run_queue_ns": 0, "now": None}
        | {"waits": [{"event": 100, "bucket": "wal_sync", "count": 9, "ns": 3 * 10**8}]}
    ],
}


@pytest.fixture(scope="module")
def server(needs: Callable[..., None]) -> Iterator[LiveServer]:
    needs("root", "postgresql", "server user")
    import pwd

    known = {account.pw_name for account in pwd.getpwall()}
    user = next(name for name in ("plimsoll", "postgres", "nobody") if name in known)
    with live_server(user) as found:
        found.lab.state.joinpath("agent").write_text(
            f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(AGENT))} "$@"\n'
        )
        found.lab.state.joinpath("agent").chmod(0o755)
        yield found


def call(server: LiveServer, *argv: str, code: int = 0, script: Json | None = None, **more: str) -> str:
    """Standard output if it ended as it should with exit code 0, else the error's text."""
    path = server.lab.state / "script.json"
    path.write_text(json.dumps({"lines": [LINE], **(script or {})}))
    agent = server.lab.state / "agent"
    process = server.start(*argv, agent=agent, PLIMSOLL_LIVE_SCRIPT=str(path), **more)
    out, error = process.communicate(timeout=60)
    assert process.returncode == code, f"exit {process.returncode}\n{out}\n{error}"
    assert "Traceback" not in error
    return out if code == 0 else error


def refused(server: LiveServer, *argv: str, code: int) -> str:
    """The error of what starts nothing, asked for in this interpreter."""
    done = in_this_process(["breakdown", *argv], server.lab.state, server.lab.state)
    assert done.returncode == code and "Traceback" not in done.stderr, f"exit {done.returncode}\n{done.stderr}"
    return done.stderr


def folder(server: LiveServer, name: str) -> Path:
    return server.lab.state / "runs-of-tests" / name


def sessions(server: LiveServer) -> int:
    with server.session() as session:
        row = session.execute("select count(*) from pg_stat_activity where application_name = 'plimsoll breakdown'")
        return int((row.fetchone() or (-1,))[0])


def test_any_process_of_the_server_and_its_own_user(server: LiveServer) -> None:
    """Root is nobody to this server; its own user needs no password."""
    out = folder(server, "by-pid")
    with server.session() as session:
        backend = session.info.backend_pid
        text = call(server, "--pid", str(backend), "--for", "2s", "--out", str(out))
    assert re.search(r"90 transactions/s|8\d transactions/s", text)
    assert re.search(r"^wal_sync .* 75\.0 %", text, re.M)
    assert f"process {server.pid}" in text
    assert "cost in the machine's CPU time: probe 0." in text
    assert max(len(line) for line in text.splitlines() if not line.startswith(("note:", "report:", "record:"))) <= 80
    found = json.loads((out / "breakdown.json").read_text())
    assert found["session"]["user"] == server.server.user
    assert found["looks"]["count"] >= 12
    assert found["server"]["pid"] == server.pid
    assert (out / "report/index.html").stat().st_size > 5000
    assert json.loads((out / "run.json").read_text())["status"] == "finished"
    assert sessions(server) == 0


def test_queries_users_and_locks_are_seen(server: LiveServer) -> None:
    out = folder(server, "locks")
    with server.session() as session:
        session.execute("create table if not exists planted as select 1 as a")
        session.execute("begin; update planted set a = 2")
        waiter = server.client("psql", "-qc", "update planted set a = 3 where 'geheim' <> ''")
        time.sleep(0.3)
        json_text = call(server, "--pid", str(server.pid), "--for", "2s", "--json", "--out", str(out))
        session.execute("rollback")
        holder = session.info.backend_pid
    waiter.wait(20)
    found = json.loads(json_text)["breakdown"]
    (wait,) = found["lock_waits"]
    assert (wait["blocker"], wait["relation"], wait["now"]) == (holder, "planted", True)
    assert 1.8e9 < wait["ns"] < 20e9
    texts = [row["text"] for row in found["queries"]]
    assert "update planted set a = ? where ? <> ?" in texts
    assert not any(b"geheim" in path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert found["clients"] == {"busy": 1, "idle_in_transaction": 1, "idle": 0}
    assert json.loads(json.dumps(analyse_live(open_run(out)))) == found


def test_a_connection_that_is_named(server: LiveServer) -> None:
    out = folder(server, "by-dsn")
    dsn = f"{server.dsn} password='not to be seen'"
    text = call(server, "--dsn", dsn, "--for", "1s", "--json", "--out", str(out))
    found = json.loads(text)["breakdown"]
    assert (found["server"]["pid"], found["session"]["user"]) == (server.pid, "asker")
    for path in out.rglob("*"):
        if path.is_file():
            assert b"not to be seen" not in path.read_bytes(), path


def test_a_database_whose_encoding_nobody_knows(server: LiveServer) -> None:
    """A server that was made without a locale is in SQL_ASCII; a client gets bytes from it where it expects text."""
    with server.session() as session:
        session.execute("create database ascii template template0 encoding 'SQL_ASCII' lc_collate 'C' lc_ctype 'C'")
    try:
        dsn = f"{server.dsn} password='not to be seen' dbname=ascii"
        found = json.loads(call(server, "--dsn", dsn, "--for", "1s", "--json", "--out", str(folder(server, "ascii"))))
        session_of_ours = found["breakdown"]["session"]
        assert (session_of_ours["database"], session_of_ours["user"]) == ("ascii", "asker")
    finally:
        with server.session() as session:
            session.execute("drop database ascii with (force)")


def test_without_a_session_it_says_why_and_goes_on(server: LiveServer) -> None:
    data = server.server.data / "postmaster.pid"
    whole = data.read_text()
    lines = whole.splitlines()
    try:
        data.write_text("\n".join([*lines[:4], "", *lines[5:]]) + "\n")
        text = call(server, "--pid", str(server.pid), "--for", "3s", "--out", str(folder(server, "no-session")))
    finally:
        data.write_text(whole)
    assert "queries and users are not shown: no session on the server (the server has no Unix socket)" in text
    assert "name one with --dsn" in text
    assert re.search(r"^wal_sync .* 75\.0 %", text, re.M)


def test_ctrl_c_ends_it_with_the_picture(server: LiveServer) -> None:
    out = folder(server, "ctrl-c")
    script = server.lab.state / "script.json"
    script.write_text(json.dumps({"lines": [LINE]}))
    agent = server.lab.state / "agent"
    process = server.start(
        "--pid", str(server.pid), "--for", "60s", "--out", str(out), agent=agent, PLIMSOLL_LIVE_SCRIPT=str(script)
    )
    assert process.stdout is not None
    while "transactions/s" not in process.stdout.readline():
        pass
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    text, error = process.communicate(timeout=20)
    assert process.returncode == 4, error
    assert time.monotonic() - began < 5
    assert re.search(r"^wal_sync .* 75\.0 %", text, re.M)
    assert json.loads((out / "run.json").read_text())["status"] == "stopped"
    assert sessions(server) == 0


def test_a_kill_leaves_no_session_and_no_agent(server: LiveServer) -> None:
    script = server.lab.state / "script.json"
    script.write_text(json.dumps({"lines": [LINE]}))
    agent, out = server.lab.state / "agent", folder(server, "killed")
    process = server.start("--pid", str(server.pid), "--out", str(out), agent=agent, PLIMSOLL_LIVE_SCRIPT=str(script))
    assert process.stdout is not None
    while "transactions/s" not in process.stdout.readline():
        pass
    process.kill()
    process.communicate(timeout=20)
    until = time.monotonic() + 5
    while (left := sessions(server) + len(server.lab.processes("python"))) and time.monotonic() < until:
        time.sleep(0.05)
    assert left == 0


def test_a_report_is_drawn_again_from_the_record(server: LiveServer) -> None:
    out = folder(server, "again")
    call(server, "--pid", str(server.pid), "--for", "1s", "--out", str(out))
    before = json.loads((out / "breakdown.json").read_text())
    (out / "breakdown.json").unlink()
    (out / "report/index.html").unlink()
    assert "cost in the machine's CPU time" in server.lab.call("report", str(out))
    assert json.loads((out / "breakdown.json").read_text()) == before
    assert (out / "report/index.html").exists()
    for verb in (("compare", str(out), str(out)), ("run", "--resume", str(out))):
        server.lab.call(*verb, code=2)


def _scraped(url: str) -> dict[tuple[str, str], float]:
    """By name and bucket; the reference parser reads it."""
    with urllib.request.urlopen(url, timeout=5) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {(one.name, one.labels.get("bucket", "")): one.value for family in families for one in family.samples}


def test_a_watch_is_scraped_while_it_is_on_and_its_port_is_free_afterwards(server: LiveServer) -> None:
    script, out = server.lab.state / "script.json", folder(server, "scraped")
    script.write_text(json.dumps({"lines": [LINE]}))
    argv = ("--pid", str(server.pid), "--for", "4s", "--metrics", "0", "--json", "--out", str(out))
    agent = server.lab.state / "agent"
    process = server.start(*argv, agent=agent, PLIMSOLL_LIVE_SCRIPT=str(script))
    assert process.stderr is not None
    said = process.stderr.readline()
    assert re.fullmatch(r"metrics: http://127\.0\.0\.1:\d+/metrics\n", said)
    url, seen = said.split()[1], {}
    with contextlib.suppress(OSError):  # the port closes when the time is up
        while process.poll() is None:
            seen = _scraped(url) or seen
            time.sleep(0.2)
    text, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    found = json.loads(text)["breakdown"]
    assert 0 < seen["plimsoll_server_transactions_total", ""] <= found["transactions"]
    assert seen["plimsoll_wait_seconds_total", "wal_sync"] == seen["plimsoll_backend_seconds_total", "wal_sync"] > 0
    assert seen["plimsoll_watched_seconds_total", ""] <= found["watched_ns"] / 1e9 + 1e-9
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", int(url.split(":")[2].split("/")[0])))


def test_a_port_in_use_starts_no_watch(server: LiveServer) -> None:
    out = folder(server, "no-port")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        error = call(server, "--pid", str(server.pid), "--metrics", port, "--out", str(out), code=2)
    assert f"--metrics {port}" in error and "in use" in error
    assert not (out / "run.json").exists()


@pytest.mark.parametrize(
    ("argv", "code", "told"),
    [
        (("--for", "soon"), 2, ["--for: soon is not a duration", "30s"]),
        (("--for", "0.5"), 2, ["too short"]),
        (("--for", "2h"), 2, ["too long", "1h"]),
        (("--top", "0"), 2, ["--top", "1 to 1000"]),
        ((), 2, ["names no server", "running here: --pid"]),
        (("--pid", "4194305"), 2, ["--pid 4194305: there is no such process", "running here: --pid"]),
        (("--dsn", "host=a nonsense=1"), 2, ["--dsn", "nonsense"]),
        (("--dsn", "host=/nowhere user=u"), 3, ["--dsn: no session on the server", "--pid"]),
        (("--pid", "PID", "--out", "/etc"), 2, ["--out /etc"]),
    ],
)
def test_what_cannot_be_is_told(server: LiveServer, argv: tuple[str, ...], code: int, told: list[str]) -> None:
    given = [str(server.pid) if word == "PID" else word for word in argv]
    text = refused(server, *given, code=code)
    for words in told:
        assert words in text, text


def test_a_process_of_somebody_else(server: LiveServer) -> None:
    text = refused(server, "--pid", str(os.getpid()), code=2)
    assert f"--pid {os.getpid()}: is not a PostgreSQL process but python" in text


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ({"status": "refused", "reason": "no BTF", "remedy": "another kernel"}, "was refused: no BTF; another kernel"),
        ({"exit": 2, "reason": "probes.breakdown.live: no such field"}, "older than this Plimsoll"),
        ({"exit": 3, "reason": "no probes in this build"}, "no probes in this build"),
    ],
)
def test_a_refusal_leaves_nothing(server: LiveServer, script: Json, told: str) -> None:
    out = folder(server, "refused")
    assert told in call(server, "--pid", str(server.pid), "--out", str(out), code=3, script=script)
    assert not out.exists()


def test_an_agent_that_ends_early_keeps_what_it_told(server: LiveServer) -> None:
    out = folder(server, "early")
    agent, script = server.lab.state / "agent", server.lab.state / "script.json"
    script.write_text(json.dumps({"lines": [LINE], "ends_after": 2}))
    argv = ("--pid", str(server.pid), "--for", "20s", "--out", str(out))
    process = server.start(*argv, agent=agent, PLIMSOLL_LIVE_SCRIPT=str(script))
    text, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "the agent ended early" in text
    assert re.search(r"^wal_sync .* 75\.0 %", text, re.M)


def test_only_root_may(server: LiveServer) -> None:
    """Said before anything else is looked at."""
    # Somebody else, who may read the checkout even where the umask has closed it.
    reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    argv = ["setpriv", "--reuid=65534", "--clear-groups", *reads, sys.executable, "-m", "plimsoll", "breakdown"]
    done = subprocess.run(
        [*argv, "--pid", "1"], env=server.lab.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "needs root: sudo ./plimsoll breakdown" in done.stderr
