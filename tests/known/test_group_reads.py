"""What a group's processes read from a device: exactly theirs, by the agent, while a neighbour reads the same disk."""

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from plimsoll.environment import GroupKnob, Journal, Limits
from plimsoll.run.agent import Agent

MIB = 1 << 20
OWN, NEIGHBOURS = 13 * MIB, 31 * MIB


def _file(place: Path, size: int) -> Path:
    with place.open("wb") as out:
        out.write(os.urandom(size))
        os.fsync(out.fileno())
    return place


@pytest.mark.parametrize("ends", [False, True], ids=["at work", "ended and heard of"])
def test_a_neighbours_reads_are_not_the_groups(needs, state, run_id, ends: bool) -> None:
    needs("root", "cgroup memory")
    own, other = _file(state.work / "own", OWN), _file(state.work / "other", NEIGHBOURS)
    with Journal.create(state, run_id) as journal:
        group = GroupKnob(run_id).make(Limits(256 * MIB, 0), journal)
        # The shell stays; dd is its child, or is the shell itself once it has become the program.
        read = f"dd if={own} of=/dev/null bs=1M iflag=direct 2>/dev/null"
        inside = f"read go; {read}; echo done; read end" if ends else f"read go; ({read}; echo done; read end)"
        process = group.exec_in(["sh", "-c", inside], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None and process.stdout is not None
        request = {"out": str(state.work), "interval_ms": 100, "group": group.for_agent() | {"reads": True}}
        agent = Agent("watch", request | {"probes": {}})
        lines = agent.lines()
        assert next(lines)["event"] == "watching"
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"done\n"
        subprocess.run(
            ["dd", f"if={other}", "of=/dev/null", "bs=1M", "iflag=direct"], check=True, stderr=subprocess.DEVNULL
        )
        agent.stop()
        list(lines)
        agent.finish()
        process.stdin.close()
        process.wait()
        told = np.load(state.work / "group.npy")["io_read_bytes"]
        # Beside the file itself, what the program is made of may have to be read.
        assert OWN <= told[-1] - told[0] < OWN + 8 * MIB
