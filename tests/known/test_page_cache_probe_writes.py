"""Writes, and how pages leave: told to go, or taken by reclaim under a group's limit. Exact, against cachestat(2)."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from page_oracle import PAGE, File, make_cold, make_file

from plimsoll.environment import GroupKnob, Journal, Limits

RANDOM = os.POSIX_FADV_RANDOM
MIB = 1 << 20
READER = Path(__file__).with_name("page_reader.py")


def test_overwriting_what_is_there_adds_nothing(world):
    path = make_file(world.data / "16384", 503)
    with File(path) as before:
        before.read_through()
    with world, File(path, warm=True) as file:
        for block in random.Random(1).choices(range(251), k=307):
            file.write(bytes(2 * PAGE), block * 2 * PAGE)
        os.fsync(file.fd)
    file.known(write_pages=0)
    world.counted(file.counts)


def test_overwriting_what_is_cold_adds_what_is_written(world):
    path = make_file(world.data / "16384", 1009)
    with world, File(path) as file:
        for block in random.Random(2).sample(range(504), 211):
            file.write(bytes(2 * PAGE), block * 2 * PAGE)
        os.fsync(file.fd)
    file.known(write_pages=422)
    world.counted(file.counts)


def test_overwriting_a_part_of_a_cold_page_is_not_a_read(world):
    path = make_file(world.data / "16384", 503)
    with world, File(path, advice=RANDOM) as file:
        for page in range(0, 503, 10):
            file.write(b"some bytes", page * PAGE + 1000)
        os.fsync(file.fd)
    file.known(write_pages=51)
    world.counted(file.counts)


@pytest.mark.parametrize("length", [8192, 5003, 100_003])
def test_appending_adds_the_new_pages(world, length):
    path = world.data / "16384"
    path.touch()
    with world, File(path) as file:
        for _ in range(101):
            file.write(bytes(length), file.size)
        os.fsync(file.fd)
    file.known(write_pages=-(-101 * length // PAGE))
    world.counted(file.counts)


def test_what_was_written_is_read_without_a_miss(world):
    path = world.data / "16384"
    path.touch()
    with world, File(path) as file:
        file.write(bytes(307 * PAGE), 0)
        file.read_through()
        os.fsync(file.fd)
    file.known(write_pages=307, read_pages=307, read_missed_pages=0)
    world.counted(file.counts)


def test_direct_writes_take_what_they_overwrite_out_of_the_cache(world, file_system):
    import mmap

    path = make_file(world.data / "16384", 503)
    with File(path) as before:
        before.read_through()
    with world, File(path, warm=True) as file, mmap.mmap(-1, 8 * PAGE) as aligned:
        direct = os.open(path, os.O_WRONLY | os.O_DIRECT)
        file.loses(lambda: os.pwritev(direct, [aligned], 16 * PAGE))
        file.loses(lambda: os.pwritev(direct, [aligned], 160 * PAGE))
        os.close(direct)
    file.known(dropped_pages=16)
    if file_system.kind == "btrfs":
        # Where data have checksums it writes through the page cache and drops that: a page not there comes and goes.
        world.counted(file.counts, open_columns=("dropped_pages", "write_pages", "added_pages"))
        assert world.found()["dropped_pages"] - world.found()["write_pages"] == file.counts["dropped_pages"]
    else:
        world.counted(file.counts)


def test_what_is_told_to_go_is_dropped_and_not_evicted(world):
    """POSIX_FADV_DONTNEED, a hole punched, a file cut short and a file deleted."""
    paths = [make_file(world.data / name, pages) for name, pages in (("cut", 503), ("gone", 307))]
    for path in paths:
        with File(path) as before:
            before.read_through()
    with world, File(paths[0], warm=True) as cut, File(paths[1], warm=True) as gone:
        world.introduce(cut, gone)
        cut.forget(32, 64)
        cut.punch_hole(300, 13)
        cut.loses(lambda: os.ftruncate(cut.fd, 256 * PAGE))
        cut.known(dropped_pages=64 + 13 + (503 - 256 - 13))
        # A cut inside a large folio: where that cannot be split, pages beyond the end stay for a while.
        cut.loses(lambda: os.ftruncate(cut.fd, 100 * PAGE + 7))
        gone.counts["dropped_pages"] = gone.resident()
        paths[1].unlink()
    gone.known(dropped_pages=307)
    world.counted(cut.counts + gone.counts)


def _read_in(group, path, chunk_pages: int, times: int = 1) -> None:
    """A process inside the group reads the file from end to end."""
    argv = [sys.executable, "-I", "-S", str(READER), str(path), str(chunk_pages), str(times)]
    reader = group.exec_in(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    said, _ = reader.communicate(b"go\n", timeout=120)
    assert reader.returncode == 0 and int(said.split()[-1]) == times * path.stat().st_size


def _reclaim(group) -> None:
    """All the group's pages that can go, at our wish and not at its own."""
    if group.version == 1:
        (group.folder / "memory.force_empty").write_text("0\n")
    else:
        (group.folder / "memory.reclaim").write_text(str(group.stats()["file_bytes"]))


def test_what_a_limit_takes_is_evicted(needs, world, state, run_id):
    """A file of twice the limit, read twice: added less evicted is what cachestat(2) finds, to the page."""
    needs("root", "cgroup memory")
    pages = 12_289
    path = make_file(world.data / "16384", pages)
    with Journal.create(state, run_id) as journal:
        group = GroupKnob(run_id).make(Limits(24 * MIB, 0), journal)
        with world:
            _read_in(group, path, 8, times=2)
            with File(path) as file:
                there = file.resident()
        found = world.found()
        assert (found["read_calls"], found["read_pages"]) == (2 * -(-pages // 8), 2 * pages)
        assert found["added_pages"] > 1.5 * pages and 0 < there < 0.55 * pages
        assert found["evicted_pages"] == found["added_pages"] - there
        assert found["dropped_pages"] == found["write_pages"] == found["prefetch_pages"] == 0
        assert found["read_missed_pages"] + found["readahead_pages"] == found["added_pages"]
        print(f"added {found['added_pages']}, evicted {found['evicted_pages']}, resident {there}, file {pages}")
        make_cold(path)


def test_what_is_reclaimed_at_somebody_elses_wish_is_evicted_too(needs, world, state, run_id):
    """Pages brought ahead and never used leave as such."""
    needs("root", "cgroup memory")
    path = make_file(world.data / "16384", 2003)
    with Journal.create(state, run_id) as journal:
        group = GroupKnob(run_id).make(Limits(64 * MIB, 0), journal)
        with world:
            _read_in(group, path, 8)
            with File(path) as file:
                before = file.resident()
                _reclaim(group)
                left = file.resident()
        found = world.found()
        assert before == found["added_pages"] == 2003 > left
        assert found["evicted_pages"] == before - left
        assert found["dropped_pages"] == found["ahead_evicted_pages"] == 0


def test_what_reclaim_takes_before_it_was_asked_for_was_brought_for_nothing(needs, world, state, run_id):
    needs("root", "cgroup memory")
    path = make_file(world.data / "16384", 1009)
    advise = (
        "import os, sys; fd = os.open(sys.argv[1], os.O_RDONLY); page = 4096;"
        "os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM); os.posix_fadvise(fd, 0, 31 * page, os.POSIX_FADV_WILLNEED);"
        "[os.pread(fd, page, place * page) for place in (7, 30)]"
    )
    with Journal.create(state, run_id) as journal:
        group = GroupKnob(run_id).make(Limits(64 * MIB, 0), journal)
        with world, File(path) as file:
            world.introduce(file)
            before = file.resident()
            assert group.exec_in([sys.executable, "-I", "-S", "-c", advise, str(path)]).wait(60) == 0
            assert file.resident() == before + 31
            _reclaim(group)
            left = file.resident() - before
        found = world.found()
        assert (found["prefetch_pages"], found["ahead_used_pages"], found["evicted_pages"]) == (31, 2, 31 - left)
        assert found["dropped_pages"] == 0 == left  # so that what was for nothing is exact
        assert found["ahead_evicted_pages"] == 29
