"""The page shows where the time goes when the record says so, why not when the probe was refused, and else nothing."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.report import write_report
from plimsoll.report.breakdown.figures import breakdown_figures

_TESTS = Path(__file__).parents[2]
_FIGURES = runpy.run_path(str(Path(__file__).with_name("page_figures.py")))
svg, section = _FIGURES["svg"], _FIGURES["section"]
_MAKER = runpy.run_path(str(_TESTS / "golden" / "make_synthetic.py"))
_WORLD = runpy.run_path(str(_TESTS / "unit" / "analysis" / "breakdown_world.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]
FIGURES = ("breakdown", "breakdown-difference", "breakdown-percentiles", "breakdown-slowest")


def made(folder: Path) -> Path:
    found: Path = make(folder, Shape(caches=(64, 1024), measure_seconds=8, warmup_seconds=8))
    return found


def summaries(folder: Path) -> list[Path]:
    return sorted(folder.glob("trials/*/measure/summary.json"))


def change(path: Path, **breakdown: Any) -> None:
    document = json.loads(path.read_text())
    document["probes"]["breakdown"] = document["probes"].get("breakdown", {}) | breakdown
    path.write_text(json.dumps(document))


def part(page: Path) -> str:
    found: str = section(page.read_text(), "breakdown")
    return found


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = made(tmp_path_factory.mktemp("runs") / "run")
    plan = json.loads((folder / "plan.json").read_text())
    large = next(name for name, one in plan["treatments"].items() if "1024" in str(one))
    _WORLD["add_to_run"](folder, {large: ("swap_in", _WORLD["DATA_READ"], 0.5)})
    for path in summaries(folder):
        change(path, wait_names=_WORLD["NAMES"] | {"14": "<b>swap</b>"})
    return write_report(folder)


def test_the_four_figures_are_drawn(page: Path) -> None:
    text = part(page)
    for name in FIGURES:
        assert f'data-figure="{name}"' in text
        assert svg(page, name)
    drawn = svg(page, "breakdown")
    assert "swap_in" in drawn
    assert "cpu_kernel" in drawn


def test_the_wait_events_that_moved_are_listed_with_their_share(page: Path) -> None:
    text = part(page)
    table = text[text.index("Wait events that changed") :].split("</table>")[0]
    assert "&lt;b&gt;swap&lt;/b&gt;" in table
    verdict = json.loads((page.parent.parent / "verdict.json").read_text())
    told = [
        wait["name"]
        for row in verdict["breakdown"]["differences"]
        for wait in row["waits"]
        if (row["band"], row["kind"], wait["word"] != "cannot tell") == ("all", "all", True)
    ]
    assert table.count("<tr>") == 1 + len(told), "those of which it cannot be told are not in it"


def test_what_is_chosen_from_a_list_is_what_is_drawn(page: Path) -> None:
    """A mark with data of its own is filtered where it stands: a filter above it would not reach it."""

    def marks(spec: Any) -> list[Any]:
        if isinstance(spec, list):
            return [mark for one in spec for mark in marks(one)]
        if not isinstance(spec, dict):
            return []
        return [spec] if "mark" in spec else [mark for key in spec if key != "data" for mark in marks(spec[key])]

    verdict = json.loads((page.parent.parent / "verdict.json").read_text())
    for figure in breakdown_figures(verdict):
        drawn = marks(figure.spec)
        assert drawn
        for mark in drawn:
            is_zero = mark.get("encoding", {}).get("y", {}).get("field") == "zero"
            assert is_zero or any("==" in str(one.get("filter")) for one in mark.get("transform", [])), figure.name


def test_the_tables_say_what_the_verdict_says(page: Path) -> None:
    text, verdict = part(page), json.loads((page.parent.parent / "verdict.json").read_text())
    found = verdict["breakdown"]
    entered = {number for entry in found["treatments"].values() for number in entry["trials"]}
    asked = sum(one["requests"]["seen"] for one in found["trials"] if one["number"] in entered)
    seen = [
        int(cell.replace(",", ""))
        for cell in re.findall(r'<td class="n">([\d,]+)</td><td class="n">\1</td></tr>', text)
    ]
    assert sum(seen) == asked
    assert "walwriter" in text
    assert "LWLock:WALWrite" in text
    assert "IO:WALSync 6.0 ms" in text or "IO:WALSync 10.0 ms" in text
    assert "Activity:" not in text
    assert "sched_switch to sock_send_length" in text


def test_the_servers_names_are_escaped(page: Path) -> None:
    assert "&lt;b&gt;swap&lt;/b&gt;" in part(page)
    assert "<b>swap</b>" not in page.read_text()


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of which one slice of time in eight was watched, with transactions of the server of three requests."""
    folder = made(tmp_path_factory.mktemp("runs") / "run")
    _WORLD["add_to_run"](folder, {"t1": ("data_read", _WORLD["DATA_READ"], 0.3)}, per=1)
    said = {"budget_share": 0.01, "one_in_max": 8, "share": 0.0097, "cut": 0}
    for path in summaries(folder):
        change(path, sampling=said, syncs={"wal": 40, "data": 8, "other": 0})
        early = np.load(path.with_name("breakdown.npy"))
        rows = np.zeros(len(early), _WORLD["ROW"])
        for name in early.dtype.names:
            rows[name] = early[name]
        rows["requests"], rows["one_in"] = 3, 8
        np.save(path.with_name("breakdown.npy"), rows)
        path.write_text(json.dumps(json.loads(path.read_text()) | {"requests_sent": 23 * len(rows)}))
        waits = np.load(path.with_name("breakdown_waits.npy"))
        reads = waits["bucket"] == _WORLD["BUCKETS"].index("data_read")
        waits["cause"][reads] = 1 + waits["request"][reads] % 2
        np.save(path.with_name("breakdown_waits.npy"), waits)
    return write_report(folder)


def within(verdict: Any) -> set[str]:
    """What the parts of the slowest transactions are said to lie within."""
    (figure,) = (one for one in breakdown_figures(verdict) if one.name == "breakdown-slowest")
    return set(re.findall(r'"within": "([^"]*)"', json.dumps(figure.spec)))


def test_a_sample_is_said_to_be_one(sampled: Path) -> None:
    text, verdict = part(sampled), json.loads((sampled.parent.parent / "verdict.json").read_text())
    words = "1 in 8 slices of time was watched, to keep the probe within 1 % of the machine's CPU time"
    assert words.replace("'", "&#39;") in text
    assert any(words in caveat for caveat in verdict["caveats"])
    assert "The ten slowest transactions of those recorded" in text
    assert "transactions<br>of those recorded" in text
    costs = text[text.index("What it cost") :]
    assert costs.count('<td class="n">0.97</td><td class="n">1</td><td class="n">1 in 8</td>') == 2
    band = verdict["breakdown"]["treatments"]["t1"]["types"]["all"]["bands"]["all"]
    assert band["requests"] == 3 * band["transactions"]
    assert within(verdict) == {"between", "transaction 1 of the server, 3 requests"}
    assert not any("requests and the load sent" in caveat for caveat in verdict["caveats"])
    assert "word-worse" not in costs, "fewer were seen than sent, as is right between slices"


def test_of_the_systems_processes_only_slices_are_known(sampled: Path, page: Path) -> None:
    for where, is_sampled in ((sampled, True), (page, False)):
        verdict = json.loads((where.parent.parent / "verdict.json").read_text())
        for entry in verdict["breakdown"]["treatments"].values():
            (walwriter,) = entry["system"]
            assert walwriter["cpu_ns"] == 3_000_000 * len(entry["trials"])
            assert (walwriter["cpu_ns_per_transaction"] is None) == is_sampled
        assert ("walwriter, in the slices watched" in part(where)) == is_sampled


@pytest.fixture(scope="module")
def on_nfs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose reads were by NFS, one in two for attributes, and whose probe says that it does not tell all."""
    folder = made(tmp_path_factory.mktemp("runs") / "run")
    _WORLD["add_to_run"](folder, {"t1": ("data_read", _WORLD["DATA_READ"], 0.3)}, per=1)
    for path in summaries(folder):
        change(path, absent={"nfs": "the kernel does not show what its functions are called"})
        waits = np.load(path.with_name("breakdown_waits.npy"))
        reads = waits["bucket"] == _WORLD["BUCKETS"].index("data_read")
        waits["cause"][reads] = np.where(waits["request"][reads] % 2, 3, 6)
        np.save(path.with_name("breakdown_waits.npy"), waits)
    return write_report(folder)


def test_waits_on_nfs_are_a_table_of_what_was_asked_for(on_nfs: Path, page: Path) -> None:
    verdict = json.loads((on_nfs.parent.parent / "verdict.json").read_text())
    of_all = verdict["breakdown"]["treatments"]["t1"]["types"]["all"]
    assert set(of_all["nfs"]) == {"read", "attributes"}
    told = sum(sums["ns_per_transaction"] for sums in of_all["nfs"].values())
    assert told == pytest.approx(of_all["bands"]["all"]["parts"]["data_read"]["value"], rel=0.01)
    text = part(on_nfs)
    table = text[text.index("those for a server of NFS") :].split("</table>")[0]
    assert f"{of_all['nfs']['attributes']['ns_per_transaction'] / 1e3:,.1f}" in table
    assert "What waits on NFS are for is not told: the kernel does not show what its functions are called." in text
    assert "those for a server of NFS" not in part(page), "where there was none there is no table"


def test_reads_are_split_by_what_they_waited_for(sampled: Path, page: Path) -> None:
    found = json.loads((sampled.parent.parent / "verdict.json").read_text())["breakdown"]["treatments"]["t1"]
    one = found["types"]["all"]
    reads, part_of_mean = one["data_read"], one["bands"]["all"]["parts"]["data_read"]["value"]
    told = reads["own_ns_per_transaction"] + reads["on_its_way_ns_per_transaction"]
    assert told == pytest.approx(part_of_mean, rel=0.05)
    assert reads["own_ns"] == pytest.approx(reads["on_its_way_ns"], rel=0.1)
    assert reads["untold_ns"] == 0
    assert part(sampled).count("What reading data waited for") == 1
    assert "What reading data waited for" not in part(page), "nothing waited for data there"


def test_syncs_are_shown_where_they_are_told(sampled: Path, page: Path) -> None:
    found = json.loads((sampled.parent.parent / "verdict.json").read_text())["breakdown"]
    for entry in found["treatments"].values():
        done = sum(one["done"] for one in found["trials"] if one["number"] in entry["trials"])
        assert entry["syncs"]["wal"] == {
            "count": 40 * len(entry["trials"]),
            "per_transaction": pytest.approx(40 * len(entry["trials"]) / done),
        }
    assert "Calls of fsync and fdatasync" in part(sampled)
    assert "Calls of fsync" not in part(page)


def test_nothing_is_said_of_a_sample_where_all_was_recorded(page: Path) -> None:
    assert "recorded," not in part(page)
    assert "of those recorded" not in part(page)
    assert '<td class="n">all</td>' in part(page)
    verdict = json.loads((page.parent.parent / "verdict.json").read_text())
    assert within(verdict) == {"between", "request 1", "request 2"}


def test_the_why_stands_in_the_verdict(page: Path) -> None:
    text = page.read_text()
    said = '<a href="#section-breakdown">shared_buffers 1024 MiB against 64 MiB: +'
    assert text.index("<h3>Why</h3>") < text.index(said) < text.index('<details class="section"')
    assert part(page).index("Why: shared_buffers 1024 MiB against 64 MiB") < part(page).index("<figure")


def test_the_sections_of_the_first_screen_come_first_and_its_links_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    sections = re.findall('<details class="section" data-section="([^"]+)">', text)
    assert sections[:2] == ["levels", "breakdown"]
    linked = re.findall('<a href="#([^"]+)"', text)
    assert len(linked) > len(sections), "the contents, and the sentences"
    for name in linked:
        assert f'<div id="{name}">' in text


def test_a_legend_names_the_parts_that_are_worth_it(page: Path) -> None:
    verdict = json.loads((page.parent.parent / "verdict.json").read_text())
    bars = next(figure.spec for figure in breakdown_figures(verdict) if figure.name == "breakdown")
    (names,) = {tuple(found) for found in re.findall(r'"domain": \[("[^]]*"others"[^]]*)\]', json.dumps(bars))}
    shown = json.loads(f"[{''.join(names)}]")
    assert shown[-1] == "others"
    assert "swap_in" in shown
    assert not {"lag", "lock", "throttle", "temp_io"} & set(shown), "they have next to nothing, or nothing"


def test_a_refused_probe_says_why_once(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    for path in summaries(folder):
        change(path, status="refused", reason="this kernel has no type information", remedy="CONFIG_DEBUG_INFO_BTF")
    page = write_report(folder)
    assert "Not drawn: the probe was refused: this kernel has no type information" in part(page)
    assert page.read_text().count("no type information") == 1
    assert 'data-figure="breakdown' not in part(page)


def test_requests_that_are_nobodys_give_a_reason(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    _WORLD["add_to_run"](folder)
    for path in summaries(folder):
        requests = np.load(path.with_name("breakdown.npy"))
        requests["backend_pid"] += 1000
        np.save(path.with_name("breakdown.npy"), requests)
    page = write_report(folder)
    assert "Not drawn: no trial that entered the verdict has transactions with requests" in part(page)
    assert "the breakdown probe saw 0 requests and the load sent" in page.read_text()


def test_time_counted_twice_is_shown_and_not_drawn(tmp_path: Path) -> None:
    folder = made(tmp_path / "run")
    _WORLD["add_to_run"](folder)
    for path in summaries(folder):
        waits = np.load(path.with_name("breakdown_waits.npy"))
        np.save(path.with_name("breakdown_waits.npy"), np.concatenate([waits, waits[:1]]))
    page = write_report(folder)
    assert "Not drawn: time is counted twice" in part(page)
    assert "because time is counted twice: a wait is counted twice (1)" in page.read_text()


def test_any_other_run_is_without_it(tmp_path: Path) -> None:
    assert "breakdown" not in re.sub(
        r"<script>.*?</script>", "", write_report(made(tmp_path / "run")).read_text(), flags=re.S
    )
