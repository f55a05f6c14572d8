"""One trial's breakdown from tables written by hand: bands, closure, the split of the CPU, waits, payers, timelines."""

import json
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.breakdown.breakdown import caveats
from plimsoll.analysis.breakdown.trial import BANDS, mean_parts, reading
from plimsoll.record import Trial

_WORLD = runpy.run_path(str(Path(__file__).with_name("breakdown_world.py")))
transactions, requests, waits = (_WORLD[name] for name in ("transactions", "requests", "waits"))
write_segment, report, CUT, BUCKETS = (_WORLD[name] for name in ("write_segment", "report", "CUT", "BUCKETS"))
PAY, LOOK, BACKEND, OTHER_BACKEND, WALWRITER = 0, 1, 10, 11, 77
TICK = 4_000_000


def segment() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A payment of 1000 ns with a gap, another that failed, a look of 500 ns and one row of the agent's observer."""
    rows = transactions(
        {"backend_pid": BACKEND, "planned_ns": 0, "start_ns": 100, "end_ns": 1000, "kind": PAY},
        {"backend_pid": BACKEND, "planned_ns": 1000, "start_ns": 1000, "end_ns": 1400, "kind": PAY, "outcome": 1},
        {"backend_pid": OTHER_BACKEND, "planned_ns": 0, "start_ns": 0, "end_ns": 500, "kind": LOOK},
    )
    asked = requests(
        {"backend_pid": OTHER_BACKEND, "arrived_ns": 20, "ended_ns": 480, "cpu_ns": 300, "flags": CUT},  # 0
        {"backend_pid": BACKEND, "arrived_ns": 150, "ended_ns": 500, "cpu_ns": 100, "run_queue_ns": 20},  # 1
        {"backend_pid": 99, "arrived_ns": 100, "ended_ns": 600, "cpu_ns": 500},  # 2: the observer's
        {"backend_pid": BACKEND, "arrived_ns": 510, "ended_ns": 910, "cpu_ns": 110},  # 3
        {"backend_pid": BACKEND, "arrived_ns": 1050, "ended_ns": 1350, "cpu_ns": 300},  # 4: of what failed
    )
    spent = waits(
        *((0, 14, "data_read", 100), (0, 0, "other_wait", 40)),
        *((1, 12, "wal_wait", 150, OTHER_BACKEND), (1, 13, "lock", 70)),
        *((3, 12, "wal_wait", 250, WALWRITER), (3, 0, "unattributed", 10), (3, 11, "client", 20)),
    )
    spent["cause"][0] = 1
    return rows, asked, spent


def trial(folder: Path, tables: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None, **summary: Any) -> Trial:
    processes = [{"pid": WALWRITER, "what": "walwriter", "cpu_ns": 5, "run_queue_ns": 1, "waits": {}}]
    probes = {"breakdown": report(5, processes=processes)}
    facts = {"backend_pids": [BACKEND, OTHER_BACKEND], "requests_sent": 4, "probes": probes} | summary
    write_segment(folder / "measure", *(tables or segment()), **facts)
    (folder / "trial.json").write_text(json.dumps({"status": "finished"}))
    return Trial(folder, {"number": 7})


def test_parts_bands_and_closure_by_type(tmp_path: Path) -> None:
    found = reading(trial(tmp_path))
    assert found is not None
    assert list(found["types"]) == ["all", "pay", "look"]
    pay = found["types"]["pay"]
    assert pay["bands"]["all"]["transactions"] == 1, "what failed is not among them"
    assert pay["bands"]["all"]["ns"] == {
        "lag": 100, "transport_in": 50, "cpu": 210, "run_queue": 20, "wal_wait": 400, "lock": 70, "unattributed": 10,
        "client": 10 + 20, "transport_out": 90,
    }  # fmt: skip
    # 1000 less the ways (100 + 50 + 90) are 760, of which 740 are in parts: 210 + 20 + 400 + 70 + 10 + 30.
    assert pay["closure"] == {
        "error_ns": 20, "of_ns": 760, "share": 20 / 760, "absolute_share": 20 / 760, "unnamed_share": 10 / 760,
    }  # fmt: skip
    look = found["types"]["look"]
    # 480 - 20 are 460, of which 440 in parts.
    assert look["closure"]["error_ns"] == 20
    assert look["closure"]["unnamed_share"] == 40 / 460
    assert found["types"]["all"]["closure"]["of_ns"] == 760 + 460
    assert found["types"]["all"]["bands"]["up to p50"]["latency_ns"] == 500
    assert found["types"]["all"]["bands"]["p50 to p90"]["latency_ns"] == 1000
    assert [found["types"]["all"]["bands"][band]["transactions"] for band in BANDS] == [2, 1, 1, 0, 0]


def test_the_loads_requests_are_counted_apart_from_those_of_others(tmp_path: Path) -> None:
    found = reading(trial(tmp_path))
    assert found is not None
    assert found["requests"] == {"seen": 4, "sent": 4}
    assert found["joined"]["requests_of_others"] == 1
    assert found["joined"]["requests_without_transaction"] == 0
    said = caveats(found)
    assert not any("requests and the load sent" in text for text in said)
    assert "the breakdown of pay does not close: +2.6% of the time is in no bucket" in said
    fewer = reading(trial(tmp_path, requests_sent=5))
    assert "the breakdown probe saw 4 requests and the load sent 5" in caveats(fewer)


def test_waits_are_named_and_payers_told(tmp_path: Path) -> None:
    found = reading(trial(tmp_path))
    assert found is not None
    pay, look = found["types"]["pay"]["all"], found["types"]["look"]["all"]
    assert {(row["name"], row["bucket"]): (row["count"], row["ns"]) for row in pay["waits"]} == {
        ("LWLock:WALWrite", "wal_wait"): (2, 400),
        ("Lock:transactionid", "lock"): (1, 70),
        ("(no name)", "unattributed"): (1, 10),
        ("IO:WALSync", "client"): (1, 20),
    }
    assert pay["payers"] == {"another backend": {"count": 1, "ns": 150}, "walwriter": {"count": 1, "ns": 250}}
    assert {row["name"] for row in look["waits"]} == {
        "IO:DataFileRead, read issued by itself",
        "(further kinds, beyond those that a row of the record holds)",
    }


def test_what_reads_waited_for_is_told_by_their_cause(tmp_path: Path) -> None:
    rows, asked, spent = segment()
    read = BUCKETS.index("data_read")
    later = waits((1, 14, "data_read", 7), (1, 14, "data_read", 9), (3, 14, "data_read", 11), (2, 14, "data_read", 99))
    later["cause"], later["count"] = [1, 2, 2, 1], [1, 2, 3, 4]  # the last is nobody's
    found = reading(trial(tmp_path, (rows, asked, np.concatenate([spent[spent["bucket"] != read], later]))))
    assert found is not None
    assert found["types"]["pay"]["all"]["data_read"] == {
        "own_count": 1, "own_ns": 7, "on_its_way_count": 5, "on_its_way_ns": 20, "untold_count": 0, "untold_ns": 0,
    }  # fmt: skip
    assert not any(found["types"]["look"]["all"]["data_read"].values())


def test_waits_on_nfs_are_told_by_what_was_asked_for(tmp_path: Path) -> None:
    rows, asked, spent = segment()
    more = waits((1, 14, "data_read", 7), (1, 14, "data_read", 9), (3, 14, "data_read", 11), (2, 14, "data_read", 99))
    more["cause"], more["count"] = [3, 6, 3, 3], [1, 2, 3, 4]  # the last is nobody's
    found = reading(trial(tmp_path, (rows, asked, np.concatenate([spent[spent["bucket"] != more["bucket"][0]], more]))))
    assert found is not None
    pay = found["types"]["pay"]
    assert pay["all"]["nfs"] == {"read": {"count": 4, "ns": 18}, "attributes": {"count": 2, "ns": 9}}
    assert pay["bands"]["all"]["ns"]["data_read"] == 27, "the bucket has all of them"
    assert not any(pay["all"]["data_read"].values()), "none was asked of a device"
    names = {row["name"]: row["ns"] for row in pay["all"]["waits"] if row["bucket"] == "data_read"}
    assert names == {"IO:DataFileRead, for a read by NFS": 18, "IO:DataFileRead, for attributes by NFS": 9}
    assert found["types"]["look"]["all"]["nfs"] == {}


def test_what_the_probe_says_of_syncs(tmp_path: Path) -> None:
    counts = {"wal": 3, "data": 1, "other": 0}
    found = reading(trial(tmp_path / "told", probes={"breakdown": report(5, syncs=counts)}))
    assert found is not None
    assert found["syncs"] == counts
    silent = reading(trial(tmp_path / "silent"))
    assert silent is not None
    assert silent["syncs"] == {}


def test_who_ended_a_wait_may_be_unknown(tmp_path: Path) -> None:
    rows, asked, spent = segment()
    spent["waker_pid"][spent["waker_pid"] == WALWRITER] = 0
    spent["waker_pid"][spent["waker_pid"] == OTHER_BACKEND] = 12345
    found = reading(trial(tmp_path, (rows, asked, spent)))
    assert found is not None
    assert found["types"]["pay"]["all"]["payers"] == {"unknown": {"count": 2, "ns": 400}}


def test_the_slowest_as_timelines(tmp_path: Path) -> None:
    found = reading(trial(tmp_path))
    assert found is not None
    assert [(row["kind"], row["latency_ns"], row["requests"]) for row in found["slowest"]] == [
        ("pay", 1000, 2),
        ("look", 500, 1),
    ]
    segments = [(row["part"], row["at_ns"], row["ns"], row.get("row")) for row in found["slowest"][0]["segments"]]
    assert segments == [
        ("lag", 0, 100, None),
        ("transport_in", 100, 50, None),
        ("cpu", 150, 100, 1),
        ("run_queue", 250, 20, 1),
        ("lock", 270, 70, 1),
        ("wal_wait", 340, 150, 1),
        ("client", 500, 10, None),
        ("cpu", 510, 110, 2),
        ("wal_wait", 620, 250, 2),
        ("client", 870, 20, 2),
        ("unattributed", 890, 10, 2),
        ("transport_out", 910, 90, None),
    ]
    assert found["slowest"][0]["segments"][4]["wait"] == "Lock:transactionid"


def test_a_row_of_several_requests_holds_the_waits_for_its_client(tmp_path: Path) -> None:
    rows = _WORLD["sent"]({"backend_pid": BACKEND, "start_ns": 0, "end_ns": 1000, "requests": 7})
    asked = _WORLD["server_rows"](
        {"backend_pid": BACKEND, "arrived_ns": 100, "ended_ns": 900, "cpu_ns": 500, "requests": 7}
    )
    found = reading(trial(tmp_path, (rows, asked, waits((0, 11, "client", 200), (0, 11, "wal_sync", 90)))))
    assert found is not None
    assert found["requests"]["seen"] == 7
    pay = found["types"]["pay"]
    assert pay["bands"]["all"]["requests"] == 7
    assert pay["bands"]["all"]["ns"]["client"] == 200
    assert pay["closure"]["error_ns"] == 10
    (slowest,) = found["slowest"]
    assert slowest["requests"] == 7
    within = [segment for segment in slowest["segments"] if "row" in segment]
    assert [(segment["part"], segment["at_ns"]) for segment in within] == [
        ("cpu", 100),
        ("wal_sync", 600),
        ("client", 690),
    ]
    assert {(segment["row"], segment["requests"]) for segment in within} == {(1, 7)}


def many(count: int, **columns: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Transactions of one request each, of 1000, 2000, 3000... ns, half of it on a CPU."""
    rows = transactions(
        *(
            {"backend_pid": BACKEND, "planned_ns": 10**6 * n, "start_ns": 10**6 * n, "end_ns": 10**6 * n + 1000 * n}
            for n in range(1, count + 1)
        )
    )
    asked = requests(
        *(
            {
                "backend_pid": BACKEND,
                "arrived_ns": row["start_ns"],
                "ended_ns": row["end_ns"],
                "cpu_ns": 500 * n,
                **columns,
            }
            for n, row in enumerate(rows, 1)
        )
    )
    return rows, asked, waits()


def test_the_slowest_hundredth_are_those_beyond_p99(tmp_path: Path) -> None:
    found = reading(trial(tmp_path, many(200)))
    assert found is not None
    bands = found["types"]["pay"]["bands"]
    assert [bands[band]["transactions"] for band in BANDS] == [200, 100, 80, 18, 2]
    assert bands["beyond p99"]["ns"]["cpu"] == 500 * (199 + 200)
    assert sum(bands[band]["latency_ns"] for band in BANDS if band != "all") == bands["all"]["latency_ns"]
    assert [row["latency_ns"] for row in found["slowest"]] == [1000 * n for n in range(200, 190, -1)]


def test_the_cpu_is_split_where_there_are_thirty_ticks(tmp_path: Path) -> None:
    rows, asked, spent = many(100)
    asked["user_ns"][:20], asked["system_ns"][20:29] = TICK, TICK
    band = _band(trial(tmp_path / "29", (rows, asked, spent)))
    assert not band["cpu_can_be_split"]
    asked["system_ns"][29] = TICK
    band = _band(trial(tmp_path / "30", (rows, asked, spent)))
    assert band["cpu_can_be_split"]
    found = mean_parts(band, split=True)
    assert found["cpu_user"] == pytest.approx(2 * found["cpu_kernel"])
    assert found["cpu_user"] + found["cpu_kernel"] == pytest.approx(mean_parts(band, split=False)["cpu"])


def _band(one: Trial) -> dict[str, Any]:
    found = reading(one)
    assert found is not None
    band: dict[str, Any] = found["types"]["pay"]["bands"]["all"]
    return band


def test_time_counted_twice_gives_no_figures(tmp_path: Path) -> None:
    rows, asked, spent = segment()
    asked["arrived_ns"][3] = 499
    found = reading(trial(tmp_path, (rows, asked, spent)))
    assert found is not None
    assert found["types"] == {}
    assert found["slowest"] == []
    assert "no breakdown, because time is counted twice: requests of one backend overlap (1)" in caveats(found)


def test_no_record_a_refusal_and_lost_tables(tmp_path: Path) -> None:
    assert reading(trial(tmp_path / "none", probes={})) is None
    refused = {"status": "refused", "reason": "no BTF", "remedy": "a newer kernel"}
    found = reading(trial(tmp_path / "refused", probes={"breakdown": refused}))
    assert found == {"number": 7, "status": "refused", "reason": "no BTF", "remedy": "a newer kernel"}
    assert caveats(found) == []
    one = trial(tmp_path / "lost")
    (tmp_path / "lost/measure/breakdown_waits.npy").unlink()
    assert caveats(reading(one)) == ["no breakdown: the record of its requests is missing"]


def test_tables_cut_short_are_read_and_an_empty_segment_has_nothing(tmp_path: Path) -> None:
    rows, asked, spent = segment()
    empty = reading(trial(tmp_path, (rows[:0], asked[:0], spent[:0])))
    assert empty is not None
    assert empty["types"]["all"]["bands"]["all"]["transactions"] == 0
    assert empty["types"]["all"]["closure"]["share"] is None
