"""A named factor varies several settings together; its faults name file, line and key."""

from pathlib import Path

import pytest

from plimsoll.experiment import ExperimentError, Source, load, plan_trials
from plimsoll.experiment.reading.source import reload
from plimsoll.run.planning.documents import plan_document

FILE = """format = 1
name = "mine"
title = "A question"

[environment]
memory = "256 MiB"

[environment.sysctl]
"vm.dirty_expire_centisecs" = 3000

[workload]
name = "wpi_orders"
size = "64 MiB"

[measure]
transactions = 100

[[factors]]
name = "mix"
compare = false

[[factors.levels]]
label = "reads"
[factors.levels.set]
"workload.mix" = { stock = 1 }

[[factors.levels]]
label = "writes"
[factors.levels.set]
"workload.mix" = { payment = 1 }

[[factors]]
name = "writeback"

[[factors.levels]]
label = "early"
[factors.levels.set]
"environment.sysctl.vm.dirty_background_bytes" = "0.025 x memory"
"environment.sysctl.vm.dirty_bytes" = "0.05 x memory"

[[factors.levels]]
label = "late"
[factors.levels.set]
"environment.sysctl.vm.dirty_background_bytes" = "0.5 x memory"
"environment.sysctl.vm.dirty_bytes" = "0.75 x memory"

[quick]
"mix" = ["writes"]
"""


def read(folder: Path, text: str = FILE, **options: object) -> Source:
    path = folder / "experiment.toml"
    path.write_text(text)
    return load(str(path), **options)  # type: ignore[arg-type]


def fault(folder: Path, text: str = FILE, **options: object) -> str:
    with pytest.raises(ExperimentError) as caught:
        read(folder, text, **options)
    return str(caught.value)


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), start=1) if part in line)


def test_a_level_sets_several_things_and_leaves_the_rest(tmp_path: Path) -> None:
    source = read(tmp_path)
    assert [treatment.label for treatment in source.treatments] == [
        "mix reads, writeback early",
        "mix reads, writeback late",
        "mix writes, writeback early",
        "mix writes, writeback late",
    ]
    last = source.treatments[-1].settings
    assert last.workload.mix == {"payment": 1}
    assert last.environment.sysctl == {
        "vm.dirty_expire_centisecs": 3000,
        "vm.dirty_background_bytes": "0.5 x memory",
        "vm.dirty_bytes": "0.75 x memory",
    }


def test_the_plan_shows_labels_and_resolves_fractions_of_the_memory(tmp_path: Path) -> None:
    source = read(tmp_path)
    document = plan_document(plan_trials(source.experiment, source.treatments, 1))
    assert [(factor["path"], factor["label"], factor["unit"]) for factor in document["factors"]] == [
        ("mix", "mix", None),
        ("writeback", "writeback", None),
    ]
    assert document["factors"][1]["levels"] == [
        {"label": "early", "value": "early"},
        {"label": "late", "value": "late"},
    ]
    trial = next(one for one in document["trials"] if one["levels"] == {"mix": "reads", "writeback": "early"})
    # 256 MiB: a fortieth of it, and a twentieth.
    assert trial["resolved"]["environment"]["sysctl"] == {
        "vm.dirty_expire_centisecs": 3000,
        "vm.dirty_background_bytes": 6_710_886,
        "vm.dirty_bytes": 13_421_773,
    }


def test_levels_are_chosen_by_label(tmp_path: Path) -> None:
    assert {treatment.levels["mix"].label for treatment in read(tmp_path, quick=True).treatments} == {"writes"}
    source = read(tmp_path, sets=["writeback=late", 'mix=["writes", "reads"]'])
    assert [treatment.label for treatment in source.treatments] == ["mix reads", "mix writes"]
    assert "'never' is none of its levels; allowed: 'early', 'late'" in fault(tmp_path, sets=["writeback=never"])


def test_a_record_gives_the_same_plan_back(tmp_path: Path) -> None:
    source = read(tmp_path)
    again = reload(source.experiment.model_dump(mode="json"), source.path, False)
    assert plan_trials(again.experiment, again.treatments, 7) == plan_trials(source.experiment, source.treatments, 7)


def test_what_a_factor_sets_cannot_be_set_beside_it(tmp_path: Path) -> None:
    found = fault(tmp_path, sets=["environment.sysctl.vm.dirty_bytes=4096"])
    assert "--set environment.sysctl.vm.dirty_bytes=4096" in found
    assert "is set by the levels of the factor writeback" in found
    twice = FILE.replace("[quick]", '[[factors]]\npath = "environment.sysctl.vm.dirty_bytes"\nlevels = [4096]\n[quick]')
    assert "is set by two factors, writeback and environment.sysctl.vm.dirty_bytes" in fault(tmp_path, twice)
    whole = FILE.replace('"environment.sysctl.vm.dirty_bytes" = "0.05 x memory"', '"workload.keys" = "uniform"')
    whole = whole.replace('"workload.mix" = { stock = 1 }', '"workload.keys" = "uniform"')
    assert "workload.keys is set by two factors, mix and writeback" in fault(tmp_path, whole)


@pytest.mark.parametrize(
    ("old", "new", "at", "wanted"),
    [
        (
            '"environment.sysctl.vm.dirty_bytes" = "0.75',
            '"vm.dirty_bytes" = "0.75',
            '"vm.dirty',
            "'vm.dirty_bytes' cannot be",
        ),
        ('"workload.mix" = { payment', "workload.mix = { payment", "workload.mix = {", "in quotation marks"),
        ('label = "late"', 'label = "early"', "[[factors.levels]]", "'early' is given twice"),
        ('label = "late"\n', "", "[[factors.levels]]\n[factors.levels.set]", "label: is missing"),
        ('label = "late"', 'lable = "late"', 'lable = "late"', "there is no such key; allowed: label, set"),
        ('name = "writeback"', 'name = "Write Back"', 'name = "Write Back"', "name"),
        ('name = "writeback"', 'name = "w"\npath = "x"', 'path = "x"', "allowed: compare, label, levels, name"),
        ("{ payment = 1 }", "{ refund = 1 }", "{ refund = 1 }", "workload.mix.refund"),
        ("{ payment = 1 }", "{ payment = 0 }", "{ payment = 0 }", "at least one weight above 0"),
    ],
)
def test_faults_name_the_line(old: str, new: str, at: str, wanted: str, tmp_path: Path) -> None:
    assert old in FILE
    text = FILE.replace(old, new)
    found = fault(tmp_path, text)
    assert wanted in found
    at = at.split("\n")[0]
    lines = [number for number, line in enumerate(text.splitlines(), start=1) if at in line]
    assert any(f"experiment.toml:{number}: " in found for number in lines), found


def test_a_chosen_level_keeps_its_line(tmp_path: Path) -> None:
    text = FILE.replace("{ payment = 1 }", "{ payment = 0 }")
    assert f"experiment.toml:{line_of(text, '{ payment = 0 }')}: " in fault(tmp_path, text, quick=True)
