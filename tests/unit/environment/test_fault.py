"""What the system refuses, in words."""

from __future__ import annotations

import errno

import pytest

from plimsoll.environment.fault import refused_by_the_system


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_refusal_names_the_file_and_the_next_action(number: int) -> None:
    fault = refused_by_the_system(OSError(number, "no", "/somewhere/trial.json"))
    assert fault is not None
    assert fault.what == "/somewhere/trial.json: no"
    assert "disk space, permissions" in fault.remedy and "--resume" in fault.remedy


@pytest.mark.parametrize("error", [OSError("of ours"), BrokenPipeError(errno.EPIPE, "gone")])
def test_what_is_no_refusal_is_a_bug(error: OSError) -> None:
    assert refused_by_the_system(error) is None
