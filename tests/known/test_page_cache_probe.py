"""The probe of the page cache: what it is told, what it refuses, and whose file is whose.

Claimed exact: every column but `read_calls_waited`, on ext4, XFS and btrfs, by both ways of hearing of requests.
"""

import json
import os
import shutil
import subprocess

import pytest
from loop_file_system import call, loop_file_system
from page_oracle import PAGE, File, make_file
from page_probe import Watch
from watching import SECONDS

from plimsoll.run import agent

RANDOM = os.POSIX_FADV_RANDOM


def test_nothing_asked_nothing_counted(world):
    make_file(world.data / "16384", 101)
    with world:
        (world.data / "16384").stat()
        list(world.data.iterdir())
    world.counted_nothing(*world.result["classes"])
    assert {"data", "wal", "temp"} <= set(world.result["classes"])
    test = world.result["self_test"]
    assert test["pages"] == test["missed_cold"] > 0 == test["missed_warm"]
    assert test["sequential_pages"] == test["sequential_added"] > 0
    assert list(world.scratch.iterdir()) == []


@pytest.mark.parametrize("programs", ["auto", "tp_btf", "tracepoint"])
@pytest.mark.parametrize("requests", ["auto", "get_pages", "system_calls"])
def test_every_way_counts_the_same(file_system, tmp_path, requests, programs):
    """The two ways of hearing of requests and the two kinds of programs, in every combination."""
    root = file_system.fresh()
    watch = Watch(root, tmp_path, requests=requests, programs=programs)
    path = make_file(watch.data / "16384", 1009)
    with watch, File(path) as file:
        file.read_through(16)
        file.forget()
        os.posix_fadvise(file.fd, 0, 0, RANDOM)
        file.advise(os.POSIX_FADV_WILLNEED, 64, 13)
        for page in (5, 6, 5, 70, 900, 1008):
            file.read_page(page, 2)
        file.write(bytes(101 * PAGE), 300 * PAGE)
        file.forget(300, 101)
    watch.counted(file.counts, open_columns=("read_calls_waited",))
    file_system.remove(root)


def test_a_temporary_file_is_of_its_own_class(world):
    old = make_file(world.data / "base/pgsql_tmp/pgsql_tmp1234.0", 101)
    with world, File(old, advice=RANDOM) as before:
        before.read_page(7, 5)
        new = make_file(world.data / "base/pgsql_tmp/pgsql_tmp1234.1", 53)
        with File(new, advice=RANDOM) as after:
            after.read_page(11, 3)
    world.counted_nothing("data", "wal")
    found = world.found("temp")
    assert (found["read_calls"], found["read_pages"], found["read_missed_pages"]) == (2, 8, 8)
    assert (found["write_pages"], found["dropped_pages"]) == (53, 53)


def test_a_file_made_under_watch_is_known_by_its_folder(world):
    with world:
        for folder, pages in ((world.data, 101), (world.wal, 53), (world.data / "base/new", 31)):
            path = make_file(folder / "made", pages)
            with File(path, advice=RANDOM) as file:
                file.read_page(3)
                file.read_page(3)
    data, wal = world.found("data"), world.found("wal")
    assert (data["write_pages"], data["dropped_pages"], data["read_pages"], data["read_missed_pages"]) == (
        132,
        132,
        4,
        2,
    )
    assert (wal["write_pages"], wal["dropped_pages"], wal["read_pages"], wal["read_missed_pages"]) == (53, 53, 2, 1)


def test_a_renamed_file_keeps_its_class(world):
    path = make_file(world.wal / "000000010000000000000001", 101)
    with world, File(path, advice=RANDOM) as file:
        file.read_page(3)
        path = path.rename(world.wal / "000000010000000000000005")
        file.read_page(4)
        with File(path, advice=RANDOM) as again:
            again.read_page(4)
            again.read_page(5)
    world.counted(file.counts + again.counts, "wal")
    world.counted_nothing("data", "temp")


def test_an_inode_used_again_belongs_to_its_new_folder(world):
    """WAL is deleted and its inode given to a table: ext4 does so at once."""
    old = make_file(world.wal / "000000010000000000000001", 11)
    number = old.stat().st_ino
    with world:
        old.unlink()
        made = []
        for attempt in range(64):
            made.append(world.data / f"table{attempt}")
            made[-1].touch()
            if made[-1].stat().st_ino == number:
                break
        path = make_file(made[-1], 101)
        with File(path, advice=RANDOM) as file:
            file.read_page(5, 7)
    world.counted_nothing("wal", "temp")
    found = world.found("data")
    assert (found["write_pages"], found["read_pages"], found["read_missed_pages"]) == (101, 7, 7)


def test_a_file_outside_the_trees_is_nobodys(world):
    path = make_file(world.root / "elsewhere/16384", 101)
    with world, File(path) as file:
        file.read_through()
    world.counted_nothing("data", "wal", "temp")


def test_the_same_inode_of_another_file_system_is_another_file(needs, tmp_path, paths):
    needs("bpf", "loop devices and mkfs.ext4", "cachestat")
    with loop_file_system("ext4", 16 << 20) as ours, loop_file_system("ext4", 16 << 20) as other:
        watch, twin = (Watch(each.point, tmp_path, requests=paths[0], programs=paths[1]) for each in (ours, other))
        files = [make_file(each.data / "16384", 101) for each in (watch, twin)]
        assert files[0].stat().st_ino == files[1].stat().st_ino
        with watch, File(files[0]) as mine, File(files[1]) as theirs:
            theirs.read_through()
            mine.read_page(50)
        watch.counted(mine.counts, open_columns=("read_calls_waited",))


@pytest.mark.parametrize("requests", ["get_pages", "system_calls"])
def test_the_same_inode_of_another_subvolume_is_another_file(needs, tmp_path, requests):
    """btrfs numbers the files of each subvolume afresh; classic events name the file system only, BTF ones the file."""
    needs("bpf", "loop devices and mkfs.ext4", "mkfs.btrfs", "cachestat")
    with loop_file_system("btrfs") as mounted:
        for name in ("one", "two"):
            call("btrfs", "subvolume", "create", str(mounted.point / name))
        watch, twin = (
            Watch(mounted.point / name, tmp_path, requests=requests, programs="tp_btf") for name in ("one", "two")
        )
        files = [make_file(each.data / "16384", 101) for each in (watch, twin)]
        assert files[0].stat().st_ino == files[1].stat().st_ino
        with watch, File(files[0]) as mine, File(files[1]) as theirs:
            theirs.read_through()
            mine.read_page(50)
        watch.counted(mine.counts, open_columns=("read_calls_waited",))


# Refusals


def _run(request: dict, *prefix: str, program=None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*prefix, str(program or agent.PROGRAM), "watch"],
        input=json.dumps(request) + "\nstop\n",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def _refused(done: subprocess.CompletedProcess[str]) -> dict:
    """The probe of a run in which it was refused and everything else went on."""
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (lines[0]["event"], lines[-1]["event"]) == ("watching", "watched")
    for line in (lines[0], lines[-1]):
        probe = line["probes"]["page_cache"]
        assert probe["status"] == "refused" and probe["reason"], probe
        assert not probe.get("totals"), "figures of a probe that cannot be trusted"
    return lines[-1]["probes"]["page_cache"]


@pytest.fixture
def plain(state):
    """Folders on no particular file system, that every user can reach, with an agent of their own beside them."""
    watch = Watch(state.work, state.root / "out")
    watch.out.mkdir()
    return watch


def test_a_tree_that_is_not_there_is_refused(needs, plain):
    needs("bpf")
    missing = str(plain.root / "not-there")
    probe = _refused(_run(plain.request(trees=[{"path": missing, "class": "data"}])))
    assert missing in probe["reason"]
    assert not (plain.out / "page_cache.npy").exists()


def test_a_scratch_folder_that_is_not_there_is_refused(needs, plain):
    needs("bpf")
    missing = str(plain.root / "not-there")
    assert missing in _refused(_run(plain.request(scratch=missing)))["reason"]


def test_a_user_who_may_not_load_programs_is_told(needs, plain, server_user):
    needs("bpf", "server user")
    for folder in (plain.out, plain.scratch):
        shutil.chown(folder, server_user)
    for folder in (plain.root, *(path for path in plain.root.rglob("*") if path.is_dir())):
        folder.chmod(0o755)  # what this user may not do is to load programs; the umask may have closed folders
    program = shutil.copy2(agent.PROGRAM, plain.root)
    as_user = ["setpriv", f"--reuid={server_user}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    probe = _refused(_run(plain.request(), *as_user, program=program))
    assert probe["remedy"], probe
    assert "root" in probe["remedy"] or "CAP_BPF" in probe["remedy"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"requests": "guess"}, "requests"),
        ({"programs": "kprobe"}, "programs"),
        ({"scratch": 7}, "scratch"),
        ({"trees": [{"path": "/", "class": "data", "colour": "red"}]}, "colour"),
        ({"trees": [{"path": "/"}]}, "class"),
        ({"interval": 5}, "interval"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_wrong_request_is_refused_by_its_field(needs, plain, change, named):
    needs("bpf")
    done = _run(plain.request(**change))
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr
    assert list(plain.out.iterdir()) == []
