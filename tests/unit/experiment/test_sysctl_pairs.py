"""Both halves of a kernel setting in one treatment are refused: the one that was written last is all there is."""

from pathlib import Path

import pytest

from plimsoll.experiment import ExperimentError, load
from plimsoll.experiment.environment import PAIRS

FILE = """format = 1
name = "mine"
title = "A question"
[environment.sysctl]
"{base}" = {value}
[workload]
name = "bank"
scale = 1
[measure]
seconds = 1
[[factors]]
path = "environment.sysctl.{varied}"
levels = {levels}
"""


@pytest.mark.parametrize("pair", [*PAIRS, *(pair[::-1] for pair in PAIRS)])
def test_one_half_in_all_treatments_and_the_other_varied_is_refused_by_name(
    tmp_path: Path, pair: tuple[str, str]
) -> None:
    """In windows it was told as "changed by another program": each half cleared what the other had set."""
    file = tmp_path / "experiment.toml"
    file.write_text(FILE.format(base=pair[0], value=20, varied=pair[1], levels=[65536, 131072]))
    with pytest.raises(ExperimentError, match="are one setting in two units") as refused:
        load(str(file))
    said = str(refused.value)
    assert pair[0] in said and pair[1] in said and "allowed: one of the two" in said and str(file) in said


def test_halves_of_different_settings_go_together(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(FILE.format(base="vm.dirty_ratio", value=20, varied="vm.dirty_background_ratio", levels=[5, 10]))
    assert len(load(str(file)).treatments) == 2


def test_each_treatment_may_have_another_half(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    named = """[[factors]]
name = "writeback"
[[factors.levels]]
label = "bytes"
set = { "environment.sysctl.vm.dirty_bytes" = 65536 }
[[factors.levels]]
label = "per cent"
set = { "environment.sysctl.vm.dirty_ratio" = 20 }
"""
    file.write_text(
        FILE.partition("[environment")[0] + "[workload]" + FILE.partition("[workload]")[2].partition("[[")[0] + named
    )
    assert len(load(str(file)).treatments) == 2
