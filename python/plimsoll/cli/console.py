"""Where people read."""

from __future__ import annotations

from rich.console import Console


def console() -> Console:
    """Where people read; text from files and servers is never read as markup."""
    return Console(markup=False, highlight=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Seconds for people."""
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    if whole < 2 * 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
