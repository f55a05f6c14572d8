"""Kernel against kernel in guests of QEMU, from the plan to the page: two of Debian's kernels, two boots each.

Without KVM every instruction is emulated, and the whole takes minutes; so it is small, and long.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import debian_kernels
import pytest

from plimsoll.environment import StateDir, undo
from plimsoll.environment.guest import qemu
from plimsoll.record import open_run

ROOT = Path(__file__).resolve().parents[2]
NEEDS = ("root", "guests of QEMU", "server user", "Debian 6.1 and 6.12 kernel packages")
SECONDS_MAX = 3 * 3600
FILE = """format = 1
name = "two-kernels"
title = "Do two kernels append alike?"

[environment]
kernels.old = {{ release = "{old}", folder = "{folder}" }}
kernels.new = {{ release = "{new}", folder = "{folder}", parameters = "transparent_hugepage=never" }}
boot = {{ by = "qemu", cpus = 1 }}
guest = {{ memory = "1 GiB" }}

[target]
server = "files"

[workload]
name = "files"
count = 2
file_size = "4 KiB"

[[workload.mix]]
operation = "append"
bytes = 512
sync = "fsync"

[probes]
page_cache = false
breakdown = false
double_caching = false
sync = false

[warmup]
until = "none"

[measure]
seconds = 2

[design]
blocks = 2
seed = 3
repeat_share_max = 0

[[factors]]
path = "environment.kernel"
levels = ["old", "new"]
"""


@pytest.fixture
def place(needs: Callable[..., None]) -> Iterator[Path]:
    needs(*NEEDS)
    # Not in pytest's own folder: the server's user could not reach that.
    with tempfile.TemporaryDirectory(prefix="plimsoll-test-", dir="/var/tmp") as name:
        found = Path(name)
        found.chmod(0o755)
        yield found
        undo(StateDir(found / "state"), force=True)


@pytest.mark.long
def test_two_kernels_two_boots_each_to_the_page(place: Path) -> None:
    folder, releases = debian_kernels.kernels()
    (place / "experiment.toml").write_text(FILE.format(folder=folder, **releases))
    StateDir(place / "state").prepare()
    env = {**os.environ, "PLIMSOLL_STATE": str(place / "state"), "PYTHONPATH": str(ROOT / "python")}
    argv = [sys.executable, "-P", "-m", "plimsoll", "run", "experiment.toml", "--out", "out"]
    done = subprocess.run(argv, env=env, cwd=place, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    said = done.stdout + done.stderr
    console = place / "out/guest-console.txt"
    assert done.returncode == 0, said + (console.read_text()[-4000:] if console.exists() else "")

    run = open_run(place / "out")
    assert [trial.status for trial in run.trials] == ["finished"] * 4
    wanted = {trial["number"]: trial["levels"]["environment.kernel"] for trial in run.plan["trials"]}
    assert sorted(wanted.values()) == ["new", "new", "old", "old"]
    boots = set()
    for number, name in wanted.items():
        own = json.loads((place / f"out/trials/{number:04d}/fingerprint.json").read_text())
        assert own["kernel"]["release"] == releases[name], "each trial was on its kernel"
        assert ("transparent_hugepage=never" in own["kernel"]["boot_parameters"]) == (name == "new")
        boots.add(number)
    whole = json.loads((place / "out/fingerprint.json").read_text())
    assert {name: one["kernel"]["release"] for name, one in whole["kernels"].items()} == releases
    assert len(run.data["guest"]["boots"]) == 4

    verdict = json.loads((place / "out/verdict.json").read_text())
    (comparison,) = verdict["comparisons"]
    assert comparison["factor"] == "environment.kernel"
    accelerator = qemu.KVM if qemu.has_kvm() else qemu.TCG
    assert verdict["guest"]["accelerator"] == accelerator
    worth = "times are those of a guest" if accelerator == qemu.KVM else "emulated: mechanism only"
    assert worth in said
    assert worth in (place / "out/report/index.html").read_text()
    assert not any((any((place / "state/work").iterdir()), any((place / "state/journal").iterdir())))
