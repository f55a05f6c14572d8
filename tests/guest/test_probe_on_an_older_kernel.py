"""The page-cache probe on Debian's 6.1 kernel, emulated: it passes its self-test and counts a known stimulus exactly.

6.1 is the oldest kernel that Plimsoll promises, and has no tracepoint that tells which pages a read asks for.
"""

import json
import random
from pathlib import Path

import debian_kernel
import pytest

import guest

AGENT = Path(__file__).resolve().parents[2] / "target/release/plimsoll-agent"
SECONDS_MAX = 240
PAGE = 4096
SEQUENTIAL, WARM = 1009, 499  # pages of the two files: primes
WRITTEN = 101
SINGLE = [5 + 41 * number for number in range(13)]  # pages read alone, a prime number of them, far apart
# The agent has classes for a database's files; here each stands for one part of the stimulus.
SEQUENTIAL_CLASS, WARM_CLASS, SINGLE_CLASS, WRITTEN_CLASS = "data", "wal", "global", "other"
# File system, kind of programs asked for, kind to be had. XFS adds several pages at once, ext4 on 6.1 one at a time.
CASES = [("ext4", "auto", "tp_btf"), ("xfs", "auto", "tp_btf"), ("ext4", "tracepoint", "tracepoint")]


def _request(programs: str) -> str:
    classes = {
        "/mnt/data": SEQUENTIAL_CLASS,
        "/mnt/data/warm": WARM_CLASS,
        "/mnt/data/single": SINGLE_CLASS,
        "/mnt/data/written": WRITTEN_CLASS,
    }
    trees = [{"path": path, "class": name} for path, name in classes.items()]
    probe = {"trees": trees, "scratch": "/mnt", "requests": "auto", "programs": programs}
    others = {name: {"path": "/mnt"} for name in ("buffer_heads", "throttle")}
    return json.dumps({"out": "/out/series", "interval_ms": 1000, "probes": {"page_cache": probe, **others}})


SCRIPT = f"""
read_all() {{ dd if=/mnt/data/$1 of=/dev/null bs={PAGE} || exit 3; }}
cat /proc/version >/out/version
read_all warm/file
mkdir /out/series || exit 4
{guest.BEGIN_WATCHING}
cut -d' ' -f1 /proc/uptime >/out/watching
read_all sequential
read_all sequential
read_all warm/file
for page in {" ".join(map(str, SINGLE))}; do
    dd if=/mnt/data/single/file of=/dev/null bs={PAGE} skip=$page count=1 || exit 6
done
dd if=/dev/zero of=/mnt/data/written/file bs={PAGE} count={WRITTEN} && rm /mnt/data/written/file || exit 7
echo 3 >/proc/sys/vm/drop_caches
{guest.END_WATCHING}
"""


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def probes(request, needs):
    """What the agent said in a guest with this file system."""
    file_system, programs, had = request.param
    needs("qemu", "Debian 6.1 kernel package", f"mkfs.{file_system}")
    content = random.Random(6).randbytes
    disk = {
        "request": f"{_request(programs)}\n".encode(),
        "data/sequential": content(SEQUENTIAL * PAGE),
        "data/warm/file": content(WARM * PAGE),
        "data/single/file": content((SINGLE[-1] + 7) * PAGE),
        "data/written/nothing": b"",
    }
    outcome = guest.run(debian_kernel.kernel(), SCRIPT, [AGENT], file_system, disk, SECONDS_MAX)
    told = f"after {outcome.seconds:.0f} s, exit {outcome.exit}\n{outcome.text('errors')}\n{outcome.console[-4000:]}"
    assert outcome.exit == 0, told
    assert outcome.text("version").startswith("Linux version 6.1."), outcome.text("version")
    last = json.loads(outcome.text("lines").splitlines()[-1])
    assert last["event"] == "watched", told
    found = last["probes"]
    print(f"{outcome.text('version')}watching at second {outcome.text('watching')}{json.dumps(found)}\n{told}")
    for probe in found.values():
        assert probe["status"] == "on", probe["reason"]
    assert found["page_cache"]["programs"] == had
    return found


@pytest.fixture
def watched(probes):
    return probes["page_cache"]


@pytest.mark.long
def test_the_self_test_passes(watched):
    assert watched["self_test"]["passed"] is True, watched["self_test"]
    assert watched["requests"] == "system_calls"


@pytest.mark.long
def test_a_file_read_twice_misses_every_page_once(watched):
    data = watched["totals"][SEQUENTIAL_CLASS]
    assert data["read_calls"] == data["read_pages"] == 2 * SEQUENTIAL
    assert data["read_missed_pages"] + data["readahead_pages"] == data["added_pages"] == SEQUENTIAL
    assert data["ahead_used_pages"] == data["readahead_pages"] > 0
    assert data["dropped_pages"] == SEQUENTIAL


@pytest.mark.long
def test_a_file_read_before_misses_nothing(watched):
    warm = watched["totals"][WARM_CLASS]
    assert warm["read_calls"] == warm["read_pages"] == WARM
    assert warm["read_missed_pages"] == warm["readahead_pages"] == warm["added_pages"] == 0
    assert warm["dropped_pages"] == WARM


@pytest.mark.long
def test_single_pages_far_apart_each_miss_and_bring_no_other(watched):
    single = watched["totals"][SINGLE_CLASS]
    assert single["read_calls"] == single["read_pages"] == len(SINGLE)
    assert single["read_missed_pages"] == single["added_pages"] == single["dropped_pages"] == len(SINGLE)
    assert single["readahead_pages"] == 0


@pytest.mark.long
def test_a_file_written_and_deleted_adds_and_drops_its_pages(watched):
    written = watched["totals"][WRITTEN_CLASS]
    assert written["write_pages"] == written["added_pages"] == written["dropped_pages"] == WRITTEN
    assert written["read_calls"] == 0


@pytest.mark.long
def test_nothing_is_lost_and_the_additions_are_all_accounted_for(watched):
    assert not any(watched["lost"].values()), watched["lost"]
    assert all(of_class["holds"] for of_class in watched["identity"].values()), watched["identity"]
