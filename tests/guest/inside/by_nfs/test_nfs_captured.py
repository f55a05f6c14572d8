"""Captures of a mount by NFS that the kernel made of known files; dumpcap takes them, and the outer test decodes them.

The constraint: a segment over the loopback may have 64 KiB, in which a record is rarely cut. So it is told to send none
larger than an Ethernet's, and where packets are to be late or lost netem does it before dumpcap sees them.
"""

import json
import mmap
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from nfs_room import loopback_up, until
from place_stacks import arrange, call, found

from on_places import on_places
from plimsoll.environment import Journal, StateDir
from plimsoll.environment.places.nfs import mounts
from plimsoll.run.surroundings import knobs

KEPT = Path(os.environ.get("PLIMSOLL_ROOM", "/nonexistent")) / "kept"
FILES, LARGEST = 12, 150_000
LATE = ("delay", "4ms", "3ms")  # evenly around it: one in many overtakes another
LOST = (*LATE, "loss", "2%")
# Of each capture the version and what netem does; records are cut where a segment of that length ends.
WANTED: dict[str, tuple[str, tuple[str, ...], int]] = {
    "nfs3": ("3", (), 1448),
    "nfs40": ("4.0", (), 1448),
    "nfs41": ("4.1", (), 700),
    "nfs42": ("4.2", (), 1448),
    "nfs3-late": ("3", LATE, 1448),
    "nfs42-late": ("4.2", LATE, 1448),
    "nfs41-sent-again": ("4.1", LOST, 1448),
}


@pytest.fixture
def quiet_loopback(needs: Callable[..., None], state: StateDir) -> Iterator[None]:
    needs("root", "mkfs.ext4", "tc")
    loopback_up()
    before = found(state)
    yield
    assert found(state) == before


def work(folder: Path) -> None:
    """Calls of many kinds, each more than once; what was written is read again past the client's page cache."""
    made, digits = random.Random(3), random.Random(4)
    (folder / "deep").mkdir()
    (folder / "link").symlink_to("deep")
    for number in range(FILES):
        path, content = folder / f"file-{number}", digits.randbytes(made.randrange(1, LARGEST))
        with path.open("wb") as file:
            file.write(content)
            os.fsync(file.fileno())
        assert _read_directly(path) == content
        path.chmod(0o640)
        os.link(path, folder / "deep" / path.name)
        path.rename(folder / f"renamed-{number}")
    (folder / "absent").exists()
    assert len([*(folder / "deep").iterdir()]) == FILES and (folder / "link").readlink() == Path("deep")
    shutil.rmtree(folder / "deep")


def _read_directly(path: Path) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, 1 << 18) as buffer:
            return buffer[: os.readv(file, [buffer])]
    finally:
        os.close(file)


@pytest.mark.usefixtures("quiet_loopback")
@pytest.mark.parametrize("name", WANTED)
def test_a_capture_is_taken(name: str, state: StateDir, run_id: str) -> None:
    version, netem, segment = WANTED[name]
    call("ip", "link", "set", "lo", "mtu", str(segment + 52), "gso_max_segs", "1")
    tables = {
        "disk": {"image": "48 MiB", "file_system": "ext4"},
        "filer": {"nfs": {"on": "disk", "version": version}, "mount": {"rsize": 8192, "wsize": 8192}},
    }
    site = knobs.site_of(on_places(tables, {"data": "filer"}), state, run_id)
    file = KEPT / f"{name}.pcapng"
    taken = subprocess.Popen(
        ["dumpcap", "-q", "-i", "lo", "-f", "tcp port 2049", "-B", "16", "-w", str(file)],
        stderr=subprocess.PIPE,
        text=True,
    )
    journal = Journal.create(state, run_id)
    try:
        until(lambda: file.exists() and file.stat().st_size > 0)
        time.sleep(1)
        if netem:
            call("tc", "qdisc", "add", "dev", "lo", "root", "netem", *netem, "limit", "10000")
        arrange(site, journal)
        work(site.made_by(mounts.KNOB)["filer"])
    finally:
        results = journal.put_back_all()
        if netem:
            call("tc", "qdisc", "del", "dev", "lo", "root")
        time.sleep(1)
        taken.terminate()
        said = taken.communicate()[1]
    print(json.dumps({"name": name, "bytes": file.stat().st_size, "said": said[-300:]}))
    assert all(result.ok for result in results), results
    packets = re.search(r"received/dropped on interface 'Loopback: lo': (\d+)/(\d+) ", said)
    assert packets is not None and int(packets[1]) > 0 and int(packets[2]) == 0, said
