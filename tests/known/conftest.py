"""The page-cache worlds: a fresh file system of each kind, and the agent that watches it."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loop_file_system import FileSystem, loop_file_system
from page_probe import Watch

from plimsoll.environment.groups import cgroups

Slowly = Callable[[str, Path], "subprocess.Popen[bytes]"]


@pytest.fixture(scope="session", params=["ext4", "xfs", "btrfs"])
def file_system(request: pytest.FixtureRequest, needs: Callable[..., None]) -> Iterator[FileSystem]:
    """A mounted file system of one kind; every test of it gets folders of its own (`world`)."""
    needs("bpf", "loop devices and mkfs.ext4", "cachestat")
    if request.param != "ext4":
        needs(f"mkfs.{request.param}")
    with loop_file_system(request.param) as mounted:
        yield mounted


@pytest.fixture(params=[("get_pages", "tp_btf"), ("system_calls", "tracepoint")], ids="-".join)
def paths(request: pytest.FixtureRequest) -> tuple[str, str]:
    """The probe's two ways: where requests come from and which programs; between them each is forced once."""
    requests, programs = request.param
    return requests, programs


@pytest.fixture
def world(file_system: FileSystem, paths: tuple[str, str], tmp_path: Path) -> Iterator[Watch]:
    """Two classes of folders on that file system, not yet watched: make the files, then `with world:`."""
    root = file_system.fresh()
    yield Watch(root, tmp_path, requests=paths[0], programs=paths[1])
    file_system.remove(root)


@pytest.fixture
def slowly(needs: Callable[..., None], file_system: FileSystem, run_id: str) -> Iterator[Slowly]:
    """Runs Python in a group that may read 256 KiB/s of the device: what it asked for is on its way for long."""
    needs("blkio throttling")
    group = Path(next(mount.point for mount in cgroups.mounts() if "blkio" in mount.options)) / run_id
    group.mkdir()
    device = Path("/sys/block", Path(file_system.loop).name, "dev").read_text().strip()
    (group / "blkio.throttle.read_bps_device").write_text(f"{device} {256 << 10}\n")
    enter = f"import os, sys; open('{group}/cgroup.procs', 'w').write('0'); fd = os.open(sys.argv[1], os.O_RDONLY);"
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str, path: Path) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen([sys.executable, "-I", "-S", "-c", enter + code, str(path)]))
        return started[-1]

    yield start
    for process in started:
        process.wait(60)
    for _ in range(100):
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.01)
    group.rmdir()
