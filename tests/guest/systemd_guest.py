"""A guest with Debian's systemd as its first process, which reboots like a machine: its disk is there at the next boot.

The constraint: nothing is installed and nothing of the host may change or start. So the guest's root is an ext4 image
with an /etc of its own, in which hardly a service is left, and the programs are the host's /usr, read-only. A guest
that reboots is the same process, which executes its kernel anew, so whoever waits for it waits once.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from user_mode_linux import ROOT, TOOLS

from plimsoll.environment.guest.kernel import PRELOADED
from plimsoll.environment.guest.machine import CONTAINED

SYSTEMD = Path("/lib/systemd/systemd")
INIT = Path(__file__).with_name("init_systemd")
NEEDED = ("linux.uml", "mkfs.ext4", "setpriv", "unshare")
DISK_BYTES = 4 << 30  # sparse
# Of the host's /etc what programs of /usr need to start: users, libraries, names.
FROM_ETC = (
    *("passwd", "group", "shadow", "gshadow", "nsswitch.conf", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("alternatives", "login.defs", "localtime", "timezone", "security", "pam.d", "os-release", "debian_version"),
)
# What a guest without hardware, network or anybody at a terminal has no use for; each is seconds of an emulated CPU.
MASKED = (
    *("dbus.service", "dbus.socket", "systemd-logind.service", "getty.target", "systemd-ask-password-console.path"),
    *("systemd-udevd.service", "systemd-udevd-control.socket", "systemd-udevd-kernel.socket"),
    *("systemd-udev-trigger.service", "systemd-hwdb-update.service", "systemd-timesyncd.service"),
    *("systemd-modules-load.service", "kmod-static-nodes.service", "modprobe@.service", "systemd-binfmt.service"),
    *("proc-sys-fs-binfmt_misc.automount", "proc-sys-fs-binfmt_misc.mount", "dev-hugepages.mount", "dev-mqueue.mount"),
    *("sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount", "sys-fs-fuse-connections.mount"),
    *("systemd-random-seed.service", "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service"),
    *("systemd-journal-catalog-update.service", "systemd-update-done.service", "systemd-ask-password-wall.path"),
    *("systemd-user-sessions.service", "systemd-pcrphase.service", "systemd-pcrphase-sysinit.service"),
    *("systemd-machine-id-commit.service", "systemd-firstboot.service", "systemd-sysusers.service"),
    *("ldconfig.service", "e2scrub_reap.service", "systemd-pstore.service", "systemd-sysext.service"),
)
TEST_UNIT = "told-by-the-test.service"
_UNIT = """[Unit]
Description=What the test does at each boot
After=local-fs.target

[Service]
Type=exec
ExecStart=/bin/sh /script
StandardOutput=append:/told/said
StandardError=append:/told/said
TimeoutStopSec=5

[Install]
WantedBy=multi-user.target
"""
# What every script begins with. A boot is counted before anything is done in it.
_BEGIN = """boot=$(( $(cat /boots 2>/dev/null || echo 0) + 1 ))
echo $boot >/boots; sync
echo "$boot $(cat /proc/sys/kernel/random/boot_id)" >>/told/boots
"""


def available() -> bool:
    """Is there a systemd to boot, and can a guest be built?"""
    has_tools = all(shutil.which(tool, path=TOOLS["PATH"]) for tool in NEEDED)
    return os.geteuid() == 0 and SYSTEMD.exists() and has_tools


@dataclass
class SystemdGuest:
    """A guest that was booted. `told`: the folder that it shares with the host."""

    room: Path
    process: subprocess.Popen[bytes]

    @property
    def told(self) -> Path:
        return self.room / "told"

    def said(self, name: str = "said") -> str:
        """What was left in a file of the shared folder; empty where there is none yet."""
        path = self.told / name
        return path.read_text(errors="replace") if path.exists() else ""

    def boots(self) -> list[str]:
        """The kernel's own name of each boot, oldest first."""
        return [line.split()[1] for line in self.said("boots").splitlines()]

    def transcript(self) -> str:
        """What its kernel, systemd and the test's script have printed, for whoever asks why."""
        console = (self.room / "console").read_text(errors="replace")
        return f"boots: {self.boots()}\nsaid: {self.said()[-6000:]}\nconsole: {console[-4000:]}"

    def wait(self, condition: Callable[[], bool], what: str, seconds_max: float) -> None:
        """Until it holds. Raises AssertionError where the guest ends before, or its time is up."""
        until = time.monotonic() + seconds_max
        while not condition():
            ended = self.process.poll() is not None
            if ended and condition():  # it has told and gone
                return
            assert not ended, f"the guest ended before {what}\n{self.transcript()}"
            assert time.monotonic() < until, f"not {what} in {seconds_max:.0f} s\n{self.transcript()}"
            time.sleep(0.2)


@contextmanager
def booted(
    script: str, told: Mapping[str, str] | None = None, files: Mapping[str, str] | None = None, memory_mib: int = 512
) -> Iterator[SystemdGuest]:
    """A guest whose systemd runs `script` at each boot, with $boot its number; /told is shared with the host.

    `told`: files that are there from the first; `files`: those of the disk's root, by name.

    Whatever becomes of the test, the guest ends with it, and its disk goes.
    """
    with tempfile.TemporaryDirectory(prefix="plimsoll-systemd-", dir="/var/tmp") as name:
        room = Path(name)
        room.chmod(0o755)
        for folder in ("root", "told", "content"):
            (room / folder).mkdir()
        bound = _bound()
        _content(room / "content", bound, {"script": _BEGIN + script, **(files or {})})
        for file, text in (told or {}).items():
            (room / "told" / file).write_text(text)
        (room / "bound").write_text("".join(f"{folder}\n" for folder in bound))
        (room / "disk").touch()
        os.truncate(room / "disk", DISK_BYTES)
        options = ["-E", "lazy_itable_init=1,lazy_journal_init=1", "-d", str(room / "content")]
        make = ["mkfs.ext4", "-q", "-F", *options, str(room / "disk")]
        subprocess.run(make, check=True, capture_output=True, env=TOOLS)
        process = _boot(room, memory_mib)
        try:
            yield SystemdGuest(room, process)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _boot(room: Path, memory_mib: int) -> subprocess.Popen[bytes]:
    # The kernel's command line knows no blank in a path, and a checkout's may have one.
    (room / PRELOADED.name).symlink_to(PRELOADED)
    shutil.copy(INIT, room / "init")
    argv = [*CONTAINED, "linux.uml", f"mem={memory_mib}M", f"ubda={room / 'disk'}", f"uml_dir={room}/"]
    argv += ["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", f"init={room / 'init'}"]
    argv += ["con=null", "con0=null,fd:1", "loglevel=4", "panic=-1"]
    # What the kernel does not know becomes the environment of its first program.
    argv += [f"PLIMSOLL_ROOM={room}", f"PLIMSOLL_BOUND={room / 'bound'}"]
    env = {**TOOLS, "LD_PRELOAD": str(room / PRELOADED.name)}
    with (room / "console").open("wb") as console:
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=console, stderr=console, env=env, start_new_session=True
        )


def _bound() -> list[Path]:
    """Folders of the host that the guest sees by their own paths: programs, this checkout, the interpreter."""
    found: list[Path] = []
    for path in (Path("/usr"), ROOT, Path(sys.prefix), Path(sys.base_prefix).resolve()):
        if not any(path.is_relative_to(known) for known in found):
            found.append(path)
    return found


def _content(root: Path, bound: list[Path], files: Mapping[str, str]) -> None:
    """What the disk has at first."""
    for folder in ("dev", "proc", "sys", "run", "tmp", "var/log", "var/lib", "var/tmp", "root", "old", "told", "etc"):
        (root / folder).mkdir(parents=True)
    for folder in ("tmp", "var/tmp"):
        (root / folder).chmod(0o1777)
    for folder in bound:
        (root / folder.relative_to("/")).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib64"):  # as of Debian 12 all programs lie in /usr
        (root / name).symlink_to(f"usr/{name}")
    for name in FROM_ETC:
        if (Path("/etc") / name).exists():
            subprocess.run(["cp", "-a", f"/etc/{name}", str(root / "etc")], check=True)
    (root / "etc/machine-id").write_text("0123456789abcdef0123456789abcdef\n")
    (root / "etc/hostname").write_text("guest\n")
    (root / "etc/fstab").write_text("")
    for file, text in files.items():
        (root / file).write_text(text)
    units = root / "etc/systemd/system"
    (units / "multi-user.target.wants").mkdir(parents=True)
    for unit in MASKED:
        (units / unit).symlink_to("/dev/null")
    (units / "default.target").symlink_to("/lib/systemd/system/multi-user.target")
    (units / TEST_UNIT).write_text(_UNIT)
    (units / "multi-user.target.wants" / TEST_UNIT).symlink_to(f"/etc/systemd/system/{TEST_UNIT}")
