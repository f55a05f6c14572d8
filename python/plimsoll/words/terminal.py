"""The last screen of a run in the terminal: about fifteen lines with the five answers, and where to read on.

The fact that constrains it: a reason ends with what to do, so that no sentence is cut; where there is no room for all
of a kind the rest is counted.
"""

import textwrap
from typing import Any

from plimsoll.words.first_screen import first_screen
from plimsoll.words.said import FirstScreen, Said
from plimsoll.words.verdict import figure_lines

Json = dict[str, Any]
LINES_MAX = 15
WIDTH = 118
ANSWERS_MAX = 4


def terminal_lines(
    verdict: Json, report_path: object, own_server_command: str | None = None, width: int = WIDTH
) -> list[str]:
    """The lines for a run of an experiment; more of them in a narrower terminal."""
    return screen_lines(first_screen(verdict), report_path, own_server_command, width, figure_lines(verdict))


def screen_lines(
    screen: FirstScreen,
    report_path: object,
    own_server_command: str | None = None,
    width: int = WIDTH,
    figures: list[str] | None = None,
) -> list[str]:
    """The five answers in lines; `figures` stand right below the answers. At least one sentence of each kind."""
    end = [f"Report: {report_path}"]
    if own_server_command:
        end.append(f"For your own server: {own_server_command}")
    room = LINES_MAX * WIDTH // width - len(end)
    for most in (ANSWERS_MAX, 3, 2, 1):
        lines = _lines(screen, most, width, figures or [])
        if len(lines) <= room:
            break
    return [*lines, *end]


def _lines(screen: FirstScreen, most: int, width: int, figures: list[str]) -> list[str]:
    lines = [row for one in _first(screen.answers, most) for row in _wrapped(one.text, width, "", "    ")]
    lines += [row for line in figures for row in _wrapped(line, width, "  ", "    ")]
    kinds = (("How sure", screen.sure), ("Why", screen.why), ("Next", screen.next_steps), ("Caveats", screen.wrong))
    for name, said in kinds:
        begin = f"{name}: "
        for one in _first(said, min(most, 3)):
            lines += _wrapped(one.text, width, begin, "    ")
            lines += [f"    {one.command}"] if one.command else []  # whole, to be copied
            begin = "  · "
    return lines


def _first(said: list[Said], most: int) -> list[Said]:
    """The first sentences, and how many more there are in the report."""
    left = len(said) - most
    return [*said[:most], *([Said(f"and {left} more, in the report")] if left > 0 else [])]


def _wrapped(line: str, width: int, begin: str, then: str) -> list[str]:
    found = textwrap.wrap(line, width, initial_indent=begin, subsequent_indent=then, break_long_words=False)
    return found or [""]
