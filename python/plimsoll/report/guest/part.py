"""Which kernel a guest had, what its verdict does not say, and how its clock went."""

from typing import Any

from plimsoll.analysis.guest.document import GuestOfRun
from plimsoll.experiment import size
from plimsoll.report.section import Page, Section
from plimsoll.words.guest import sentences

Json = dict[str, Any]


def _context(page: Page) -> Json:
    found: GuestOfRun = page.verdict["guest"]
    rows = [
        ("kernel", sentences.kernel_words(found)),
        ("memory", size.show(found["memory_bytes"])),
        ("CPUs", str(found["cpus"])),
    ]
    if found["tick_ms"] is not None:
        rows.append(("tick", f"{found['tick_ms']:g} ms"))
    several = len(found["boots"]) > 1
    rows += [
        (f"clock, boot {number}" if several else "clock", sentences.clock_words(boot))
        for number, boot in enumerate(found["boots"], start=1)
    ]
    return {"cannot": sentences.cannot_words(found), "rows": rows}


SECTION = Section(
    key=sentences.SECTION,
    title="On a guest kernel: mechanism, not speed",
    template="guest/guest.html.j2",
    applies=lambda page: sentences.guest(page.verdict) is not None,
    context=_context,
    evidence=lambda page: sentences.SENTENCES.warns(page.verdict)[1:],
)
