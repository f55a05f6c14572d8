"""Verbs about records: report, compare, query, import, export."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli.options import Figures, Json, RunFolder, refuse


def report(
    folder: RunFolder,
    as_json: Json = False,
    figures: Figures = False,
    promised: Annotated[
        Path | None, typer.Option("--promised", help="a run of raw-storage over the same storages, to set beside it")
    ] = None,
) -> None:
    """Judges a run's record again and redraws its report."""
    from plimsoll.cli import records

    sys.exit(records.report(folder, as_json, figures, promised))


def compare(
    first: RunFolder,
    second: Annotated[Path | None, typer.Argument(metavar="[RUN]", help="the run to compare with it")] = None,
    treatments: Annotated[
        tuple[str, str] | None,
        typer.Option("--treatments", metavar="FIRST SECOND", help="two treatments of one run, by label or id"),
    ] = None,
    page: Annotated[Path | None, typer.Option("--page", help="an HTML file to make, with flame graphs")] = None,
    force: Annotated[bool, typer.Option("--force", help="compare even though the machines differ")] = False,
    as_json: Json = False,
) -> None:
    """Two runs side by side, or two treatments of one, and what changed; refuses when machines differ."""
    from plimsoll.cli import records

    if (second is None) == (treatments is None):
        refuse(
            "compare",
            "two runs, or two treatments of one run, are compared",
            "RUN RUN, or RUN --treatments FIRST SECOND",
        )
    if second is None and treatments is not None:
        sys.exit(records.compare_treatments(first, *treatments, as_json=as_json, page=page))
    assert second is not None
    sys.exit(records.compare(first, second, force, as_json, page))


def query(
    sql: Annotated[
        str | None, typer.Argument(metavar="[SQL]", help="one SELECT; without it: the tables there are")
    ] = None,
    places: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="runs, or folders of runs [./runs]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Queries all records at once, in SQL; read-only."""
    from plimsoll.cli import query as verb

    sys.exit(verb.query(sql, places or [], as_json))


def import_capture(
    file: Annotated[Path, typer.Argument(metavar="FILE.pcap", help="a packet capture of NFS, pcap or pcapng")],
    out: Annotated[Path | None, typer.Option("--out", help="folder for the record")] = None,
    mountstats: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            "--mountstats", metavar="BEFORE AFTER", help="the client's /proc/self/mountstats around the capture"
        ),
    ] = None,
    as_json: Json = False,
    figures: Figures = False,
) -> None:
    """Calls of NFS from a packet capture that somebody took: by operation, and each reply's time."""
    from plimsoll.cli import importing as verb

    sys.exit(verb.run(file, out, mountstats, as_json, figures))


def export(
    folder: RunFolder,
    form: Annotated[str, typer.Option("--format", help="perfetto, folded or parquet")],
    out: Annotated[Path | None, typer.Option("--out", help="file (parquet: folder) to make")] = None,
    trial: Annotated[int | None, typer.Option("--trial", help="perfetto: which trial [1]; folded: [all]")] = None,
    begin: Annotated[float | None, typer.Option("--from", help="perfetto: seconds into the trial [0]")] = None,
    seconds: Annotated[float | None, typer.Option("--for", help="perfetto: how many seconds [60]")] = None,
    as_json: Json = False,
) -> None:
    """A record for other programs: a trace, collapsed stacks, Parquet."""
    from plimsoll.cli import export as verb

    sys.exit(verb.export(folder, form, trial, begin, seconds, out, as_json))
