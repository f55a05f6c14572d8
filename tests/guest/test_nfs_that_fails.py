"""A run on a place by NFS whose server fails under it: tests of inside/by_nfs, each in a guest of its own, since one
that hangs must not take the others with it.

PLIMSOLL_KILLS=100 asks for a hundred kills at random moments instead of five (22 s each on a busy machine),
PLIMSOLL_SEED for others.
"""

import ast
import os
from pathlib import Path

import pytest
import user_mode_linux

pytestmark = pytest.mark.long
FILE = Path(__file__).with_name("inside") / "by_nfs/test_nfs_fails.py"
NEEDS = ("user-mode-linux", "server user", "modprobe", "tc")
SECONDS_MAX = 3000  # of a hang
ASKED = [f"{name}={os.environ[name]}" for name in ("PLIMSOLL_KILLS", "PLIMSOLL_SEED") if name in os.environ]
SECONDS_MAX_OF_A_KILL = 120
KILLS = int(os.environ.get("PLIMSOLL_KILLS", "5"))


def _tests_inside() -> list[str]:
    return [
        node.name
        for node in ast.parse(FILE.read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


@pytest.mark.parametrize("inside", _tests_inside())
def test_inside(needs, inside, tmp_path):
    needs(*NEEDS)
    name = f"{FILE.relative_to(user_mode_linux.ROOT)}::{inside}"
    seconds_max = SECONDS_MAX + (KILLS * SECONDS_MAX_OF_A_KILL if "kills" in inside else 0)
    ended = user_mode_linux.run([name], seconds_max, tmp_path / "kept", words=ASKED)
    (tmp_path / "transcript").write_text(ended.transcript)
    told = f"{tmp_path / 'transcript'}:\n{ended.transcript[-4000:]}"
    results = {found: one for found, one in ended.results.items() if found.partition("[")[0] == name}
    for found, one in results.items():
        print(f"{found}: {one.seconds} s inside\n{one.text}")
    assert results, f"did not end within {ended.seconds:.0f} s; {told}"
    for found, one in results.items():
        assert one.outcome == "passed", f"{found}: {one.text}\n{told}"
