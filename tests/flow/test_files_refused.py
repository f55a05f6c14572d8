"""Places that fail under a load on files: which file and what to do is said, nothing stays, and the rest goes on."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory, make_reachable
from loop_file_system import MIB, call, loop_file_system
from on_files import Run, errors, failing, mounted, place_of, trials, watched

from plimsoll.run import agent

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
        assert "operations failed (ENOSPC: " in said and "; append d000000/f" in said, said


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


def test_a_close_that_fails_is_told_of(laboratory: Laboratory, tmp_path: Path) -> None:
    """A file server may say there first that it has not taken what was written."""
    passes: dict[str, Any] = {"name": "sequential_io", "seed": 1, "pass": "write", "processes": 1}
    passes |= {"file_bytes": 65536, "record_bytes": 4096}
    mix: dict[str, Any] = {"name": "files", "seed": 1, "count": 1, "file_bytes": 4096}
    mix["mix"] = [{"operation": "write", "weight": 1, "bytes": 4096}]
    create = mix | {"mix": [{"operation": "create", "weight": 1, "bytes": 4096}]}
    lines = ['NTCreateX "/client1" 1 2 1 NT_STATUS_OK', 'NTCreateX "/client1/a" 0x40 2 2 NT_STATUS_OK']
    (tmp_path / "client.txt").write_text("\n".join([*lines, "Close 2 NT_STATUS_OK"]) + "\n")
    serving = {"name": "file_serving", "seed": 1, "script": {"loadfile": str(tmp_path / "client.txt")}, "passes": 1}
    with failing(laboratory) as at:

        def loaded(number: int, workload: dict[str, Any]) -> dict[str, Any]:
            folder, out = at.place / str(number), tmp_path / str(number)
            folder.mkdir()
            out.mkdir()
            request = {"target": {"kind": "files", "folder": str(folder)}, "workload": workload}
            agent.call("populate", request)
            at.fail("flush EIO")
            try:
                stop = {"transactions": 3}
                return agent.call(
                    "load", request | {"clients": 1, "out": str(out), "stop": stop if "mix" in workload else {}}
                )
            finally:
                at.fail()

        within = [passes | {"include_close": True}, create, serving]
        said = [loaded(number, workload)["errors"][0] for number, workload in enumerate(within)]
        assert [error["sqlstate"] for error in said] == ["EIO"] * 3, said
        assert said[0]["message"].startswith("file.0000: close: Input/output error"), said
        for number, workload in enumerate([passes, mix], len(within)):
            with pytest.raises(agent.AgentFailed, match=r"close.*: Input/output error") as refused:
                loaded(number, workload)
            assert refused.value.code == agent.EXIT_UNREACHABLE


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
