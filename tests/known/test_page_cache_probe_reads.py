"""Reads in known worlds: what was asked for, what was missed, what came ahead. All exact, on every file system.

The expected numbers come from cachestat(2), looked up just before each call, and where possible from arithmetic alone.
"""

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

from page_oracle import PAGE, File, make_cold, make_file

RANDOM = os.POSIX_FADV_RANDOM
WAITED = ("read_calls_waited",)  # whether a page is still on its way depends on the device
READER = Path(__file__).with_name("page_reader.py")


def test_a_cold_file_read_from_end_to_end(world):
    path = make_file(world.data / "base/16384", 4099)
    with world, File(path) as file:
        file.read_through()
    file.known(read_calls=129, read_pages=4099, read_blocks=2050, added_pages=4099)
    assert file.counts["readahead_pages"] > 2048
    world.counted(file.counts, open_columns=WAITED)
    world.counted_nothing("wal", "temp")


def test_single_pages_at_random_with_repeats(world):
    path = make_file(world.data / "16384", 1009)
    order = random.Random(7).choices(range(1009), k=2003)
    with world, File(path, advice=RANDOM) as file:
        for page in order:
            file.read_page(page)
    distinct = len(set(order))
    assert 1 < distinct < 1009
    file.known(read_calls=2003, read_pages=2003, read_blocks=2003)
    file.known(read_missed_pages=distinct, read_calls_missed=distinct, added_pages=distinct)
    world.counted(file.counts)


def test_blocks_at_random_with_the_kernels_own_read_ahead(world):
    path = make_file(world.data / "16384", 1009)
    order = [2 * number for number in random.Random(11).choices(range(504), k=701)]
    with world, File(path) as file:
        for page in order:
            file.read_page(page, 2)
    file.known(read_calls=701, read_pages=1402, read_blocks=701)
    world.counted(file.counts, open_columns=WAITED)


def test_a_warm_file_misses_nothing_and_adds_nothing(world):
    path = make_file(world.data / "16384", 1009)
    with File(path) as before:
        before.read_through()
    with world, File(path, warm=True) as file:
        file.read_through()
        for page in (0, 17, 1008):
            file.read_page(page)
    file.known(read_calls=35, read_pages=1012, read_blocks=508, read_missed_pages=0, added_pages=0)
    world.counted(file.counts)


def test_a_read_asks_for_the_pages_it_touches_and_for_none_beyond_the_end(world):
    path = make_file(world.data / "16384", 1009, extra_bytes=100)
    with world, File(path, advice=RANDOM) as file:
        file.pread(200, 4000)  # pages 0 and 1
        file.pread(200, 4200)  # page 1 again
        file.pread(1, 2 * PAGE - 1)  # its last byte
        file.pread(1, 2 * PAGE)  # page 2
        file.pread(16 * PAGE, 1008 * PAGE)  # page 1008, and 1009 that has a hundred bytes
        file.pread(PAGE, 1009 * PAGE + 99)  # the last byte
        for offset in (1009 * PAGE + 100, 1009 * PAGE + 101, 1010 * PAGE, 5000 * PAGE):
            assert file.pread(PAGE, offset) == b""
        assert file.pread(0, 4 * PAGE) == b""
    file.known(read_calls=6, read_pages=8, read_blocks=6, read_calls_missed=3)
    file.known(read_missed_pages=5, read_missed_blocks=3, added_pages=5, readahead_pages=0)
    world.counted(file.counts)


def test_one_call_is_one_call_whatever_its_form(world):
    path = make_file(world.data / "16384", 1009)
    with world, File(path, advice=RANDOM) as file:
        assert file.preadv([PAGE, 100, 3 * PAGE], PAGE) == 4 * PAGE + 100  # pages 1 to 5
        assert file.preadv([50, 50], 20 * PAGE - 50) == 100  # 19 and 20
        assert file.preadv([PAGE] * 7, 40 * PAGE, os.RWF_HIPRI) == 7 * PAGE
        os.lseek(file.fd, 100 * PAGE + 1, os.SEEK_SET)
        assert len(file.read(PAGE)) == PAGE  # 100 and 101
        assert len(file.read(PAGE)) == PAGE  # 101 and 102: the position moved
        assert file.readv([PAGE, 2 * PAGE]) == 3 * PAGE  # 102 to 105
        assert len(file.pread(301 * PAGE, 200 * PAGE)) == 301 * PAGE  # more than the kernel looks up at a time
        assert len(file.pread(300 * PAGE + 1, 350 * PAGE)) == 300 * PAGE + 1  # the first half of it is there
    file.known(read_calls=8, read_pages=624, read_calls_missed=8)
    file.known(read_missed_pages=5 + 2 + 7 + 2 + 1 + 3 + 301 + 150)
    world.counted(file.counts, open_columns=WAITED)


def test_holes_are_missed_though_nothing_comes_from_the_device(world, file_system):
    path = world.data / "16384"
    with path.open("wb") as out:
        out.truncate(1009 * PAGE)
    make_cold(path)
    order = random.Random(3).sample(range(1009), 503)
    with world, File(path, advice=RANDOM) as file:
        before = file_system.sectors_read()
        for page in order:
            assert file.read_page(page) == bytes(PAGE)
        assert file_system.sectors_read() == before
    file.known(read_calls=503, read_missed_pages=503, added_pages=503)
    world.counted(file.counts)


def test_reads_past_the_page_cache_count_nothing(world):
    import mmap

    path = make_file(world.data / "16384", 1009)
    with world, File(path, flags=os.O_RDONLY | os.O_DIRECT) as file, mmap.mmap(-1, 16 * PAGE) as aligned:
        aligned.write(
            bytes(16 * PAGE)
        )  # there in memory: where it is not, btrfs reads through the page cache after all
        for page in range(0, 1009, 16):
            assert os.preadv(file.fd, [aligned], page * PAGE) > 0
        assert file.resident() == 0
    world.counted_nothing("data", "wal", "temp")


def test_two_files_of_two_classes_read_at_once(world):
    paths = [make_file(world.data / "base/16384", 1009), make_file(world.wal / "000000010000000000000001", 2003)]
    started = threading.Barrier(2)

    def read(file: File, seed: int, calls: int) -> None:
        started.wait()
        for page in random.Random(seed).choices(range(file.pages), k=calls):
            file.read_page(page)

    with world, File(paths[0], advice=RANDOM) as data, File(paths[1], advice=RANDOM) as wal:
        threads = [threading.Thread(target=read, args=arguments) for arguments in ((data, 1, 1511), (wal, 2, 1709))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    data.known(read_calls=1511, read_pages=1511)
    wal.known(read_calls=1709, read_pages=1709)
    world.counted(data.counts, "data")
    world.counted(wal.counts, "wal")
    world.counted_nothing("temp")


def test_one_cold_file_read_by_two_processes_at_once(world):
    path = make_file(world.data / "16384", 4099)
    argv = [sys.executable, "-I", "-S", str(READER), str(path), "8"]
    with world:
        readers = [subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
        for reader in readers:
            assert reader.stdout.readline() == b"ready\n"
        for reader in readers:
            reader.stdin.write(b"go\n")
            reader.stdin.flush()
        for reader in readers:
            assert int(reader.communicate(timeout=60)[0]) == 4099 * PAGE and reader.returncode == 0
        with File(path) as file:
            there = file.resident()
    found = world.found()
    # Who asked first is the machine's affair; that every page came once, and was missed or ahead, is not.
    assert (found["read_calls"], found["read_pages"], found["read_blocks"]) == (2 * 513, 2 * 4099, 2 * 2050)
    assert found["read_missed_pages"] + found["readahead_pages"] == found["added_pages"] >= 4099
    assert found["added_pages"] - found["evicted_pages"] == there  # where nobody else takes any: all of the file
    assert world.ahead_unused() == 0
    assert found["prefetch_pages"] == found["write_pages"] == found["unsettled_pages"] == 0
    assert found["dropped_pages"] == 0
