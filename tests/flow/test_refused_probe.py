"""A probe in the kernel that cannot be trusted is refused: its figures are absent, with why, and the run goes on."""

from __future__ import annotations

import json

import pytest
from laboratory import Laboratory

from plimsoll.record import open_run

NEEDS = ("root", "cgroup memory", "swap", "postgresql", "server user", "bpf")


@pytest.mark.parametrize(("fault", "said"), [("attach", "cannot be attached"), ("folder map", "the self-test failed")])
def test_a_broken_probe_is_refused_and_the_run_goes_on(
    laboratory: Laboratory, monkeypatch: pytest.MonkeyPatch, fault: str, said: str
) -> None:
    monkeypatch.setenv("PLIMSOLL_PROBE_FAULT", fault)
    out = laboratory.state / fault.replace(" ", "-")
    laboratory.call("run", str(laboratory.experiment), "--blocks", "1", "--out", str(out))
    run = open_run(out)
    assert [trial.status for trial in run.trials] == ["finished"] * 2
    for trial in run.trials:
        assert trial.measure.summary is not None
        probe = trial.measure.summary["probes"]["page_cache"]
        assert probe["status"] == "refused" and said in probe["reason"], probe
        assert "totals" not in probe
        assert trial.measure.series("page_cache") is None
    verdict = json.loads((out / "verdict.json").read_text())
    assert all(trial["metrics"]["page_cache_hit_ratio"] is None for trial in verdict["trials"])
    assert said in (out / "report/index.html").read_text()
    assert laboratory.left_behind() == []
