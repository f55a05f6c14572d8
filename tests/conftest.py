"""What every test may ask for: a capability of the machine (or a skip that names it), a state folder, an unused name.

A skip that does not name a missing capability counts as a failure of `./test`; so tests skip through `needs` alone.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import debian_kernel
import debian_kernels
import hypothesis
import pytest
import systemd_guest
import tracepoints
import user_mode_linux

import followed
import guest
import matrix
from plimsoll.environment import GroupKnob, Limits, StateDir, SwapFile, discover, web_servers
from plimsoll.environment.groups import cgroups
from plimsoll.environment.guest import qemu
from plimsoll.environment.memory import page_cache
from plimsoll.environment.memory.huge_page_pool import HugePagePool
from plimsoll.environment.scheduler import BaseSlice, Preemption
from plimsoll.run import agent

MISSING = "missing capability"
# How long an example takes is the machine's affair: other tests may have both CPUs.
hypothesis.settings.register_profile("plimsoll", deadline=None)
hypothesis.settings.load_profile("plimsoll")


def _has_user() -> bool:
    return _server_user() is not None


def _server_user() -> str | None:
    known = {account.pw_name for account in pwd.getpwall()}
    return next((name for name in ("plimsoll", "postgres", "nobody") if name in known), None)


def _test_dir() -> Path:
    return Path(os.environ.get("PLIMSOLL_TEST_DIR", "/tmp"))


def _has_cpuset() -> bool:
    found = cgroups.detect()
    return found is not None and found.lacks(Limits(cpus="0")).ok


def _has_freezer() -> bool:
    found = cgroups.detect()
    return found is not None and found.can_freeze().ok


def _has_mount_namespaces() -> bool:
    """For root, who may mount in them."""
    argv = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return os.geteuid() == 0 and subprocess.run(argv, capture_output=True, check=False).returncode == 0


def _tool(name: str) -> bool:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is not None


@functools.cache
def _has_bpf() -> bool:
    """Programs may be loaded into the kernel, it says what its types are, and there is an agent that starts."""
    if os.geteuid() != 0 or not Path("/sys/kernel/btf/vmlinux").exists() or not agent.PROGRAM.exists():
        return False
    return subprocess.run([agent.PROGRAM, "--help"], capture_output=True, check=False).returncode == 0


def _has_io_uring() -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(425, 0, None)  # a ring of no entries: refused in another way where rings may be had
    return ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM)


CAPABILITIES: dict[str, Callable[[], bool]] = {
    "root": lambda: os.geteuid() == 0,
    "kernel log and slabinfo": lambda: (
        os.access("/dev/kmsg", os.R_OK | os.W_OK) and os.access("/proc/slabinfo", os.R_OK)
    ),
    "mount namespaces": _has_mount_namespaces,
    "cgroup memory": lambda: GroupKnob("capability").available().ok,
    "cgroup cpuset": _has_cpuset,
    "freezer": _has_freezer,
    "swap": lambda: SwapFile(StateDir(_test_dir()), "capability").available().ok,
    "postgresql": lambda: bool(discover.servers()),
    "server user": _has_user,
    "nginx": lambda: web_servers.nginx() is not None,
    "apache": lambda: web_servers.apache() is not None,
    "fuse": lambda: Path("/dev/fuse").exists() and shutil.which("mount") is not None,
    "cachestat": page_cache.cachestat_works,
    "sysctl": lambda: os.access("/proc/sys/vm/dirty_bytes", os.W_OK),
    "transparent huge pages": lambda: os.access("/sys/kernel/mm/transparent_hugepage/enabled", os.W_OK),
    "preemption model": lambda: Preemption().available().ok,
    "base slice": lambda: BaseSlice().available().ok,
    "huge pages": lambda: HugePagePool().available().ok,
    "loop devices and mkfs.ext4": lambda: (
        os.access("/dev/loop-control", os.W_OK) and _tool("mkfs.ext4") and _tool("losetup")
    ),
    "qemu": guest.available,
    "user-mode-linux": user_mode_linux.available,
    "systemd": systemd_guest.available,
    "Debian 6.1 kernel package": lambda: debian_kernel.package() is not None,
    "guests of QEMU": lambda: qemu.available().ok,
    "Debian 6.1 and 6.12 kernel packages": lambda: debian_kernels.packages() is not None,
    "modprobe": lambda: _tool("modprobe"),
    "mdadm": lambda: _tool("mdadm"),
    "dmsetup": lambda: _tool("dmsetup"),
    "lvm": lambda: _tool("lvm"),
    "tc": lambda: _tool("tc"),
    "clang": lambda: _tool("clang"),
    "mkfs.ext4": lambda: _tool("mkfs.ext4"),
    "mkfs.xfs": lambda: _tool("mkfs.xfs"),
    "mkfs.btrfs": lambda: _tool("mkfs.btrfs"),
    "two CPUs": lambda: len(os.sched_getaffinity(0)) >= 2,
    "bpf type information": lambda: Path("/sys/kernel/btf/vmlinux").exists(),
    "bpf": _has_bpf,
    "strace": lambda: _tool("strace"),
    "tracefs": lambda: os.geteuid() == 0 and "tracefs" in Path("/proc/filesystems").read_text(),
    "tracepoints of single system calls": tracepoints.of_single_system_calls,
    "io_uring": _has_io_uring,
    "blkio throttling": lambda: any(
        os.access(Path(mount.point, "blkio.throttle.read_bps_device"), os.W_OK) for mount in cgroups.mounts()
    ),
}


_unnamed: list[str] = []
_failed: set[str] = set()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--matrix full`: every combination of file system and way of watching."""
    parser.addoption("--matrix", choices=("turn", "full"), default="turn", help=matrix.__doc__)


def _case(item: pytest.Item) -> matrix.Case:
    call = getattr(item, "callspec", None)
    place = {axis: call.indices[axis] for axis in matrix.AXES if axis in call.indices} if call else {}
    others = sorted((name, str(value)) for name, value in call.params.items() if name not in place) if call else []
    test = f"{item.nodeid.partition('[')[0]} {others}"
    return matrix.Case(test, place, item.get_closest_marker(matrix.EVERY_FILE_SYSTEM) is not None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes each test of a matrix on one of its combinations in turn."""
    followed.keep(config, items)
    if config.getoption("--matrix") == "full" or any("::" in argument for argument in config.args):
        return
    taken = matrix.in_turn([_case(item) for item in items])
    config.hook.pytest_deselected(items=[item for item, wanted in zip(items, taken, strict=True) if not wanted])
    items[:] = [item for item, wanted in zip(items, taken, strict=True) if wanted]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What follows a test that failed has nothing to begin with."""
    if (before := followed.before(item)) in _failed:
        pytest.fail(f"not begun: it follows {before}, which failed", pytrace=False)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes what failed, and every skip that does not say which capability is missing."""
    if report.failed:
        _failed.add(report.nodeid)
    if report.skipped and isinstance(report.longrepr, tuple) and MISSING not in report.longrepr[2]:
        _unnamed.append(f"{report.nodeid}: {report.longrepr[2]}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A skip that hides why is a failure."""
    if _unnamed:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says which skips failed the run."""
    for line in _unnamed:
        terminalreporter.write_line(f"FAILED, skipped without a named missing capability: {line}")


@pytest.fixture(scope="session")
def needs() -> Callable[..., None]:
    """`needs("root", "cgroup memory")`: go on if the machine has all of them, else skip, naming what is missing."""

    def check(*names: str) -> None:
        missing = [name for name in names if not CAPABILITIES[name]()]
        if missing:
            pytest.skip(f"{MISSING}: {', '.join(missing)}")

    return check


@pytest.fixture
def state() -> Iterator[StateDir]:
    """A state folder that the server's user can reach (pytest's own tmp_path he cannot)."""
    root = Path(tempfile.mkdtemp(prefix="plimsoll-test-", dir=_test_dir()))
    root.chmod(0o755)
    yield StateDir(root).prepare()
    shutil.rmtree(root)


@pytest.fixture
def run_id(request: pytest.FixtureRequest) -> str:
    """A name nobody else uses at the moment, for groups and journals."""
    return f"test-{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**6}"


@pytest.fixture
def server_user() -> str:
    """An unprivileged user to run servers as; ask `needs("server user")` first."""
    return _server_user() or ""
