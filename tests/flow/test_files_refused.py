"""Places that fail under a load on files: which file and what to do is said, nothing stays, and the rest goes on."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable

from laboratory import Laboratory, make_reachable
from loop_file_system import MIB, call, loop_file_system
from on_files import Run, errors, failing, mounted, place_of, trials, watched

NEEDS = ("root", "server user", "fuse")


def test_calls_that_fail_name_their_file(laboratory: Laboratory) -> None:
    with failing(laboratory) as at, watched(laboratory, at.place, 4) as run:
        run.in_load(2)
        first = run.first()
        at.fail("read EIO")
        time.sleep(0.1)
        at.fail()
        run.in_load(3)
        at.fail("write EIO", "create EROFS")
        code, said = run.ended()
        assert code == 0, said
        assert run.left() == []
        one, two, three, four = trials(run.out)
        assert (one["status"], two["status"]) == ("finished", "finished"), said
        assert run.first() == first
        assert [error["sqlstate"] for error in errors(run.out, 2)] == ["EIO"]
        assert all(check["ok"] for check in two["checks"])
        assert errors(run.out, 3)[0]["message"].startswith("append d000000/f"), "the cause is kept"
        # What the load has to keep could not be written either; of the next one no file could be made.
        assert three["status"] == four["status"] == "failed"
        for found, file, error, what_to_do in (
            (three, "state/files", "Input/output error", "see dmesg"),
            (four, "/.plimsoll-files", "Read-only file system", "mount it for writing"),
        ):
            for words in (file, error, str(at.place), what_to_do):
                assert words in found["reason"], found["reason"]
        assert "failed (EIO: " in said and "; read d000000/f" in said, said


def failed_in_load(run: Run, error: str, change: Callable[[], object]) -> str:
    """The place is changed in the middle of the second trial: its appends fail. What the run has said then."""
    run.in_load(2)
    first = run.first()
    change()
    code, said = run.ended()
    assert code == 0, said
    assert run.left() == [], said
    assert trials(run.out)[0]["status"] == "finished" and run.first() == first
    (found,) = errors(run.out, 2)
    assert found["sqlstate"] == error
    assert found["message"].startswith("append d000000/f"), found
    return said


def test_a_disk_that_fills_up(laboratory: Laboratory) -> None:
    at = mounted(laboratory, "full", "-t", "tmpfs", "-o", "size=3g", "none")
    with at as place, watched(laboratory, place, 2, "--set", "workload.direct=false") as run:

        def fill() -> None:
            while True:
                found = os.statvfs(place)
                used = (found.f_blocks - found.f_bfree) * found.f_frsize
                again = ["mount", "-o", f"remount,size={used + MIB}", str(place)]
                if subprocess.run(again, capture_output=True, check=False).returncode == 0:
                    return  # else the load was faster

        said = failed_in_load(run, "ENOSPC", fill)
        two = trials(run.out)[1]
        if two["status"] == "failed":  # a fast load has appended more than there is room kept to note
            for words in ("state/files: No space left on device", str(place), "free space there"):
                assert words in two["reason"], two["reason"]
            return
        assert all(check["ok"] for check in two["checks"]), "what was acknowledged is there"
        assert "transactions failed (ENOSPC: " in said and "; append d000000/f" in said, said


def test_a_quota_that_is_used_up(laboratory: Laboratory, needs: Callable[..., None]) -> None:
    """Of btrfs, since it binds root, too. Nothing is written in place there, not even what the load has to keep."""
    needs("loop devices and mkfs.ext4", "mkfs.btrfs")
    with loop_file_system("btrfs", 3 << 30) as file_system:
        place = file_system.point / "quota"
        call("btrfs", "quota", "enable", str(file_system.point))
        call("btrfs", "subvolume", "create", str(place))
        place.chmod(0o755)
        with watched(laboratory, place, 2) as run:
            said = failed_in_load(run, "EDQUOT", lambda: call("btrfs", "qgroup", "limit", "1M", str(place)))
            two = trials(run.out)[1]
            assert two["status"] == "failed", said
            for words in ("state/files: Disk quota exceeded", str(place), "raise the quota there"):
                assert words in two["reason"], two["reason"]


def test_a_place_that_is_removed(laboratory: Laboratory) -> None:
    place = place_of(laboratory, "gone")
    with watched(laboratory, place, 3) as run:
        run.in_load(2)
        first = run.first()
        subprocess.run(["rm", "-rf", str(place)], check=False)  # twice: the load may make a file meanwhile
        subprocess.run(["rm", "-rf", str(place)], check=True)
        code, said = run.ended()
        assert code == 1, said
        assert "No such file or directory" in said and str(place) in said and "run --resume" in said, said
        assert "Traceback" not in said
        assert laboratory.left_behind() == []
        assert "somebody removed or unmounted it" in trials(run.out)[1]["reason"]
        make_reachable(place)
        laboratory.call("run", "--resume", str(run.out), "--no-page")
        assert [one["status"] for one in trials(run.out)] == ["finished", "failed", "finished"]
        assert run.first() == first and run.left() == []
