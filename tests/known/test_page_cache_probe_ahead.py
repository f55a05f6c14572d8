"""What comes before it is asked for, and what page faults ask for.

Exact: misses and every page brought. Open: of pages brought ahead, which were asked for by a fault and which were
mapped around another's; the sum of the two is exact once every page was touched.
"""

import ctypes
import mmap
import os
import random
import time

import pytest
from page_oracle import PAGE, File, make_file

WAITED = ("read_calls_waited",)
# A fault that finds its page mapped around another's never happens, so it cannot be counted.
SEEN_OR_MAPPED = ("fault_pages", "ahead_used_pages", "ahead_mapped_pages")
_libc = ctypes.CDLL(None, use_errno=True)


def _readahead(file: File, page: int, pages: int) -> None:
    if _libc.readahead(file.fd, ctypes.c_long(page * PAGE), ctypes.c_size_t(pages * PAGE)) != 0:
        raise OSError(ctypes.get_errno(), "readahead")


def test_advice_brings_pages_that_reads_then_use(world):
    path = make_file(world.data / "16384", 1009)
    with world, File(path) as file:
        world.introduce(file)
        file.advise(os.POSIX_FADV_WILLNEED, 101, 31)
        file.advise(os.POSIX_FADV_WILLNEED, 101, 31)  # for the second time: nothing left to bring
        os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_RANDOM)
        for page in [*range(101, 118), 110, 600]:
            file.read_page(page)
    file.known(prefetch_pages=31, ahead_used_pages=17, read_calls=19, read_missed_pages=1, added_pages=32)
    world.counted(file.counts, open_columns=WAITED)
    assert world.ahead_unused() == 14


def test_readahead_as_a_system_call_is_a_prefetch_too(world):
    path = make_file(world.data / "16384", 1009)
    with world, File(path) as file:
        world.introduce(file)
        file.brings("prefetch_pages", lambda: _readahead(file, 500, 29))
        file.read_page(510, 3)
    file.known(prefetch_pages=29, ahead_used_pages=3, read_calls=1, read_missed_pages=0)
    world.counted(file.counts, open_columns=WAITED)


def test_what_was_brought_ahead_and_forgotten_is_said_to_have_left_unused(world):
    path = make_file(world.data / "16384", 1009)
    with world, File(path, advice=os.POSIX_FADV_RANDOM) as file:
        world.introduce(file)
        file.advise(os.POSIX_FADV_WILLNEED, 0, 31)
        for page in range(7):
            file.read_page(page)
        file.forget(0, 31, unused=24)
        file.read_page(3)  # asked for before, but not since it came the second time
    file.known(dropped_pages=31, read_missed_pages=1)
    world.counted(file.counts, open_columns=WAITED)
    assert world.ahead_unused() == 0


def test_pages_brought_again_are_used_again(world):
    path = make_file(world.data / "16384", 101)
    with world, File(path) as file:
        for _ in range(3):
            file.read_through(4)
            file.forget()
    file.known(read_pages=303, dropped_pages=303)
    world.counted(file.counts, open_columns=WAITED)
    assert world.ahead_unused() == 0


def _faults_are_seen(world) -> bool:
    """False where this way cannot tell faults; then it says so, and the pages are still all there."""
    columns = {"fault_pages", "fault_missed_pages"}
    assert world.absent & columns in (set(), columns)
    if world.absent & columns:
        assert world.requests == "system_calls"
    return not world.absent & columns


def test_faults_at_random_on_cold_pages(world):
    path = make_file(world.data / "16384", 1009)
    order = random.Random(5).sample(range(1008), 307)
    with world, File(path) as file, file.mapped(mmap.MADV_RANDOM) as touch:
        world.introduce(file)
        for page in order:
            touch(page)
        for page in order:
            touch(page)  # mapped: no fault
    file.known(fault_missed_pages=307, added_pages=307)
    assert world.found()["added_pages"] == file.counts["added_pages"]
    if _faults_are_seen(world):
        world.counted(file.counts | {"fault_pages": 307})


def test_a_warm_file_mapped_again_misses_nothing(world):
    path = make_file(world.data / "16384", 1009)
    with File(path) as before:
        before.read_through()
    with world, File(path, warm=True) as file, file.mapped(mmap.MADV_NORMAL) as touch:
        for page in range(1009):
            touch(page)
    file.known(added_pages=0)
    # A page that somebody else evicted comes back with others, which are used or mapped.
    world.counted(file.counts, open_columns=SEEN_OR_MAPPED)
    if _faults_are_seen(world):
        assert world.found()["fault_pages"] <= 1009


def test_faults_through_a_cold_file_in_order(world):
    path = make_file(world.data / "16384", 1009)
    with world, File(path) as file, file.mapped(mmap.MADV_NORMAL) as touch:
        world.introduce(file)
        for page in range(1009):
            touch(page)
    assert file.counts["added_pages"] >= 1009 > file.counts["fault_missed_pages"] > 0
    assert world.found()["added_pages"] == file.counts["added_pages"]
    if _faults_are_seen(world):
        world.counted(file.counts, open_columns=SEEN_OR_MAPPED)
        found = world.found()
        assert found["fault_missed_pages"] <= found["fault_pages"] <= 1009
        # Every page was touched, so every page that came ahead was used or mapped, and by no more than one of them.
        assert found["ahead_used_pages"] + found["ahead_mapped_pages"] == found["readahead_pages"]


def test_stores_into_a_cold_shared_mapping(world):
    path = make_file(world.data / "16384", 1009)
    order = random.Random(6).sample(range(1008), 211)
    with world, File(path) as file:
        world.introduce(file)
        with file.mapped(mmap.MADV_RANDOM, mmap.ACCESS_WRITE) as touch:
            for page in order:
                touch(page)
        os.fsync(file.fd)
    file.known(fault_missed_pages=211, added_pages=211)
    assert world.found()["added_pages"] == file.counts["added_pages"]
    if _faults_are_seen(world):
        world.counted(file.counts | {"fault_pages": 211})


def test_advice_for_a_mapping_is_a_prefetch(world):
    path = make_file(world.data / "16384", 1009)
    with world, File(path) as file, mmap.mmap(file.fd, 0, access=mmap.ACCESS_READ) as window:
        world.introduce(file)
        file.brings("prefetch_pages", lambda: window.madvise(mmap.MADV_WILLNEED, 256 * PAGE, 31 * PAGE))
    file.known(prefetch_pages=31)
    world.counted(file.counts)
    assert world.ahead_unused() == 31


def test_a_page_on_its_way_is_waited_for_and_not_missed(world, slowly):
    path = make_file(world.data / "16384", 1009)
    with world, File(path, advice=os.POSIX_FADV_RANDOM) as file:
        file.read_page(700)  # a process's first read is not seen waiting
        advise = "os.posix_fadvise(fd, 0, 31 * 4096, os.POSIX_FADV_WILLNEED)"
        file.brings("prefetch_pages", lambda: slowly(advise, path).wait(60))
        began = time.monotonic()
        file.read_page(30)
        assert time.monotonic() - began > 0.1  # 31 pages at 256 KiB/s
        file.read_page(30)
    file.known(prefetch_pages=31, ahead_used_pages=1, read_calls=3, read_missed_pages=1)
    world.counted(file.counts | {"read_calls_waited": 1})


def test_a_page_that_another_process_missed_is_waited_for(world, slowly):
    path = make_file(world.data / "16384", 1009)
    with world, File(path, advice=os.POSIX_FADV_RANDOM) as file:
        file.read_page(700)  # a process's first read is not seen waiting
        reader = slowly("os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM); os.pread(fd, 31 * 4096, 0)", path)
        while file.resident() < 32:
            time.sleep(0.001)
        os.pread(file.fd, PAGE, 30 * PAGE)
        reader.wait(60)
    asked = {"read_calls": 3, "read_pages": 33, "read_blocks": 18, "read_calls_missed": 2, "read_calls_waited": 1}
    world.counted(asked | {"read_missed_pages": 32, "read_missed_blocks": 17, "added_pages": 32})


def test_a_read_that_begins_on_pages_there_and_ends_on_pages_on_their_way(world, slowly):
    """The front of read-ahead: the kernel hands out the first pages, waits, and goes on with the rest."""
    path = make_file(world.data / "16384", 1009)
    with world, File(path, advice=os.POSIX_FADV_RANDOM) as file:
        file.read_page(0, 3)
        advise = "os.posix_fadvise(fd, 3 * 4096, 31 * 4096, os.POSIX_FADV_WILLNEED)"
        file.brings("prefetch_pages", lambda: slowly(advise, path).wait(60))
        file.read_page(0, 9)
    file.known(read_calls=2, read_pages=12, ahead_used_pages=6)
    world.counted(file.counts | {"read_calls_waited": 1})


@pytest.mark.parametrize("chunk", [1, 5, 64])
def test_the_account_of_read_ahead_closes(world, chunk):
    """Stops in the middle: what came ahead is used, or still there and unused, to the page."""
    path = make_file(world.data / "16384", 4099)
    with world, File(path) as file:
        for page in range(0, 1501, chunk):
            file.read_page(page, chunk)
        there = file.resident()
    asked = file.counts["read_pages"]
    assert there > asked
    world.counted(file.counts, open_columns=(*WAITED, "ahead_evicted_pages"))
    if not file.counts["evicted_pages"]:
        assert world.ahead_unused() == there - asked
