"""The refresh sets of decision support for an embedded server: files of text, as DBT-3 has them.

The fact that constrains it: they are generated before the test that takes them begins, so that no clock runs meanwhile.
"""

from __future__ import annotations

import os
from typing import Any

from plimsoll.analysis.decision_support.formulas import REFRESH
from plimsoll.run import agent
from plimsoll.run.servers.duckdb.loading import describe
from plimsoll.target.decision_support_checks import checks, left_of_set, statements
from plimsoll.target.duckdb_server import DuckServer

Json = dict[str, Any]
SETS = "sets"
# The tables of each function's part of a set, the one with a row for each order last.
PARTS = {"RF1": ("lineitem", "orders"), "RF2": ("refresh_key",)}


class RefreshSets:
    """The refresh sets of a trial: generated before the test that takes them, as files of text beside the database."""

    def __init__(self, server: DuckServer, data: Json, owner: tuple[int, int]) -> None:
        self._server, self._data, self._owner = server, data, owner
        self._made: dict[str, dict[int, Json]] = {name: {} for name in REFRESH}

    def taken(self) -> dict[str, int]:
        """How many sets each function has taken, by the database itself."""
        rows = self._server.ask("select function, taken from refresh_sets")
        return {str(function): int(taken) for function, taken in rows}

    def prepare(self, wanted: dict[str, int]) -> dict[str, list[Json]]:
        """The next sets of each function, as many as are wanted: what the driver's test is handed."""
        taken = self.taken()
        next_ones = {name: range(taken[name] + 1, taken[name] + count + 1) for name, count in wanted.items()}
        self._make([(name, number) for name, numbers in next_ones.items() for number in numbers])
        return {name: [self._made[name][number] for number in numbers] for name, numbers in next_ones.items()}

    def _make(self, wanted: list[tuple[str, int]]) -> None:
        """Generates the sets (function, number) that are not there, in one call."""
        missing = [(name, number) for name, number in wanted if number not in self._made[name]]
        if not missing:
            return
        folder = self._server.run_dir / SETS
        folder.mkdir(exist_ok=True)
        os.chown(folder, *self._owner)
        parts: list[Json] = [
            {"table": table, "set": number, "out": str(folder / f"{name}-{number}-{table}")}
            for name, number in missing
            for table in PARTS[name]
        ]
        told: dict[tuple[str, int], Json] = {}
        generating = agent.Agent("generate", {"workload": self._data, "parts": parts})
        for line in generating.lines():
            told[line["table"], line["set"]] = line
        generating.finish()
        for part in parts:
            os.chown(part["out"], *self._owner)
        for name, number in missing:
            tables = PARTS[name]
            paths = {table: str(folder / f"{name}-{number}-{table}") for table in tables}
            orders = told[tables[-1], number]
            counts = {"order_count": orders["rows"], "line_count": orders["lines"]}
            verify = left_of_set(name, number, orders["rows"])
            is_there = name == "RF1"
            left = {"orders": orders["rows"] * is_there, "lines": orders["lines"] * is_there, "prices_wrong": 0}
            self._made[name][number] = {"set": number, **paths, **counts, "verify": verify, "left": left}

    def check(self) -> list[Json]:
        """What must hold of the tables after the sets that were taken: checks as the agent's `check` tells them."""
        rows: dict[str, int] = describe(self._data)["tables"]
        taken = self.taken()
        used = {name: range(1, count + 1) for name, count in taken.items()}
        self._make([(name, number) for name, numbers in used.items() for number in numbers])
        lines = {name: sum(self._made[name][number]["line_count"] for number in used[name]) for name in taken}
        answers = [self._server.ask(sql) for sql in statements(rows, taken)]
        return checks(rows, taken, lines, answers)
