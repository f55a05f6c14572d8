"""A run's page: a first screen for somebody who has a minute, and below it the sections that apply, folded.

The page names no section: what there is, and in which order, stands in sections.py. Those that the first screen speaks
of come first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from altair.utils.schemapi import debug_mode

from plimsoll.analysis.metrics import unit_of_work
from plimsoll.record import Run, open_run, writer
from plimsoll.record.run import read_json
from plimsoll.report.drawing import tables, theme
from plimsoll.report.drawing.figure import Figure
from plimsoll.report.drawing.html import piece, write_page
from plimsoll.report.section import Page, Section
from plimsoll.report.sections import CLOSING, SECTIONS
from plimsoll.words.first_screen import first_screen
from plimsoll.words.said import FirstScreen
from plimsoll.words.soak.sentences import soak_of
from plimsoll.words.verdict import trials_begun

Json = dict[str, Any]
Drawn = list[tuple[Section, list[Figure]]]
ANSWERS_SHOWN = 2
_NOT_DRAWN = ("not-drawn", "Not drawn in this report", "not_drawn.html.j2")


@dataclass(frozen=True)
class Fold:
    """A section as it stands on the page."""

    key: str
    title: str
    text: str
    evidence: list[str] = field(default_factory=list)


def _verdict(run: Run) -> Json:
    """The stored verdict; made first where there is none, or an older one."""
    verdict = read_json(run.path / "verdict.json")
    if verdict is None or "next_steps" not in verdict:  # none yet, or of a version that knew less
        from plimsoll.analysis import analyse

        verdict = analyse(run)
        writer.write_json(run.path / "verdict.json", verdict)
    return verdict


def _facts(run: Run, verdict: Json) -> list[tuple[str, str]]:
    """What was run, in a few rows under the title."""
    data = run.data
    plimsoll = data.get("plimsoll") or {}
    return [
        ("run", str(data.get("id") or run.path.name)),
        ("experiment", str(data.get("experiment") or "")),
        ("began", tables.when(data.get("started_epoch_ns"))),
        *_how_much(verdict),
        ("seed", str(data.get("seed"))),
        ("plimsoll", f"{plimsoll.get('version', '?')} ({plimsoll.get('commit') or 'no commit'})"),
    ]


def _how_much(verdict: Json) -> list[tuple[str, str]]:
    """Blocks and trials; of a soak, which is one of each, its rounds."""
    soak = soak_of(verdict)
    if soak is not None:
        return [("rounds", str(len(soak["each"])))]
    excluded = len(verdict["exclusions"])
    return [("blocks", str(verdict["blocks"])), ("trials", f"{trials_begun(verdict)}, {excluded} excluded")]


def _drawn(page: Page, sections: tuple[Section, ...]) -> Drawn:
    """The sections that apply, each with its figures."""
    return [(section, section.figures(page)) for section in sections if section.applies(page)]


def _folds(page: Page, drawn: Drawn, is_with_files: bool) -> list[Fold]:
    """The sections with their texts; one that has nothing to say is left out."""
    folds: list[Fold] = []
    for section, figures in drawn:
        common = {
            "figures": figures,
            "drawn": any(figure.spec is not None for figure in figures),
            "with_files": is_with_files,
            "work": unit_of_work(page.verdict),
        }
        text = piece(section.template, {**section.context(page), **common})
        if text.strip():
            folds.append(Fold(section.key, section.title, text, section.evidence(page)))
    return folds


def spoken_of_first(folds: list[Fold], first: FirstScreen) -> list[Fold]:
    """What the first screen speaks of, in its order; then the rest in the list's."""
    spoken = [one.section for one in (*first.answers, *first.why, *first.next_steps, *first.wrong)]
    places = {key: place for place, key in reversed(list(enumerate(spoken)))}
    return sorted(folds, key=lambda fold: places.get(fold.key, len(spoken)))


def _not_drawn(page: Page, drawn: Drawn) -> list[tuple[str, list[str]]]:
    """Each reason why something is missing, with the titles of what is: figures, and sections that were asked for."""
    reasons: dict[str, list[str]] = {}
    for section, figures in drawn:
        for figure in figures if not section.says_why(page) else ():
            if figure.spec is None:
                reasons.setdefault(figure.absent, []).append(figure.title)
    there = {section.key for section, _ in drawn}
    for section in SECTIONS:
        if section.key in (page.run.experiment.get("sections") or ()) and section.key not in there:
            reasons.setdefault(section.needs, []).append(f'the section "{section.key}"')
    return list(reasons.items())


def _flags(run: Run, verdict: Json) -> list[str]:
    """What nobody may overlook: that nothing was measured, that not all of it ran, that it was a quick run."""
    status = run.data.get("status")
    return [
        *([str(run.data["synthetic"])] if run.data.get("synthetic") else []),
        *([f"This run is {status}: what did not run is missing."] if status != "finished" else []),
        *(["Quick run: few levels, short trials."] if verdict["quick"] else []),
    ]


def _context(page: Page, is_with_files: bool) -> Json:
    run, verdict = page.run, page.verdict
    drawn, closing = _drawn(page, SECTIONS), _drawn(page, CLOSING)
    figures = [figure for _, group in drawn + closing for figure in group]
    heads = next((piece(one.heads, one.context(page)) for one, _ in drawn if one.heads), "")
    shown = None if heads else next((figure for one, _ in drawn if (figure := one.shows(page)) is not None), None)
    first = first_screen(verdict)
    folds = spoken_of_first(_folds(page, drawn, is_with_files), first)
    if missing := _not_drawn(page, drawn):
        key, title, template = _NOT_DRAWN
        folds.append(Fold(key, title, piece(template, {"not_drawn": missing})))
    return {
        "title": verdict["title"],
        "facts": _facts(run, verdict),
        "flags": _flags(run, verdict),
        "first": first,
        # As many as a reader takes in; the rest is folded, and never a single one.
        "shown_answers": ANSWERS_SHOWN if len(first.answers) > ANSWERS_SHOWN + 1 else len(first.answers),
        "shown_table": heads,
        "shown_figure": shown,
        "sections": folds + _folds(page, closing, is_with_files),
        "configs": {"light": theme.config("light"), "dark": theme.config("dark")},
        "specs": {
            figure.name: figure.spec for figure in (*figures, *([shown] if shown else [])) if figure.spec is not None
        },
        "all_figures": [*([shown] if shown else []), *figures],
    }


def _write_files(run: Run, page: Page) -> None:
    """What sections give other programs, beside the figures."""
    folder = run.path / "report" / "figures"
    for section in SECTIONS:
        for name, text in section.files(page).items() if section.applies(page) else ():
            folder.mkdir(parents=True, exist_ok=True)
            writer.write_text(folder / name, text)


def write_report(run_dir: str | Path, is_with_files: bool = False) -> Path:
    """Draw a run's verdict; returns the page's path. With files the figures lie beside it as SVG and PNG, too."""
    run = open_run(run_dir)
    verdict = _verdict(run)
    page = Page(run, verdict)
    # Each part of each chart would be held against Vega-Lite's schema when it is made: a third of the time of drawing.
    # The tests draw every figure, and what is no Vega-Lite is drawn by nothing.
    with debug_mode(False):
        context = _context(page, is_with_files)
    _write_files(run, page)
    return write_page(run, "report.html.j2", context, context["all_figures"], is_with_files)
