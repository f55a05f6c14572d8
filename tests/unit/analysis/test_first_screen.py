"""What somebody reads who has a minute: five answers, each sentence with a section that is there."""

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import analyse
from plimsoll.record import open_run
from plimsoll.report.sections import CLOSING, SECTIONS
from plimsoll.words import parts
from plimsoll.words.first_screen import WHY_MAX, first_screen
from plimsoll.words.said import FirstScreen, Said
from plimsoll.words.sureness import sure_words
from plimsoll.words.terminal import LINES_MAX, WIDTH, screen_lines, terminal_lines

GOLDEN = Path(__file__).parents[2] / "golden"
_MAKER = runpy.run_path(str(GOLDEN / "make_synthetic.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]
Json = dict[str, Any]


def test_every_part_that_speaks_has_a_section_of_the_page() -> None:
    keys = {section.key for section in (*SECTIONS, *CLOSING)}
    assert {one.section for one in parts.SENTENCES} <= keys


@pytest.mark.parametrize("name", ["synthetic", "open_loop", "tiny"])
def test_a_recorded_run_has_the_answers_in_fifteen_lines(name: str) -> None:
    verdict = analyse(open_run(GOLDEN / name))
    screen = first_screen(verdict)
    assert screen.answers and screen.next_steps and screen.wrong
    assert len(screen.why) <= WHY_MAX
    lines = terminal_lines(verdict, "runs/x/report/index.html", "./plimsoll run own-server")
    assert len(lines) <= LINES_MAX
    commands = {one.command for one in screen.next_steps if one.command}
    assert commands <= {line.strip() for line in lines}, "whole, to be copied"
    assert all(len(line) <= WIDTH for line in lines if line.strip() not in commands)
    assert lines[0] == screen.answers[0].text
    assert lines[1].startswith("  ") and " · " in lines[1], "the levels in what is judged"


def test_what_is_excluded_and_how_many_caveats_there_are_is_said(tmp_path: Path) -> None:
    verdict = analyse(open_run(make(tmp_path / "run", Shape(faults=("failed",)))))
    screen = first_screen(verdict)
    assert screen.wrong[0].text.startswith("1 of 18 trials excluded: trial 2 (shared_buffers ")
    assert screen.wrong[0].section == "trials"
    others = len(verdict["caveats"]) - 1
    assert screen.wrong[-1].text.endswith(f"(and {others} more)")
    assert not screen.wrong[-1].text.startswith("three or four blocks"), "how sure it is says so already"


def test_how_sure_says_from_which_ratio_and_how_often_wrong() -> None:
    one = {"grade": "interval", "blocks": 5, "noise": {"ratio_told": 1.117}}
    verdict = {"comparisons": [one], "blocks": 8, "alpha": 0.01}  # of which three were not begun
    assert sure_words(verdict) == (
        "from 5 blocks; ratios from 1.12 on are significant; at most 1% of runs call equals worse"
    )
    loud = one | {"noise": {"ratio_told": 194.93}}
    assert "; ratios from 1.12 on are significant where trials scatter least, from 194.93 where most; " in sure_words(
        verdict | {"comparisons": [loud, one]}
    )
    of_one = one | {"grade": "none", "blocks": 1}
    in_guest = sure_words(verdict | {"guest": {"cannot": ["speed"]}})
    assert in_guest.startswith("from 5 blocks; ratios of throughput from 1.12 on"), "counts of calls lead there"
    of_requests = {"guest": {"cannot": ["speed"]}, "metric": "cpu_ns_per_transaction", "unit_of_work": "request"}
    assert "; ratios of CPU cost per request from 1.12 on" in sure_words(verdict | of_requests)
    assert sure_words(verdict | {"comparisons": [of_one]}) == "from 1 block: no interval"
    assert sure_words(verdict | {"comparisons": []}) == ""


def test_a_verdict_of_before_there_were_next_steps_has_none(tmp_path: Path) -> None:
    run = open_run(shutil.copytree(GOLDEN / "tiny", tmp_path / "run"))
    verdict = json.loads(json.dumps(analyse(run)))
    del verdict["next_steps"]
    assert first_screen(verdict).next_steps == []


def test_what_does_not_fit_is_counted_and_the_first_of_each_kind_stays() -> None:
    screen = FirstScreen(*([Said(f"{kind} {number} " + "word " * 30) for number in range(9)] for kind in "abcde"))
    lines = screen_lines(screen, "x")
    text = "\n".join(lines)
    for kind in "abcde":
        assert f"{kind} 0" in text
    assert text.count("and 8 more, in the report") == 5
    wide = screen_lines(FirstScreen([Said("short")]), "x", "y")
    assert wide == ["short", "Report: x", "For your own server: y"]
