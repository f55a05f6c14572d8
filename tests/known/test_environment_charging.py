"""traps.md 1 and 2 against the real page cache: who is charged, what stays, what a clone leaves."""

import os
import subprocess

import pytest

from plimsoll.environment import Fault, GroupKnob, Journal, Limits
from plimsoll.environment.folders.clone import clone_tree
from plimsoll.environment.memory import page_cache

LIMIT = 64 << 20
SIZE = 2 * LIMIT


def _device_bytes_read_inside(group, file) -> int:
    """What a process in the group and its children had read from the device, by the kernel's own account."""
    script = f"dd if={file} of=/dev/null bs=1M 2>/dev/null; cat /proc/$$/io"
    process = group.exec_in(["sh", "-c", script], stdout=subprocess.PIPE)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return int(dict(line.split(": ") for line in text.decode().splitlines())["read_bytes"])


@pytest.fixture
def big_file(state):
    file = state.work / "twice-the-limit"
    with file.open("wb") as out:
        for _ in range(SIZE >> 20):
            out.write(os.urandom(1 << 20))
        os.fsync(out.fileno())
    return file


def _warmed(file) -> None:
    """All of it is in the page cache: the machine may page out some at any time (DAMON)."""
    for _ in range(10):
        page_cache.warm(file)
        if page_cache.residency(file).fraction == 1:
            return
    raise AssertionError("the machine pages out what has just been read")


def _by_both(file) -> tuple[int, int]:
    """Resident bytes by cachestat and by mincore, of a time in which none left or came."""
    for _ in range(10):
        first, other, again = (page_cache.resident_bytes(file, by=how) for how in ("cachestat", "mincore", "cachestat"))
        if first == again:
            return first, other
    raise AssertionError("the machine pages out all the time")


def test_a_file_of_twice_the_limit_warmed_outside_misses_inside_only_after_eviction(needs, state, run_id, big_file):
    needs("root", "cgroup memory")
    with Journal.create(state, run_id) as journal:
        group = GroupKnob(run_id).make(Limits(LIMIT, 0), journal)
        _warmed(big_file)
        # The control: what somebody else warmed is read for nothing, and the limit means nothing.
        free = _device_bytes_read_inside(group, big_file)
        assert free < 0.05 * SIZE
        assert group.stats()["file_bytes"] < 0.1 * LIMIT

        found = page_cache.evict(big_file)
        assert found.resident_bytes >= 0.95 * SIZE
        assert page_cache.residency(big_file).resident_bytes == 0
        paid = _device_bytes_read_inside(group, big_file)
        assert paid >= 0.95 * SIZE
        stats = group.stats()
        assert 0.5 * LIMIT < stats["usage_bytes"] <= LIMIT
        assert stats.get("limit_hits", 1) > 0  # absent where the kernel does not count it
        # And again: twice the limit cannot stay, so it misses again.
        assert _device_bytes_read_inside(group, big_file) > 0.3 * SIZE
        print(f"read inside: warmed outside {free / SIZE:.4f}, after eviction {paid / SIZE:.4f} of the file")


def test_residency_is_the_same_by_both_system_calls(needs, state):
    needs("cachestat")
    file = state.work / "partly"
    size = (8 << 20) + 1234
    file.write_bytes(os.urandom(size))
    _warmed(file)
    one, other = _by_both(file)
    assert one == other > 0.95 * size
    page_cache.evict(file)
    with file.open("rb") as source:
        os.posix_fadvise(source.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        for place in range(0, size, 1 << 20):
            os.pread(source.fileno(), 1, place)
        some, other = _by_both(file)
    assert 0 < some == other < size


def test_loss_that_nothing_explains_is_flagged(state):
    file = state.work / "file"
    file.write_bytes(os.urandom(4 << 20))
    before = page_cache.residency(file)
    with file.open("rb") as source:
        os.fsync(source.fileno())
        os.posix_fadvise(source.fileno(), 0, 2 << 20, os.POSIX_FADV_DONTNEED)  # somebody else evicts
    after = page_cache.residency(file)
    assert (
        page_cache.unexplained_loss(before, after, reclaimed_bytes=0)
        == before.resident_bytes - after.resident_bytes
        > 0
    )
    assert page_cache.unexplained_loss(before, after, reclaimed_bytes=4 << 20) == 0


def test_what_cannot_be_evicted_is_named(state):
    import mmap

    file = state.work / "held"
    file.write_bytes(os.urandom(1 << 20))
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapped:
        assert sum(mapped[::4096]) > 0  # every page is mapped by a process
        with pytest.raises(Fault, match=r"held \(1048576 bytes\).*fuser"):
            page_cache.evict(state.work)
    page_cache.evict(state.work)


def _tree(root) -> None:
    root.mkdir(mode=0o700)
    (root / "base").mkdir(mode=0o700)
    (root / "empty").mkdir(mode=0o750)
    for number, size in enumerate([0, 1, 511, 4096, 8192 * 3, (4 << 20) + 17, (70 << 20) + 4095]):
        file = root / "base" / f"file{number}"
        file.write_bytes(os.urandom(size))
        file.chmod(0o600 if number % 2 else 0o640)
    (root / "inside").symlink_to("base/file1")


def test_a_clone_is_equal_and_leaves_nothing_in_the_page_cache(needs, state, server_user):
    needs("root", "server user")
    import pwd

    account = pwd.getpwnam(server_user)
    source, target = state.datasets / "one", state.work / "clone"
    _tree(source)
    seen: list[tuple[int, int]] = []
    done = clone_tree(
        source, target, uid=account.pw_uid, gid=account.pw_gid, progress=lambda *at: seen.append(at), reflink=False
    )
    assert page_cache.residency(source, target).resident_bytes == 0
    assert done.method in ("direct", "buffered") and done.files == 7
    assert seen[-1] == (done.bytes, done.bytes) and [a for a, _ in seen] == sorted(a for a, _ in seen)
    assert subprocess.run(["diff", "-r", source, target], check=False).returncode == 0
    for path in [target, *target.rglob("*")]:
        if not path.is_symlink():
            twin = source / path.relative_to(target)
            assert (path.stat().st_mode, path.stat().st_uid) == (twin.stat().st_mode, account.pw_uid), path
    with pytest.raises(Fault, match="is not empty"):
        clone_tree(source, target)


def test_a_clone_where_direct_io_or_reflink_may_be_refused(state):
    source, target = state.datasets / "one", state.work / "clone"
    _tree(source)
    from plimsoll.environment.folders import clone

    original = clone._open
    clone._open = lambda path, flags: (os.open(path, flags), False)  # as on a file system without O_DIRECT
    try:
        done = clone_tree(source, target, reflink=False)
    finally:
        clone._open = original
    assert done.method == "buffered"
    assert page_cache.residency(source, target).resident_bytes == 0
    assert subprocess.run(["diff", "-r", source, target], check=False).returncode == 0


def test_a_clone_refuses_a_link_that_leads_out(state):
    source = state.datasets / "one"
    source.mkdir()
    (source / "pg_wal").symlink_to("/var/tmp")
    with pytest.raises(Fault, match="link out of the tree"):
        clone_tree(source, state.work / "clone")
