"""What a guest is shown of the host: everything, and nothing of it to be written, whoever asks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from plimsoll.environment.guest import read_only

WRITES = """
cat "$1$2/here"
for place in "$2" /dev/shm /; do
    (echo 60 > "$1$place/plimsoll-planted") 2>/dev/null && echo "written: $place"
done
"""


def _seen(view: Path, script: str, *argv: str) -> subprocess.CompletedProcess[str]:
    shell = ["/bin/sh", "-c", script, "sh", str(view), *argv]
    return subprocess.run(
        [sys.executable, "-I", read_only.__file__, str(view), *shell], capture_output=True, text=True, check=False
    )


def test_all_is_seen_and_nothing_can_be_written(needs: Callable[..., None], tmp_path: Path) -> None:
    needs("root")
    view, place = tmp_path / "a view", tmp_path / "a place"
    view.mkdir()
    place.mkdir()
    (place / "here").write_text("seen\n")
    before = Path("/proc/self/mountinfo").read_text()
    done = _seen(view, WRITES, str(place))
    assert (done.stdout, done.stderr) == ("seen\n", "")
    assert Path("/proc/self/mountinfo").read_text() == before and list(view.iterdir()) == []
    # Without it they are written.
    done = subprocess.run(["/bin/sh", "-c", WRITES, "sh", "", str(place)], capture_output=True, text=True, check=False)
    for folder in (place, Path("/dev/shm"), Path("/")):
        assert f"written: {folder}\n" in done.stdout
        (folder / "plimsoll-planted").unlink()


def test_what_the_kernel_refuses_is_said_and_nothing_is_shown(needs: Callable[..., None], tmp_path: Path) -> None:
    needs("root")
    done = _seen(tmp_path / "nowhere", "echo shown")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("read_only.py: mount --rbind / ") and "No such file" in done.stderr
