"""Runs again, once and by themselves, the tests that failed and that watch a machine at work; says which they were.

The fact that constrains it: a neighbour's second on a shared machine fails a test of a real server now and then, and
most runs of hundreds of such tests have one. A unit test has no such excuse, nor have many failures at once.

Exit codes: 0 each of them passed this time; 1 otherwise, or a failure that is not run again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

AT_MOST = 3
WATCHING = ("tests/known/", "tests/flow/", "tests/guest/")
LEFT_BY_PYTEST = Path(".pytest_cache/v/cache/lastfailed")


def runs_again(failed: list[str]) -> bool:
    """Whether these failures, by pytest's names of tests, may be a neighbour's."""
    return 0 < len(failed) <= AT_MOST and all(name.startswith(WATCHING) and "::" in name for name in failed)


def main() -> int:
    failed = sorted(json.loads(LEFT_BY_PYTEST.read_text())) if LEFT_BY_PYTEST.exists() else []
    if not runs_again(failed):
        return 1
    print(f"\n== Once more, by themselves: {len(failed)} of the tests that watch a machine", flush=True)
    if subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode:
        return 1
    print("\nFailed in the whole run and passed by themselves; a test that is here often has a fault:")
    print("\n".join(f"  {name}" for name in failed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
