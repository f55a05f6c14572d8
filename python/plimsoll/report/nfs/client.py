"""Calls of NFS by the kernel's tracepoint, as the page has them: times by operation, and both accounts call by call.

Computes nothing: every number stands in verdict.json and is only given a unit here.
"""

from __future__ import annotations

from typing import Any

from plimsoll.analysis.nfs.client import PERCENTS, TIMES
from plimsoll.analysis.nfs.document import NfsBoth, NfsClient
from plimsoll.report.drawing.tables import NONE, interval, number
from plimsoll.words.nfs.sentences import agreement_words, per_transaction

Json = dict[str, Any]
_MS, _US = 1e-6, 1e-3
_LABELS = {"queue_ns": "queue, ms", "reply_ns": "reply, ms", "whole_ns": "whole, ms"}


def client_table(found: NfsClient) -> Json:
    """What the template draws of one treatment."""
    agreement = found["agreement"]
    return {
        "source": found["source"],
        "times": [_LABELS[name] for name in TIMES],
        "percents": [f"p{percent}" for percent in PERCENTS],
        "operations": [
            [
                f"{row['protocol']} {row['name']}",
                number(row["calls"], ",.0f"),
                NONE if row["per_transaction"] is None else per_transaction(row["per_transaction"]),
                *(interval(row["times"][f"{name}_p{percent}"], ",.2f", _MS) for name in TIMES for percent in PERCENTS),
                number(row["retransmissions"], ",.0f"),
                number(row["unanswered"], ",.0f"),
                number(row["errors"], ",.0f"),
            ]
            for row in found["operations"]
        ],
        "agreement": agreement_words(found),
        "both": [_both(row) for row in agreement["operations"]] if agreement else [],
    }


def _both(row: NfsBoth) -> list[str]:
    return [
        row["operation"],
        *(number(row[name], ",.0f") for name in ("both", "client_only", "capture_only")),
        *(
            interval(side[percent], ",.2f", _MS)
            for percent in ("p50", "p95")
            for side in (row["capture_reply_ns"], row["client_reply_ns"])
        ),
        interval(row["longer_ns_p50"], "+,.0f", _US),
    ]
