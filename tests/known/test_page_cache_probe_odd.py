"""Calls that are awkward to count: they fail, die half-way, go another way, or touch two files at once.

Claimed exact: `added_pages` always, so that no page is lost from the account; the rest as each test says.
"""

import mmap
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from page_oracle import BLOCK_PAGES, PAGE, File, make_file

RANDOM = os.POSIX_FADV_RANDOM


def test_a_file_sent_past_the_reader_is_added_up(world):
    """sendfile(2) reads through the page cache in calls of the kernel's own making."""
    path = make_file(world.data / "16384", 1009)
    with world, File(path) as file, Path(os.devnull).open("wb") as sink:
        world.introduce(file)
        while os.sendfile(sink.fileno(), file.fd, None, 64 * PAGE):
            pass
        there = file.resident()
    assert world.found()["added_pages"] - world.found()["evicted_pages"] == there


_REFUSED = """
import os, sys
page, descriptor = 4096, os.open(sys.argv[1], os.O_RDONLY)
os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
for place in range(0, 503, 7):
    try:
        os.preadv(descriptor, [bytearray(page)], place * page, os.RWF_NOWAIT)
    except BlockingIOError:
        pass
"""


def test_a_read_that_will_not_wait_brings_pages_all_the_same(world):
    """RWF_NOWAIT fails, having started the read-ahead; the last such call is the process's last."""
    path = make_file(world.data / "16384", 503)
    with world, File(path) as file:
        subprocess.run([sys.executable, "-I", "-S", "-c", _REFUSED, str(path)], check=True, timeout=60)
        there = file.resident()
    assert world.found()["added_pages"] == there
    assert world.found()["other_pages"] == world.found()["write_pages"] == 0


def test_a_reader_killed_while_it_waits_leaves_its_pages_in_the_account(world, slowly):
    path = make_file(world.data / "16384", 1009)
    with world, File(path) as file:
        reader = slowly("os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM); os.pread(fd, 31 * 4096, 0)", path)
        while file.resident() < 31:
            assert reader.poll() is None
        reader.kill()
        reader.wait(60)
        there = file.resident()
    found = world.found()
    assert there == found["added_pages"] == found["read_missed_pages"] + found["unsettled_pages"] == 31


@pytest.mark.parametrize(("grain", "pages"), [(2, 32), (1, 16), (1, 96)])
def test_a_read_over_a_chequerboard(world, grain, pages):
    """Every other block (or page) is there, so one call brings the rest in many pieces."""
    path = make_file(world.data / "16384", 1009)
    world.may_lose = pages // (2 * grain) > 8
    with world, File(path, advice=RANDOM) as file:
        for place in range(0, pages, 2 * grain):
            file.read_page(100 + place, grain)
        file.read_page(100, pages)
    file.known(read_missed_pages=pages, added_pages=pages)
    if world.lost:
        found = world.found()
        assert found["added_pages"] == pages and found["read_missed_pages"] < pages  # a lower bound, and said to be one
    else:
        world.counted(file.counts)


def test_a_read_into_a_mapping_of_another_cold_file(world):
    """The copy faults on the second file in the middle of the call on the first."""
    source = make_file(world.data / "16384", 101)
    target = make_file(world.wal / "000000010000000000000001", 101)
    with world, File(source, advice=RANDOM) as file, File(target, advice=RANDOM) as into:
        world.introduce(file, into)
        with mmap.mmap(into.fd, 0) as window:
            window.madvise(mmap.MADV_RANDOM)
            file.asks(0, 61 * PAGE, lambda: os.preadv(file.fd, [memoryview(window)[: 61 * PAGE]], 0))
        os.fsync(into.fd)
        there = into.resident()
    assert there >= 61
    world.counted(file.counts)
    assert world.found("wal")["added_pages"] == there  # as what, the probe does not claim to know


def test_a_write_from_a_mapping_of_another_cold_file(world):
    source = make_file(world.data / "16384", 101)
    target = world.wal / "000000010000000000000001"
    target.touch()
    with world, File(source) as file, File(target) as into:
        world.introduce(file)
        with mmap.mmap(file.fd, 0, access=mmap.ACCESS_READ) as window:
            window.madvise(mmap.MADV_RANDOM)
            into.brings("write_pages", lambda: os.pwrite(into.fd, memoryview(window)[: 61 * PAGE], 0))
        os.fsync(into.fd)
        there = file.resident()
    world.counted(into.counts, "wal")
    assert world.found("data")["added_pages"] == there >= 61  # as what, the probe does not claim to know


# The kernel shows what a read gets in pieces of 31 pages, and not at all what it gets while the rest is on its way.
RING = [("read", 1, 3), ("readv", 4, 3), ("read", 8, 40), ("worker", 4, 3)]


@pytest.mark.parametrize(("how", "at_once", "pages"), RING)
def test_reads_by_io_uring(needs, world, how, at_once, pages):
    """Tried as often as it takes, several in one system call: asked for once, and each page missed by who asked for it.

    Where only system calls are seen their ranges are not.
    """
    needs("io_uring")
    path = make_file(world.data / "16384", 1009)
    starts = range(0, 960, 48)
    program = str(Path(__file__).with_name("ring_reader.py"))
    argv = [sys.executable, "-I", "-S", program, str(path), how, str(at_once), str(pages), *map(str, starts)]
    with world, File(path) as file:
        world.introduce(file)
        there = file.resident()
        said = subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout
        asked = len(starts) * pages
        assert int(said) == asked * PAGE
        there = file.resident() - there
    found = world.found()
    assert there == found["added_pages"] - file.counts["added_pages"] - found["evicted_pages"]
    if world.result["requests"] == "system_calls":
        world.counted(file.counts + Counter({"added_pages": asked, "unsettled_pages": asked}))
        return
    blocks = len(starts) * len({page // BLOCK_PAGES for page in range(pages)})
    expected = {"read_calls": len(starts), "read_pages": asked, "read_blocks": blocks, "added_pages": asked}
    expected |= {"read_calls_missed": len(starts), "read_missed_pages": asked, "read_missed_blocks": blocks}
    world.counted(file.counts + Counter(expected))


def test_a_copy_within_the_kernel_is_a_read_and_a_write(world):
    """copy_file_range(2); where the file system shares the blocks instead, nothing comes into the page cache."""
    source, target = make_file(world.data / "16384", 101), world.wal / "000000010000000000000001"
    target.touch()
    with world, File(source) as file, File(target) as into:
        while os.copy_file_range(file.fd, into.fd, 64 * PAGE):
            pass
        os.fsync(into.fd)
        there = file.resident(), into.resident()
    assert (world.found("data")["added_pages"], world.found("wal")["added_pages"]) == there
    assert world.found("data")["write_pages"] == 0
    assert world.found("wal")["write_pages"] == there[1]
