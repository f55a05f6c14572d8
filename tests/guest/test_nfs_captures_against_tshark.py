"""Captures that a kernel's own client and server of NFS make, of every version, by the agent and by tshark.

dumpcap takes them in a guest of user-mode-linux over its loopback, with segments as short as an Ethernet's, so that
records are cut; of some the packets overtake each other, or are lost on their way and sent again by TCP.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import user_mode_linux

from captures_by_tshark import by_agent, by_tshark, differing, given_up

pytestmark = pytest.mark.long
INSIDE = Path(__file__).with_name("inside") / "by_nfs/test_nfs_captured.py"
NAMES = ("nfs3", "nfs40", "nfs41", "nfs42", "nfs3-late", "nfs42-late", "nfs41-sent-again")
SECONDS_MAX = 1200  # of a hang
# Of calls whose packets overtook each other tshark may give up some (tests/known); of 650 a capture it did none.
GIVEN_UP_MAX = 0.01
# What `work` of the test inside asks for at the least, of every version.
OPERATIONS = {"READ", "WRITE", "COMMIT", "SETATTR", "LOOKUP", "REMOVE", "RENAME", "LINK", "GETATTR"}


@pytest.fixture(scope="module")
def taken(needs: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the captures."""
    needs("user-mode-linux", "modprobe", "tc")
    for tool in ("tshark", "dumpcap"):
        if shutil.which(tool) is None:
            pytest.fail(f"{tool} is not installed; tshark of setup/packages-test-long.txt has it")
    folder = tmp_path_factory.mktemp("taken")
    ended = user_mode_linux.run([str(INSIDE.relative_to(user_mode_linux.ROOT))], SECONDS_MAX, folder)
    for name, one in ended.results.items():
        print(f"{name}: {one.outcome}, {one.seconds} s inside\n{one.text}")
    assert ended.results and all(one.outcome == "passed" for one in ended.results.values()), ended.transcript[-4000:]
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_both_have_every_call(name: str, taken: Path, tmp_path: Path) -> None:
    capture = taken / f"{name}.pcapng"
    ours, totals = by_agent(capture, tmp_path)
    is_damaged = "-" in name
    theirs, again = by_tshark(capture, reorders=is_damaged)
    counts = Counter(one.operation for one in ours.values())
    gone = given_up(ours, theirs)
    print(f"{name}: {len(ours)} calls {dict(counts)}; {totals}; tshark gives up {gone}")
    assert set(counts) >= OPERATIONS and len(ours) > 300
    assert all(one.took_ns is not None for one in ours.values()), "the server answered every call"
    assert totals["lost_bytes"] == totals["replies_without_call"] == totals["partial"] == 0
    # Packets that came early are packets that others overtook, or that were lost.
    assert (totals["segments_early"] > 0) == is_damaged
    assert gone <= (GIVEN_UP_MAX * len(ours) if is_damaged else 0)
    differ = differing(ours, theirs)
    assert not differ, (len(differ), list(differ.items())[:5])
    if not is_damaged:
        assert totals["retransmissions"] == again == 0
