"""Which kernel a guest had, what its verdict does not say, and how its clock went."""

from typing import Any

from plimsoll.analysis.guest.document import GuestOfRun
from plimsoll.experiment import size
from plimsoll.report.section import Page, Section
from plimsoll.words.guest import sentences

Json = dict[str, Any]


def _context(page: Page) -> Json:
    guest: GuestOfRun = page.verdict["guest"]
    rows = [
        ("kernel", sentences.kernel_words(guest)),
        ("memory", size.show(guest["memory_bytes"])),
        ("CPUs", str(guest["cpus"])),
    ]
    if parameters := guest.get("parameters"):  # verdicts of before there were any have none
        rows.append(("boot parameters", parameters))
    if guest["tick_ms"] is not None:
        rows.append(("tick", f"{guest['tick_ms']:g} ms"))
    several = len(guest["boots"]) > 1
    rows += [
        (f"clock, boot {number}" if several else "clock", sentences.clock_words(boot))
        for number, boot in enumerate(guest["boots"], start=1)
    ]
    return {"worth": sentences.worth_words(guest), "cannot": sentences.cannot_words(guest), "rows": rows}


SECTION = Section(
    key=sentences.SECTION,
    title="On a guest kernel: what it shows, and what not",
    template="guest/guest.html.j2",
    applies=lambda page: sentences.guest_of(page.verdict) is not None,
    context=_context,
    evidence=lambda page: sentences.SENTENCES.warns(page.verdict)[1:],
)
