"""The breakdown's probe on Debian's 6.1 kernel, emulated: it loads, passes its self-test, and leaves whole tables.

6.1 has no tracepoint that tells of what a socket sends: answers are seen at the end of the system call.
"""

import json
from pathlib import Path

import debian_kernel
import pytest

import guest

AGENT = Path(__file__).resolve().parents[2] / "target/release/plimsoll-agent"
SECONDS_MAX = 240
REQUEST = {"out": "/out", "interval_ms": 1000, "probes": {"breakdown": {"data_directory": "/mnt/cluster"}}}

# The shell stands for a server: a process with a number, a version and, while it sleeps, a child.
SCRIPT = f"""
cat /proc/version >/out/version
echo $$ >/mnt/cluster/postmaster.pid
{guest.BEGIN_WATCHING}
sleep 1
{guest.END_WATCHING}
"""


@pytest.fixture(scope="module")
def watched(needs):
    """What the agent said of the probe in a guest."""
    needs("qemu", "Debian 6.1 kernel package", "mkfs.ext4")
    disk = {"request": f"{json.dumps(REQUEST)}\n".encode(), "cluster/PG_VERSION": b"15\n"}
    outcome = guest.run(debian_kernel.kernel(), SCRIPT, [AGENT], "ext4", disk, SECONDS_MAX)
    told = f"after {outcome.seconds:.0f} s, exit {outcome.exit}\n{outcome.text('errors')}\n{outcome.console[-4000:]}"
    assert outcome.exit == 0, told
    assert outcome.text("version").startswith("Linux version 6.1."), outcome.text("version")
    last = json.loads(outcome.text("lines").splitlines()[-1])
    assert last["event"] == "watched", told
    print(f"{outcome.text('version')}{json.dumps(last)}\n{told}")
    found = last["probes"]["breakdown"]
    assert found["status"] == "on", found["reason"]
    assert {"breakdown.npy", "breakdown_waits.npy"} <= set(outcome.files)
    return found


@pytest.mark.long
def test_the_self_test_passes(watched):
    assert watched["status"] == "on", watched
    assert watched["checks"] and all(check["ok"] for check in watched["checks"]), watched["checks"]
    assert watched["boundaries"]["end"] == "sys_exit"


@pytest.mark.long
def test_nothing_is_lost(watched):
    assert not any(watched["lost"].values()), watched["lost"]
