"""What striping and stride do, counted to the byte by the kernel's own counters of the member devices.

The constraint: a file system writes when it likes. So what is counted goes straight to the array, which nobody else
uses: whole chunks one after the other, and the places at which dumpe2fs says that ext2 has its bitmaps.
"""

import mmap
import os
import re
import time
from functools import partial
from pathlib import Path

import pytest
from place_stacks import MIB, call, found, site_of

from on_places import up_to
from plimsoll.environment import Journal
from plimsoll.environment.places import file_systems

NEEDS = ("root", "modprobe", "mdadm", "mkfs.ext4")
SECTOR = 512
TWO = {"image": "32 MiB", "images": 2, "image_blocks": "reserved", "file_system": "ext2"}
MEMBERS = 2


@pytest.fixture
def striped(needs, state, run_id):
    """Makes a place up to its file system, which is not mounted; gives (the array's device, its members' names)."""
    needs(*NEEDS)
    journals = []

    def make(place):
        for journal in journals:
            journal.put_back_all()
        journals[:] = [Journal.create(state, run_id)]
        site = site_of(state, run_id, place)
        for knob in up_to(file_systems.KNOB):
            site.arrange(knob, journals[0])
        array = Path(site.made_by(file_systems.KNOB)["disk"].device).resolve()
        slots = (Path(f"/sys/block/{array.name}/md/rd{number}/block").resolve().name for number in range(MEMBERS))
        return str(array), list(slots)

    before = found(state)
    yield make
    assert all(result.ok for journal in journals for result in journal.put_back_all())
    assert found(state) == before


def _counted(members):
    """Of each member (requests, bytes) read and written since it was made."""
    words = [[int(word) for word in Path("/sys/block", name, "stat").read_text().split()] for name in members]
    return [{"read": (one[0], one[2] * SECTOR), "write": (one[4], one[6] * SECTOR)} for one in words]


def _moved(members, operation, act, nbytes):
    """What `act` moved on each member, once all of it is counted: (requests, bytes)."""
    before = [one[operation] for one in _counted(members)]
    act()
    for _ in range(100):
        after = [one[operation] for one in _counted(members)]
        moved = [(new[0] - old[0], new[1] - old[1]) for old, new in zip(before, after, strict=True)]
        if sum(one[1] for one in moved) >= nbytes:
            break
        time.sleep(0.01)
    return moved


def _direct(path, offset, nbytes, operation):
    """One read or write around the page cache."""
    handle = os.open(path, os.O_RDWR | os.O_DIRECT)
    try:
        with mmap.mmap(-1, nbytes) as buffer:
            done = os.preadv(handle, [buffer], offset) if operation == "read" else os.pwritev(handle, [buffer], offset)
        assert done == nbytes
    finally:
        os.close(handle)


def test_requests_alternate_every_chunk_to_the_byte(striped):
    for chunk in (8 << 10, 128 << 10, 512 << 10):
        array, members = striped({**TWO, "raid": {"level": 0, "chunk": chunk}})
        size = min(chunk, 4096)
        for operation in ("write", "read"):
            for number in range(6):
                # The whole chunk, its first page and its last are on one member; the next chunk is on the other.
                for offset, nbytes in ((0, chunk), (0, size), (chunk - size, size)):
                    at = number * chunk + offset
                    moved = _moved(members, operation, partial(_direct, array, at, nbytes, operation), nbytes)
                    requests, counted = zip(*moved, strict=True)
                    assert counted == tuple(nbytes if one == number % MEMBERS else 0 for one in range(MEMBERS))
                    assert requests[1 - number % MEMBERS] == 0 < requests[number % MEMBERS]
        # One sequential write over all of it: each member has exactly its half.
        whole = 8 * MIB
        moved = _moved(members, "write", partial(_direct, array, 0, whole, "write"), whole)
        print(f"chunk {chunk}: {whole} bytes written at once came to the members as {moved}")
        assert [one[1] for one in moved] == [whole // MEMBERS] * MEMBERS
        # A page across the border of two chunks is two requests, half a page on each.
        moved = _moved(members, "write", partial(_direct, array, chunk - 2048, 4096, "write"), 4096)
        assert moved == [(1, 2048), (1, 2048)]


def _bitmaps(array):
    """Where ext2 has the bitmaps of blocks, in bytes."""
    return [int(block) * 1024 for block in re.findall(r"Block bitmap at (\d+)", call("dumpe2fs", array))]


def test_stride_moves_the_bitmaps_of_ext2_off_one_member(striped):
    """The chunk is 64 blocks: with a stride of 1 every group has its bitmaps on the same member, with 64 in turn.

    mke2fs takes the stride of an array from the array where none is given, so that none is one of 1.
    """
    seen = {}
    for stride in (1, 64, None):
        mkfs = {"block_size": 1024} | ({} if stride is None else {"stride": stride, "stripe_width": stride * MEMBERS})
        array, members = striped({**TWO, "raid": {"level": 0, "chunk": "64 KiB"}, "mkfs": mkfs})
        at = _bitmaps(array)
        moved = [_moved(members, "read", partial(_direct, array, one, 1024, "read"), 1024) for one in at]
        assert all(sorted(member[1] for member in each) == [0, 1024] for each in moved)
        seen[stride] = [[member[1] for member in each].index(1024) for each in moved]
        print(f"stride {stride}: bitmaps at {at}, on members {seen[stride]}")
        # What the arithmetic of the layout says is what the counters say.
        assert seen[stride] == [one // (64 << 10) % MEMBERS for one in at]
    assert len(seen[1]) == 8 and len(set(seen[1])) == 1
    assert sorted(seen[64]) == sorted(seen[None]) == [0] * 4 + [1] * 4
