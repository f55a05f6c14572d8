"""The soak in which faults are planted: begun, begun again as its unit would, asked how far it is, and ended.

The constraint: it is the product's own command line in a process of its own, with a state folder that nobody else
uses, so that what is killed is the soak's and what is left is put back by `plimsoll undo`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from plimsoll.run.soak.runner import resume_command

Json = dict[str, Any]
ROOT: Final = Path(__file__).resolve().parents[2]
STOP_S_MAX: Final = 600.0


class Soak:
    """`record`: its folder; `log`: what its front says, of every begin."""

    def __init__(self, experiment: str, options: Sequence[str], record: Path, log: Path) -> None:
        self.record, self.log = record, log
        self.state = Path(tempfile.mkdtemp(prefix="plimsoll-faults-", dir="/var/tmp"))
        self.state.chmod(0o755)  # the server's user works in it
        self._first = [sys.executable, "-P", "-m", "plimsoll", "soak", experiment, *options, "--out", str(record)]
        self.front: subprocess.Popen[bytes] | None = None

    def begin(self) -> None:
        """The soak, or what goes on with it: what the unit has as its command."""
        command = resume_command(self.record.absolute()) if (self.record / "run.json").exists() else self._first
        environment = {**os.environ, "PLIMSOLL_STATE": str(self.state), "COLUMNS": "160"}
        environment["PYTHONPATH"] = str(ROOT / "python")
        with self.log.open("ab") as log:
            self.front = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def series(self) -> Json:
        """How far it has come."""
        try:
            found: Json = json.loads((self.record / "trials" / "0001" / "series.json").read_text())
        except FileNotFoundError:
            return {"done": [], "under_way": None, "result": None}
        return found

    def under_load(self) -> tuple[str, int] | None:
        """The round whose load is under way, and which attempt at it."""
        under_way = self.series()["under_way"] or {}
        name = str(under_way.get("segment") or "")
        if not name.startswith("round-") or not (self.record / "trials" / "0001" / name / "host.npy").exists():
            return None
        return name, int(under_way["attempt"])

    def rounds_done(self) -> int:
        return sum(name.startswith("round-") for name in self.series()["done"])

    def is_at_work(self) -> bool:
        return self.front is not None and self.front.poll() is None

    def kill_front(self) -> int:
        """SIGKILL; its number."""
        assert self.front is not None  # it was begun
        self.front.kill()
        self.front.wait()
        return self.front.pid

    def verdict(self) -> Json | None:
        """As the soak has judged itself."""
        path = self.record / "verdict.json"
        found: Json | None = json.loads(path.read_text()) if path.exists() else None
        return found

    def close(self) -> None:
        """Stopped as by Ctrl-C where it is at work; the machine put back, its state folder removed."""
        if self.front is not None and self.front.poll() is None:
            self.front.send_signal(signal.SIGINT)
            try:
                self.front.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                self.front.kill()
                self.front.wait()
        environment = {**os.environ, "PLIMSOLL_STATE": str(self.state), "PYTHONPATH": str(ROOT / "python")}
        undone = subprocess.run(
            [sys.executable, "-P", "-m", "plimsoll", "undo"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if undone.returncode:
            print(
                f"{self.state}: kept, for not everything was put back:\n{undone.stdout}{undone.stderr}", file=sys.stderr
            )
            return
        shutil.rmtree(self.state, ignore_errors=True)
