"""A run's page: the verdict in words, the sections that apply, and why what is not drawn is not.

The page names no section: what there is, and in which order, stands in sections.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from altair.utils.schemapi import debug_mode

from plimsoll.record import Run, open_run, writer
from plimsoll.record.run import read_json
from plimsoll.report.drawing import tables, theme
from plimsoll.report.drawing.figure import Figure
from plimsoll.report.drawing.html import piece, write_page
from plimsoll.report.section import Page, Section
from plimsoll.report.sections import CLOSING, SECTIONS
from plimsoll.words import verdict as words

Json = dict[str, Any]
Drawn = list[tuple[Section, list[Figure]]]


def _verdict(run: Run) -> Json:
    """The stored verdict; made first where there is none, or an older one."""
    found = read_json(run.path / "verdict.json")
    if found is None or "scaling" not in found:  # none yet, or of a version that knew less
        from plimsoll.analysis import analyse

        found = analyse(run)
        writer.write_json(run.path / "verdict.json", found)
    return found


def _facts(run: Run, verdict: Json) -> list[tuple[str, str]]:
    """What was run, in a few rows under the title."""
    data = run.data
    plimsoll = data.get("plimsoll") or {}
    return [
        ("run", str(data.get("id") or run.path.name)),
        ("experiment", str(data.get("experiment") or "")),
        ("began", tables.when(data.get("started_epoch_ns"))),
        ("blocks", str(verdict["blocks"])),
        ("trials", f"{len(verdict['trials'])}, {len(verdict['exclusions'])} excluded"),
        ("seed", str(data.get("seed"))),
        ("plimsoll", f"{plimsoll.get('version', '?')} ({plimsoll.get('commit') or 'no commit'})"),
    ]


def _drawn(page: Page, sections: tuple[Section, ...]) -> Drawn:
    """The sections that apply, each with its figures."""
    return [(section, section.figures(page)) for section in sections if section.applies(page)]


def _written(page: Page, drawn: Drawn, is_with_files: bool) -> list[str]:
    """The text of each section."""
    texts: list[str] = []
    for section, figures in drawn:
        common = {
            "figures": figures,
            "drawn": any(figure.spec is not None for figure in figures),
            "with_files": is_with_files,
        }
        texts.append(piece(section.template, {**section.context(page), **common}))
    return texts


def _not_drawn(page: Page, drawn: Drawn) -> list[tuple[str, list[str]]]:
    """Each reason why something is missing, with the titles of what is: figures, and sections that were asked for."""
    found: dict[str, list[str]] = {}
    for section, figures in drawn:
        for figure in figures if not section.says_why(page) else ():
            if figure.spec is None:
                found.setdefault(figure.absent, []).append(figure.title)
    there = {section.key for section, _ in drawn}
    for section in SECTIONS:
        if section.key in (page.run.experiment.get("sections") or ()) and section.key not in there:
            found.setdefault(section.needs, []).append(f'the section "{section.key}"')
    return list(found.items())


def _context(page: Page, is_with_files: bool) -> Json:
    run, verdict = page.run, page.verdict
    drawn, closing = _drawn(page, SECTIONS), _drawn(page, CLOSING)
    figures = [figure for _, group in drawn + closing for figure in group]
    heads = words.headlines(verdict)
    # As many as a reader takes in; the rest is folded, and never a single one.
    shown_heads = words.HEADLINES_MAX - 1 if len(heads) > words.HEADLINES_MAX else len(heads)
    return {
        "title": verdict["title"],
        "synthetic": run.data.get("synthetic"),
        "quick": verdict["quick"],
        "status": run.data.get("status"),
        "facts": _facts(run, verdict),
        "headlines": heads[:shown_heads],
        "more_headlines": heads[shown_heads:],
        "evidence": [line for section, _ in drawn for line in section.evidence(page)],
        "sections": _written(page, drawn, is_with_files),
        "not_drawn": _not_drawn(page, drawn),
        "closing": _written(page, closing, is_with_files),
        "configs": {"light": theme.config("light"), "dark": theme.config("dark")},
        "specs": {figure.name: figure.spec for figure in figures if figure.spec is not None},
        "all_figures": figures,
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
