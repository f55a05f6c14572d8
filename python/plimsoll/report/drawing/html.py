"""A run's page: a template filled in, one HTML file that works offline; its figures as SVG and PNG if asked for.

Text on the page may come from an experiment, a log or a database and is escaped by the template; data handed to the
figures is JSON in which no tag can end a script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from plimsoll.record import Run, writer
from plimsoll.report.drawing.bundle import bundle
from plimsoll.report.drawing.figure import Figure, write_files

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE = Path(__file__).parent


def write_page(
    run: Run, template: str, context: Mapping[str, Any], figures: Iterable[Figure], is_with_files: bool
) -> Path:
    """Writes the page into the run's folder, and the figures as files if asked for; returns the page's path.

    Figures that were written before are taken away: they may be those of another verdict.
    """
    folder = run.path / "report"
    folder.mkdir(exist_ok=True)
    for old in [*(folder / "figures").glob("*.svg"), *(folder / "figures").glob("*.png")]:
        old.unlink()
    for figure in figures if is_with_files else ():
        write_files(figure, folder / "figures")
    writer.write_text(folder / "index.html", rendered(template, {**context, "with_files": is_with_files}))
    return folder / "index.html"


def rendered(template: str, context: Mapping[str, Any]) -> str:
    """A template with its values, the page's style, and the library that draws its figures."""
    return filled(template, {**context, "bundle": bundle()})


def piece(template: str, context: Mapping[str, Any]) -> Markup:
    """A piece of a page from a template, named by its path below report/, with its values."""
    return Markup(_environment().get_template(template).render(**context))


def filled(template: str, context: Mapping[str, Any], style: str = "") -> str:
    """A page from a template, named as that of a piece; `style` follows the style of every page."""
    own = (_HERE / "style.css").read_text(encoding="utf-8")
    return str(piece(template, {**context, "style": own + style}))


@cache
def _environment() -> Environment:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE.parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
