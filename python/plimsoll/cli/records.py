"""The verbs that take runs' folders: report, compare, and run --resume, whatever kind of run it is."""

from __future__ import annotations

import json
from pathlib import Path

from plimsoll.cli.console import console
from plimsoll.cli.kinds import registry
from plimsoll.cli.kinds.experiment import KIND as EXPERIMENT
from plimsoll.cli.kinds.kind import Compared, refuse, refuse_if
from plimsoll.record import RecordError, Run, open_run, writer


def report(folder: Path, as_json: bool, is_with_files: bool = False, promised: Path | None = None) -> int:
    """Judges a record and draws it again; `promised`: the record of raw_storage to be set beside it from now on."""
    kind = registry.kind_of(open_run(folder))
    if promised is not None:
        if kind is not EXPERIMENT:
            refuse("command line", "--promised", f"this run {kind.did}", "a run of an experiment")
        _keep_promised(open_run(folder), open_run(promised))
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


def _keep_promised(run: Run, other: Run) -> None:
    """Writes into a run's record what another found of the same storages."""
    from plimsoll.analysis import analyse
    from plimsoll.analysis.files.promised import promised
    from plimsoll.analysis.places.promise import storages_of
    from plimsoll.environment.fingerprint import comparable

    differences = [one["key"] for one in comparable(other.fingerprint or {}, run.fingerprint or {})]
    found = promised(other, analyse(other), differences)
    if found is None:
        refuse("command line", f"--promised {other.path}", "it compared no storages by raw_storage", "a run that did")
    shared = {one["storage"] for one in found["storages"]} & set(storages_of(run.plan).values())
    if len(shared) < 2:
        what = "the two runs have fewer than two storages in common"
        refuse("command line", f"--promised {other.path}", what, "a run whose levels have the same labels")
    writer.write_json(run.path / "promised.json", found)


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
