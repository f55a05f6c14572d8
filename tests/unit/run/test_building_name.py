"""What a data set is called while it is built."""

from __future__ import annotations

from pathlib import Path

from plimsoll.environment import StateDir
from plimsoll.run.planning.obstacles import SOCKET
from plimsoll.run.servers.datasets import building_name


def test_two_state_folders_build_the_same_data_under_different_names(tmp_path: Path) -> None:
    """Groups are the whole machine's: the second run was told that a group exists already, and to undo the first."""
    key = "bank-1-0123456789ab"
    names = [building_name(StateDir(tmp_path / state), key) for state in ("one", "two", "one")]
    assert names[0] == names[2] != names[1]
    assert all(len(name) == len(SOCKET.partition("/")[0]) for name in names)
    assert building_name(StateDir(tmp_path / "one"), "bank-1-ba9876543210") != names[0]
