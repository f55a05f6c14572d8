"""What answers behind a private web server: the agent's `respond`, as the server's user, inside its group."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import IO

from plimsoll.target.server import Launch, ServerFailed

CONNECTIONS_MIN = 1024
_END_SECONDS = 10.0


class Responder:
    """One responder on the Unix socket `socket`, for the files in `site`, with its own in `folder`."""

    def __init__(self, program: Path, socket: Path, site: Path, folder: Path, connections: int) -> None:
        self.program, self.socket = program, socket
        self._request = {
            "listen": str(socket),
            "folder": str(site),
            "program": str(folder),
            "connections": max(CONNECTIONS_MIN, connections),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, launch: Launch, user: str, log: IO[bytes]) -> None:
        """Starts it and waits until it listens. Raises ServerFailed."""
        pipe = subprocess.PIPE
        self._process = launch([str(self.program), "respond"], user=user, stdin=pipe, stdout=pipe, stderr=log)
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(self._request).encode() + b"\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if b'"responding"' not in line:
            raise ServerFailed(f"the program behind the server did not start (exit code {self._process.wait()})")

    def pid(self) -> int | None:
        """Of its process, which starts others for requests."""
        return self._process.pid if self._process else None

    def is_running(self) -> bool:
        """Whether it lives."""
        return self._process is not None and self._process.poll() is None

    def abandon(self) -> None:
        """Ends it, by the end of what it is told; at once where it does not listen."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
