"""The page works offline, escapes what it did not write, and says why a figure is absent."""

import json
import re
import runpy
import shutil
import subprocess
from pathlib import Path

import pytest

from plimsoll.report import write_report

_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]
FIGURES = {
    "answer", "throughput", "database-hit-ratio", "database-misses-per-query", "run-time-of-100", "device-reads",
    "latency",
    "memory", "warm-up", "page-cache-hit-ratio", "page-cache-misses-per-query", "database-misses-per-page-cache-miss",
    "buffer-heads", "device-reads-explained", "double-caching",
}  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = Shape(caches=(64, 256, 1024), measure_seconds=10, faults=("failed", "markup"))
    return write_report(make(tmp_path_factory.mktemp("runs") / "run", shape), is_with_files=True)


def _without_libraries(page: Path) -> str:
    """The page less the bundled JavaScript."""
    return _less_libraries(page.read_text())


def _less_libraries(text: str) -> str:
    start = text.index("<script>")
    return text[:start] + text[text.index("</script>", start) :]


def test_every_figure_is_there_in_three_forms(page: Path) -> None:
    text = page.read_text()
    for name in FIGURES:
        assert f'data-figure="{name}"' in text
        assert (page.parent / "figures" / f"{name}.svg").read_text().startswith("<svg")
        assert (page.parent / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f'href="figures/{name}.svg"' in text


def test_the_page_needs_no_network(page: Path) -> None:
    text = _without_libraries(page)
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", text)
    assert not re.search(r"@import|url\(", text)
    assert "window.vegaEmbed=" in page.read_text()


def test_foreign_text_is_escaped(page: Path) -> None:
    text = _without_libraries(page)
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(&#39;title&#39;)" in text
    assert "&lt;script&gt;alert(&#39;log&#39;)" in text
    assert page.read_text().count("<script>") == page.read_text().count("</script>") == 3


def test_the_verdict_stands_before_the_figures(page: Path) -> None:
    text = page.read_text()
    headline = json.loads((page.parent.parent / "verdict.json").read_text())["comparisons"][0]["label"]
    assert text.index(f">{headline} ") < text.index("<figure")
    assert "SYNTHETIC" in text


def test_absent_data_gives_a_line_with_the_reason(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(caches=(64, 1024), measure_seconds=8, warmup_seconds=8))
    for name in ("group.npy", "server.npy", "device.npy", "host.npy"):
        for file in folder.rglob(name):
            file.unlink()
    (folder / "fingerprint.json").unlink()
    text = write_report(folder).read_text()
    assert ": because the group&#39;s memory was not sampled" in text
    assert ": because the server&#39;s counters were not sampled" in text


def test_what_the_probes_say_of_themselves_is_on_the_page(page: Path) -> None:
    text = page.read_text()
    assert "In both caches, most at shared_buffers" in text
    assert "refused in trial 3: the self-test read 211 cold pages" in text
    assert "Not from trial 3: refused" in text
    assert "<h3>Probe: throttling of writers</h3>" in text
    assert "lower bound" not in _without_libraries(page).split('data-section="method"')[0].lower()


def test_lost_events_make_lower_bounds(tmp_path: Path) -> None:
    shape = Shape(caches=(64, 1024), measure_seconds=8, warmup_seconds=8, faults=("lost",))
    text = write_report(make(tmp_path / "run", shape)).read_text()
    assert "Page-cache misses per query, beside the database&#39;s (figure 4.7) (lower bound)" in text
    assert "Database misses per page-cache miss (figure 4.8) (upper bound)" in text
    assert "the page cache probe lost events: its counts are lower bounds" in text
    assert "Lower bound: the probe lost events" in text


def test_a_record_without_probes_says_so(tmp_path: Path) -> None:
    shape = Shape(caches=(64, 1024), measure_seconds=8, warmup_seconds=8, faults=("unprobed",))
    text = write_report(make(tmp_path / "run", shape)).read_text()
    (said,) = re.findall(r"<li>(.*): because the record has no probes: it is of an earlier version", text)
    assert said.count("; ") == 3, "four figures, and one line for them"
    assert ": because the record has none: it is of an earlier version (9 trials)" in text
    assert 'data-figure="buffer-heads"' not in _less_libraries(text)


def test_a_run_of_equals_has_a_page(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(caches=(256,), measure_seconds=8, warmup_seconds=8))
    old = folder / "report" / "figures" / "of-an-earlier-verdict.svg"
    old.parent.mkdir(parents=True)
    old.touch()
    text = write_report(folder).read_text()
    assert list(old.parent.iterdir()) == [], "figures are files on request, and those of before are gone"
    assert "report RUN --figures" in text
    assert 'href="figures/' not in text
    assert "A/A: equal trials of this run differ" in text
    assert ": because this run compares no levels" in text
    assert "Not drawn:" not in text, "one list at the end, and no empty place for each"
    assert 'data-section="caches"' not in text, "nothing would be below it"


def test_a_browser_draws_every_figure(page: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("missing capability: a Chromium browser")
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    flags += " --disable-component-update --disable-sync --virtual-time-budget=20000 --dump-dom"
    found = subprocess.run(
        [browser, *flags.split(), f"--user-data-dir={tmp_path}", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    drawn = re.findall(r'data-figure="([a-z0-9-]+)"[^>]*>(?:(?!data-figure).)*?<svg', found.stdout, re.S)
    assert set(drawn) == FIGURES
