"""An imported capture in the terminal: its calls by operation."""

from __future__ import annotations

from plimsoll.analysis.captures.document import CaptureDocument, OperationRow
from plimsoll.quantities import duration, size

HEADINGS = ("operation", "calls", "bytes", "p50", "p95", "sent again", "unanswered", "errors")


def operation_cells(row: OperationRow) -> tuple[str, ...]:
    """A row of the table of calls."""
    return (
        f"{row['protocol']} {row['name']}",
        f"{row['calls']:,}",
        size(row["answered_bytes"]) if row["asked_bytes"] else "–",
        duration(row["reply_ns_p50"]),
        duration(row["reply_ns_p95"]),
        f"{row['retransmissions']:,}",
        f"{row['unanswered']:,}",
        f"{row['errors']:,}",
    )


def headline(document: CaptureDocument) -> str:
    """What there is, in a sentence."""
    totals, connections = document["totals"], len(document["connections"]) + document["connections_left_out"]
    return (
        f"{totals['calls']:,} calls in {duration(document['seconds'] * 1e9)} on {connections:,} "
        f"{'connection' if connections == 1 else 'connections'}; {totals['retransmissions']:,} sent again, "
        f"{totals['unanswered']:,} without a reply"
    )


def both_accounts_lines(document: CaptureDocument) -> list[str]:
    """Whether the client's own count agrees, and where it does not."""
    rows = document["both_accounts"]
    if rows is None:
        return []
    differing = [row for row in rows if row["difference"]]
    if not differing:
        return ["", f"mountstats agrees on the calls of all {len(rows)} operations"]
    return [
        "",
        f"mountstats differs in {len(differing)} of {len(rows)} operations:",
        *(
            f"  {row['operation']}: {row['capture_calls']:,} in the capture, {row['client_calls']:,} by the client "
            f"({row['difference']:+,})"
            for row in differing
        ),
    ]


def capture_lines(document: CaptureDocument) -> list[str]:
    """All of it, for a terminal."""
    cells = [HEADINGS, *(operation_cells(row) for row in document["operations"])]
    widths = [max(len(row[place]) for row in cells) for place in range(len(HEADINGS))]
    table = [
        "  ".join(
            text.ljust(width) if place == 0 else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    accounts = both_accounts_lines(document)
    return [headline(document), "", *table, *accounts, *(["", *document["caveats"]] if document["caveats"] else [])]
