#!/usr/bin/env python3
"""Draws what a verb says in a terminal of 80 columns: the pictures of the pages in this folder.

    .plimsoll/venv/bin/python docs/pictures.py doctor -- ./plimsoll doctor

runs the command in a terminal of its own and writes docs/NAME.svg, the command above its output (--help has the rest).
Exits as the command did; nothing is drawn of one that failed unless --any.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import os
import pty
import re
import shlex
import struct
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COLUMNS, ROWS = 80, 48
LETTER, LINE = 12.2, 24.4  # as rich draws them
_CONTROL = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]|\r|\n")
# Without rich's fonts, which it would have a browser fetch from elsewhere.
_SVG = """\
<svg class="rich-terminal" width="WIDTH" height="HEIGHT" viewBox="0 0 WIDTH HEIGHT" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
{styles}
</style>
<defs>{lines}</defs>
<rect fill="#1d2127" width="WIDTH" height="HEIGHT" rx="6"/>
<g transform="translate(10, 8)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def in_a_terminal(argv: list[str]) -> tuple[str, int]:
    """Everything a command writes to a terminal of 80 columns, and its exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "LINES": str(ROWS)}
        os.execvpe(argv[0], argv, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    written = bytearray()
    while True:
        try:
            some = os.read(terminal, 65536)
        except OSError:  # the last process that had the terminal is gone
            break
        if not some:
            break
        written += some
    _, status = os.waitpid(pid, 0)
    return written.decode(errors="replace"), os.waitstatus_to_exitcode(status)


def screen(text: str) -> list[str]:
    """The lines that stay: what a line that is kept up to date wrote over is gone. Colours are left as they are."""
    rows, at, last = [""], 0, 0
    for found in _CONTROL.finditer(text):
        rows[at] += text[last : found.start()]
        last, word, what = found.end(), found.group(0), found.group(2)
        if word == "\n":
            at += 1
            if at == len(rows):
                rows.append("")
        elif what == "A":
            at = max(0, at - int(found.group(1) or 1))
        elif what == "K":
            rows[at] = ""
        elif what == "m":
            rows[at] += word
    rows[at] += text[last:]
    while rows and not rows[-1].strip():
        rows.pop()
    return rows


def drawn(command: str, rows: list[str], title: str) -> str:
    """The picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    if command:
        console.print(Text(f"$ {command}", style="bold"), soft_wrap=True)
    for row in rows:
        text = Text.from_ansi(row)
        for piece in text.divide(range(COLUMNS, len(text), COLUMNS)):  # where a terminal breaks it
            console.print(piece, soft_wrap=True)
    shown = len(console.export_text(clear=False).splitlines())
    width, height = round(COLUMNS * LETTER) + 20, round(shown * LINE) + 20
    form = _SVG.replace("WIDTH", str(width)).replace("HEIGHT", str(height))
    svg = console.export_svg(title=title, theme=MONOKAI, code_format=form, unique_id="terminal")
    return "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the picture")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder for the picture")
    parser.add_argument("--last", type=int, default=0, help="only so many last lines")
    parser.add_argument("--shown", help="the command as it is shown, if not as it is run; empty: none")
    parser.add_argument(
        "--replace",
        nargs=2,
        action="append",
        default=[],
        metavar=("PATH", "OTHER"),
        help="a path of this machine's own",
    )
    parser.add_argument("--any", action="store_true", help="whatever its exit code")
    parser.add_argument("command", nargs="+", help="after --")
    asked = parser.parse_args()
    text, code = in_a_terminal(asked.command)
    for path, other in asked.replace:
        text = text.replace(path, other)
    rows = screen(text)
    for row in rows:
        print(row)
    if code and not asked.any:
        return code
    if asked.last:
        rows = ["…", *rows[-asked.last :]]
    command = shlex.join(asked.command) if asked.shown is None else asked.shown
    place = asked.out / f"{asked.name}.svg"
    place.write_text(drawn(command, rows, asked.name), encoding="utf-8")
    print(f"{place}: {place.stat().st_size:,} bytes", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
