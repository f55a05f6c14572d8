"""Wrong experiment files and command lines: file, line and key are named, the exit code is 2, nothing starts."""

from pathlib import Path

import pytest
from laboratory import in_this_process

GOOD = """
format = 1
name = "mine"
title = "A question"

[environment]
memory = "256 MiB"

[target.settings]
shared_buffers = "64 MiB"

[workload]
name = "wpi_orders"
size = "1 x memory"

[measure]
seconds = 1

[[factors]]
path = "workload.clients"
levels = [1, 2]
"""

# What is replaced in the good file, by what, and what the message has to hold.
FILES = [
    ('name = "mine"', 'name = "My Experiment"', ["experiment.toml:3", "name"]),
    ('title = "A question"', 'title = ""', ["experiment.toml:4", "title"]),
    ("format = 1", "format = 2", ["experiment.toml:2", "format", "allowed: 1"]),
    ('memory = "256 MiB"', 'memory = "256 parsecs"', ["experiment.toml:7", "environment.memory", "768 MiB"]),
    ('memory = "256 MiB"', 'memroy = "256 MiB"', ["environment.memroy", "no such key", "memory"]),
    ('memory = "256 MiB"', "memory = -5", ["environment.memory", "negative"]),
    ('memory = "256 MiB"', 'swap = "lots"', ["environment.swap", "as found"]),
    ('memory = "256 MiB"', "swappiness = 201", ["environment.swappiness", "200"]),
    ('memory = "256 MiB"', 'target_cpus = "one"', ["environment.target_cpus", "0-3,6"]),
    ('memory = "256 MiB"', 'page_cache = "tepid"', ["environment.page_cache", "'cold' or 'warm'"]),
    ('memory = "256 MiB"', 'transparent_huge_pages = "on"', ["environment.transparent_huge_pages", "'always'"]),
    ('memory = "256 MiB"', 'sysctl = {"kernel.panic" = 1}', ["environment.sysctl", "begins with vm."]),
    ('shared_buffers = "64 MiB"', "port = 5433", ["target.settings", "port", "chosen by Plimsoll"]),
    ('shared_buffers = "64 MiB"', '"Shared-Buffers" = 1', ["target.settings", "lower-case"]),
    ('shared_buffers = "64 MiB"', 'work_mem = "1\\n2"', ["target.settings", "one line"]),
    ("[target.settings]", '[target]\nserver = "oracle"\n[target.settings]', ["target.server", "postgresql"]),
    ("[target.settings]", '[target]\nversion = "fifteen"\n[target.settings]', ["target.version"]),
    ('name = "wpi_orders"', 'name = "tpcc"', ["workload.name", "wpi_orders"]),
    ('size = "1 x memory"', "", ["workload.size", "missing"]),
    ('size = "1 x memory"', 'size = "1 x memory"\nclients = 0', ["workload.clients", "greater than or equal to 1"]),
    ('size = "1 x memory"', 'size = "1 x memory"\nkeys = "normal"', ["workload.keys", "uniform"]),
    ('size = "1 x memory"', 'size = "1 x memory"\nkeys = {zipf = -1}', ["workload.keys.zipf", "greater than 0"]),
    ('size = "1 x memory"', 'size = "1 x memory"\naccess = "guess"', ["workload.access", "'index' or 'scan'"]),
    ('size = "1 x memory"', 'size = "1 x memory"\nmix = {payment = 0}', ["workload", "at least one weight"]),
    ('size = "1 x memory"', 'size = "1 x memory"\nmix = {refund = 1}', ["workload.mix", "new_order"]),
    ("seconds = 1", "seconds = 0", ["measure.seconds", "greater than 0"]),
    ("seconds = 1", "seconds = 1\ntransactions = 100", ["measure", "one of seconds and transactions"]),
    ("seconds = 1", "", ["measure", "one of seconds and transactions"]),
    ("[measure]", "[warmup]\nseconds_min = 9\nseconds_max = 3\n[measure]", ["warmup", "seconds_min <= seconds_max"]),
    ("[measure]", "[design]\nblocks = 0\n[measure]", ["design.blocks", "greater than or equal to 1"]),
    ("[measure]", '[design]\nkind = "latin square"\n[measure]', ["design.kind", "full factorial"]),
    ('path = "workload.clients"', 'path = "clients"', ["factors.0.path", "environment.*"]),
    ('path = "workload.clients"', 'path = "target.dsn"', ["factors.0.path", "cannot be varied"]),
    ('path = "workload.clients"', 'path = "design.blocks"', ["factors.0.path", "cannot be varied"]),
    (
        "levels = [1, 2]",
        f"levels = {list(range(1, 101))}\n"
        + "".join(
            f'[[factors]]\npath = "{path}"\nlevels = {list(range(1, 101))}\n'
            for path in ("workload.seed", "warmup.seconds_max")
        ),
        ["factors", "at most 10000 trials"],
    ),
    ('path = "workload.clients"', 'path = "workload.klients"', ["workload.klients", "no such key", "clients"]),
    ("levels = [1, 2]", "levels = []", ["factors.0.levels"]),
    ("levels = [1, 2]", 'levels = [1, "many"]', ["workload.clients", "many"]),
    ("levels = [1, 2]", 'levels = [1, 2]\n[[factors]]\npath = "workload.clients"\nlevels = [3]', ["given twice"]),
    ("levels = [1, 2]", "", ["factors.0.levels", "missing"]),
    ('path = "workload.clients"', 'name = "clients"', ["experiment.toml:21", "factors.0.levels.0"]),
    (
        'path = "workload.clients"\nlevels = [1, 2]',
        'name = "load"\n[[factors.levels]]\nlabel = "some"\nset = {"workload.klients" = 1}',
        ["experiment.toml:23", "workload.klients", "no such key", "clients"],
    ),
    (
        'path = "workload.clients"\nlevels = [1, 2]',
        'name = "load"\n[[factors.levels]]\nlabel = "some"\nset = {"design.blocks" = 1}',
        ["experiment.toml:23", "factors.0.levels.0.set.design.blocks", "cannot be varied"],
    ),
    ("[measure]", '[schedule]\nkind = "burst"\n[measure]', ["experiment.toml:17", "schedule.kind", "poisson, steps"]),
    ("[measure]", '[schedule]\nkind = "poisson"\n[measure]', ["schedule.rate", "is missing"]),
    ("[measure]", '[schedule]\nkind = "constant"\nrate = -1\n[measure]', ["schedule.rate", "greater than 0"]),
    ("[measure]", "[schedule]\nthink_ms = 1\n[measure]", ["schedule.kind", "is missing", "closed, constant"]),
    ('name = "wpi_orders"\nsize = "1 x memory"', 'name = "bank"', ["workload.scale", "is missing"]),
    ('name = "wpi_orders"\nsize = "1 x memory"', 'name = "bank"\nscale = 0', ["experiment.toml:14", "workload.scale"]),
    (
        'name = "wpi_orders"\nsize = "1 x memory"',
        'name = "script"\nfiles = [{path = "none.sql"}]',
        ["experiment.toml:14", "workload.files.0.path", "none.sql cannot be read", "a file of text"],
    ),
    ("[measure]", "[measure", ["experiment.toml:16", "not TOML"]),
]

LINES = [
    (["check", "no-such"], ["no experiment of this name", "buffer-cache"]),
    (["check", "./no/such.toml"], ["no such file"]),
    (["run", "buffer-cache", "--set", "workload.clients"], ["--set workload.clients", "path=value"]),
    (["run", "buffer-cache", "--set", "workload.clients=none"], ["--set workload.clients=none", "workload.clients"]),
    (["run", "buffer-cache", "--set", "design.blocks=0"], ["--set design.blocks=0", "design.blocks"]),
    (["run", "buffer-cache", "--blocks", "0"], ["--blocks 0", "greater than or equal to 1"]),
    (["run", "buffer-cache", "--blocks", "three"], ["--blocks", "valid integer"]),
    (["run", "buffer-cache", "--out", "/etc"], ["--out /etc", "a new or empty folder"]),
    (["run", "buffer-cache", "--out", "/etc/hostname/x"], ["--out /etc/hostname/x", "a folder you may write"]),
    (["run", "buffer-cache", "--set", "factors=3"], ["factors", "list"]),
    (["run", "--resume", "/nonexistent"], ["/nonexistent", "not the folder of a run"]),
    (["run", "--resume", "/nonexistent", "--quick"], ["--resume", "without other options"]),
    (["run", "buffer-cache", "--frobnicate"], ["--frobnicate"]),
    (["report", "/nonexistent"], ["/nonexistent"]),
    (["compare", "/nonexistent"], ["RUN"]),
    (["cache", "remove"], ["cache remove", "--all"]),
    (["cache", "remove", "nothing"], ["no data set nothing"]),
    (["frobnicate"], ["frobnicate"]),
]


def refused(argv: list[str], tmp_path: Path, wanted: list[str]) -> None:
    state = tmp_path / "state"
    before = sorted(path.name for path in tmp_path.iterdir())
    done = in_this_process(argv, state, tmp_path)
    assert done.returncode == 2, done.stderr + done.stdout
    for part in wanted:
        assert part in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before, "something was started"


@pytest.mark.parametrize(("old", "new", "wanted"), FILES, ids=[f"{old}->{new}"[:60] for old, new, _ in FILES])
def test_wrong_file(old: str, new: str, wanted: list[str], tmp_path: Path) -> None:
    assert old in GOOD
    path = tmp_path / "experiment.toml"
    path.write_text(GOOD.replace(old, new, 1))
    refused(["run", str(path)], tmp_path, wanted)


@pytest.mark.parametrize(("argv", "wanted"), LINES, ids=[" ".join(argv) for argv, _ in LINES])
def test_wrong_command_line(argv: list[str], wanted: list[str], tmp_path: Path) -> None:
    refused(argv, tmp_path, wanted)


def test_the_good_file_is_good(tmp_path: Path) -> None:
    path = tmp_path / "experiment.toml"
    path.write_text(GOOD)
    done = in_this_process(["check", str(path)], tmp_path / "state", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 treatments" in done.stdout
