"""Where the limits of dirty pages hold depends on the version of control groups; the record says so."""

import pytest

from plimsoll.experiment import load
from plimsoll.run.servers.postgresql.dirty_limits import dirty_limits_caveat


@pytest.mark.parametrize(
    ("sysctl", "version", "said"),
    [
        (None, 1, "are the host's"),
        ("vm.swappiness=10", 1, "are the host's"),
        ("vm.dirty_bytes=0.2 x memory", 1, "apply to the whole host"),
        ("vm.dirty_ratio=20", 1, "apply to the whole host"),
        ("vm.dirty_background_bytes=4096", 2, "set vm.dirty_ratio"),
        ("vm.dirty_ratio=20", 2, None),
        (None, 2, None),
    ],
)
def test_the_caveat(sysctl: str | None, version: int, said: str | None) -> None:
    source = load("buffer-cache", quick=True, sets=[f"environment.sysctl.{sysctl}"] if sysctl else [])
    found = dirty_limits_caveat(source.experiment, version)
    assert found is None if said is None else said in (found or "")
