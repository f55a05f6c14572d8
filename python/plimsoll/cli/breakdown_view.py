"""What the terminal shows while a server is watched: the picture so far, once a second; at its end the whole of it.

Where standard output is no terminal (a log file, CI) a line appears now and then instead.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.live import Live
from rich.text import Text

from plimsoll.analysis.breakdown.parts import BY_CALLS, is_by_calls
from plimsoll.cli import breakdown_lines as drawn
from plimsoll.cli.console import console

if TYPE_CHECKING:
    from plimsoll.analysis.watch.document import WatchDocument
    from plimsoll.analysis.watch.live import Picture
    from plimsoll.run.watch.watch import Asked

Json = dict[str, Any]
OFTEN_S, OFTEN_LINES, SELDOM_S = 0.5, 10, 10.0
NO_SESSION = "queries and users are not shown: no session on the server ({why}); name one with --dsn"


class Prepared:
    """An observer that draws nothing, and makes ready what the end needs while the agent makes itself ready."""

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def event(self, name: str, **info: Any) -> None:
        """One thing that happened (run/observer.py)."""
        del info
        if name == "started":
            import jinja2  # noqa: F401

            import plimsoll.analysis.watch.verdict
            import plimsoll.report.watch.page  # noqa: F401


class View(Prepared):
    """An observer that draws."""

    def __init__(self, asked: Asked, folder: str) -> None:
        server = asked.server
        self._out = console()
        self._top = asked.top
        self._about: drawn.About = {
            "version": server.major,
            "pid": server.pid,
            "data": str(server.data),
            "seconds": asked.seconds,
            "live": True,
            "notes": [],
        }
        self._folder = folder
        self._printed, self._printed_at = 0, 0.0
        self._live = Live(console=self._out, auto_refresh=False, transient=True) if self._out.is_terminal else None

    def __enter__(self) -> View:
        about = self._about
        self._out.print(f"Watching process {about['pid']} for {about['seconds']:.0f} s; Ctrl-C ends it early")
        self._out.print(f"record: {self._folder}")
        if self._live:
            self._live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        with contextlib.suppress(OSError):
            if self._live:
                self._live.update(Text(""))
                self._live.__exit__(*error)

    def event(self, name: str, **info: Any) -> None:
        """One thing that happened."""
        super().event(name)
        handler = getattr(self, f"_on_{name.replace(' ', '_')}", None)
        with contextlib.suppress(OSError):  # the terminal went away: there is nobody to tell
            if handler:
                handler(**info)

    def _on_no_session(self, why: str) -> None:
        self._note(NO_SESSION.format(why=why))

    def _on_watching(self, probe: Json) -> None:
        if is_by_calls(probe):
            self._note(BY_CALLS)

    def _note(self, text: str) -> None:
        self._about["notes"].append(text)
        if self._live is None:
            self._out.print(f"note: {text}")

    def _on_picture(self, picture: Picture, session: Json) -> None:
        self._about["version"] = session.get("version") or self._about["version"]
        document = picture.document(self._top)
        if self._live is None:
            pause = OFTEN_S if self._printed < OFTEN_LINES else SELDOM_S
            if time.monotonic() - self._printed_at >= pause:
                self._printed, self._printed_at = self._printed + 1, time.monotonic()
                self._out.print(drawn.plain_line(document))
            return
        lines = drawn.picture_lines(self._about, document, self._out.width, self._out.height - 1)
        self._live.update(Group(*lines), refresh=True)


def print_final(document: WatchDocument, page: str) -> None:
    """The picture of a finished watch, in full."""
    out, server = console(), document["server"]
    about: drawn.About = {
        "version": document["session"].get("version") or server.get("major") or "?",
        "pid": server.get("pid"),
        "data": server.get("data_directory"),
        "seconds": document["asked_seconds"],
        "live": False,
        "notes": [f"note: {text}" for text in document["caveats"]],
    }
    with contextlib.suppress(OSError):
        for line in drawn.picture_lines(about, document, min(out.width, 120), None):
            out.print(line)
        out.print(drawn.cost_line(document))
        out.print(f"report: {page}")
