"""Sections of a page: each states its own rule, an experiment names those of its study, and a new one is one line."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import pytest

from plimsoll.experiment.page import SectionKey, Study
from plimsoll.record import Run
from plimsoll.report import page as page_of_run
from plimsoll.report import write_report
from plimsoll.report.drawing.figure import Figure
from plimsoll.report.drawing.html import piece
from plimsoll.report.original_studies import S4, STUDIES, study_of
from plimsoll.report.section import Page, Section
from plimsoll.report.sections import CLOSING, SECTIONS

ROOT = Path(__file__).parents[3]
REPORT = ROOT / "python/plimsoll/report"
GOLDEN = ROOT / "tests/golden/open_loop"


def _page(verdict: dict[str, Any], **experiment: Any) -> Page:
    return Page(cast(Run, SimpleNamespace(experiment=experiment, trials=[])), verdict)


def _applying(page: Page, *keys: str) -> list[str]:
    return [section.key for section in SECTIONS if section.key in keys and section.applies(page)]


@pytest.mark.parametrize("study", [None, *STUDIES])
def test_what_a_study_says_of_system_calls_stands_beside_ours_if_it_says_anything(study: str | None) -> None:
    """The probe may watch an experiment of any study."""
    of_study = STUDIES[study] if study else None
    drawn = piece("probes/syscalls.html.j2", {"syscalls": {"calls": [], "syncs": []}, "figures": [], "study": of_study})
    assert ("Beside the original" in drawn) == ("calls" in (of_study or {}))


def test_each_section_has_a_key_and_a_template_of_its_own() -> None:
    found = [*SECTIONS, *CLOSING]
    for attribute in ("key", "title", "template"):
        values = [getattr(section, attribute) for section in found]
        assert sorted(values) == sorted(set(values))
    assert not [section.key for section in found if "<h2" in (REPORT / section.template).read_text()]
    assert all(section.title for section in found), "the page makes the heading"


def test_what_an_experiment_may_name_is_there() -> None:
    assert set(get_args(Study)) == set(STUDIES)
    named = [section for section in SECTIONS if section.key in get_args(SectionKey)]
    assert len(named) == len(get_args(SectionKey))
    assert all(section.needs for section in named)


MEMORY = {"memory_scaling": {"rows": []}, "scaling": None, "clients": {"rows": [{}]}}


def test_no_experiment_inherits_the_section_of_a_study() -> None:
    mine = {"sections": [], "source": "Study S5, borrowed"}
    assert _applying(_page(MEMORY, **mine), "clients", "scaling") == []
    assert _applying(_page(MEMORY, sections=["scaling"]), "clients", "scaling") == ["scaling"]
    assert _applying(_page({}, sections=["scaling"]), "scaling") == [], "named, and there is nothing to draw"


def test_a_record_of_before_has_the_sections_that_its_design_gives() -> None:
    assert _applying(_page(MEMORY, source="Study S5"), "clients", "scaling") == ["clients", "scaling"]


def test_a_study_is_named_and_no_substring_of_a_sentence() -> None:
    assert study_of({"study": "ibm-2004-cpus", "source": "S1"}) == S4
    assert study_of({"study": None, "source": "an S4 of our own"}) is None
    assert study_of({"source": "Study S4 (IBM, 2004)"}) == S4, "a record of before studies had names"


def test_the_page_and_its_template_name_no_section() -> None:
    template = (REPORT / "report.html.j2").read_text()
    assert "<h2" not in template
    assert set(re.findall(r'include "([^"]+)"', template)) == {"drawing/drawing.html.j2", "drawing/folds.html.j2"}
    code = (REPORT / "page.py").read_text()
    assert not re.search(r"plimsoll\.report\.(?!drawing|section)", code), "it imports no section's room"
    for section in (*SECTIONS, *CLOSING):
        assert f'== "{section.key}"' not in code
        assert section.key.replace("-", "_") not in re.findall(r"{[%{] *\w* *([a-z_.]+)", template)


def test_a_section_and_its_figure_are_added_by_the_list_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = {"mark": "point", "data": {"values": [{"a": 1}]}, "encoding": {}}
    toy = Section(
        key="toy",
        title="Toys",
        template="studies/clients.html.j2",
        context=lambda page: {"study": {"name": "a toy", "setup": str(len(page.verdict["trials"]))}},
        figures=lambda _: [Figure("toy-figure", "A toy drawn", spec=spec), Figure("none", "No toy", absent="it broke")],
        evidence=lambda _: ["A toy says so."],
    )
    absent = Section(
        key="gone", title="Gone", template="none.html.j2", applies=lambda _: False, needs="nobody asked for a toy"
    )
    monkeypatch.setattr(page_of_run, "SECTIONS", (toy, absent))
    run = tmp_path / "run"
    shutil.copytree(GOLDEN, run)
    document = run / "experiment.json"
    document.write_text(document.read_text().replace("{", '{"sections": ["gone"], ', 1))
    text = write_report(run).read_text()
    assert "<p>Beside the original: a toy (6).</p>" in text
    assert 'data-figure="toy-figure"' in text
    assert '"toy-figure": {' in text, "its specification, for the library that draws it"
    assert '<p class="evidence">A toy says so.</p>' in text
    assert "<li>No toy: because it broke.</li>" in text
    assert "<li>the section &#34;gone&#34;: because nobody asked for a toy.</li>" in text
    assert '<summary><h2>Toys</h2></summary>\n<div id="section-toy">' in text
    assert 'data-section="trials"' not in text, "nothing but what the list has"


def test_a_sentence_about_a_section_that_is_not_there_links_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(GOLDEN, tmp_path / "run")
    monkeypatch.setattr(page_of_run, "SECTIONS", tuple(one for one in SECTIONS if one.key != "levels"))
    text = write_report(tmp_path / "run").read_text()
    assert "How sure: from 3 blocks" in text
    assert "#section-levels" not in text
    assert '<a href="#section-caveats">' in text
