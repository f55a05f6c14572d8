"""A small laboratory for tests of the whole pipeline: its own state folder, a tiny experiment, a look at what is left.

The state folder is under /var/tmp because the server's user has to reach it, which it cannot under pytest's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from plimsoll.environment.groups import cgroups

ROOT = Path(__file__).resolve().parents[2]

EXPERIMENT = """
format = 1
name = "tiny"
title = "Does everything work?"

[environment]
memory = "192 MiB"
swap = "64 MiB"

[target.settings]
autovacuum = false
checkpoint_timeout = "1h"

[workload]
name = "wpi_orders"
size = "48 MiB"
clients = 4

[warmup]
until = "none"

[measure]
seconds = 1

[design]
blocks = 2
repeat_share_max = 0  # whatever the hypervisor takes: the tests count what each trial leaves

[[factors]]
path = "target.settings.shared_buffers"
levels = ["16 MiB", "64 MiB"]
"""


def in_this_process(argv: list[str], state: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a verb in this interpreter, which saves a second of starting one: for what is refused or only reads."""
    from plimsoll.cli import main

    out, error = io.StringIO(), io.StringIO()
    handler = signal.getsignal(signal.SIGTERM)
    around = {"PLIMSOLL_STATE": str(state), "COLUMNS": "200"}
    code: int | str | None = 0
    with (
        mock.patch.dict(os.environ, around),
        mock.patch.object(sys, "argv", ["plimsoll", *argv]),
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(error),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code
        finally:
            signal.signal(signal.SIGTERM, handler)
    return subprocess.CompletedProcess(argv, code if isinstance(code, int) else 1, out.getvalue(), error.getvalue())


# Settings of the whole machine that tests of other lanes change; a run is compared by them when it is gone on with.
OTHERS_SET = ("swap", r"devices\.\d+\.read_ahead_kib")
OF_THE_LANE_WHOLE_MACHINE = ("vm", "huge_pages")
IN_COMPANY = Path(__file__).with_name("in_company.py")
PLIMSOLL = ("-m", "plimsoll")


def make_reachable(folder: Path) -> None:
    """Makes a folder that the server's user can reach, whatever the umask."""
    folder.mkdir()
    folder.chmod(0o755)


@dataclass
class Laboratory:
    """Runs the command line against a state folder of its own.

    `whole_machine`: its experiment sets a sysctl, too, and it is looked at; no other laboratory may be at work then.
    """

    whole_machine: bool = False
    state: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="plimsoll-flow-", dir="/var/tmp")))

    def __post_init__(self) -> None:
        self.state.chmod(0o755)
        self.experiment = self.state / "experiment.toml"
        sysctl = 'sysctl = {"vm.dirty_writeback_centisecs" = 400}\n' if self.whole_machine else ""
        self.experiment.write_text(EXPERIMENT.replace("[target.settings]", f"{sysctl}\n[target.settings]"))
        self.sysctl = self._sysctl()

    @staticmethod
    def _sysctl() -> str:
        return Path("/proc/sys/vm/dirty_writeback_centisecs").read_text()

    @property
    def environment(self) -> dict[str, str]:
        """What the command line is run with."""
        return {**os.environ, "PLIMSOLL_STATE": str(self.state), "PYTHONPATH": str(ROOT / "python"), "COLUMNS": "160"}

    def start(self, *argv: str, program: tuple[str, ...] = PLIMSOLL) -> subprocess.Popen[str]:
        """Starts a verb; the caller waits for it."""
        if program == PLIMSOLL and "--resume" in argv:
            others = OTHERS_SET if self.whole_machine else OTHERS_SET + OF_THE_LANE_WHOLE_MACHINE
            program = (str(IN_COMPANY), ",".join(others))
        return subprocess.Popen(
            [sys.executable, *program, *argv],
            env=self.environment,
            cwd=self.state,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *argv: str, code: int | None = 0, seconds: float = 300) -> str:
        """Runs a verb to its end, for which it has so long; checks its exit code."""
        process = self.start(*argv)
        out, error = process.communicate(timeout=seconds)
        assert code is None or process.returncode == code, f"exit {process.returncode}\n{out}\n{error}"
        return out

    def left_behind(self) -> list[str]:
        """Everything of ours that is still on the machine: processes, groups, swap, sysctls, mounts, folders."""
        found = [f"process {pid}" for pid in self.processes()]
        found += [f"swap {line}" for line in Path("/proc/swaps").read_text().splitlines() if str(self.state) in line]
        found += [f"mount {line}" for line in Path("/proc/mounts").read_text().splitlines() if str(self.state) in line]
        found += [f"group {group}" for group in self.groups()]
        found += [f"folder {path}" for name in ("work", "journal") for path in (self.state / name).glob("*")]
        if self.whole_machine and self._sysctl() != self.sysctl:
            found.append(f"sysctl vm.dirty_writeback_centisecs = {self._sysctl().strip()}")
        return found

    def groups(self, number: int | None = None) -> list[Path]:
        """Folders of the groups of runs in this folder, in whatever hierarchy: of every trial, or of that number."""
        parents = {Path(mount.point, cgroups.PARENT) for mount in cgroups.mounts()}
        names, end = self._run_names(), "" if number is None else f"-{number:04d}"
        found = [group for parent in parents if parent.is_dir() for group in parent.iterdir()]
        return sorted(one for one in found if one.name.split("-")[0] in names and one.name.endswith(end))

    def _run_names(self) -> set[str]:
        """What the groups of the runs in this folder are called; another laboratory may be at work beside this one."""
        return {hashlib.sha256(str(path).encode()).hexdigest()[:8] for path in self.state.iterdir()}

    def processes(self, name: str | None = None) -> list[int]:
        """Processes at work in the state folder: servers by their folder, fronts and agents by their environment."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                marker = f"PLIMSOLL_STATE={self.state}".encode()
                places = tuple(str(self.state / name) for name in ("work", "datasets", "place-"))
                ours = str(entry.joinpath("cwd").readlink()).startswith(places)
                ours = ours or marker in entry.joinpath("environ").read_bytes().split(b"\0")
                if ours and entry.joinpath("stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    comm = entry.joinpath("comm").read_text().strip()
                    if name is None or comm == name[:15]:
                        found.append(int(entry.name))
            except OSError:
                continue
        return found

    def close(self) -> None:
        """Puts back whatever a failed test left, and removes the folder."""
        subprocess.run(
            [sys.executable, "-m", "plimsoll", "undo"], env=self.environment, check=False, capture_output=True
        )
        shutil.rmtree(self.state, ignore_errors=True)
