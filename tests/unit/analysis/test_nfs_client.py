"""Calls of NFS by the kernel's tracepoint: their times by operation, and beside the capture, of known rows."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from jinja2 import DictLoader, Environment

import plimsoll.report
from plimsoll.analysis.nfs import part
from plimsoll.analysis.parts import PARTS
from plimsoll.report.nfs import calls as page_of
from plimsoll.words.nfs import sentences

world = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("nfs_world.py"))))
READ, GETATTR, WRITE, COMMIT, SEQUENCE = range(5)
MS = world.MS


def reads(count: int, ms: float = 2.0) -> np.ndarray:
    rows: np.ndarray = world.numbered(world.calls(*((READ, 1 + number / 100, ms) for number in range(count))))
    return rows


def judged(tmp_path: Path, *trials: Any) -> Any:
    """A run of trials of one treatment, each (its calls, more of its segment), and its verdict's part."""
    named = [(block, {"f": "a"}, rows, more) for block, (rows, more) in enumerate(trials, start=1)]
    run = world.run(tmp_path / "run", [world.factor("f", "a")], named)
    return run, part.nfs_calls(run, world.used(run))


def client(tmp_path: Path, rows: np.ndarray, of_client: np.ndarray, **more: Any) -> Any:
    _, found = judged(tmp_path, (rows, {"tasks": of_client, **more}))
    return found["treatments"]["a"]["client"]


def test_times_are_told_by_operation_with_intervals_over_blocks(tmp_path: Path) -> None:
    rows = [reads(400, ms) for ms in (2, 3, 4.5)]
    _, found = judged(tmp_path, *((of_one, {"tasks": world.tasks(of_one)}) for of_one in rows))
    mine = found["treatments"]["a"]["client"]
    assert (mine["source"], mine["trials"], mine["calls"]) == ("rpc_stats_latency", [1, 2, 3], 1200)
    read = mine["operations"][0]
    assert (read["protocol"], read["name"], read["calls"]) == ("nfs4", "READ", 1200)
    assert read["per_transaction"]["value"] == pytest.approx(40)
    times = read["times"]
    # Means of logs: the middle one of a geometric series, if the client's tenth of a millisecond is left out.
    assert times["reply_ns_p50"]["value"] == pytest.approx((2.1 * 3.1 * 4.6) ** (1 / 3) * MS)
    assert times["reply_ns_p50"]["low"] < times["reply_ns_p50"]["value"] < times["reply_ns_p50"]["high"]
    assert [times[f"queue_ns_p{percent}"]["value"] for percent in (50, 95)] == pytest.approx([0.5 * MS] * 2)
    assert times["whole_ns_p50"]["value"] == pytest.approx((3.1 * 4.1 * 5.6) ** (1 / 3) * MS)
    assert times["whole_ns_p99"] is None, "four replies of a trial lie beyond it"


def test_both_have_the_same_calls_and_the_clients_time_is_the_longer(tmp_path: Path) -> None:
    rows = reads(400)
    mine = client(tmp_path, rows, world.tasks(rows, own_ms=0.1))
    (row,) = mine["agreement"]["operations"]
    assert [row[key] for key in ("operation", "both", "client_only", "capture_only", "shorter")] == [
        "READ",
        400,
        0,
        0,
        0,
    ]
    assert (row["compared"], mine["agreement"]["at_edges"]) == (400, 0)
    middle = [row[side]["p50"]["value"] for side in ("capture_reply_ns", "client_reply_ns")]
    assert middle == pytest.approx([2 * MS, 2.1 * MS])
    assert row["longer_ns_p50"]["value"] == pytest.approx(0.1 * MS)
    said = sentences.agreement_words(mine)
    assert said.startswith("tracepoint and capture have the same 400 calls, each by its number; READ takes until its")
    assert "+5.0% at p50 and +5.0% at p95 (100 µs at the median of single calls" in said


def test_a_call_that_one_of_them_lacks_is_told_with_its_operation(tmp_path: Path) -> None:
    rows = reads(30)
    rows["operation"][[3, 4]], rows["operation"][5] = GETATTR, WRITE
    of_client = world.tasks(rows)
    kept, of_client = np.delete(rows, [3, 4]), np.delete(of_client, 5)
    run, found = judged(tmp_path, (kept, {"tasks": of_client}))
    mine = found["treatments"]["a"]["client"]
    apart = {row["operation"]: (row["both"], row["client_only"], row["capture_only"]) for row in
             mine["agreement"]["operations"]}  # fmt: skip
    assert apart == {"READ": (27, 0, 0), "GETATTR": (0, 2, 0), "WRITE": (0, 0, 1)}
    assert "GETATTR 2 and 0, WRITE 0 and 1" in sentences.agreement_words(mine)
    caveats = next(one for one in PARTS if one.key == "nfs_calls").trial_caveats
    assert caveats(run.trials[0], None) == [
        "NFS calls by the capture and by the kernel's tracepoint are not the same: GETATTR, WRITE"
    ]


def test_with_losses_no_trial_is_faulted_and_counts_are_lower_bounds(tmp_path: Path) -> None:
    rows = reads(30)
    run, found = judged(tmp_path, (rows, {"tasks": world.tasks(rows)[:-2], "tasks_lost": {"records": 2}}))
    assert found["treatments"]["a"]["client"]["lost"] == {"records": 2}
    caveats = next(one for one in PARTS if one.key == "nfs_calls").trial_caveats
    assert caveats(run.trials[0], None) == []
    assert sentences.SENTENCES.warns({"nfs_calls": found}) == [
        "NFS calls of the kernel's tracepoint are missing in 1 treatments (lost: records): "
        "their counts are lower bounds"
    ]


def test_calls_at_the_edges_may_be_in_one_alone(tmp_path: Path) -> None:
    """Under way as the client's account is first read (0 s), and answered less than 200 ms before it is last read."""
    early, late = world.calls((READ, -0.001, 5)), world.calls((READ, 99.9, 1))
    rows = world.numbered(np.concatenate([reads(20), early, late]))
    of_client = world.tasks(rows)
    of_client["operation"][20] = GETATTR
    mine = client(tmp_path, np.delete(rows, 20), np.delete(of_client, 21))
    assert mine["agreement"]["at_edges"] == 2
    assert [row["operation"] for row in mine["agreement"]["operations"]] == ["READ"]
    assert "2 at the segment's edges may be in one alone" in sentences.agreement_words(mine)


def test_a_number_that_two_calls_have_tells_nothing(tmp_path: Path) -> None:
    rows = reads(20)
    rows["xid"][1] = rows["xid"][0]
    agreement = client(tmp_path, rows, world.tasks(rows))["agreement"]
    assert (agreement["operations"][0]["both"], agreement["at_edges"]) == (18, 4)


def test_what_was_sent_again_or_has_no_reply_is_counted_and_its_times_not_compared(tmp_path: Path) -> None:
    rows = reads(40)
    rows["reply_ns"][0] = rows["reply_first_ns"][0] = world.MISSING
    of_client = world.tasks(rows)
    of_client["transmissions"][1], of_client["error"][0] = 3, 5
    of_client["rtt_ns"][2] = 1
    mine = client(tmp_path, rows, of_client)
    read, (row,) = mine["operations"][0], mine["agreement"]["operations"]
    assert [read[key] for key in ("unanswered", "retransmissions", "errors")] == [1, 2, 1]
    assert (row["both"], row["compared"], row["shorter"]) == (40, 38, 1)
    assert "of 1 the client's time is shorter than the packets', which cannot be" in sentences.agreement_words(mine)


def test_names_of_the_clients_are_those_on_the_wire(tmp_path: Path) -> None:
    rows = reads(5)
    rows["operation"] = GETATTR
    names = ("READ", "FSINFO", *world.OPERATIONS[2:])
    mine = client(tmp_path, rows, world.tasks(rows), task_names=names)
    assert [row["name"] for row in mine["operations"] if row["calls"]] == ["FSINFO"]
    assert [(row["operation"], row["both"]) for row in mine["agreement"]["operations"]] == [("GETATTR", 5)]


def page(found: Any) -> Any:
    treatments = {name: {"label": name, "levels": {}} for name in found["treatments"]}
    verdict = {"nfs_calls": found, "treatments": treatments, "comparisons": []}
    return SimpleNamespace(verdict=verdict, study=None)


def drawn(found: Any) -> str:
    """The section's text, without its figures."""
    templates = Path(plimsoll.report.__file__).parent
    macros = "{% macro draw_or_say(figure) %}{% endmacro %}"
    source = (templates / "nfs/calls.html.j2").read_text()
    environment = Environment(loader=DictLoader({"drawing/macros.html.j2": macros}), autoescape=True)
    return environment.from_string(source).render(nfs=page_of.calls_part(page(found)), figures=[])


def test_the_page_names_both_sources_and_says_whether_they_agree(tmp_path: Path) -> None:
    rows = reads(400)
    _, found = judged(tmp_path, (rows, {"tasks": world.tasks(rows)}))
    text = drawn(found)
    assert "From the packets on the wire" in text and "From the kernel's tracepoint rpc_stats_latency" in text
    assert "tracepoint and capture have the same 400 calls" in text
    cells = '<td>nfs4 READ</td><td class="n">400</td><td class="n">40.0</td><td class="n">0.50</td>'
    assert cells in text
    assert any("have the same 400 calls" in line for line in page_of.SECTION.evidence(page(found)))


def test_without_the_tracepoint_the_page_says_why(tmp_path: Path) -> None:
    _, found = judged(tmp_path, (reads(20), {"absent": {"tasks": "this kernel has no tracepoint"}}))
    assert found["treatments"]["a"]["client"] is None
    text = drawn(found)
    assert "From the kernel&#39;s tracepoint there is nothing: this kernel has no tracepoint." in text
    assert sentences.agreement_lines({"nfs_calls": found, "treatments": {}, "comparisons": []}) == []
    # A verdict of before there was such a thing.
    for key in ("client", "client_absent"):
        del found["treatments"]["a"][key]
    assert "tracepoint there is nothing" not in drawn(found)
