"""The verb `export`: a record as a trace, as collapsed stacks, or as Parquet. Says what was written."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from plimsoll.cli import show
from plimsoll.export import ExportError
from plimsoll.record import Run, Trial, compact, open_run
from plimsoll.record.writer import write_text

FORMATS = ("perfetto", "folded", "parquet")


def export(
    folder: Path,
    form: str,
    number: int | None,
    begin: float | None,
    seconds: float | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Writes what was asked for to `out`, which may not be there yet; stacks go to the standard output without it."""
    run = open_run(folder)
    _refuse_what_does_not_fit(form, number, begin, seconds, out)
    if form == "folded":
        said = _folded(run, number, out)
    elif form == "parquet":
        said = _parquet(run, out)
    else:
        from plimsoll.export.perfetto import SECONDS, write_trace

        assert out is not None
        window = (begin or 0.0, SECONDS if seconds is None else seconds)
        try:
            said = write_trace(run, _trial(run, 1 if number is None else number), window, out)
        except BaseException:
            out.unlink(missing_ok=True)  # half a trace would be taken for a whole one
            raise
    if as_json and out is not None:
        print(json.dumps({"format": form, "out": str(out), **said}))
    elif out is not None:
        _say(said, out)
    return 0


def _refuse_what_does_not_fit(
    form: str, number: int | None, begin: float | None, seconds: float | None, out: Path | None
) -> None:
    if form not in FORMATS:
        raise ExportError(f"there is no format {form}; allowed: {', '.join(FORMATS)}")
    if form != "perfetto" and (begin is not None or seconds is not None):
        raise ExportError(f"--from and --for choose a window of a trace; {form} has the whole trial")
    if form == "parquet" and number is not None:
        raise ExportError("--trial chooses a trial of perfetto or folded; Parquet tables have all trials")
    if (begin is not None and begin < 0) or (seconds is not None and seconds <= 0):
        raise ExportError("--from is a number of seconds from 0 on, --for one above 0")
    if out is None and form != "folded":
        raise ExportError(f"--out is missing: {'a folder' if form == 'parquet' else 'a file'} that does not exist yet")
    if out is not None and out.exists():
        raise ExportError(f"{out}: exists already; name a path that does not")


def _trial(run: Run, number: int) -> Trial:
    of_number = [trial for trial in run.trials if trial.number == number]
    if not of_number:
        raise ExportError(f"{run.path.name} has no trial {number}; it has 1 to {len(run.trials)}")
    return of_number[0]


def _folded(run: Run, number: int | None, out: Path | None) -> dict[str, Any]:
    from plimsoll.export.folded import folded

    trials = [trial for trial in run.trials if trial.status == "finished"] if number is None else [_trial(run, number)]
    lines = list(folded(run, trials))
    if out is None:
        sys.stdout.write("\n".join(lines) + "\n")
    else:
        write_text(out, "\n".join(lines) + "\n")
    return {"stacks": len(lines)}


def _parquet(run: Run, out: Path | None) -> dict[str, Any]:
    assert out is not None
    out.mkdir(parents=True)
    return {"files": [path.name for path in compact(run.path, out)]}


def _say(said: dict[str, Any], out: Path) -> None:
    console = show.console()
    if (names := said.get("files")) is not None:
        console.print(f"{out}: {', '.join(names)}")
        return
    if "stacks" in said:
        console.print(f"{out}: {said['stacks']:,} stacks")
        return
    console.print(
        f"{out}: {said['server_transactions']:,} transactions of {said['backends']:,} backends, "
        f"{said['client_transactions']:,} of their clients; {said['arrows']:,} arrows; {said['bytes'] >> 20:,} MiB"
    )
    for why, count in sorted(said["arrows_not_drawn"].items(), key=lambda item: -item[1]):
        console.print(f"  {count:,} arrows are not drawn: {why}")
    console.print("open it with https://ui.perfetto.dev (in the browser, nothing is sent) or with trace_processor")
