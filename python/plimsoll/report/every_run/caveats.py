"""What a reader has to know before he believes the verdict."""

from plimsoll.report.section import Section

SECTION = Section(
    key="caveats",
    title="Caveats",
    template="every_run/caveats.html.j2",
    applies=lambda page: bool(page.verdict["caveats"]),
    context=lambda page: {"caveats": page.verdict["caveats"]},
)
