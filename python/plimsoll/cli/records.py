"""The verbs that take runs' folders: report, compare, and run --resume, whatever kind of run it is."""

from __future__ import annotations

import json
from pathlib import Path

from plimsoll.cli.console import console
from plimsoll.cli.kinds import registry
from plimsoll.cli.kinds.experiment import KIND as EXPERIMENT
from plimsoll.cli.kinds.kind import Compared, refuse, refuse_if
from plimsoll.record import RecordError, open_run


def report(folder: Path, as_json: bool, is_with_files: bool = False) -> int:
    """Judges a record and draws it again."""
    kind = registry.kind_of(open_run(folder))
    if is_with_files:
        refuse_if(kind.no_files, "command line", "--figures")
    if kind.takes_long and not as_json:
        console().print("judging the record and drawing the report")
    judged = kind.judge(folder.absolute(), is_with_files)
    if as_json:
        print(json.dumps(judged.document))
    else:
        kind.show(judged)
    return 0


def resume(
    out: Path, as_json: bool, metrics: int | None = None, draws: bool = True, *, does_failed_again: bool = False
) -> int:
    """Goes on with a run. A folder without a record is refused by whoever reads the experiment in it."""
    kind = registry.kind_of(open_run(out)) if (out / "run.json").is_file() else EXPERIMENT
    refuse_if(kind.no_resume, str(out), "--resume")
    return kind.resume(out, as_json, metrics, draws, does_failed_again)


def compare(first: Path, second: Path, force: bool, as_json: bool, page: Path | None = None) -> int:
    """Two runs of one kind side by side."""
    one, other = open_run(first), open_run(second)
    # In the list's order, whichever of the two was named first.
    kinds = sorted((registry.kind_of(one), registry.kind_of(other)), key=registry.KINDS.index)
    for kind in kinds:
        refuse_if(kind.no_comparison, "command line", "compare")
    if kinds[0] is not kinds[1]:
        what = f"one of the two {kinds[0].did} and the other {kinds[1].did}"
        refuse("command line", "compare", what, "two runs of one kind")
    if page is not None:
        refuse_if(kinds[0].no_comparison_page, "command line", "--page")
    return _say(kinds[0].compare(one, other, force, page), as_json)


def compare_treatments(folder: Path, first: str, second: str, *, as_json: bool, page: Path | None = None) -> int:
    """Two treatments of one run side by side."""
    run = open_run(folder)
    kind = registry.kind_of(run)
    if kind.no_treatments:
        raise RecordError(f"{folder}: {kind.no_treatments}")
    return _say(kind.compare_treatments(run, first, second, page), as_json)


def _say(compared: Compared, as_json: bool) -> int:
    if as_json:
        print(json.dumps(compared.document))
    else:
        for line in compared.lines:
            console().print(line)
    return 0
