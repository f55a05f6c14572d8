"""Runs again, once and by themselves, the tests that failed and that watch a machine at work; says which they were.

The fact that constrains it: a neighbour's second on a shared machine fails a test of a real server now and then, but
running failures again hides faults as well as noise. So few are (one in a thousand of all tests: a machine half
as fast with others at work was seen to fail three), a unit test never is, and each is named at the end:
who is named twice has a fault, and is mended or judges a statistic instead of a threshold. A test that follows another
by its own word (tests/followed.py) fails with that one, and is not counted then.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import followed

AT_MOST = 5
WATCHING = ("tests/known/", "tests/flow/", "tests/guest/")
CARGO = ("cargo", "test", "--release", "--locked", "--target-dir", "target")


def failed_in(caches: Sequence[Path]) -> list[str]:
    """Names of what failed, as each process of pytest left them in its cache folder."""
    left = [cache / "v/cache/lastfailed" for cache in caches]
    return sorted(name for file in left if file.exists() for name in json.loads(file.read_text()))


def runs_again(failed: Sequence[str]) -> bool:
    """Whether these failures, by pytest's names of tests, may be a neighbour's."""
    return all(name.startswith(WATCHING) and "::" in name for name in failed)


def programs_failed(said: str) -> list[list[str]]:
    """The options that name each program with failed tests, of what `cargo test --no-fail-fast` said."""
    listed = re.findall(r"^error: \d+ targets? failed:\n((?:    `.*`\n?)+)", said, re.MULTILINE)
    return [line.strip(" `").split() for block in listed for line in block.splitlines()]


def judge(caches: Sequence[Path], rust_said: str | None, *given: str) -> int:
    """The exit code of the suite: 0 where nothing failed, or nothing that fails again by itself.

    `caches`: of the processes of pytest that did not end well; `rust_said`: what cargo said, None where all passed;
    `given`: what the programs of Rust were given.
    """
    if not caches and rust_said is None:
        return 0
    failed, programs = failed_in(caches), programs_failed(rust_said or "")
    follows = {after: before for cache in caches for after, before in followed.kept_in(cache).items()}
    names = [*(" ".join(one) for one in programs), *failed]
    count = len(programs) + len(followed.causes(failed, follows))
    print("\nFailed:\n" + "\n".join(f"  {name}" for name in names), flush=True)
    explained = (not caches or failed) and (rust_said is None or programs)
    if not explained or count > AT_MOST or not runs_again(failed) or any("--test" not in one for one in programs):
        return 1
    print(f"\n== Once more, by themselves: {len(names)} that watch a machine", flush=True)
    commands: list[list[str]] = [[*CARGO, *one, "--", *given] for one in programs]
    if failed:
        commands.append([sys.executable, "-m", "pytest", "--matrix", "full", *followed.in_order(failed, follows)])
    if any(subprocess.run(command, check=False).returncode for command in commands):
        return 1
    print("\nFailed in the whole run and passed by themselves; what is here often has a fault:")
    print("\n".join(f"  {name}" for name in names), flush=True)
    return 0
