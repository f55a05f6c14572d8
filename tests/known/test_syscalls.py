"""The probe of system calls: as many of each kind and class, with as many bytes, as strace saw of the same run."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tracepoints
from watching import SECONDS, Watching

from plimsoll.record.npy import read_table

PROGRAM = Path(__file__).with_name("syscalls_program.py")
KINDS = {
    **dict.fromkeys(("open", "openat", "openat2", "creat"), "open"),
    **dict.fromkeys(("read", "readv"), "read"),
    **dict.fromkeys(("pread64", "preadv", "preadv2"), "pread"),
    **dict.fromkeys(("write", "writev"), "write"),
    **dict.fromkeys(("pwrite64", "pwritev", "pwritev2"), "pwrite"),
    **dict.fromkeys(("unlink", "unlinkat"), "unlink"),
    **dict.fromkeys(("rename", "renameat", "renameat2"), "rename"),
    **dict.fromkeys(("stat", "lstat", "fstat", "newfstatat", "statx"), "stat"),
    **dict.fromkeys(("truncate", "ftruncate"), "truncate"),
    **{name: name for name in ("lseek", "close", "fsync", "fdatasync", "sync_file_range", "fallocate")},
}
OF_SERVER = ("data", "wal", "global", "temp", "other")
OF_FILES = (*OF_SERVER, "elsewhere")


class SystemCalls(Watching):
    """The agent's verb `watch` on whoever is said to be the server of a folder."""

    probe = "syscalls"

    def __init__(self, data_directory: Path, out: Path, counted: str = "files") -> None:
        super().__init__()
        self.data_directory, self.out, self.counted = data_directory, out, counted

    def request(self) -> dict[str, Any]:
        self.out.mkdir(exist_ok=True)
        probes = {"syscalls": {"data_directory": str(self.data_directory), "counted": self.counted}}
        return {"out": str(self.out), "interval_ms": 100, "probes": probes}

    def _judge(self) -> None:
        assert self.result["status"] == "on", self.result
        assert not any(self.result["lost"].values()), self.result["lost"]
        assert all(check["ok"] for check in self.result["checks"])
        # A kernel without tracepoints of single calls has every call counted.
        sampled = self.counted == "slices" or (self.counted == "files" and tracepoints.of_single_system_calls())
        assert ("others_share" in self.result) == sampled
        assert ("calls_share" in self.result) == (self.counted == "slices")

    def counts(self, *classes: str) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Calls, failed calls and bytes returned, by class and kind."""
        return {
            (name, kind): (found["count"], found["errors"], found["returned_bytes"])
            for name in classes
            for kind, found in self.result.get("call_totals", {}).get(name, {}).items()
        }


@pytest.fixture
def cluster(tmp_path: Path, needs: Any) -> Path:
    """What a cluster's folder has of folders."""
    needs("root", "bpf")
    folder = tmp_path / "cluster"
    for name in ("base/5", "global", "pg_wal"):
        (folder / name).mkdir(parents=True)
    (folder / "PG_VERSION").write_text("15\n")
    return folder


@contextlib.contextmanager
def program(cluster: Path) -> Iterator[subprocess.Popen[str]]:
    """The program, waiting to be let go, as the server of the folder."""
    argv = [sys.executable, "-I", "-S", str(PROGRAM), str(cluster)]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        (cluster / "postmaster.pid").write_text(f"{process.pid}\n")
        yield process
    finally:
        process.kill()
        process.wait()


def run(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


@contextlib.contextmanager
def strace(process: subprocess.Popen[str], out: Path) -> Iterator[None]:
    """Follows the process and its children until the end, with the names of open files."""
    found = shutil.which("strace")
    assert found is not None
    tracer = subprocess.Popen(
        [found, "-f", "-y", "-s", "0", "-o", str(out), "-p", str(process.pid)], stderr=subprocess.PIPE
    )
    try:
        assert tracer.stderr is not None and b"attached" in tracer.stderr.readline()
        yield
    finally:
        tracer.terminate()
        tracer.wait(SECONDS)


def class_of(full: Path, cluster: Path) -> str:
    """What a file is to the database, by its name alone."""
    if not full.is_relative_to(cluster):
        return "elsewhere"
    parts = full.relative_to(cluster).parts
    first = {"base": "data", "pg_wal": "wal", "global": "global"}.get(parts[0] if parts else "", "other")
    return "temp" if first == "data" and re.match(r"t\d|pgsql_tmp", parts[-1]) else first


def seen_by_strace(out: Path, cluster: Path) -> dict[tuple[str, str], tuple[int, int, int]]:
    """Calls, failed calls and bytes returned, by class and kind."""
    calls: Counter[tuple[str, str]] = Counter()
    errors: Counter[tuple[str, str]] = Counter()
    bytes_returned: Counter[tuple[str, str]] = Counter()
    under_way: dict[str, str] = {}
    for line in out.read_text().splitlines():
        pid, text = line.split(None, 1)
        if text.endswith("<unfinished ...>"):
            under_way[pid] = text.removesuffix("<unfinished ...>").rstrip()
            continue
        if resumed := re.match(r"<\.\.\. \w+ resumed>(.*)", text):
            text = under_way.pop(pid) + resumed[1]
        call = re.match(r"(\w+)\((.*)\)\s+= (-?\d+)(?:<([^>]*)>)?", text)
        if call is None or call[1] not in KINDS:
            continue
        name, arguments, result, opened = call.groups()
        file, path = re.match(r"\d+<([^>]*)>", arguments), re.search(r'"([^"]*)"', arguments)
        by_name = cluster / path[1] if path else None
        by_descriptor = Path(opened or (file[1] if file else ""))
        if not by_descriptor.is_absolute() and (file or by_name is None):
            continue  # a socket or a pipe
        full = by_descriptor if by_descriptor.is_absolute() else by_name
        assert full is not None, line
        place = (class_of(full, cluster), KINDS[name])
        calls[place] += 1
        errors[place] += int(result) < 0
        bytes_returned[place] += int(result) if "read" in place[1] or "write" in place[1] else 0
    return {place: (count, errors[place], bytes_returned[place]) for place, count in calls.items()}


ONE_BY_ONE = pytest.mark.parametrize("counted", ("files", "all"))


@ONE_BY_ONE
def test_counts_equal_those_of_strace(cluster, tmp_path, needs, counted):
    needs("strace")
    with program(cluster) as process:
        watch = SystemCalls(cluster, tmp_path / "out", counted)
        with watch, strace(process, tmp_path / "strace"):
            run(process)
    truth = seen_by_strace(tmp_path / "strace", cluster)
    found = watch.counts(*OF_FILES)
    for place in sorted(truth | found):
        print(place, truth.get(place), found.get(place))
    assert sum(count for count, *_ in truth.values()) > 200
    assert found == truth


@ONE_BY_ONE
def test_counts_equal_what_the_program_does(cluster, tmp_path, counted):
    """Without strace, whose stops would hide a race; and what strace does not tell."""
    with program(cluster) as process:
        watch = SystemCalls(cluster, tmp_path / "out", counted)
        with watch:
            began = time.monotonic_ns()
            run(process)
            lasted = time.monotonic_ns() - began
    totals = watch.result["call_totals"]
    data, wal, other = totals["data"], totals["wal"], totals["other"]
    # Both processes did it.
    assert (data["pwrite"]["count"], data["pwrite"]["asked_bytes"]) == (64, 2 * (33 * 8192 + 100))
    assert data["pwrite"]["sequential"] == 2 * 31
    assert (data["pread"]["count"], data["pread"]["asked_bytes"]) == (18, 2 * 14 * 8192)
    assert data["pread"]["returned_bytes"] == 2 * (13 * 8192 + 100)
    # 1 and 2 after 0 and 1, 4 after 3.
    assert data["pread"]["sequential"] == 2 * 3
    # The first read is where the last of pread was not.
    assert (data["read"]["count"], data["read"]["sequential"]) == (8, 2 * 3)
    assert (wal["pwrite"]["count"], wal["fdatasync"]["count"], wal["fsync"]["count"]) == (34, 34, 2)
    # The second process begins at the start again.
    assert wal["pwrite"]["sequential"] == 2 * 16
    assert (totals["temp"]["write"]["count"], totals["temp"]["write"]["sequential"]) == (11, 10)
    assert (other["write"]["count"], other["write"]["returned_bytes"], other["write"]["sequential"]) == (5, 25, 4)
    assert (totals["none"]["write"]["count"], totals["none"]["write"]["returned_bytes"]) == (23 + 1, 23 * 4 + 5)
    for kinds in totals.values():
        for found in kinds.values():
            assert sum(found["ns_log2"]) == found["count"]
            assert found["ns"] <= 2 * lasted
            least = sum(count << bucket for bucket, count in enumerate(found["ns_log2"]) if bucket)
            assert least <= found["ns"] <= 2 * least + 2 * found["count"]
    # 13 = 8192 bytes; the place is one more, for those that returned nothing come first.
    assert data["pwrite"]["bytes_log2"][14] == 2 * 32 - 2
    rows = read_table(tmp_path / "out/syscalls.npy")
    last = {(watch.result["classes"][row["class"]], watch.result["calls"][row["call"]]): row for row in rows}
    # Cumulative since the probe was attached, whose self-test syncs no file of the log.
    assert last["wal", "fdatasync"]["count"] == 34


def test_where_all_are_asked_for_calls_of_no_kind_are_counted_all_and_timed_in_part(cluster, tmp_path):
    """Two thousand sleeps, of which some hundreds are timed and stand for all; and what returns in two processes."""
    sleeps = "import os, sys, time; sys.stdin.readline(); [time.sleep(0.0005) for _ in range(2000)]"
    forks = "[os.waitpid(os.fork() or os._exit(0), 0) for _ in range(7)]; os.kill(os.getpid(), 0); print(flush=True)"
    argv = [sys.executable, "-I", "-S", "-c", f"{sleeps}; {forks}; sys.stdin.readline()"]
    process = subprocess.Popen(argv, cwd=cluster, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        (cluster / "postmaster.pid").write_text(f"{process.pid}\n")
        with SystemCalls(cluster, tmp_path / "out", "all") as watch:
            began = time.monotonic_ns()
            process.stdin.write("go\n")
            process.stdin.flush()
            assert process.stdout.readline() == "\n"
            lasted = time.monotonic_ns() - began
    finally:
        process.kill()
        process.wait()
    others = watch.result["other_calls"]
    slept = others["clock_nanosleep"]
    assert (slept["count"], slept["errors"]) == (2000, 0)
    # Each lasts 0.5 ms at least; some that are timed may have been held up by other work, and stand for more.
    assert 2000 * 500_000 <= slept["ns"] <= 3 * lasted
    assert (others["wait4"]["count"], others["kill"]["count"]) == (7, 1)
    assert sum(others.get(name, {"count": 0})["count"] for name in ("fork", "clone", "clone3")) == 7


@pytest.mark.parametrize("counted", ("slices", "files"))
def test_slices_of_time_stand_for_all_of_it(cluster, tmp_path, needs, counted):
    """Of a process that does the same all the time: its calls and their time, but for the sample's error."""
    if counted == "files":
        needs("tracepoints of single system calls")
    work = "\n".join(
        (
            "import os, sys, time",
            "sys.stdin.readline()",
            "log = os.open('pg_wal/000000010000000000000001', os.O_RDONLY)",
            "made, end = 0, time.monotonic() + 8",
            "while time.monotonic() < end:",
            "    made += 1",
            "    os.pread(log, 100, 0)",
            "    time.sleep(0.0005)",
            "print(made, flush=True)",
            "sys.stdin.readline()",
        )
    )
    (cluster / "pg_wal/000000010000000000000001").write_bytes(bytes(8192))
    argv = [sys.executable, "-I", "-S", "-c", work]
    process = subprocess.Popen(argv, cwd=cluster, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        (cluster / "postmaster.pid").write_text(f"{process.pid}\n")
        with SystemCalls(cluster, tmp_path / "out", counted) as watch:
            began = time.monotonic_ns()
            process.stdin.write("go\n")
            process.stdin.flush()
            made = int(process.stdout.readline())
            lasted = time.monotonic_ns() - began
    finally:
        process.kill()
        process.wait()
    share, slept = watch.result["others_share"], watch.result["other_calls"]["clock_nanosleep"]
    assert 0.04 < share < 0.4, share
    # Ten slices or so: on a machine with other work its pace is not the same in all of them.
    assert 0.7 * made < slept["count"] < 1.4 * made, (made, slept, share)
    assert 500_000 * slept["count"] <= slept["ns"] <= 1.5 * lasted
    read = watch.result["call_totals"]["wal"]["pread"]
    if counted == "files":
        assert read["count"] == made and "count_se" not in read
        return
    # Ten slices tell their own error only roughly, so six of those (Student's t of nine degrees: one in 10,000).
    assert abs(read["count"] - made) <= 6 * read["count_se"] + 2 / share, (made, read, share)
    assert read["count_se"] < 0.3 * made and read["returned_bytes"] == pytest.approx(100 * read["count"], rel=0.01)
    assert watch.result["calls_share"] == share and watch.result["programs"] == "tp_btf"


def test_calls_longer_than_a_slice_are_waited_for(cluster, tmp_path):
    """Reads of a pipe that last 0.2 s, one behind the other: those that begin in a slice of 0.1 s end behind it."""
    work = "\n".join(
        (
            "import os, sys, time",
            "pipe, into = os.pipe()",
            "if not os.fork():",
            "    for _ in range(40): time.sleep(0.2); os.write(into, b'x')",
            "    os._exit(0)",
            "print(flush=True)",
            "for _ in range(40): os.read(pipe, 1)",
            "print(flush=True)",
            "sys.stdin.readline()",
        )
    )
    argv = [sys.executable, "-I", "-S", "-c", work]
    process = subprocess.Popen(argv, cwd=cluster, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        (cluster / "postmaster.pid").write_text(f"{process.pid}\n")
        assert process.stdout.readline() == "\n"
        with SystemCalls(cluster, tmp_path / "out", "slices") as watch:
            assert process.stdout.readline() == "\n"
    finally:
        process.kill()
        process.wait()
    read = watch.result["call_totals"]["none"]["read"]
    # Half of the slices of 0.1 s have the begin of one; were they not waited for, none would be seen.
    assert 10 <= read["count"] <= 100, read
    assert 150_000_000 * read["count"] < read["ns"] < 300_000_000 * read["count"]


def test_whoever_is_not_the_server_is_not_counted(cluster, tmp_path):
    with program(cluster) as server, program(cluster) as another:
        (cluster / "postmaster.pid").write_text(f"{server.pid}\n")
        watch = SystemCalls(cluster, tmp_path / "out")
        with watch:
            run(another)
    assert watch.counts(*OF_SERVER) == {}
    assert not list(cluster.rglob("plimsoll*"))
