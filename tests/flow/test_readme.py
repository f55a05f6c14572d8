"""The commands of the README run, through the launcher, as a newcomer types them.

Those that measure for minutes, need a server or ask a record (demo, breakdown, run, soak, capacity, report, compare,
query, export) are run by the pipeline's tests at a small size, and by those of their own pages.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text()
# Inside a line of code: `./plimsoll ...`; in a block: four blanks, then up to two blanks of comment.
COMMANDS = re.findall(r"`(\./plimsoll [^`]+)`", TEXT) + re.findall(
    r"^    (\./plimsoll .*?)(?:  .*)?$", TEXT, flags=re.M
)
# They last, or ask for a run, a server or a capture that is not there.
LONG = {"demo", "run", "capacity", "report", "compare", "breakdown", "query", "export", "import", "soak"}


def short() -> list[str]:
    return [one for one in dict.fromkeys(COMMANDS) if shlex.split(one)[1] not in LONG]


def test_the_readme_names_commands() -> None:
    verbs = {shlex.split(one)[1] for one in COMMANDS}
    assert {
        "demo",
        "doctor",
        "list",
        "plan",
        "run",
        "capacity",
        "breakdown",
        "compare",
        "query",
        "report",
        "undo",
        "cache",
        "setup",
    } <= verbs


@pytest.mark.parametrize("command", short())
def test_command_runs(command: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PLIMSOLL_STATE": str(tmp_path / "state")}
    done = subprocess.run(
        shlex.split(command),
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    # 3: this machine cannot, and the command says why (an unprivileged user has no memory limits).
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_help_and_dry_run_install_nothing(tmp_path: Path) -> None:
    """On a copy that was never set up."""
    for name in ("plimsoll", "Cargo.toml", "Cargo.lock"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "plimsoll").chmod(0o755)
    (tmp_path / "crates").mkdir()
    shutil.copytree(ROOT / "setup", tmp_path / "setup")
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    for argv in (["--help"], [], ["setup", "--dry-run"], ["setup", "--help"], ["run", "--help"], ["run", "-h"]):
        done = subprocess.run(["./plimsoll", *argv], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout
    for argv, told in (
        (["setup", "--frob"], "--dry-run"),
        (["rnu", "x"], "there is no verb rnu; allowed: demo, "),
        (["run report"], "there is no verb run report"),
        (["r*"], "there is no verb r*"),
        (["--frob", "run"], "usage: ./plimsoll VERB"),
    ):
        refused = subprocess.run(["./plimsoll", *argv], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert refused.returncode == 2, refused.stderr
        assert told in refused.stderr
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before
