"""The configurations of private web servers: where each directive goes, and what is Plimsoll's own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from plimsoll.environment import web_processes
from plimsoll.environment.web_servers import WebInstall
from plimsoll.target.apache import ApacheServer
from plimsoll.target.nginx import NginxServer, connections_of
from plimsoll.target.web_server import Site, WebServer, within_reach

FOLDER = Path("/var/lib/a b")


def server(kind: type[WebServer], *, program: bool = False, clients: int = 10) -> WebServer:
    site = Site(Path("/d/site"), Path("/d/program") if program else None, Path("/agent"), clients, cpus=3)
    install = WebInstall("1.2", Path("/usr/sbin/x"), Path("/usr/lib/m"))
    return kind(install, site, FOLDER, "nobody", lambda *_a, **_k: None)  # type: ignore[arg-type, return-value]


def configured(of: WebServer, **given: Any) -> str:
    return of.text(of.sized(of.defaults() | given))


def block(text: str, name: str) -> list[str]:
    """The lines of a block of nginx, less those of blocks within."""
    inside = text[text.index(f"{name} {{") :].split("\n")[1:]
    lines, depth = [], 0
    for line in inside:
        depth += line.count("{") - line.count("}")
        if depth < 0:
            break
        if depth == 0 and "}" not in line:
            lines.append(line.strip())
    return lines


def test_directives_of_nginx_stand_where_they_belong() -> None:
    text = configured(server(NginxServer), worker_processes=2, multi_accept=True, tcp_nopush=False, sendfile=False)
    head = text[: text.index("events {")]
    assert "worker_processes 2;" in head and "daemon off;" in head and "error_log stderr;" in head
    assert block(text, "events") == ["multi_accept on;", "worker_connections 1024;"]
    of_http = block(text, "http")
    assert {"sendfile off;", "tcp_nopush off;", "access_log off;"} <= set(of_http)
    assert not any(line.startswith(("worker_", "multi_")) for line in of_http)


def test_nginx_writes_in_its_own_folder_alone() -> None:
    paths = re.findall(r'"([^"]*)"', configured(server(NginxServer)))
    assert len(paths) == 9 and [path for path in paths if not path.startswith("/var/lib/a b/s")] == ["/d/site"]


def test_a_worker_of_nginx_has_room_for_all_connections() -> None:
    assert server(NginxServer, clients=3000).defaults()["worker_connections"] == 3064
    assert server(NginxServer, clients=3000, program=True).defaults()["worker_connections"] == 6064
    assert (connections_of(10, has_program=False), server(NginxServer).defaults()["worker_processes"]) == (74, 3)


@pytest.mark.parametrize(("kind", "passes"), [(NginxServer, "fastcgi_pass"), (ApacheServer, "ProxyPass")])
def test_a_program_is_asked_only_where_there_is_one(kind: type[WebServer], passes: str) -> None:
    assert passes not in configured(server(kind))
    with_program = configured(server(kind, program=True))
    assert passes in with_program and "/s/program" in with_program


def test_apache_starts_as_many_processes_as_its_workers_need() -> None:
    lines = configured(server(ApacheServer, clients=1001)).splitlines()
    assert lines.index("serverlimit 41") < lines.index("threadsperchild 25") < lines.index("maxrequestworkers 1025")
    prefork = configured(server(ApacheServer), mpm="prefork", maxrequestworkers=7)
    assert "serverlimit 7" in prefork and "mpm_prefork_module" in prefork and "threadsperchild" not in prefork
    assert "serverlimit 9\n" in configured(server(ApacheServer), serverlimit=9, maxrequestworkers=100)


def test_apache_serves_the_files_and_nothing_else() -> None:
    text = configured(server(ApacheServer), enablesendfile=False)
    assert "enablesendfile off" in text and "mpm event" not in text
    assert text.index("Require all denied") < text.index('<Directory "/d/site">') < text.index("Require all granted")


def test_a_program_that_others_cannot_reach_is_copied(tmp_path: Path) -> None:
    program = tmp_path / "closed" / "program"
    program.parent.mkdir()
    program.write_bytes(b"#!/bin/sh\n")
    program.chmod(0o755)
    program.parent.chmod(0o700)
    reached = within_reach(program, tmp_path)
    assert reached.read_bytes() == program.read_bytes()
    assert reached in (program, tmp_path / "program") and reached.stat().st_mode & 0o001


def test_processes_of_others_are_not_ours(tmp_path: Path) -> None:
    """Neither what works in the folder and is no web server, nor what is one elsewhere."""
    assert web_processes.processes_of(tmp_path) == [] and not web_processes.stop(tmp_path)
