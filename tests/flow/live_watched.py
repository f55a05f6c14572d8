"""The verb `breakdown` around something that a test does, and the record that it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from live_server import LiveServer

from plimsoll.record import read_table

Json = dict[str, Any]


class Watched:
    """The verb on a server; `with` from its first picture to its end. Afterwards: `found`, `folder`."""

    def __init__(self, server: LiveServer, name: str, seconds: float = 6.0) -> None:
        self._out = server.lab.state / "runs-of-tests" / name
        argv = ("--pid", str(server.pid), "--for", f"{seconds:g}s", "--out", str(self._out))
        self._process = server.start(*argv)
        self.found: Json = {}

    @property
    def folder(self) -> Path:
        return self._out / "trials/0001/measure"

    def __enter__(self) -> Watched:
        assert self._process.stdout is not None
        while "transactions/s" not in (line := self._process.stdout.readline()):
            assert line, self._process.communicate()
        return self

    def __exit__(self, *error: object) -> None:
        text, said = self._process.communicate(timeout=90)
        if error[0] is None:
            assert self._process.returncode == 0, f"{text}\n{said}"
            self.found = json.loads((self._out / "breakdown.json").read_text())

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Transactions, and the waits of each."""
        rows, waits = (read_table(self.folder / name) for name in ("breakdown.npy", "breakdown_waits.npy"))
        assert rows is not None and waits is not None
        return rows, waits

    def named(self, name: str) -> int:
        """The number of a wait."""
        names = json.loads((self.folder / "summary.json").read_text())["probes"]["breakdown"]["wait_names"]
        return next(int(number) for number, known in names.items() if known == name)
