"""A value is put back only while what we have set is in force: what others have set since is theirs, and reported."""

import json

import pytest

from plimsoll.environment import Journal, Sysctl, TransparentHugePages, kernel_files, undo

_PAIR = {"dirty_bytes": "dirty_ratio", "dirty_ratio": "dirty_bytes"}


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A tree in which writing one of a pair clears the other, as the kernel does."""
    (tmp_path / "vm").mkdir()
    for name, value in {"dirty_bytes": "0", "dirty_ratio": "20", "swappiness": "60"}.items():
        (tmp_path / "vm" / name).write_text(value)
    (tmp_path / "enabled").write_text("always [madvise] never\n")

    def write(path, value, **_):
        words = kernel_files.read(path).replace("[", "").replace("]", "").split()
        path.write_text(" ".join(f"[{word}]" if word == value else word for word in words) if len(words) > 1 else value)
        if path.name in _PAIR:
            path.with_name(_PAIR[path.name]).write_text("0")

    monkeypatch.setattr(kernel_files, "write", write)
    return tmp_path


def _values(kernel):
    pages = kernel_files.selected(kernel_files.read(kernel / "enabled"))
    return [*(kernel_files.read(kernel / "vm" / name) for name in ("dirty_bytes", "dirty_ratio", "swappiness")), pages]


def _set_all(kernel, state):
    journal = Journal.create(state, "run")
    Sysctl("vm.swappiness", kernel).set(1, journal)
    Sysctl("vm.dirty_bytes", kernel).set(4096, journal)
    TransparentHugePages(root=kernel).set("never", journal)
    return journal


def test_what_is_ours_is_put_back(kernel, state):
    before = _values(kernel)
    _set_all(kernel, state)
    assert _values(kernel) == ["4096", "0", "1", "never"]
    assert [(one.ok, one.is_left) for one in undo(state, force=True)] == [(True, False)] * 3
    assert _values(kernel) == before


@pytest.mark.parametrize(
    ("file", "theirs", "told"),
    [
        ("vm/swappiness", "33", "vm.swappiness was 60, was set to 1 by the run, and has become 33 since"),
        ("vm/dirty_bytes", "8192", "was 0 and 20, was set to 4096 and 0 by the run, and has become 8192 and 0 since"),
        ("vm/dirty_ratio", "7", "was 0 and 20, was set to 4096 and 0 by the run, and has become 0 and 7 since"),
        ("enabled", "always", "enabled was madvise, was set to never by the run, and has become always since"),
    ],
)
def test_what_others_have_set_since_is_left_and_told(kernel, state, file, theirs, told):
    _set_all(kernel, state)
    kernel_files.write(kernel / file, theirs)
    now, was = _values(kernel), ["0", "20", "60", "madvise"]
    results = undo(state, force=True)
    kept = {"vm/dirty_bytes": (0, 1), "vm/dirty_ratio": (0, 1), "vm/swappiness": (2,), "enabled": (3,)}[file]
    assert _values(kernel) == [now[place] if place in kept else was[place] for place in range(4)]
    (left,) = [one for one in results if one.is_left]
    assert all(one.ok for one in results)
    assert told in left.what
    assert "to set it back: " in left.remedy and any(f"{value}" in left.remedy for value in was)
    assert undo(state, force=True) == []  # told once; later runs are not refused


def test_a_read_ahead_that_others_have_set_is_left_and_the_next_put_back(kernel, state):
    theirs, ours, gone = (kernel / name for name in ("sda", "sdb", "sdc"))
    theirs.write_text("512")
    ours.write_text("64")
    journal = Journal.create(state, "run")
    journal.record("read_ahead", found={str(path): "128" for path in (theirs, ours, gone)}, set="64")
    (left,) = journal.put_back_all()
    assert [path.read_text() for path in (theirs, ours)] == ["512", "128"]
    assert left.is_left
    assert left.what == f"{theirs} was 128, was set to 64 by the run, and has become 512 since"
    assert f"echo 128 > {theirs}" in left.remedy


def test_journals_of_earlier_versions_are_put_back_as_they_were(kernel, state):
    before = _values(kernel)
    journal = _set_all(kernel, state)
    lines = [json.loads(line) for line in journal.path.read_text().splitlines()]
    for line in lines[1:]:
        del line["args"]["set"]
    journal.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    kernel_files.write(kernel / "vm/swappiness", "33")
    kernel_files.write(kernel / "enabled", "always")
    assert [(one.ok, one.is_left) for one in undo(state, force=True)] == [(True, False)] * 3
    assert _values(kernel) == before


def test_what_the_kernel_moves_by_itself_is_put_back(kernel, state):
    file = kernel / "vm/min_free_kbytes"
    file.write_text("1000")
    journal = Journal.create(state, "run")
    Sysctl("vm.min_free_kbytes", kernel).set(2000, journal)
    file.write_text("67584")  # huge pages were switched on
    assert [one.is_left for one in journal.put_back_all()] == [False]
    assert file.read_text() == "1000"


@pytest.mark.parametrize(("diskseq", "put_back"), [("3", "128"), ("4", "64")])
@pytest.mark.parametrize("kind", ["read_ahead", "place_queue"])
def test_a_disk_that_has_the_name_now_is_not_set(kernel, state, kind, diskseq, put_back):
    """Its diskseq tells it from the one that was set: a name is given again, as to the next loop device."""
    queue = kernel / "sdb/queue"
    queue.mkdir(parents=True)
    file = queue / "read_ahead_kb"
    file.write_text("64")
    (kernel / "sdb/diskseq").write_text(f"{diskseq}\n")
    journal = Journal.create(state, "run")
    known = {str(file if kind == "read_ahead" else queue): 3}
    value = "64" if kind == "read_ahead" else {str(file): "64"}
    journal.record(kind, found={str(file): "128"}, set=value, diskseq=known)
    assert [one.is_left for one in journal.put_back_all()] == [False]
    assert file.read_text() == put_back
