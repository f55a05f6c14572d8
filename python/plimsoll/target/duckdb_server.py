"""DuckDB as the server under test: one process that holds the database, started in the group and told what to do.

The fact that constrains it: the driver's process is the server (target/duckdb_driver.py), so whatever it allocates
counts in the group, and it does nothing but what is measured; the record is written on this side of the pipe.
"""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from plimsoll.environment.folders.own_folder import OwnFolder
from plimsoll.experiment import size
from plimsoll.target.server import LOG, LOG_TAIL_BYTES, Launch, Server, ServerFailed, Settings

Json = dict[str, Any]
DATABASE = "plimsoll.duckdb"
TEMP = "temp"
DRIVER = Path(__file__).with_name("duckdb_driver.py")
END_SECONDS = 10
# Nothing is fetched from a network while something is measured.
QUIET = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}


class DriverEnded(ServerFailed):
    """The process that holds the database is gone."""


class DuckServer(Server):
    """One database in the folder `data`, its log and its temporary files below `run_dir`, which is the caller's alone.

    `launch(argv, stdin=, stdout=, stderr=)` starts a process in the group; `owner`: whose user and group number the
    process takes before it opens the database (None: it stays what it is).
    """

    def __init__(self, data: Path, run_dir: Path, launch: Launch, owner: tuple[int, int] | None) -> None:
        self.data, self.run_dir, self._launch, self._owner = data, run_dir, launch, owner
        self._own = OwnFolder(run_dir)
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._settings: dict[str, str] = {}
        self.version, self.pid = "", 0

    @property
    def file(self) -> Path:
        """The database."""
        return self.data / DATABASE

    @property
    def temp(self) -> Path:
        """Where what does not fit into memory goes."""
        return self.run_dir / TEMP

    def configure(self, settings: Settings, memory: int | None) -> None:
        self._settings = {name: as_setting(value, memory) for name, value in settings.items()}

    def start(self, seconds: float = 60) -> None:
        """Opens the database, which is made where there is none. It answers in its own time: a write-ahead log may
        have to be read first."""
        del seconds
        with self._own.append(LOG) as log:
            # -I: no code comes from the folder that we stand in, nor from where the environment says. The driver
            # imports nothing of Plimsoll; DuckDB it finds where this interpreter has its libraries.
            self._process = self._launch(
                [sys.executable, "-I", str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        self._lines = queue.Queue()  # of this process; an earlier one may have ended
        threading.Thread(target=self._read, args=(self._process, self._lines), daemon=True).start()
        given = self._settings | {"temp_directory": str(self.temp)}
        opened = self.do("open", path=str(self.file), settings=given | QUIET, owner=self._owner)
        self.version, self.pid = str(opened["version"]), int(opened["pid"])

    @staticmethod
    def _read(process: subprocess.Popen[bytes], lines: queue.Queue[bytes | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(None)

    def tell(self, line: str) -> None:
        """A line to the driver; one that has ended says so when it is listened to."""
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass

    def hear(self, seconds: float | None = None) -> Json | None:
        """The driver's next line; None when none came in time.

        Raises DriverEnded when there are no more, ServerFailed when what was asked is refused.
        """
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            return None
        if line is None or not line.endswith(b"\n"):
            self._lines.put(None)
            assert self._process is not None
            code = self._process.wait()
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise DriverEnded(f"the driver of DuckDB ended ({how}): {self.log_tail(2000)}")
        answer: Json = json.loads(line)
        if answer["event"] == "refused":
            raise ServerFailed(f"DuckDB: {answer['error']}")
        return answer

    def begin(self, command: str, **about: Any) -> None:
        """A command whose lines are then heard, up to the one with the event "done"."""
        self.tell(json.dumps({"do": command, **about}))

    def do(self, command: str, **about: Any) -> Json:
        """One command to its end. Raises ServerFailed when it was refused, in the server's words."""
        self.begin(command, **about)
        return self.finish()

    def finish(self) -> Json:
        """The last line of the command that was begun."""
        while True:
            line = self.hear()
            if line is not None and line["event"] == "done":
                return line

    def ask(self, *statements: str) -> list[list[Any]]:
        """The rows of the last of these statements."""
        rows: list[list[Any]] = self.do("ask", statements=list(statements))["rows"]
        return rows

    def describe(self) -> Json:
        """Version, the settings given, and what decides durability: the `server` of trial.json."""
        named = ("memory_limit", "threads", "checkpoint_threshold", "wal_autocheckpoint", "preserve_insertion_order")
        listed = ", ".join(f"'{name}'" for name in named)
        rows = self.ask(f"select name, value from duckdb_settings() where name in ({listed}) order by name")
        known = {str(name): str(value) for name, value in rows}
        durability = {"write-ahead log": "synced at each commit (DuckDB has no other way)"}
        durability |= {name: known[name] for name in ("checkpoint_threshold",) if name in known}
        return {"version": f"DuckDB {self.version}", "settings": known | self._settings, "durability": durability}

    def bytes(self) -> int:
        """Of the database's files."""
        return sum(path.stat().st_size for path in self.data.iterdir() if path.is_file())

    def stop(self) -> None:
        """Closes the database, all of it in its one file. Raises ServerFailed."""
        self.ask("checkpoint")
        self.do("close")
        assert self._process is not None
        if self._process.wait(END_SECONDS) != 0:
            raise ServerFailed(f"the driver of DuckDB did not end cleanly: {self.log_tail(2000)}")
        self._process = None

    def abandon(self) -> None:
        """Ends a server whose data are thrown away."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()  # the driver ends with its input
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """Ends the driver at once; whoever listens to it is told."""
        if self._process is not None:
            self._process.kill()

    def log_tail(self, size_max: int = LOG_TAIL_BYTES) -> str:
        """The end of what the driver said beside its lines."""
        return self._own.tail(LOG, size_max)

    def leave_only_data(self) -> None:
        """Removes everything of a closed database but its files."""
        (self.run_dir / LOG).unlink(missing_ok=True)


def as_setting(value: bool | int | float | str, memory: int | None) -> str:
    """A setting as DuckDB reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if size.is_size(value):
        return f"{size.parse(str(value), memory) // 1024}KiB"
    return str(value)
