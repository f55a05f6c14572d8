"""How it was measured: what the words of the verdict mean, and the definition of every measure."""

from typing import Any

from plimsoll.report.section import Page, Section

Json = dict[str, Any]


def _context(page: Page) -> Json:
    return {
        "verdict": page.verdict,
        "commit_rule": next((t["commits"]["rule"] for t in page.verdict["trials"] if t["commits"].get("rule")), ""),
    }


SECTION = Section(key="method", title="How it was measured", template="every_run/method.html.j2", context=_context)
