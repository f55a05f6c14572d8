"""Runs of an experiment: settings compared over trials in randomised blocks."""

from __future__ import annotations

from pathlib import Path

from plimsoll.cli.kinds.kind import Compared, Json, Judged, RunKind, refuse
from plimsoll.record import RecordError, Run


class ExperimentRuns(RunKind):
    """What `run` makes."""

    key: str | None = None  # run.json of before there were other kinds has none, and has none today
    did = "compared settings"
    takes_long = True

    def judge(self, folder: Path, is_with_files: bool) -> Judged:
        """The verdict and the report; refuses a run none of whose trials has ended."""
        from plimsoll.cli import execute

        verdict, page = execute.judge(folder, is_with_files)
        if verdict is None or page is None:
            raise RecordError(f"{folder}: no trial of this run has ended yet; ./plimsoll run --resume continues it")
        return Judged(verdict, page)

    def show(self, judged: Judged) -> None:
        """The verdict in about fifteen lines."""
        from plimsoll.cli import execute

        execute.say(judged.document, judged.page, judged.page.parents[1])

    def resume(self, out: Path, as_json: bool, metrics: int | None, draws: bool, does_failed_again: bool) -> int:
        """The trials that are left, in the order planned."""
        from plimsoll.cli import execute

        return execute.resume(out, as_json, metrics, draws, does_failed_again=does_failed_again)

    def compare(self, first: Run, second: Run, force: bool, page: Path | None) -> Compared:
        """Treatment by treatment, with what explains the difference."""
        from plimsoll.analysis import compare_runs
        from plimsoll.environment.fingerprint import comparable

        _check_free(page)
        differences = comparable(first.fingerprint or {}, second.fingerprint or {})
        return _compared(compare_runs(first, second, differences, accept=force), page)

    def compare_treatments(self, run: Run, first: str, second: str, page: Path | None) -> Compared:
        """Two treatments, by label or id."""
        from plimsoll.analysis import compare_treatments

        _check_free(page)
        return _compared(compare_treatments(run, first, second), page)


def _check_free(page: Path | None) -> None:
    """What is there already is not written over, and a folder that is not there is not made."""
    if page is not None and (page.exists() or not page.absolute().parent.is_dir()):
        what = "this file exists already" if page.exists() else "there is no such folder to write into"
        refuse("command line", f"--page {page}", what, "a file that does not exist yet")


def _compared(result: Json, page: Path | None) -> Compared:
    from plimsoll.cli.folders import shown
    from plimsoll.words.comparing.comparison import comparison_lines

    if page is not None:
        from plimsoll.report.comparison.page import write_comparison

        write_comparison(result, page)
    return Compared(result, comparison_lines(result) + ([f"Page: {shown(page)}"] if page is not None else []))


KIND = ExperimentRuns()
