"""Where people read."""

from __future__ import annotations

import textwrap
from typing import Any

from rich.console import Console


class Lines(Console):
    """A console whose sentences go on in the next line between words, a little further in.

    Only on a terminal: a log file keeps each sentence in a line of its own. What has no blank (a path) is left whole.
    """

    def print(self, *objects: Any, **more: Any) -> None:
        """As rich's; a single long text is wrapped."""
        if len(objects) == 1 and isinstance(objects[0], str) and self.is_terminal:
            objects = ("\n".join(wrapped(line, self.width) for line in objects[0].split("\n")),)
        super().print(*objects, **more)


def wrapped(line: str, width: int) -> str:
    """A line in as many as it takes; those that follow stand two further in than the first."""
    if len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()))
    rows = textwrap.wrap(
        line.lstrip(),
        width,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(rows)


def console() -> Console:
    """Where people read; text from files and servers is never read as markup."""
    return Lines(markup=False, emoji=False, highlight=False, soft_wrap=True)


def tell(text: str) -> None:
    """What went wrong and what to do, on the standard error."""
    Lines(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True).print(text)
