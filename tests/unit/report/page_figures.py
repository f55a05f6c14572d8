"""A figure of a page drawn without a browser, from the specification that the page has. Loaded by runpy."""

import json
import re
from pathlib import Path

import vl_convert


def svg(page: Path, name: str) -> str:
    """The SVG of one figure; a figure that nobody looks at costs nothing."""
    found = re.search(r"^const specs = (.*);$", page.read_text(), re.MULTILINE)
    assert found is not None
    drawn: str = vl_convert.vegalite_to_svg(json.dumps(json.loads(found[1])[name]), vl_version="6.1")
    assert drawn.startswith("<svg")
    return drawn


def section(text: str, key: str) -> str:
    """What a page says in one of its sections."""
    begin = text.index(f'<details class="section" data-section="{key}">')
    end = text.find('<details class="section"', begin + 1)
    return text[begin:end] if end > 0 else text[begin:]
