"""What an import left behind becomes tables and a figure: of known rows, and of a million of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.captures.verdict import analyse_capture
from plimsoll.record import MISSING, RecordError, open_run, writer
from plimsoll.report.captures.page import scatter, write_capture_report
from plimsoll.words.captures import capture_lines

TIMES = ("sent_ns", "sent_last_ns", "reply_first_ns", "reply_ns")
NUMBERS = ("connection", "xid", "operation", "compound", "file", "call_bytes", "reply_bytes", "asked_bytes")
NUMBERS += ("answered_bytes", "retransmissions", "further_replies", "status")
COLUMNS = [
    *((name, "<i8") for name in TIMES),
    *((name, "<u4") for name in NUMBERS),
    ("rpc_status", "u1"),
    ("flags", "u1"),
]
START_NS = 1_700_000_000_000_000_000
NOTHING = dict.fromkeys(
    [
        *("gaps", "lost_bytes", "records_lost", "datagrams_lost", "replies_without_call", "packets_cut", "partial"),
        *("messages_unread", "unanswered", "retransmissions", "packets_unread", "segments_again", "segments_early"),
        "resynchronised",
    ],
    0,
)


def made(folder: Path, calls: np.ndarray, **totals: int) -> Path:
    """A run that an import might have left."""
    measure = writer.trial_folder(folder, 1) / "measure"
    measure.mkdir(parents=True)
    plan = {"trials": [{"number": 1, "block": 1, "position": 1, "treatment": "t1", "levels": {}}], "factors": []}
    document = {"id": "known", "kind": "capture", "status": "finished", "capture": {"file": "known.pcap"}}
    writer.create_run(folder, document, plan)
    np.save(measure / "nfs_calls.npy", calls)
    told: dict[str, Any] = {
        "ended": {"how": "whole", "at_byte": None, "reason": None},
        "operations": [{"protocol": "nfs3", "name": name} for name in ("READ", "GETATTR", "WRITE")],
        "connections": [{"client": "10.0.0.1:700", "server": "10.0.0.2:2049", "transport": "tcp"}],
        "files": 3,
        "named_files": [
            {"file": 1, "path": "base/1", "class": "data"},
            {"file": 2, "path": "pg_wal/x", "class": "wal"},
        ],
        "totals": NOTHING
        | {"packets": 9, "packet_bytes": 900, "calls": len(calls), "first_ns": START_NS, "last_ns": START_NS + 10**10}
        | totals,
    }
    (measure / "nfs.json").write_text(json.dumps(told))
    return folder


def known() -> np.ndarray:
    """READ of 1 to 5 ms, one GETATTR without a reply, two WRITE of which one failed and one was sent again."""
    calls = np.zeros(8, COLUMNS)
    calls["file"], calls["connection"] = 0xFFFFFFFF, 0
    calls["sent_ns"] = START_NS + np.arange(8) * 10**9
    calls["reply_ns"] = calls["sent_ns"] + np.array([1, 2, 3, 4, 5, 0, 10, 20]) * 10**6
    calls["operation"] = [0, 0, 0, 0, 0, 1, 2, 2]
    calls["reply_ns"][5] = MISSING
    calls["asked_bytes"][:5], calls["answered_bytes"][:5] = 8192, 4096
    calls["file"][:2], calls["file"][6] = 1, 2
    calls["retransmissions"][7], calls["status"][6] = 2, 28
    return calls


def test_calls_are_told_by_operation_and_by_class(tmp_path: Path) -> None:
    document = analyse_capture(open_run(made(tmp_path / "run", known(), unanswered=1, gaps=3, lost_bytes=777)))
    read, write, getattr_ = document["operations"]
    assert (read["name"], read["calls"], read["asked_bytes"], read["answered_bytes"]) == ("READ", 5, 40960, 20480)
    assert (read["reply_ns_p50"], read["reply_ns_p95"]) == (3e6, pytest.approx(4.8e6))
    assert (write["calls"], write["errors"], write["retransmissions"], write["unanswered"]) == (2, 1, 2, 0)
    assert (getattr_["unanswered"], getattr_["reply_ns_p50"], getattr_["errors"]) == (1, None, 0)
    assert [(row["file_class"], row["name"], row["calls"]) for row in document["classes"]] == [
        ("data", "READ", 2),
        ("wal", "WRITE", 1),
    ]
    assert document["connections"] == [
        {"client": "10.0.0.1:700", "server": "10.0.0.2:2049", "transport": "tcp", "calls": 8}
    ]
    assert len(document["caveats"]) == 2
    assert "777 bytes" in document["caveats"][0]
    lines = capture_lines(document)
    assert any(line.startswith("nfs3 READ") and "3.00 ms" in line for line in lines)


def test_the_page_has_every_call_that_was_answered(tmp_path: Path) -> None:
    folder = made(tmp_path / "run", known())
    document = analyse_capture(open_run(folder))
    assert sum(cell["calls"] for cell in document["scatter"]) == 7
    of = {cell["group"] for cell in document["scatter"]}
    assert of == {"read", "everything else"}
    for cell in document["scatter"]:
        assert cell["from_s"] < cell["to_s"]
        assert cell["low_ms"] < cell["high_ms"]
    writer.write_json(folder / "capture.json", document)
    page = write_capture_report(folder, is_with_files=True)
    assert "nfs3 READ" in page.read_text()
    assert (page.parent / "figures/calls.svg").stat().st_size > 1000


def test_a_million_calls_do_not_drown_the_figure(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    calls = np.zeros(1_000_000, COLUMNS)
    calls["sent_ns"] = START_NS + random.integers(0, 3_000 * 10**9, len(calls))
    calls["reply_ns"] = calls["sent_ns"] + (random.lognormal(0, 1.5, len(calls)) * 1e6).astype(np.int64)
    calls["operation"] = random.integers(0, 3, len(calls))
    document = analyse_capture(open_run(made(tmp_path / "run", calls)))
    assert sum(cell["calls"] for cell in document["scatter"]) == len(calls)
    assert len(document["scatter"]) <= 3 * 160 * 60
    assert len(json.dumps(scatter(document).spec)) < 5_000_000


def test_replies_that_a_capture_has_before_their_calls_are_drawn_as_the_shortest(tmp_path: Path) -> None:
    calls = known()
    calls["reply_ns"][0] = calls["sent_ns"][0] - 5_000
    document = analyse_capture(open_run(made(tmp_path / "run", calls)))
    assert sum(cell["calls"] for cell in document["scatter"]) == 7
    assert min(cell["low_ms"] for cell in document["scatter"]) > 0


def test_a_capture_without_calls_says_so(tmp_path: Path) -> None:
    folder = made(tmp_path / "run", np.zeros(0, COLUMNS))
    document = analyse_capture(open_run(folder))
    assert document["operations"] == document["scatter"] == []
    assert scatter(document).spec is None
    writer.write_json(folder / "capture.json", document)
    assert "no call has a reply" in write_capture_report(folder).read_text()


def test_an_import_that_was_stopped_says_what_to_do(tmp_path: Path) -> None:
    folder = made(tmp_path / "run", known())
    (writer.trial_folder(folder, 1) / "measure/nfs.json").unlink()
    with pytest.raises(RecordError, match="import the capture again"):
        analyse_capture(open_run(folder))
