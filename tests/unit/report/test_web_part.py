"""Web serving, from a record by hand to the page: connections, speeds, the mix against its target, errors, and words.

Two treatments of three blocks: of t1 all 100 connections conform, of t2 half of them; t2 has wrong answers.
"""

from __future__ import annotations

import json
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

from plimsoll.analysis import analyse
from plimsoll.cli import execute
from plimsoll.record import open_run
from plimsoll.report import write_report

_FIGURES = runpy.run_path(str(Path(__file__).with_name("page_figures.py")))
section = _FIGURES["section"]
_WORLD = runpy.run_path(str(Path(__file__).parents[1] / "analysis" / "files_world.py"))
Json = dict[str, Any]
WORKLOAD = {"name": "web", "clients": 100, "mix": "whole", "line_bits_per_s": 400_000, "conforming_bits_per_s": 320_000}
CLASSES = [35, 50, 14, 1]
REQUESTS = {"static": 7000, "dynamic": 1245, "cgi": 15, "custom_ad": 1260, "post": 480}


def _waits(cpu_us: int) -> Json:
    """Two workers, the second half as busy, and one of the program's."""

    def worker(process: int, role: str, name: str, cpu: int) -> Json:
        asleep = {"page": 200_000, "socket": 1_000_000_000 - cpu - 300_000 - 200_000}
        return {
            **{"process": process, "role": role, "name": name, "processes": 1, "threads": 1, "missed": 0},
            **{"span_ns": 1_000_000_000, "cpu_ns": cpu, "run_queue_ns": 300_000, "asleep_ns": asleep},
        }

    cpu = cpu_us * 1000
    workers = [worker(7, "server", "nginx", cpu // 2), worker(6, "server", "nginx", cpu), worker(9, "program", "p", 0)]
    return {"status": "on", "lost": {"waits": 0}, "workers": workers}


def _page_cache(missed: int) -> dict[str, Any]:
    """1,000 pages asked for of each class; of files of 10 to 90 KiB so many were not there, and one was read ahead."""
    nothing = {"read_pages": 0, "read_missed_pages": 0, "fault_pages": 0, "fault_missed_pages": 0, "read_blocks": 0}
    nothing |= dict.fromkeys(("read_missed_blocks", "readahead_pages", "prefetch_pages", "other_pages"), 0)
    nothing |= dict.fromkeys(("unsettled_pages", "ahead_used_pages", "ahead_evicted_pages", "read_calls_waited"), 0)
    asked = nothing | {"read_pages": 1000}
    bad = asked | {"read_missed_pages": missed, "readahead_pages": 1}
    base = {name: nothing for name in ("data", "wal", "global", "temp", "other")}
    return {
        "status": "on",
        "classes": [*base, "class0", "class1", "class2", "class3", "posts"],
        "part_of": {**{f"class{number}": "data" for number in range(4)}, "posts": "other"},
        "page_bytes": 4096,
        "totals": {**base, "class0": asked, "class1": asked, "class2": bad, "class3": asked, "posts": asked},
        "lost": {},
    }


def _trial(folder: Path, *, is_bad: bool) -> None:
    path = folder / "measure" / "summary.json"
    summary = json.loads(path.read_text())
    asked = dict(REQUESTS)
    if is_bad:  # programs are asked more often than the mix says, and fail
        asked |= {"static": 5000, "post": 2480}
    of_class = {f"class{number}_requests": 100 * share for number, share in enumerate(CLASSES)}
    summary["kinds"] = list(asked)
    summary["by_kind"] = {
        kind: {
            "done": count - (50 if is_bad and kind == "post" else 0),
            "failed": 50 if is_bad and kind == "post" else 0,
        }
        for kind, count in asked.items()
    }
    seconds = (summary["ended_ns"] - summary["started_ns"]) / 1e9
    summary["totals"] = {
        "clients_with_work": 100,
        "clients_conforming": 50 if is_bad else 100,
        "received_bytes": 50_000 * 100 * 2,
        "busy_ns": 100 * 2_000_000_000,
        "line_bytes": 50_000,
        "line_ns": 1_000_000_000,
        "connections_opened": 3000,
        "wrong_status": 30 if is_bad else 0,
        "wrong_content": 20 if is_bad else 0,
        **of_class,
    }
    summary["probes"] = {
        **summary.get("probes", {}),
        "worker_waits": _waits(20_000 if is_bad else 10_000),
        "page_cache": _page_cache(250 if is_bad else 0),
    }
    done = sum(one["done"] for one in summary["by_kind"].values())
    summary["errors"] = [{"sqlstate": "HT500", "count": 30, "message": "status 500"}] if is_bad else []
    summary["identity"] = {"planned": 10_000, "done": done, "failed": 10_000 - done, "skipped": 0, "lost": 0}
    path.write_text(json.dumps(summary))
    document = json.loads((folder / "trial.json").read_text())
    kept = [{"resident_bytes": 50 if is_bad else 100, "total_bytes": 100}] * 4
    document["residency"] = {"by_class": {"before": kept, "after": kept}}
    (folder / "trial.json").write_text(json.dumps(document))
    assert seconds > 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = _WORLD["make"](tmp_path_factory.mktemp("runs") / "run", {**WORKLOAD, "classes": CLASSES})
    plan = json.loads((folder / "plan.json").read_text())
    plan["judged"] = "conforming_connections"
    (folder / "plan.json").write_text(json.dumps(plan))
    for trial in plan["trials"]:
        _trial(folder / "trials" / f"{trial['number']:04d}", is_bad=trial["treatment"] == "t2")
    return folder


def test_connections_conform_or_not(run: Path) -> None:
    part = analyse(open_run(run))["web_serving"]
    good, bad = part["treatments"]["t1"], part["treatments"]["t2"]
    assert (good["requested"], good["conforming"]["value"], bad["conforming"]["value"]) == (100, 100, 50)
    assert (good["conforming_share"]["value"], bad["conforming_share"]["value"]) == (1, 0.5)
    # 50,000 bytes in each of two seconds of 100 connections.
    assert good["connection_bits_per_second"]["value"] == pytest.approx(400_000)
    assert good["line_bits_per_second"]["value"] == pytest.approx(400_000)
    assert good["operation_ns"]["value"] == pytest.approx(200 * 1e9 / 10_000)
    assert good["connections_opened"] == 9000
    assert "320,000 bit/s" in part["speed"]


def test_the_mix_is_held_against_its_target(run: Path) -> None:
    part = analyse(open_run(run))["web_serving"]["treatments"]
    inside = {name: {one["name"]: one["is_inside"] for one in part[name]["kinds"]} for name in part}
    assert all(inside["t1"].values()) and set(inside["t1"]) == set(REQUESTS)
    assert not inside["t2"]["static"] and not inside["t2"]["post"] and inside["t2"]["dynamic"]
    assert [one["share"] for one in part["t1"]["classes"]] == [0.35, 0.5, 0.14, 0.01]
    assert [one["before"]["value"] for one in part["t2"]["kept"][:4]] == [0.5] * 4


def test_hits_are_told_by_class_and_of_the_whole_set(run: Path) -> None:
    part = analyse(open_run(run))["web_serving"]["treatments"]
    good, bad = ({one["name"]: one for one in part[name]["kept"]} for name in ("t1", "t2"))
    assert [one["hit_ratio"]["value"] for one in bad.values()] == [1, 1, 0.75, 1, 1]
    middle = bad["10 to 90 KiB"]
    assert (middle["asked_pages"], middle["missed_pages"], middle["brought_pages"]) == (3000, 750, 753)
    assert good["10 to 90 KiB"]["missed_pages"] == 0 and good["10 to 90 KiB"]["brought_pages"] == 3
    # The log is no part of the set; of what nothing was asked for there is no row.
    assert bad["log of POSTs"]["before"] is None and "users, advertisements" not in bad
    assert (good["1 to 9 KiB"]["before"]["value"], bad["1 to 9 KiB"]["before"]["value"]) == (1, 0.5)
    assert part["t2"]["hit_ratio"]["value"] == pytest.approx(1 - 250 / 4000)


def test_an_older_record_knows_no_classes(tmp_path: Path, run: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    for path in (copy / "trials").glob("*/measure/summary.json"):
        summary = json.loads(path.read_text())
        probed = summary["probes"]["page_cache"]
        del probed["part_of"]
        probed["totals"] = {name: probed["totals"][name] for name in ("data", "wal", "global", "temp", "other")}
        path.write_text(json.dumps(summary))
    part = analyse(open_run(copy))["web_serving"]["treatments"]["t1"]
    assert [one["asked_pages"] for one in part["kept"]] == [None] * 4
    text = section(write_report(copy).read_text(), "web_serving")
    assert "in the page cache" in text and "pages<br>asked for" not in text


def test_the_run_s_end_names_a_web_server_of_one_s_own(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    execute.say(analyse(open_run(run)), None, run)
    said = " ".join(capsys.readouterr().out.split())
    assert "For your own server: ./plimsoll capacity web" in said and "target.url=" in said and "dsn" not in said


def test_what_had_no_right_answer_is_counted_by_what_was_wrong(run: Path) -> None:
    part = analyse(open_run(run))["web_serving"]["treatments"]
    assert part["t1"]["errors"]["kinds"] == {} and part["t1"]["errors"]["share"] == 0
    assert part["t2"]["errors"] == {
        "requests": 30_000, "failed": 150, "lost": 0, "share": 0.005,
        "kinds": {"wrong_status": 90, "wrong_content": 60},
    }  # fmt: skip


def test_levels_are_compared_by_conforming_connections(run: Path) -> None:
    found = analyse(open_run(run))
    assert found["treatments"]["t1"]["metrics"]["conforming_connections"]["value"] == pytest.approx(100)


def test_a_status_is_called_one(run: Path) -> None:
    said = [text for trial in analyse(open_run(run))["trials"] for text in trial["caveats"]]
    assert any("(HTTP status 500: 30)" in text for text in said) and not any("SQLSTATE" in text for text in said)


def test_the_page_says_it(run: Path) -> None:
    text = section(write_report(run).read_text(), "web_serving")
    assert "SPECweb99-like, not comparable to published results" in text
    assert "memory 256 MiB: 100 of 100 connections conforming" in text
    assert "150 of 30,000 (90 a status other than 200, 60 other bytes)" in text
    assert "errors, of<br>all requests" in text and ">0.50%<" in text and ">none<" in text
    assert "custom ad" in text and "outside" in text and "100 to 900 KiB" in text
    assert "pages<br>asked for" in text and "log of POSTs" in text and "3,000" in text and "753" in text
    text = section((run / "report/index.html").read_text(), "web_workers")
    assert "1.50 µs on a CPU, 0.09 µs waiting for a CPU, 0.06 µs waiting for a page, while its client" in text
    assert "its client waited and read for 20,000 µs at the speed of its line" in text
    assert "the speed of its line, which the load holds" in text and "of which nobody can tell" in text
    assert "nginx 1, the server&#39;s" in text and "p 1, of the program behind it" in text


def test_no_interval_has_more_connections_or_more_than_all_and_a_request_takes_the_same_in_both_tables(
    tmp_path: Path, run: Path
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    for number, path in enumerate(sorted((copy / "trials").glob("*/measure/summary.json"))):
        summary = json.loads(path.read_text())
        summary["totals"] |= {"clients_conforming": (100, 94, 99)[number % 3], "busy_ns": 10**11 * (1 + number)}
        worker = summary["probes"]["worker_waits"]["workers"][0]
        worker["asleep_ns"]["page"] = 2 * 10**8 * (number % 3)
        worker["asleep_ns"]["socket"] = 10**9 - worker["cpu_ns"] - worker["run_queue_ns"] - worker["asleep_ns"]["page"]
        path.write_text(json.dumps(summary))
    verdict = analyse(open_run(copy))
    for name, served in verdict["web_serving"]["treatments"].items():
        assert served["conforming"]["high"] <= 100 and served["conforming_share"]["high"] <= 1
        mine = verdict["web_workers"]["treatments"][name]
        assert mine["latency_ns"] == served["operation_ns"]
        assert all(mean["high"] <= 1 for worker in mine["workers"] for mean in worker["shares"].values())


def test_of_a_trial_in_which_waits_were_not_seen_nothing_is_told(tmp_path: Path, run: Path) -> None:
    """What was not seen counts as time on a CPU: one more wait of 3 ms is 3 of 15 ms, two of 3 us are nothing."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    told = {}
    for number, (lost, waits) in enumerate([(1, 1000), (2, 1_000_000)], start=1):
        path = copy / "trials" / f"{number:04d}" / "measure" / "summary.json"
        summary = json.loads(path.read_text())
        probed = summary["probes"]["worker_waits"]
        probed["lost"] = {"waits": lost, "threads": 0, "places": 9, "unreadable": 0, "events": 0}
        for worker in probed["workers"]:
            worker["waits"] = {"socket": waits // len(probed["workers"])}
        path.write_text(json.dumps(summary))
        told[number] = json.loads((path.parents[1] / "trial.json").read_text())["number"]
    verdict = analyse(open_run(copy))
    assert sum(one["trials"] for one in verdict["web_workers"]["treatments"].values()) == 5
    said = {trial["number"]: " ".join(trial["caveats"]) for trial in verdict["trials"]}
    assert "where a request's time goes is not told: waits of the server's processes were not seen (1)" in said[told[1]]
    assert "were not seen (2): about 0.02 % of their time on a CPU" in said[told[2]]
    assert all("not seen" not in text for number, text in said.items() if number not in told.values())


def test_what_workers_did_is_told_by_request_and_by_process(run: Path) -> None:
    found = analyse(open_run(run))["web_workers"]["treatments"]["t1"]
    parts = {name: mean["value"] for name, mean in found["parts_ns"].items()}
    # 15 ms on a CPU, 0.9 ms waiting for one and 0.6 ms for pages in 10,000 requests; a socket is no part of one.
    assert parts == pytest.approx({"cpu": 1500, "run_queue": 90, "page": 60})
    assert found["latency_ns"]["value"] == pytest.approx(100 * 2_000_000_000 / 10_000)
    first, second, program = found["workers"]
    assert (first["name"], first["number"], second["number"], program["role"]) == ("nginx", 1, 2, "program")
    assert first["shares"]["cpu"]["value"] == pytest.approx(0.01)
    assert sum(mean["value"] for mean in second["shares"].values()) == pytest.approx(1)


def test_a_web_server_s_unit_of_work_is_a_request(run: Path) -> None:
    verdict = analyse(open_run(run))
    assert verdict["unit_of_work"] == "request"
    assert verdict["metrics"]["throughput_per_second"]["unit"] == "requests/s"
    page = write_report(run).read_text()
    assert '<th class="n">requests/s</th>' in section(page, "trials") and "KiB/request" in section(page, "levels")
    for key in ("levels", "trials", "time"):
        assert "transaction" not in section(page, key).split('"spec"')[0].lower(), key
