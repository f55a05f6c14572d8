"""The experiment of two kernels that tests of runs which boot kernels plan and carry out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fake_boot import NEW, OLD

from plimsoll.experiment import load

Json = dict[str, Any]
FILE = f"""format = 1
name = "mine"
title = "A question"

[environment]
kernels.old = {{ release = "{OLD}" }}
kernels.new = {{ release = "{NEW}" }}
boot = {{ by = "qemu", reboots = true }}
guest = {{ memory = "768 MiB" }}

[target]
server = "files"

[workload]
name = "files"
count = 1
file_size = "4 KiB"
mix = [{{ operation = "append", bytes = 512 }}]

[warmup]
until = "none"

[measure]
seconds = 1

[design]
blocks = 2
seed = 7
repeat_share_max = 0

[[factors]]
path = "environment.kernel"
levels = ["old", "new"]
"""


def source_in(folder: Path, *sets: str) -> Any:
    (folder / "experiment.toml").write_text(FILE)
    return load(str(folder / "experiment.toml"), sets=[*sets])


def print_of(release: str) -> Json:
    return {
        "format": 1,
        "machine": {"cpu_model": "x", "cpu_governor": f"of {release}", "memory_kib": 1000},
        "kernel": {"release": release, "boot_parameters": "quiet"},
        "versions": {"glibc": "2.36"},
        "vm": {"swappiness": 60},
    }
