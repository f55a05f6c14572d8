"""Searches for a load line."""

from __future__ import annotations

from pathlib import Path

from plimsoll.analysis.capacity import kind
from plimsoll.cli.kinds.kind import Compared, Judged, Refusal, RunKind
from plimsoll.record import RecordError, Run, open_run


class Searches(RunKind):
    """What `capacity` makes."""

    key = kind.KIND
    did = "searched for a load line"
    no_resume = Refusal(
        "a load-line search cannot be resumed: the machine may have changed since",
        "./plimsoll report for what it recorded, or a new search",
    )
    no_comparison_page = Refusal("a load-line search has none", "no --page")
    no_treatments = "a load-line search has no treatments; give two such runs to compare"

    def judge(self, folder: Path, is_with_files: bool) -> Judged:
        """The line, beside those of earlier searches; refuses a search none of whose trials has finished."""
        from plimsoll.cli import capacity

        if not any(trial.status == "finished" for trial in open_run(folder).trials):
            raise RecordError(f"{folder}: no trial of this run has finished; search again")
        return Judged(*capacity.judge(folder, is_with_files))

    def show(self, judged: Judged) -> None:
        """The line and what it rests on."""
        from plimsoll.cli import capacity

        capacity.say(judged.document, judged.page)

    def compare(self, first: Run, second: Run, force: bool, page: Path | None) -> Compared:
        """Whether two lines agree, and if not, what changed."""
        from plimsoll.cli import capacity

        assert page is None, "refused before"
        return Compared(*capacity.compare(first, second, force))


KIND = Searches()
