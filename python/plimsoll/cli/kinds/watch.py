"""Watches of a server that runs its own load."""

from __future__ import annotations

from pathlib import Path

from plimsoll.analysis.watch import kind
from plimsoll.cli.folders import shown
from plimsoll.cli.kinds.kind import Judged, Refusal, RunKind


class Watches(RunKind):
    """What `breakdown` makes."""

    key = kind.KIND
    did = "watched a server's own load"
    no_files = Refusal("the report of a watch has its figures inside and writes no separate files", "no --figures")
    no_resume = Refusal("a watch cannot be resumed", "./plimsoll report for what it recorded, or a new watch")
    no_comparison = Refusal(
        "one of the two is a watch of a server's own load: it varied nothing that could be compared",
        "two runs of an experiment, or of capacity",
    )
    no_treatments = "a watch varied nothing and has no treatments to compare"

    def judge(self, folder: Path, is_with_files: bool) -> Judged:
        """The picture from the record, and its page."""
        from plimsoll.cli import breakdown

        assert not is_with_files, "refused before"
        return Judged(*breakdown.judge(folder))

    def show(self, judged: Judged) -> None:
        """The picture in full."""
        from plimsoll.cli.breakdown_view import print_final

        print_final(judged.document, shown(judged.page))


KIND = Watches()
