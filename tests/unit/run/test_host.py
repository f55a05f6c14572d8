"""Whatever a trial asks of the machine it asks of its host, so that another one can answer."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.environment.devices import Device
from plimsoll.run import agent, host
from plimsoll.run.host import HERE, ThisMachine
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.place import Place, read_counters
from plimsoll.target.server import Server

DISKSTATS = "   8  0 sda 1 2 3 4\n   8  16 sdb 5 6 7 8\n"


class Guest(ThisMachine):
    """A machine with files of a kernel of its own, on which every program is a Python that echoes."""

    def __init__(self) -> None:
        self.started: list[tuple[list[str], set[int] | None]] = []

    def read(self, path: str) -> str:
        return {"/proc/diskstats": DISKSTATS, "/proc/vmstat": "pgsteal_anon 9\npgsteal_file 3\n"}[path]

    def start_led(self, argv: list[str], cpus: set[int] | None) -> subprocess.Popen[str]:
        self.started.append((argv, cpus))
        echo = "import sys; line = sys.stdin.readline(); sys.stdout.write(line)"
        return super().start_led([sys.executable, "-c", echo], None)


def test_counters_are_those_of_the_host_that_the_server_is_on() -> None:
    guest, into = Guest(), dict[str, object]()
    place = Place(devices=["sdb"], group=None, load_cpus=None, host=guest)
    read_counters(Server(), place, TrialLog(trial=None), "before", into)  # type: ignore[arg-type]
    assert into == {"counters": {"before": {}}, "device_counters": {"before": {"sdb": [5, 6, 7, 8]}}}
    assert guest.reclaimed_bytes() == 3 * os.sysconf("SC_PAGE_SIZE")


def test_the_agent_runs_on_the_host_that_is_named() -> None:
    guest = Guest()
    assert agent.call("load", {"clients": 3}, cpus={1}, host=guest) == {"clients": 3}
    assert guest.started == [([str(agent.PROGRAM), "load"], {1})]


def test_cpu_time_of_a_process_and_of_none() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    assert HERE.cpu_ns(process.pid) is None
    before = HERE.cpu_ns(os.getpid())
    assert before is not None and 0 < before <= sum(os.times()[:2]) * 1e9 + 1e9


def test_a_program_has_a_session_of_its_own_at_the_root() -> None:
    """So that a Ctrl-C on the terminal does not reach it, and no folder is held by it."""
    told = "import os; print(os.getcwd(), os.getsid(0) == os.getpid())"
    me = pwd.getpwuid(os.geteuid()).pw_name
    process = HERE.start_as([sys.executable, "-c", told], user=me, stdout=subprocess.PIPE)
    assert process.communicate()[0].split() == [b"/", b"True"]


def test_devices_are_those_that_the_kernel_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The topmost of each place; what only stands for its disks, as btrfs has one, is not counted, but they are."""
    rows = "7 0 loop0 1 2 3\n253 0 vda 1 2 3\n253 16 vdb 1 2 3\n"
    monkeypatch.setattr(type(HERE), "read", lambda _self, path: rows if path == "/proc/diskstats" else "")
    vda, vdb = Device("vda", None, False), Device("vdb", None, False)
    places = {
        "loop": [Device("loop0", None, True, [vda])],
        "btrfs": [Device("btrfs-0815", Path("/sys"), True, [vda, vdb])],
        "tmpfs": [Device("0:36", Path("/sys"), True)],
    }
    monkeypatch.setattr(host, "devices_of", lambda path: places[path.name])

    def devices(*names: str) -> list[str]:
        return HERE.devices(*map(Path, names))

    assert devices("loop") == ["loop0"]
    assert devices("btrfs") == ["vda", "vdb"]
    assert devices("tmpfs") == []
    assert devices("loop", "btrfs", "loop") == ["loop0", "vda", "vdb"]
