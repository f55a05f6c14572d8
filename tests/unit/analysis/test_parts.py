"""Parts of a verdict: their order, and one that nobody but the lists knows of."""

import itertools
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import analyse, parts
from plimsoll.analysis.part import Context, Part
from plimsoll.record import Run, Trial, open_run
from plimsoll.words import parts as spoken
from plimsoll.words.part import Sentences
from plimsoll.words.terminal import terminal_lines
from plimsoll.words.verdict import headlines

GOLDEN = Path(__file__).parents[2] / "golden"
KEYS = [part.key for part in parts.PARTS]


def test_a_part_stands_behind_those_it_needs() -> None:
    assert len(set(KEYS)) == len(KEYS)
    for place, part in enumerate(parts.PARTS):
        assert set(part.needs) <= set(KEYS[:place]), part.key


def test_whoever_speaks_speaks_of_a_part() -> None:
    assert {sentences.key for sentences in spoken.SENTENCES} <= set(KEYS)


def _blocks_of(run: Run, trial: Trial) -> dict[str, Any]:
    return {"of": len(run.trials), "number": trial.number}


def _judge(context: Context) -> dict[str, Any]:
    seen = [trial["toy"]["number"] for trial in context.used.values()]
    return {"trials": len(seen), "read": context.read["toy"], "notes": len(context.parts["instruments"])}


def _labels(run: Run, entries: Any) -> dict[str, str]:
    return {name: f"{len(mine)} of {len(run.trials)}" for name, mine in entries.items()}


def _toy(word: str) -> tuple[Part, Sentences]:
    part = Part(
        "toy",
        _judge,
        needs=("instruments",),
        of_trial=_blocks_of,
        of_treatments=_labels,
        read=lambda run: f"{word} {run.data['id']}",
        trial_caveats=lambda trial, read: [f"{read}, trial of block {trial.block}"],
        caveats=lambda context: [f"{word}: {len(context.comparisons)} compared"],
    )
    sentences = Sentences(
        "toy",
        leads=lambda verdict: [f"{word} leads: {verdict['toy']['trials']} trials"],
        explains=lambda _: [f"{word} explains"],
        adds=lambda _: [f"{word} adds"],
    )
    return part, sentences


def test_a_toy_in_the_lists_is_in_the_verdict_and_in_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = open_run(shutil.copytree(GOLDEN / "synthetic", tmp_path / "run"))
    before = analyse(run)
    part, sentences = _toy("windmill")
    monkeypatch.setattr(parts, "PARTS", (*parts.PARTS, part))
    monkeypatch.setattr(spoken, "SENTENCES", (*spoken.SENTENCES, sentences))
    verdict = analyse(run)
    used = sum(len(one["trials"]) for one in verdict["treatments"].values())
    assert verdict["toy"] == {"trials": used, "read": f"windmill {run.data['id']}", "notes": 3}
    assert verdict["trials"][1]["toy"] == {"of": len(run.trials), "number": 2}
    assert [one["toy"].endswith(f" of {len(run.trials)}") for one in verdict["treatments"].values()]
    for one in verdict["trials"]:
        assert f"windmill {run.data['id']}, trial of block {one['block']}" in one["caveats"]
    assert f"windmill: {len(verdict['comparisons'])} compared" in verdict["caveats"]
    assert headlines(verdict)[0] == f"windmill leads: {used} trials"
    lines = terminal_lines(verdict, "report")
    text = " ".join(lines)
    assert "windmill explains" in text and "windmill adds" in text
    # Nothing else of the verdict changes by it.
    for found in (verdict, *verdict["trials"], *verdict["treatments"].values()):
        del found["toy"]
    assert [line for line in verdict.pop("caveats") if "windmill" not in line] == before.pop("caveats")
    for found in verdict["trials"]:
        found["caveats"] = [line for line in found["caveats"] if "windmill" not in line]
    assert verdict == before


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("scaling", {"environment.target_cpus": ["0", "0-1", "0-2", "0-3", "0-4", "0-5"]}),
        (
            "memory_scaling",
            {"environment.memory": ["1", "2", "3"], "environment.transparent_huge_pages": ["always", "never"]},
        ),
    ],
)
def test_an_experiment_that_names_its_sections_has_no_other_studies(
    tmp_path: Path, key: str, settings: dict[str, list[str]]
) -> None:
    run = shutil.copytree(GOLDEN / "synthetic", tmp_path / "run")
    plan = json.loads((run / "plan.json").read_text())
    for entry, values in zip(plan["treatments"].values(), itertools.product(*settings.values()), strict=False):
        entry["levels"] = dict(zip(settings, values, strict=True))
    plan["factors"] = [
        {"path": path, "paths": [path], "label": path, "levels": [{"label": value, "value": value} for value in values]}
        for path, values in settings.items()
    ]
    (run / "plan.json").write_text(json.dumps(plan))
    experiment = json.loads((run / "experiment.json").read_text())

    def part(**more: Any) -> Any:
        (run / "experiment.json").write_text(json.dumps(experiment | more))
        return analyse(open_run(run))[key]

    assert part()["rows"], "of an older record the design decides"
    assert part(sections=["scaling"])["rows"]
    assert part(sections=["clients"]) is None
