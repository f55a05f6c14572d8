"""Calls of NFS of trials: counts a transaction, reply times, both accounts, and what a level changes, of known rows."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.captures.density import GROUPS
from plimsoll.analysis.nfs import part, trial
from plimsoll.analysis.parts import PARTS
from plimsoll.record import writer
from plimsoll.report.nfs import calls as page_of
from plimsoll.words.nfs import sentences

world = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("nfs_world.py"))))
READ, GETATTR, WRITE, COMMIT, SEQUENCE = range(5)


def rows(reads: int, getattrs: int, size: int = 8192, ms: float = 2.0) -> np.ndarray:
    """So many of each, ten a second, and a COMMIT; all within the segment."""
    of_each = [READ] * reads + [GETATTR] * getattrs + [COMMIT]
    return world.calls(*((operation, 1 + number / 10, ms) for number, operation in enumerate(of_each)), size=size)


def judged(tmp_path: Path, trials: list[Any], *factors: Any) -> Any:
    run = world.run(tmp_path / "run", list(factors), trials)
    return part.nfs_calls(run, world.used(run))


def page(found: Any) -> Any:
    treatments = {name: {"label": name, "levels": {}} for name in found["treatments"]}
    verdict = {"nfs_calls": found, "treatments": treatments, "comparisons": []}
    return SimpleNamespace(verdict=verdict, study=None)


def test_calls_are_told_by_transaction_with_intervals_over_blocks(tmp_path: Path) -> None:
    trials = [(block, {"f": "a"}, rows(20 + block, 5), {}) for block in (1, 2, 3)]
    mine = judged(tmp_path, trials, world.factor("f", "a"))["treatments"]["a"]
    assert (mine["calls"], mine["transactions"]) == (21 + 22 + 23 + 3 * 6, 30)
    each = mine["groups"]["read"]
    assert each["value"] == pytest.approx(2.2)
    # Student's t of 2.1, 2.2 and 2.3, by hand: 4.303 * 0.1 / sqrt(3).
    assert each["high"] - each["value"] == pytest.approx(0.2484, rel=1e-3)
    read = next(row for row in mine["operations"] if row["name"] == "READ")
    assert read["bytes_per_call"]["value"] == pytest.approx(8192)
    assert read["reply_ns_p50"]["value"] == pytest.approx(2e6)
    assert read["reply_ns_p95"] is None, "one reply lies beyond it"
    assert [(row["file_class"], row["name"], row["calls"]) for row in mine["classes"]] == [
        ("data", "READ", 66),
        ("unknown", "GETATTR", 15),
        ("unknown", "COMMIT", 3),
    ]
    assert mine["mounts"] == [
        {"source": "server:/export", "options": ["vers=4.2", "rsize=8192", "wsize=8192", "hard", "proto=tcp"],
         "is_targets": True}
    ]  # fmt: skip
    assert sum(cell["calls"] for cell in mine["scatter"]) == 27


def test_percentiles_are_those_of_the_replies(tmp_path: Path) -> None:
    calls = world.calls(*((READ, 1 + number / 100, 1 + number / 10) for number in range(1001)))
    mine = judged(tmp_path, [(1, {"f": "a"}, calls, {})], world.factor("f", "a"))["treatments"]["a"]
    read = mine["operations"][0]
    assert [read[key]["value"] for key in part.PERCENTILES] == pytest.approx([51e6, 96e6, 100e6])


def test_a_level_is_set_against_the_first_with_all_else_equal(tmp_path: Path) -> None:
    factors = [world.factor("ac", "default", "noac"), world.factor("rsize", "8192", "1024")]
    trials = []
    for block in (1, 2, 3):
        for ac, getattrs in (("default", 2), ("noac", 40 + block)):
            for rsize, reads in (("8192", 10), ("1024", 80)):
                size = int(rsize)
                trials.append((block, {"ac": ac, "rsize": rsize}, rows(reads, getattrs, size), {}))
    found = judged(tmp_path, trials, *factors)
    effects = {(effect["factor"], effect["at"], effect["what"]): effect for effect in found["effects"]}
    for size in ("8192", "1024"):
        noac = effects["ac", f"rsize {size}", "getattr"]
        assert (noac["first"]["value"], noac["second"]["value"]) == (pytest.approx(0.2), pytest.approx(4.2))
        assert noac["difference"]["value"] == pytest.approx(4.0)
        assert noac["ratio"]["value"] == pytest.approx(21, rel=0.01)
        assert effects["ac", f"rsize {size}", "read"]["difference"]["value"] == pytest.approx(0)
    assert effects["rsize", "ac noac", "read"]["ratio"]["value"] == pytest.approx(8)
    assert sentences.lead_lines({"nfs_calls": found}) == [], "where times count, they lead"
    in_guest = {"nfs_calls": found, "guest": {"cannot": ["speed"]}}
    leads = sentences.lead_lines(in_guest)
    assert [line.partition(": ")[0] for line in leads] == [
        "READ calls a transaction, rsize 1024 against 8192 at ac default",
        "GETATTR calls a transaction, ac noac against default at rsize 8192",
    ]
    assert leads[0].partition(": ")[2].startswith("1.00 to 8.00 (+7.00")
    told = sentences.effect_lines(in_guest)
    assert told[:2] == leads and len(set(told)) == len(told) > 2
    assert sentences.effect_lines({"nfs_calls": found})[0] == leads[0]


def test_a_small_ratio_keeps_two_digits() -> None:
    first, second, difference, ratio = (
        {"value": value, "low": None, "high": None, "blocks": 2} for value in (8013.0, 48.6, -7964.4, 0.006065)
    )
    effect: Any = {"factor": "query", "level": "index", "against": "scan", "at": "scale 5", "what": "read",
                   "first": first, "second": second, "difference": difference, "ratio": ratio}  # fmt: skip
    assert sentences.effect_words(effect).endswith(" at scale 5: 8,013 to 48.6 (-7,964, 0.0061 times)")


def test_calls_of_a_name_lead_before_all_others(tmp_path: Path) -> None:
    """The others change by more; READ is what the factor is about."""
    trials = []
    for block in (1, 2, 3):
        for size, reads, writes in (("8192", 10, 20), ("1024", 80, 300)):
            others = world.calls(*((WRITE, 1 + number / 10, 1) for number in range(writes)))
            trials.append((block, {"rsize": size}, np.concatenate([rows(reads, 5), others]), {}))
    found = judged(tmp_path, trials, world.factor("rsize", "8192", "1024"))
    (lead,) = sentences.lead_lines({"nfs_calls": found, "guest": {"cannot": ["speed"]}})
    assert lead.startswith("READ calls a transaction, rsize 1024 against 8192: 1.00 to 8.00 (+7.00")
    of_a_web_server = {"nfs_calls": found, "unit_of_work": "request"}
    assert sentences.effect_lines(of_a_web_server)[0].startswith("Other calls a request, ")
    assert sentences.effect_lines({"nfs_calls": found})[0].startswith("Other calls a transaction, ")


def test_data_that_fit_and_data_that_do_not_are_not_averaged(tmp_path: Path) -> None:
    """A scan reads nothing of what memory holds: its effect at one scale says nothing of that at the other."""
    factors = [world.factor("query", "scan", "index"), world.factor("scale", "1", "5")]
    reads = {("scan", "1"): 10, ("scan", "5"): 800, ("index", "1"): 10, ("index", "5"): 20}
    trials = [
        (block, {"query": query, "scale": scale}, rows(count, 5), {})
        for block in (1, 2, 3)
        for (query, scale), count in reads.items()
    ]
    found = judged(tmp_path, trials, *factors)["effects"]
    at = {(one["factor"], one["at"]): one["difference"]["value"] for one in found if one["what"] == "read"}
    assert at == {
        ("query", "scale 1"): pytest.approx(0),
        ("query", "scale 5"): pytest.approx(-78),
        ("scale", "query scan"): pytest.approx(79),
        ("scale", "query index"): pytest.approx(1),
    }


def test_many_settings_of_the_others_are_taken_together(tmp_path: Path) -> None:
    sizes = [str(1024 << number) for number in range(part.APART_MAX + 1)]
    factors = [world.factor("ac", "default", "noac"), world.factor("rsize", *sizes)]
    trials = [
        (1, {"ac": ac, "rsize": size}, rows(10 + place, getattrs), {})
        for place, size in enumerate(sizes)
        for ac, getattrs in (("default", 2), ("noac", 42))
    ]
    found = judged(tmp_path, trials, *factors)["effects"]
    (noac,) = [one for one in found if (one["factor"], one["what"]) == ("ac", "getattr")]
    assert (noac["at"], noac["difference"]["value"]) == ("", pytest.approx(4.0))
    assert {one["at"] for one in found if one["factor"] == "rsize"} == {"ac default", "ac noac"}


def test_both_accounts_agree_or_say_where_they_do_not(tmp_path: Path) -> None:
    found = judged(tmp_path, [(1, {"f": "a"}, rows(20, 5), {})], world.factor("f", "a"))
    mine = found["treatments"]["a"]
    assert [(row["operation"], row["difference"], row["is_explained"]) for row in mine["accounts"]] == [
        ("COMMIT", 0, True),
        ("GETATTR", 0, True),
        ("READ", 0, True),
    ]
    assert sentences.account_lines({"nfs_calls": found})[0].startswith("The client's own account agrees")


@pytest.mark.parametrize(("off", "wrong"), [({"READ": 1}, ["READ"]), ({"GETATTR": -1}, ["GETATTR"])])
def test_a_call_that_only_one_of_them_has_is_not_explained(
    tmp_path: Path, off: dict[str, int], wrong: list[str]
) -> None:
    found = judged(tmp_path, [(1, {"f": "a"}, rows(20, 5), {"off": off})], world.factor("f", "a"))
    assert [row["operation"] for row in found["treatments"]["a"]["accounts"] if not row["is_explained"]] == wrong
    assert "differs unexplained" in sentences.account_lines({"nfs_calls": found})[0]


def test_calls_at_the_edges_explain_what_they_can_and_no_more(tmp_path: Path) -> None:
    """Two replies just before the client is read, which it need not have counted; a third is one too many."""
    calls = np.concatenate([rows(20, 5), world.calls((READ, 99.9, 1), (READ, 99.95, 1), (WRITE, 99.999, 5))])
    for off, is_explained in ((0, True), (-2, True), (-3, False)):
        more = {"off": {"READ": off, "WRITE": 0}}
        folder = tmp_path / str(off)
        mine = judged(folder, [(1, {"f": "a"}, calls, more)], world.factor("f", "a"))["treatments"]["a"]
        accounts = {row["operation"]: row for row in mine["accounts"]}
        assert (accounts["READ"]["difference"], accounts["READ"]["is_explained"]) == (-off, is_explained)
        # It was answered after the client was read: the client may have it all the same, and here says so.
        assert (accounts["WRITE"]["difference"], accounts["WRITE"]["is_explained"]) == (-1, False)


def test_a_reply_while_the_client_is_read_may_be_counted_or_not(tmp_path: Path) -> None:
    """The client is read for a millisecond at 100 s; a reply in it is the capture's no more."""
    calls = np.concatenate([rows(20, 5), world.calls((WRITE, 99.9996, 1))])
    for off, expected in ((0, [(-1, True)]), (-1, [])):
        trials = [(1, {"f": "a"}, calls, {"off": {"WRITE": off}})]
        accounts = judged(tmp_path / str(off), trials, world.factor("f", "a"))["treatments"]["a"]["accounts"]
        assert [(row["difference"], row["is_explained"]) for row in accounts if row["operation"] == "WRITE"] == expected


def test_what_the_client_does_for_itself_is_counted_for_no_mount(tmp_path: Path) -> None:
    calls = np.concatenate([rows(20, 5), world.calls((SEQUENCE, 50, 1))])
    found = judged(tmp_path, [(1, {"f": "a"}, calls, {})], world.factor("f", "a"))
    sequence = next(row for row in found["treatments"]["a"]["accounts"] if row["operation"] == "SEQUENCE")
    assert (sequence["difference"], sequence["is_of_mount"], sequence["is_explained"]) == (1, False, True)


def test_reads_asked_are_set_against_reads_served(tmp_path: Path) -> None:
    moved = (100_000, 40_000, 0, 0, 25_000, 40_000, 7, 10)
    found = judged(tmp_path, [(1, {"f": "a"}, rows(20, 5), {"moved": moved})], world.factor("f", "a"))
    told = found["treatments"]["a"]["moved"]
    assert (told["asked_read"]["value"], told["served_read"]["value"]) == (10_000, 2_500)
    assert told["kept_share"]["value"] == pytest.approx(0.75)
    assert "the page cache had 75%" in str(sentences.kept_words(found["treatments"]["a"]))
    ahead = judged(tmp_path / "ahead", [(1, {"f": "a"}, rows(1, 1), {"moved": (100, 0, 0, 0, 150, 0, 0, 0)})],
                   world.factor("f", "a"))  # fmt: skip
    assert "50% more was read ahead" in str(sentences.kept_words(ahead["treatments"]["a"]))


def test_calls_belong_to_the_transaction_that_was_under_way(tmp_path: Path) -> None:
    calls = world.calls((READ, 1.1, 1), (READ, 1.2, 1), (READ, 3.5, 1), (GETATTR, 2.5, 1), (WRITE, 9.0, 1))
    run = world.run(tmp_path / "run", [world.factor("f", "a")], [(1, {"f": "a"}, calls, {"transactions": 3})])
    folder = writer.trial_folder(tmp_path / "run", 1) / "measure"
    transactions = np.array([(1, 2, 0), (2, 3, 1), (3, 4, 0)], [("s", "f8"), ("e", "f8"), ("k", "u1")])
    table = np.zeros(3, world.TRANSACTIONS)
    table["start_ns"], table["end_ns"] = transactions["s"] * world.S, transactions["e"] * world.S
    table["kind"] = transactions["k"]
    np.save(folder / "transactions.npy", table)
    kinds = {row["kind"]: row for row in part.nfs_calls(run, world.used(run))["treatments"]["a"]["kinds"]}
    assert {name: mean["value"] for name, mean in kinds["one"]["operations"].items()} == {"READ": 1.5}
    assert {name: mean["value"] for name, mean in kinds["other"]["operations"].items()} == {"GETATTR": 1.0}
    assert kinds["one"]["read_bytes"]["value"] == 1.5 * 8192
    table["end_ns"][0] = int(2.5 * world.S)  # two at once: nobody can tell whose a call is
    np.save(folder / "transactions.npy", table)
    assert part.nfs_calls(run, world.used(run))["treatments"]["a"]["kinds"] == []


def test_a_trial_without_nfs_has_no_calls_and_one_that_differs_says_so(tmp_path: Path) -> None:
    trials = [
        (1, {"f": "local"}, rows(0, 0), {"mounts": []}),
        (1, {"f": "nfs"}, rows(20, 5), {"off": {"READ": 7}}),
    ]
    run = world.run(tmp_path / "run", [world.factor("f", "local", "nfs")], trials)
    assert list(part.nfs_calls(run, world.used(run))["treatments"]) == ["nfs"]
    caveats = next(one for one in PARTS if one.key == "nfs_calls").trial_caveats
    assert caveats(run.trials[0], None) == []
    assert caveats(run.trials[1], None) == ["NFS calls by the capture and by the client differ unexplained: READ"]
    writer_folder = writer.trial_folder(tmp_path / "run", 2) / "measure"
    (writer_folder / "mountstats-after.txt").unlink()
    assert "could not be read" in caveats(run.trials[1], None)[0]


def test_lost_packets_make_counts_lower_bounds(tmp_path: Path) -> None:
    more = {"lost": {"dropped": 3, "gaps": 1, "rows": 0}}
    found = judged(tmp_path, [(1, {"f": "a"}, rows(20, 5), more)], world.factor("f", "a"))
    assert found["treatments"]["a"]["lost"] == {"dropped": 3, "gaps": 1}
    assert sentences.SENTENCES.warns({"nfs_calls": found}) == [
        "NFS calls are missing in 1 treatments (lost: dropped, gaps): their counts are lower bounds"
    ]


def test_two_places_of_one_file_system_are_counted_once(tmp_path: Path) -> None:
    run = world.run(tmp_path / "run", [world.factor("f", "a")], [(1, {"f": "a"}, rows(20, 5), {})])
    folder = writer.trial_folder(tmp_path / "run", 1) / "measure"
    for name in ("before", "after"):
        path = folder / f"mountstats-{name}.txt"
        path.write_text(path.read_text() + path.read_text().replace("/mnt/db", "/mnt/wal"))
    summary = json.loads((folder / "summary.json").read_text())
    mounts = summary["probes"]["nfs_calls"]["mounts"]
    mounts.append(mounts[0] | {"place": "/mnt/wal"})
    (folder / "summary.json").write_text(json.dumps(summary))
    accounts = trial.accounts(trial.read(run.trials[0]))
    assert [row["difference"] for row in accounts] == [0, 0, 0]


def test_the_page_has_tables_and_a_scatter_of_a_million_calls(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    many = np.zeros(1_000_000, world.COLUMNS)
    many["sent_ns"] = world.START_NS + random.integers(world.S, 90 * world.S, len(many))
    many["reply_ns"] = many["sent_ns"] + (random.lognormal(0, 1.5, len(many)) * 1e6).astype(np.int64)
    many["operation"] = random.integers(0, 3, len(many))
    found = judged(tmp_path, [(1, {"f": "a"}, many, {})], world.factor("f", "a"))
    figure = page_of.scatter(page(found))
    assert figure.spec is not None
    assert len(json.dumps(figure.spec)) < 2_000_000
    assert sum(cell["calls"] for cell in found["treatments"]["a"]["scatter"]) == len(many)
    tables = page_of.calls_part(page(found))
    assert tables["rows"][0]["options"] == ["server:/export: vers=4.2, rsize=8192, wsize=8192, hard, proto=tcp"]
    assert {row[4] for row in tables["tables"][0]["accounts"]} == {"agree"}


def test_every_panel_of_the_scatter_has_data(tmp_path: Path) -> None:
    """Vega moves the data of all panels behind one that has none, so that calls would stand below another's name."""
    trials = [(1, {"f": "a"}, rows(20, 0), {}), (1, {"f": "b"}, rows(20, 5), {})]
    found = judged(tmp_path, trials, world.factor("f", "a", "b"))
    figure = page_of.scatter(page(found))
    assert figure.spec is not None
    cells = figure.spec["datasets"]["cells"]
    assert {(cell["treatment"], cell["group"]) for cell in cells} == {(one, kind) for one in "ab" for kind in GROUPS}
    (added,) = [cell for cell in cells if (cell["treatment"], cell["group"]) == ("a", "getattr")]
    assert added["from_s"] == added["to_s"] and added["low_ms"] == added["high_ms"], "nothing is drawn of it"
