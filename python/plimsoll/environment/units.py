"""A systemd unit that goes on with a run after a reboot: written and enabled for as long as the run lasts.

The fact that constrains it: the unit has to outlive the process that made it, and nothing else may. So its journal
entry stays when the machine goes down under the run, and the run that the unit starts takes the unit over before it
puts back what its predecessor left: a unit that a journal of somebody alive names is not removed.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.journal.registry import Args, ChangedSince, puts_back
from plimsoll.environment.state import StateDir

SYSTEMD_UNIT: Final = "systemd_unit"
FOLDER: Final = Path("/etc/systemd/system")
RUNTIME: Final = Path("/run/systemd/system")  # there exactly where systemd is the machine's init
GOING_DOWN: Final = "stopping"

Systemctl = Callable[[Sequence[str]], "subprocess.CompletedProcess[str]"]


def _systemctl(words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)


systemctl: Systemctl = _systemctl  # tests set another, as they set the folders


@dataclass(frozen=True)
class Unit:
    """One unit: its name, the command that it starts once at each boot, from which folder, with which variables."""

    name: str
    description: str
    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    user_id: int = field(default_factory=os.geteuid)

    @property
    def path(self) -> Path:
        return FOLDER / self.name

    def why_not(self) -> str | None:
        """Why it cannot be had here, with the remedy; None where it can."""
        if not RUNTIME.is_dir():
            return "systemd is not this machine's init; leave --unit out, and resume by hand after a reboot"
        if self.user_id != 0:
            return f"{FOLDER}: only root may add a unit; run it as root, or leave --unit out"
        if "$" in self.command[0]:
            return f"{self.command[0]}: a unit starts no program with $ in its path; install Plimsoll elsewhere"
        for text in (str(self.folder), self.description, *self.command, *self.environment.values()):
            if not _is_a_line(text):
                return f"{text!r} can stand in no unit (a line's end, or no UTF-8); choose another folder or value"
        return None

    def text(self) -> str:
        """The unit file."""
        variables = [f"Environment={_quoted(f'{name}={value}')}" for name, value in sorted(self.environment.items())]
        lines = [
            "[Unit]",
            f"Description={_escaped(self.description)}",
            "After=local-fs.target network.target",
            "",
            "[Service]",
            "Type=exec",
            f"WorkingDirectory={_escaped(str(self.folder))}",
            *variables,
            f"ExecStart={' '.join(_quoted(word).replace('$', '$$') for word in self.command)}",
            "TimeoutStopSec=120",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
        ]
        return "\n".join(lines) + "\n"

    def install(self, journal: Journal, state: StateDir) -> None:
        """Writes and enables it. Raises Fault where it cannot be, or where a unit of this name is somebody else's."""
        text = self.text()
        if self.path.exists() and self.path.read_text(encoding="utf-8") != text and not self._is_a_predecessors(state):
            raise Fault(
                f"{self.path}: is there already, and is not this run's", remedy="remove it, or run `plimsoll undo`"
            )
        journal.change(
            SYSTEMD_UNIT,
            lambda: self._enable(text),
            path=str(self.path),
            journals=str(state.journal),
            journal=journal.path.name,
            set=text,
        )

    def _is_a_predecessors(self, state: StateDir) -> bool:
        """Whether a journal says that what is there is this run's: what a shell has in its surroundings and a unit has
        not, LANG say, makes one of the same run differ by a line."""
        found = self.path.read_text(encoding="utf-8")
        return any(
            one.kind == SYSTEMD_UNIT and (one.args["path"], one.args["set"]) == (str(self.path), found)
            for journal in _journals(state.journal)
            for one in journal.remaining
        )

    def _enable(self, text: str) -> None:
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        beside.write_text(text, encoding="utf-8")
        beside.chmod(0o644)
        beside.replace(self.path)
        step("written unit")
        _do("daemon-reload")
        _do("enable", self.name)


def is_going_down() -> bool:
    """Whether the machine is being shut down or rebooted."""
    try:
        return RUNTIME.is_dir() and systemctl(["is-system-running"]).stdout.strip() == GOING_DOWN
    except OSError:
        return False


def _do(*words: str) -> None:
    done = systemctl(words)
    if done.returncode:
        raise Fault(f"systemctl {shlex.join(words)}: {done.stderr.strip()}", remedy="see `journalctl -b`")


def _escaped(text: str) -> str:
    """Systemd has specifiers that begin with a percent sign."""
    return text.replace("%", "%%").replace("\n", " ")


def _is_a_line(text: str) -> bool:
    """Systemd ends a line at each of its ends, goes on with it after a backslash, and reads UTF-8 alone."""
    with contextlib.suppress(UnicodeEncodeError):
        return all(byte >= ord(" ") for byte in text.encode()) and not text.endswith("\\")
    return False


def _quoted(word: str) -> str:
    inner = _escaped(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'


@puts_back(SYSTEMD_UNIT, survives_reboot=True)
def _put_back(args: Args) -> str:
    path = Path(args["path"])
    if _is_taken_over(args):
        return f"{path}: the run that goes on has it now"
    for beside in path.parent.glob(f".{path.name}.*.tmp"):  # of a run that was killed while it wrote
        beside.unlink(missing_ok=True)
    if not path.exists():
        return f"{path}: not there"
    if path.read_text(encoding="utf-8") != args["set"]:
        raise ChangedSince(
            f"{path}: was changed since the run has written it", f"`systemctl disable {path.name}`, and remove it"
        )
    _do("disable", path.name)
    step("disabled unit")
    path.unlink()
    _do("daemon-reload")
    return f"{path}: disabled and removed"


def _is_taken_over(args: Args) -> bool:
    """Whether a journal of a process that lives names the same unit."""
    for journal in _journals(Path(args["journals"])):
        if journal.path.name == args["journal"]:
            continue
        names_it = any(one.kind == SYSTEMD_UNIT and one.args["path"] == args["path"] for one in journal.remaining)
        if names_it and journal.owner_is_alive():
            return True
    return False


def _journals(folder: Path) -> Iterator[Journal]:
    """Those that can be read."""
    for path in folder.glob("*.jsonl"):
        with contextlib.suppress(OSError, Fault, ValueError, KeyError):
            yield Journal.load(path)
