"""Which failed tests are run once more, by themselves: those named here, and nobody else.

The fact that constrains it: running failures again hides faults as well as noise. Whoever stands here says what it
is that the machine may do to it, and why the test cannot judge a statistic instead. At most two may.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Test, as pytest names it without its parameters, and what others on the machine may do to it.
AGAIN: dict[str, str] = {}
AT_MOST = 2


def failed_in(caches: Sequence[Path]) -> list[str]:
    """Names of what failed, as each process of pytest left them in its cache folder."""
    left = [cache / "v/cache/lastfailed" for cache in caches]
    return sorted(name for file in left if file.exists() for name in json.loads(file.read_text()))


def runs_again(failed: Sequence[str]) -> bool:
    """Whether everything that failed is named above."""
    return bool(failed) and all(name.partition("[")[0] in AGAIN for name in failed)


def judge(caches: Sequence[Path], others_failed: bool) -> int:
    """The exit code of the suite: 0 where nothing failed, or nothing that fails again by itself.

    `caches`: of the processes of pytest that did not end well; `others_failed`: a program of Rust did not.
    """
    if not caches and not others_failed:
        return 0
    failed = failed_in(caches)
    print("\nFailed:\n" + "\n".join(f"  {name}" for name in failed), flush=True)
    if others_failed or not runs_again(failed):
        return 1
    print(f"\n== Once more, by themselves: {len(failed)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "pytest", "--matrix", "full", *failed], check=False)
    if done.returncode == 0:
        print("Passed by themselves. What is here often has a fault.", flush=True)
    return 1 if done.returncode else 0
