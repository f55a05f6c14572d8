"""A run's page: a template filled in, one HTML file that works offline, its figures as SVG and PNG beside it.

Text on the page may come from an experiment, a log or a database and is escaped by the template; data handed to the
figures is JSON in which no tag can end a script.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from plimsoll.record import Run, writer
from plimsoll.report.figure import Figure, write_files

_HERE = Path(__file__).parent


def write_page(run: Run, template: str, context: Mapping[str, Any], figures: Iterable[Figure]) -> Path:
    """Writes the page and the figures into the run's folder; returns the page's path."""
    folder = run.path / "report"
    folder.mkdir(exist_ok=True)
    for figure in figures:
        write_files(figure, folder / "figures")
    writer.write_text(folder / "index.html", rendered(template, context))
    return folder / "index.html"


def rendered(template: str, context: Mapping[str, Any]) -> str:
    """A template with its values, the page's style, and the library that draws its figures."""
    import jinja2
    import vl_convert

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # A script ends at "</script", which no library of the bundle may hold.
    bundle = vl_convert.javascript_bundle(None, vl_version="6.1")  # type: ignore[arg-type]  # None: all of it
    bundle = bundle.replace("</script", "<\\/script")
    style = (_HERE / "style.css").read_text(encoding="utf-8")
    return environment.get_template(template).render(**context, bundle=bundle, style=style)
