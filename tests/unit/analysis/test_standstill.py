"""A closed loop in which a server did nothing: its trial ranks last in its block, whatever it does in the others."""

import json
import shutil
from pathlib import Path

import numpy as np

from plimsoll.analysis import analyse
from plimsoll.analysis.admission import STOOD_STILL, admit
from plimsoll.analysis.estimates import estimates
from plimsoll.analysis.trial.standstill import RATE, most_per_second
from plimsoll.record import open_run
from plimsoll.report import write_report
from plimsoll.words.terminal import terminal_lines

SYNTHETIC = Path(__file__).parents[2] / "golden" / "synthetic"
LOST = 3


def _stops(folder: Path, number: int) -> None:
    """Nothing of a trial's measured segment was answered."""
    measure = folder / "trials" / f"{number:04d}" / "measure"
    summary = json.loads((measure / "summary.json").read_text())
    planned = summary["identity"]["planned"]
    summary["identity"] |= {"done": 0, "lost": planned}
    summary["by_kind"] = {kind: {**one, "done": 0, "lost": one["done"]} for kind, one in summary["by_kind"].items()}
    (measure / "summary.json").write_text(json.dumps(summary))
    rows = np.load(measure / "transactions.npy")
    rows["outcome"] = LOST
    np.save(measure / "transactions.npy", rows)
    np.save(measure / "latency.npy", np.load(measure / "latency.npy")[:0])


def test_the_best_level_is_not_the_best_once_it_stood_still(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(SYNTHETIC, folder)
    before = analyse(open_run(folder))["comparisons"][0]
    best = next(level for level in before["levels"] if level["level"] == before["reference"])
    number = best["points"][0]["trial"]
    for trial in open_run(folder).trials:  # a duplicate would stand for its original only where that is left out
        if trial.treatment == best["treatment"] and trial.block == best["points"][0]["block"]:
            _stops(folder, trial.number)
    trial = next(one for one in open_run(folder).trials if one.number == number)
    most = most_per_second(trial)
    assert most is not None and 0 < most < 1
    values = estimates(trial)
    assert values[RATE] is None
    admission = admit(trial, values)
    assert admission.reasons == [] and any(text.startswith(STOOD_STILL) for text in admission.caveats)
    verdict = analyse(open_run(folder))
    after = verdict["comparisons"][0]
    mine = next(level for level in after["levels"] if level["level"] == best["level"])
    assert mine["unbounded"] == {"blocks": 1, "of": mine["blocks"], "stood_still": True}
    assert mine["blocks"] == best["blocks"] and after["reference"] != best["level"]
    assert not [pair for pair in after["pairs"] if pair["second"] == best["level"] and pair["verdict"] == "better"]
    assert number not in [row["trial"] for row in verdict["exclusions"]]
    assert f"{best['level']}: stood still in 1 of" in " ".join(" ".join(terminal_lines(verdict, "page")).split())
    (folder / "verdict.json").write_text(json.dumps(verdict))
    assert write_report(folder).exists()


def test_a_trial_that_does_something_has_its_rate() -> None:
    assert [most_per_second(trial) for trial in open_run(SYNTHETIC).trials if trial.status == "finished"].count(
        None
    ) > 5
