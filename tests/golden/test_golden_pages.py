"""Golden pages: a golden record's page says the same today and in later versions, section by section.

What is kept is a hash of each section's visible text, and the names of the figures drawn in it; a difference names the
section. After a wanted change of the page:
    PLIMSOLL_GOLDEN_ACCEPT=1 ./test tests/golden    and look at the page before committing it.
"""

import hashlib
import html
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from plimsoll.report import write_report

HERE = Path(__file__).parent
GOLDEN = sorted(folder.parent.name for folder in HERE.glob("*/run.json"))
HEAD = "head"  # the first screen, above the first section


def visible_text(page: str) -> str:
    """The words of a page or of a piece of one, as a reader has them; no scripts and no styles."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", bare)).split())


def sections(page: str) -> dict[str, dict[str, object]]:
    """What a page says and draws, by the section that it stands in."""
    pieces = re.split(r'<details class="section" data-section="([^"]+)">', page.partition("</main>")[0])
    named = [(HEAD, pieces[0]), *zip(pieces[1::2], pieces[2::2], strict=True)]
    return {
        name: {
            "text": hashlib.sha256(visible_text(piece).encode()).hexdigest()[:16],
            "figures": re.findall(r'<figure id="([^"]+)">', piece),
        }
        for name, piece in named
    }


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_record_gives_its_page(name: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(HERE / name, run)
    found = sections(write_report(run).read_text(encoding="utf-8"))
    place = HERE / f"{name}.page.json"
    if os.environ.get("PLIMSOLL_GOLDEN_ACCEPT"):
        place.write_text(json.dumps(found, indent=1) + "\n")
    expected = json.loads(place.read_text())
    assert list(found) == list(expected), "the sections of the page, in their order"
    assert [key for key in found if found[key] != expected[key]] == [], "sections that say or draw something else"


def test_a_changed_word_changes_its_section_alone() -> None:
    one, two = (f'<details class="section" data-section="{name}">' for name in ("one", "two"))
    page = f'<main><p>a</p>{one}<p>b</p></details>{two}<figure id="f"></figure></details></main>'
    found, other = sections(page), sections(page.replace("<p>b</p>", "<p>c</p>"))
    assert list(found) == [HEAD, "one", "two"]
    assert [key for key in found if found[key] != other[key]] == ["one"]
    assert found["two"]["figures"] == ["f"]
