"""Packet captures that were imported."""

from __future__ import annotations

from pathlib import Path

from plimsoll.analysis.captures import kind
from plimsoll.cli.kinds.kind import Judged, Refusal, RunKind


class Captures(RunKind):
    """What `import` makes."""

    key = kind.KIND
    did = "imported a packet capture"
    no_resume = Refusal("an import cannot be resumed", "./plimsoll import FILE again")
    no_comparison = Refusal(
        "one of the two is an imported capture: it varied nothing that could be compared",
        "two runs of an experiment, or of capacity",
    )
    no_treatments = "an imported capture varied nothing and has no treatments to compare"

    def judge(self, folder: Path, is_with_files: bool) -> Judged:
        """The calls from the record, and their page."""
        from plimsoll.cli import importing

        return Judged(*importing.judge(folder, is_with_files))

    def show(self, judged: Judged) -> None:
        """The table of calls."""
        from plimsoll.cli import importing

        importing.show(judged.document, judged.page)


KIND = Captures()
