"""Documents are tested: links resolve, verbs named are verbs, words of the code's stages are in the glossary."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = {".plimsoll", "target", "runs", ".git", "node_modules"}
DOCUMENTS = [path for path in sorted(ROOT.rglob("*.md")) if not SKIPPED & set(path.relative_to(ROOT).parts)]


def _verbs() -> set[str]:
    from plimsoll.cli.app import app

    named = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    return named | {str(group.name) for group in app.registered_groups}


@pytest.mark.parametrize("path", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS])
def test_links_resolve(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (path.parent / target).exists(), f"{path.name} links to {target}, which is not there"


@pytest.mark.parametrize("path", DOCUMENTS, ids=[str(path.relative_to(ROOT)) for path in DOCUMENTS])
def test_commands_are_verbs(path: Path) -> None:
    for verb in re.findall(r"\./plimsoll ([a-z][a-z-]*)", path.read_text()):
        assert verb in _verbs() | {"setup"}, f"{path.name} names ./plimsoll {verb}"


def test_help_lists_exactly_the_verbs() -> None:
    text = (ROOT / "setup/help.txt").read_text()
    named = set(re.findall(r"^  ([a-z]+)   +\S", text, flags=re.M))
    assert named == _verbs() | {"setup"}


PICTURE_BYTES_MAX = 150_000


@pytest.mark.parametrize("verb", sorted(_verbs() | {"setup"}))
def test_every_verb_has_its_page_with_a_picture(verb: str) -> None:
    page = ROOT / f"docs/{verb}.md"
    text = page.read_text()
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+\.(?:svg|webp))\)", text)
    assert pictures, f"{page.name} shows no picture of what the verb says"
    for name in pictures:
        assert (page.parent / name).stat().st_size <= PICTURE_BYTES_MAX, f"{name} is larger than a page should load"
    assert f"./plimsoll {verb}" in text
    assert "xit code" in text, f"{page.name} names no exit codes"
    assert f"](docs/{verb}.md)" in (ROOT / "README.md").read_text(), f"README.md does not lead to {page.name}"


def test_pictures_need_nothing_from_elsewhere() -> None:
    for picture in (ROOT / "docs").glob("*.svg"):
        text = picture.read_text().replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert "http" not in re.sub(r"<text.*?</text>", "", text, flags=re.S), f"{picture.name} fetches something"


def test_every_experiment_has_its_page_and_its_name() -> None:
    from plimsoll.experiment import load, shipped

    for path in shipped():
        assert load(str(path)).experiment.name == path.parent.name
        assert (path.parent / "README.md").read_text().startswith("# ")


def test_no_registry_or_index_address_is_committed() -> None:
    for path in (ROOT / "setup").iterdir():
        if path.is_file():
            assert "http" not in path.read_text() or path.name == "setup", f"{path} holds an address"
