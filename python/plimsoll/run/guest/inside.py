"""The guest's side of a run: the same runner as on the host, told on by lines, its record carried out trial by trial.

Called by the guest's first program with the folder that the host has made for it; never by a user.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import traceback
import tty
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.environment import Fault, StateDir
from plimsoll.environment.fault import refused_by_the_system
from plimsoll.environment.guest import parameters
from plimsoll.experiment import PlannedTrial
from plimsoll.experiment.reading.source import reload
from plimsoll.record import writer
from plimsoll.record.run import read_json
from plimsoll.run import own_fingerprints
from plimsoll.run.guest import messages, planning
from plimsoll.run.guest.carrying import Carried
from plimsoll.run.runner import Impossible, Runner
from plimsoll.run.signals import Stopped
from plimsoll.run.trial.log import TrialLog
from plimsoll.run.trial.series import FINISHED

HERE = Path("/run/plimsoll")
CHANNEL = "/dev/tty1"
LAST_WORD_SECONDS = 10.0
CLOSED_SECONDS = 0.1
_OF_THIS_BOOT = (
    "init=",
    "uml_dir=",
    "con",
    "PLIMSOLL_GUEST=",
    "PLIMSOLL_CHANNEL=",
)  # words of the kernel's command line
_BY_MEMORY_LEFT = ("vm.min_free_kbytes", "vm.user_reserve_kbytes", "vm.admin_reserve_kbytes")
_IFF_UP = 1


class Channel:
    """Lines to the host and from it."""

    def __init__(self) -> None:
        self._handle = os.open(os.environ.get("PLIMSOLL_CHANNEL", CHANNEL), os.O_RDWR | os.O_NOCTTY)
        if os.isatty(self._handle):
            tty.setraw(self._handle, termios.TCSANOW)
        self._turn = threading.Lock()
        self.is_dismissed = threading.Event()  # the host has heard the end and needs no more

    def tell(self, **told: Any) -> None:
        """One object."""
        self.write(json.dumps(told, default=str))

    def write(self, line: str) -> None:
        """One line, whole."""
        data = memoryview(f"{line}\n".encode())
        with self._turn:
            while data:
                data = data[os.write(self._handle, data) :]

    def listen(self) -> None:
        """Does what the host says, for ever."""
        heard = b""
        while True:
            said = os.read(self._handle, 4096)
            if not said:
                time.sleep(CLOSED_SECONDS)  # a port whose other end is not there reads as nothing
            heard += said
            *words, heard = heard.split(b"\n")
            for word in words:
                if word == messages.CLOCK.encode():
                    self.tell(clock=time.time_ns())
                elif word == messages.DISMISSED.encode():
                    self.is_dismissed.set()
                elif word == messages.STOP.encode():
                    os.kill(os.getpid(), signal.SIGINT)

    def beat(self) -> None:
        """Shows that the guest is alive, for ever."""
        while True:
            time.sleep(messages.BEAT_SECONDS)
            self.tell(beat=time.time_ns())


@dataclass
class Told:
    """An observer whose events go to the host. A trial's files are there before its end is told."""

    channel: Channel
    carried: Carried

    def event(self, name: str, **info: Any) -> None:
        """One thing that happened."""
        if name in ("trial", "trial_end"):
            self.carried.carry_out()
        self.channel.write(messages.event_line(name, info))


@dataclass
class InGuest(Runner):
    """The runner on the guest's kernel, of a record that the host has opened."""

    told: dict[str, Any] = field(default_factory=dict, kw_only=True)  # by the host, of itself and this kernel

    def _open_record(self) -> dict[str, Any]:
        known = read_json(self.out / "run.json") or {}
        if (name := self._named()) is not None:
            own_fingerprints.note(self.out, name, self.fingerprint())
        elif read_json(self.out / "fingerprint.json") is None:
            writer.write_json(self.out / "fingerprint.json", self.fingerprint())
        else:
            self._refuse_another_machine()
        return known

    @property
    def left(self) -> list[PlannedTrial]:
        """Those of this boot that have no result yet."""
        of_this_boot = set(self.told["trials"])
        return [trial for trial in super().left if trial.number in of_this_boot]

    def run(self) -> str:
        """A guest that has done its part has not finished a run of which other guests have the rest."""
        status = super().run()
        if status == FINISHED and super().left:
            known = read_json(self.out / "run.json") or {}
            writer.write_run(self.out, known | {"status": "running", "ended_epoch_ns": None})
        return status

    def _named(self) -> str | None:
        """The kernel of this boot, where the run boots several."""
        for trial in self.left:
            if trial.treatment.settings.environment.named_kernel is not None:
                return trial.treatment.settings.environment.kernel
        return None

    def begin(self, trial: PlannedTrial) -> TrialLog:
        log = super().begin(trial)
        if trial.treatment.settings.environment.named_kernel is not None:
            own_fingerprints.of_trial(self.out, trial.number, self.fingerprint())
        return log

    def fingerprint(self) -> dict[str, Any]:
        """The guest's, with what it is and with the host's."""
        fingerprint = super().fingerprint()
        words = str(fingerprint["kernel"].get("boot_parameters", "")).split()
        fingerprint["kernel"]["boot_parameters"] = " ".join(
            word for word in words if not word.startswith(_OF_THIS_BOOT)
        )
        fingerprint["kernel"]["kind"] = self.told["kernel"]
        # Where the host has laid the kernel decides how much of its memory is left, some 1 % more or less at each boot.
        fingerprint["machine"]["memory_kib"] = planning.machine_of(self.source.experiment).memory_bytes >> 10
        for name in _BY_MEMORY_LEFT:
            fingerprint["vm"].pop(name, None)
        return fingerprint | {"host": self.told["host"]}


def main(folder: Path) -> None:
    """Everything between the boot and the halt."""
    channel = Channel()
    for work in (channel.listen, channel.beat):
        threading.Thread(target=work, daemon=True).start()
    channel.tell(ready=time.time_ns())
    try:
        channel.tell(end=_run(folder, channel))
    except (KeyboardInterrupt, Stopped):
        channel.tell(end="stopped")
    except Impossible as error:
        channel.tell(error="impossible", reasons=error.reasons)
    except Exception as error:
        fault = refused_by_the_system(error) if isinstance(error, OSError) else error
        if isinstance(fault, Fault):
            channel.tell(error="fault", what=fault.what, remedy=fault.remedy)
        else:
            channel.tell(error="bug", what=traceback.format_exc())
    channel.is_dismissed.wait(LAST_WORD_SECONDS)


def _run(folder: Path, channel: Channel) -> str:
    asked = json.loads((folder / "request.json").read_text())
    source = reload(asked["experiment"], Path(asked["file"]), bool(asked["quick"]))
    if unknown := parameters.unknown(asked["parameters"]):
        said = "parameters of the guest's boot: its kernel does not know {}; correct it, or leave it out"
        raise Impossible([said.format(word) for word in unknown])
    _loopback_up()
    state = StateDir().prepare()
    for key in asked["datasets"]:
        subprocess.run(["cp", "-a", "--", str(Path(asked["kept"]) / key), str(state.datasets)], check=True)
    with contextlib.suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("3")  # what was copied is as cold as on the host
    out = HERE / "disk" / "record" / asked["id"]
    carried = Carried(out, HERE / "record")
    carried.carry_in()
    told = {"kernel": asked["kernel"], "host": asked["host"], "trials": asked["trials"]}
    runner = InGuest(source, out, state, Told(channel, carried), asked["command"], seed=asked["seed"], told=told)
    try:
        return runner.run()
    finally:
        carried.carry_out()


def _loopback_up() -> None:
    """The one network there is: servers over TCP, and what PostgreSQL 14 tells itself."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh14x", b"lo", _IFF_UP)
        fcntl.ioctl(any_socket, 0x8914, request)  # SIOCSIFFLAGS


if __name__ == "__main__":
    main(Path(sys.argv[1]))
