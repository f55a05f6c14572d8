"""A private web server: a configuration of its own, its own user, inside the group under test, a port of loopback.

It reads nothing of the machine's own web server and never runs as root. Its log and its configuration lie in a folder
that is ours; what it writes itself (its pid, bodies that are on their way) lies in the folder `s` of that, its user's.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import pwd
import resource
import shutil
import signal
import socket
import stat
import subprocess
import time
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from plimsoll.environment.folders.own_folder import OwnFolder
from plimsoll.environment.web_servers import WebInstall
from plimsoll.experiment import size
from plimsoll.target.server import LOG, LOG_TAIL_BYTES, Launch, LoadedServer, ServerFailed, Settings
from plimsoll.target.web_responder import Responder

Json = dict[str, Any]
LOOPBACK: Final = "127.0.0.1"
OWN: Final = "s"  # the server's own folder, in ours
SOCKET: Final = "program"  # in that, of the program behind it
DYNAMIC: Final = "/web/"  # what the program answers (schema/agent.md)
MARK: Final = ".plimsoll-web"  # a file of every set: whoever serves it serves these files (crates/web)
_LADDER: Final = ((signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))
_ANSWER_SECONDS: Final = 5.0


@dataclass(frozen=True)
class WebTarget:
    """How the agent is told of one."""

    url: str
    site: Path
    program: Path | None = None

    def as_request(self) -> Json:
        """The agent's `target`."""
        given = {"kind": "web", "url": self.url, "folder": str(self.site)}
        return given if self.program is None else given | {"program": str(self.program)}


@dataclass(frozen=True)
class Site:
    """What a server is given to serve, and by how much."""

    files: Path  # the document root
    program: Path | None  # the folder of its program's files; None where no request needs one
    responder: Path  # the program
    clients: int
    cpus: int
    seed: int = 0
    users: int = 1


class WebServer(LoadedServer):
    """One server, run by `user`. `launch(argv, user=...)` starts a process in the group.

    `run_dir`: a folder that the caller owns and nobody else may write.
    """

    name: ClassVar[str]  # of the program, as versions are written
    configuration: ClassVar[str]  # the name of its file

    def __init__(self, install: WebInstall, site: Site, run_dir: Path, user: str, launch: Launch) -> None:
        self.install, self.site, self.run_dir, self.user, self._launch = install, site, run_dir, user, launch
        self._own = OwnFolder(run_dir)
        self._process: subprocess.Popen[bytes] | None = None
        self._responder: Responder | None = None
        self._settings: Settings = {}
        self.port = free_port()
        self.load_connection = WebTarget(f"http://{LOOPBACK}:{self.port}", site.files, site.program)

    @abstractmethod
    def defaults(self) -> Settings:
        """Directives that a trial has unless it sets them."""

    def sized(self, settings: Settings) -> Settings:
        """All directives, with those that follow from others."""
        return settings

    @abstractmethod
    def text(self, settings: Settings) -> str:
        """The configuration with these directives."""

    @abstractmethod
    def argv(self) -> list[str]:
        """How it is started, in the foreground, on that configuration."""

    @property
    def own(self) -> Path:
        """The folder that it writes in."""
        return self.run_dir / OWN

    @property
    def socket(self) -> Path | None:
        """Of the program behind it; None where no request needs one."""
        return None if self.site.program is None else self.own / SOCKET

    def configure(self, settings: Settings, memory: int | None) -> None:
        """Writes the configuration; sizes with units or relative to `memory` (bytes) become bytes."""
        account = pwd.getpwnam(self.user)
        self._own.make_folder(OWN, account.pw_uid, account.pw_gid)
        given = {
            name: size.parse(str(value), memory) if size.is_size(value) else value for name, value in settings.items()
        }
        self._settings = self.sized(self.defaults() | given)
        self._own.write(self.configuration, self.text(self._settings), account.pw_gid)

    def start(self, seconds: float = 60) -> None:
        """Starts the server and waits until it serves the files. Raises ServerFailed with the end of its log."""
        if self.site.program is not None:
            self._start_responder(self.site.program)
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        argv = ["prlimit", f"--nofile={most}:{most}", "--", *self.argv()]  # a descriptor a connection, and a file's
        with self._own.append(LOG) as log:
            self._process = self._launch(argv, user=self.user, stdout=log, stderr=log)
        until = time.monotonic() + seconds
        while not self._serves():
            if not self.is_running():
                raise ServerFailed(f"{self.name} ended while starting ({self._exit_text()}): {self.log_tail(2000)}")
            if time.monotonic() > until:
                raise ServerFailed(f"{self.name} did not answer in {seconds:.0f} s: {self.log_tail(2000)}")
            time.sleep(0.02)
        if self.site.program is not None:
            self._reset()

    def _start_responder(self, folder: Path) -> None:
        account = pwd.getpwnam(self.user)
        folder.mkdir(mode=0o700, exist_ok=True)
        os.chown(folder, account.pw_uid, account.pw_gid)
        program = within_reach(self.site.responder, self.run_dir)
        # A server may have a connection to it for each client.
        connections = 2 * self.site.clients
        self._responder = Responder(program, self.own / SOCKET, self.site.files, folder, connections)
        with self._own.append(LOG) as log:
            self._responder.start(self._launch, self.user, log)

    def _reset(self) -> None:
        """Users, advertisements and an empty log, by the program's own command: so all of the way to it is tried."""
        path = f"{DYNAMIC}command?Reset&seed={self.site.seed}&users={self.site.users}"
        try:
            status, said = self._get(path)
        except (OSError, http.client.HTTPException) as error:
            raise ServerFailed(f"{self.name} does not reach the program behind it: {error}") from None
        if status != http.HTTPStatus.OK:
            words = said.decode(errors="replace").strip()[:500]
            raise ServerFailed(f"{self.name} answers {path} with {status}: {words}; {self.log_tail(1000)}")

    def _get(self, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(LOOPBACK, self.port, timeout=_ANSWER_SECONDS)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def _serves(self) -> bool:
        """Whether our files come from the port: somebody else may have taken it meanwhile."""
        try:
            return self._get(f"/{MARK}") == (http.HTTPStatus.OK, (self.site.files / MARK).read_bytes())
        except (OSError, http.client.HTTPException):
            return False

    def is_running(self) -> bool:
        """Whether its first process lives."""
        return self._process is not None and self._process.poll() is None

    def pid(self) -> int | None:
        """Of its first process."""
        return self._process.pid if self._process else None

    def processes(self) -> dict[str, int]:
        """The first process of the server and of the program behind it, each of which starts others."""
        found = {"server": self.pid(), "program": self._responder.pid() if self._responder is not None else None}
        return {name: pid for name, pid in found.items() if pid is not None}

    def check_alive(self) -> None:
        """Raises ServerFailed where it has ended by itself."""
        if not self.is_running():
            raise ServerFailed(f"{self.name} ended during the trial ({self._exit_text()}): {self.log_tail(2000)}")
        if self._responder is not None and not self._responder.is_running():
            raise ServerFailed(f"the program behind {self.name} ended during the trial: {self.log_tail(2000)}")

    def stop(self) -> None:
        self.abandon()

    def abandon(self) -> None:
        """Ends it, and then the program behind it."""
        process, self._process = self._process, None
        for sent, patience in _LADDER:
            if process is None or process.poll() is not None:
                break
            process.send_signal(sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
        if self._responder is not None:
            self._responder.abandon()
            self._responder = None

    def leave_only_data(self) -> None:
        for name in (LOG, self.configuration):
            (self.run_dir / name).unlink(missing_ok=True)
        shutil.rmtree(self.own, ignore_errors=True)

    def describe(self) -> Json:
        return {
            "version": f"{self.name} {self.install.version}",
            "settings": {name: shown(value) for name, value in sorted(self._settings.items())},
            "durability": {},
        }

    def log_tail(self, size_max: int = LOG_TAIL_BYTES) -> str:
        return self._own.tail(LOG, size_max)

    def _exit_text(self) -> str:
        code = self._process.returncode if self._process else None
        return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def shown(value: bool | int | float | str) -> str:
    """A directive's value."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def quoted(path: Path | str) -> str:
    """A path as both servers' configurations take it."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'


def free_port() -> int:
    """A port of loopback that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def within_reach(program: Path, folder: Path) -> Path:
    """The program where the server's user can start it: itself, or a copy in `folder`."""
    if os.geteuid() != 0 or all(one.stat().st_mode & stat.S_IXOTH for one in (program, *program.parents)):
        return program
    copy = folder / program.name
    if not copy.exists():
        shutil.copyfile(program, copy)
        copy.chmod(0o755)
    return copy
