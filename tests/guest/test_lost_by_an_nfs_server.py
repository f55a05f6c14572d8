"""An NFS server that is killed under order entry: with its export async the ledger finds acknowledged commits that are
lost, and the sentence names the export; with sync none is.

The database's folder lies on a mount of the server's own guest, whose kernel is a process here: its SIGKILL is a power
cut for whatever was in the server's memory alone. What was acknowledged is noted on this side. A second boot, on the
same disk, tells what there is. PLIMSOLL_KILLS=10 asks for ten kills of each
(54 s for one of both on a busy machine).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import served
import user_mode_linux
from user_mode_linux import TOOLS

from plimsoll.analysis.order_entry.order_entry import unsafe_settings
from plimsoll.environment import discover
from plimsoll.record import read_table
from plimsoll.run import agent
from plimsoll.words.workloads.order_entry import ledger_lines

pytestmark = pytest.mark.long
NEEDS = ("root", "user-mode-linux", "server user", "postgresql", "mkfs.ext4")
KILLS = int(os.environ.get("PLIMSOLL_KILLS", "2"))
DISK_BYTES = 2 << 30  # sparse
BEFORE = 20  # transactions, on this machine's own disk
ACKNOWLEDGED_MIN = 60  # before a kill
PATIENCE_S = 1800.0  # of a hang


@dataclass(frozen=True)
class Prepared:
    """A disk with a cluster that was stopped cleanly, the segment before, and what a guest is told."""

    room: Path

    def copy(self, room: Path) -> None:
        for name in ("plan.json", "before", "image"):
            subprocess.run(["cp", "-a", "--sparse=always", str(self.room / name), str(room)], check=True)
        (room / "disk").mkdir()


@pytest.fixture(scope="module")
def prepared(needs: Callable[..., None]) -> Iterator[Prepared]:
    needs(*NEEDS)
    from conftest import _server_user

    with tempfile.TemporaryDirectory(prefix="plimsoll-lost-", dir="/var/tmp") as name:
        room = Path(name)
        room.chmod(0o755)
        for folder in ("content/served", "before"):
            (room / folder).mkdir(parents=True)
        plan: dict[str, Any] = {"bin_dir": str(discover.servers()[-1].bin_dir), "user": _server_user(), "seed": 7}
        server = served.server_on(room / "content/served/data", room / "run", plan)
        server.initdb()
        server.configure({**served.SETTINGS, "fsync": False}, None)
        server.start(PATIENCE_S)
        try:
            server.create_database()
            target = server.load_connection.as_request()
            agent.call("populate", {"target": target, "workload": served.workload(plan), "parallel": 1})
            stop = {"transactions": BEFORE}
            summary = agent.call("load", served.load_request(server, plan, room / "before", stop))
            plan["next_index"] = summary["next_index"]
        finally:
            server.stop()
        (room / "plan.json").write_text(json.dumps(plan))
        (room / "image").touch()
        os.truncate(room / "image", DISK_BYTES)
        make = ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=1", "-d", str(room / "content"), str(room / "image")]
        subprocess.run(make, check=True, capture_output=True, env=TOOLS)
        shutil.rmtree(room / "content")
        yield Prepared(room)


def told(room: Path, console: Path) -> str:
    """For whoever reads a failure."""
    said = room / "said"
    return f"{said.read_text() if said.exists() else ''}\n{console.read_text(errors='replace')[-3000:]}"


def boot(room: Path, part: str, exported: str, ended: Callable[[], bool]) -> None:
    """Lets a part go on until `ended` or its end, and kills the guest."""
    console = room / f"console-{part}"
    words = (f"PLIMSOLL_PROGRAM={room}/tree/tests/guest/served.py", f"PLIMSOLL_PART={part}")
    with console.open("wb") as output:
        guest = user_mode_linux.start(room, output, *words, f"PLIMSOLL_EXPORT={exported}")
        try:
            until = time.monotonic() + PATIENCE_S
            while not ended() and guest.poll() is None:
                assert time.monotonic() < until, told(room, console)
                time.sleep(0.2)
        finally:
            user_mode_linux.kill(guest)
    assert ended(), told(room, console)


def acknowledged(room: Path) -> int:
    path = room / "killed/acknowledged.npy"
    table = read_table(path) if path.exists() and path.stat().st_size else None
    return 0 if table is None else len(table)


@pytest.mark.parametrize("kill", range(KILLS))
def test_what_a_killed_server_loses_is_found_and_named(prepared: Prepared, kill: int) -> None:
    """Both at once: a guest has one CPU, and starts and is waited for most of its time."""
    with ThreadPoolExecutor(2) as both:
        checks = [both.submit(kill_and_check, prepared, exported, kill) for exported in ("async", "sync")]
    for check in checks:
        check.result()


def kill_and_check(prepared: Prepared, exported: str, kill: int) -> None:
    with tempfile.TemporaryDirectory(prefix="plimsoll-lost-", dir="/var/tmp") as name:
        room = Path(name)
        room.chmod(0o755)
        prepared.copy(room)
        # At another moment each time.
        boot(room, "load", exported, lambda: acknowledged(room) >= ACKNOWLEDGED_MIN + 7 * kill)
        count = acknowledged(room)
        # A load that was killed has written no summary; the ledger is looked for beside one.
        shutil.copy(room / "before/summary.json", room / "killed")
        boot(room, "check", exported, lambda: (room / "checked.json").exists())
        ledger = json.loads((room / "checked.json").read_text())["ledger"]
        export = json.loads((room / "export.json").read_text())
        trial = {
            "server": {"durability": json.loads((room / "durability.json").read_text())},
            "layout": {"places": {"filer": {"nfs": {"export": export}}}},
        }
    of_kinds = [ledger[kind] for kind in ("new_orders", "payments")]
    lost = sum(one["lost"] for one in of_kinds)
    entry = {"trial": 1, **ledger, "unsafe": unsafe_settings(trial)}
    (line,) = ledger_lines({"order_entry": {"ledger": [entry]}})
    print(f"{exported}: {count} acknowledged before the kill, {lost} lost; {line}")
    assert sum(one["acknowledged"] for one in of_kinds) >= count
    assert exported in export and not any(one["twice"] for one in of_kinds)
    if exported == "async":
        assert lost > 0
        assert line.endswith("able to lose them: NFS export of filer: async")
    else:
        assert lost == 0
        assert "in force" not in line
