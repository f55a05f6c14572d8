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
    "throughput", "database-hit-ratio", "database-misses-per-query", "run-time-of-100", "device-reads", "latency",
    "memory", "warm-up",
}  # fmt: skip


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shape = Shape(caches=(64, 256, 1024), measure_seconds=10, faults=("failed", "markup"))
    return write_report(make(tmp_path_factory.mktemp("runs") / "run", shape))


def _without_libraries(page: Path) -> str:
    """The page less the bundled JavaScript."""
    text = page.read_text()
    start = text.index("<script>")
    return text[:start] + text[text.index("</script>", start) :]


def test_every_figure_is_there_in_three_forms(page: Path) -> None:
    text = page.read_text()
    for name in FIGURES:
        assert f'data-figure="{name}"' in text
        assert (page.parent / "figures" / f"{name}.svg").read_text().startswith("<svg")
        assert (page.parent / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


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
    assert page.read_text().count("<script>") == page.read_text().count("</script>") == 2


def test_the_verdict_stands_before_the_figures(page: Path) -> None:
    text = page.read_text()
    headline = json.loads((page.parent.parent / "verdict.json").read_text())["comparisons"][0]["label"]
    assert text.index(f"<p>{headline} ") < text.index("<figure")
    assert "SYNTHETIC" in text


def test_absent_data_gives_a_line_with_the_reason(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(caches=(64, 1024), measure_seconds=8, warmup_seconds=8))
    for name in ("group.npy", "server.npy", "device.npy", "host.npy"):
        for file in folder.rglob(name):
            file.unlink()
    (folder / "fingerprint.json").unlink()
    text = write_report(folder).read_text()
    assert "Not drawn: the group&#39;s memory was not sampled" in text
    assert "Not drawn: the server&#39;s counters were not sampled" in text


def test_a_run_of_equals_has_a_page(tmp_path: Path) -> None:
    text = write_report(make(tmp_path / "run", Shape(caches=(256,), measure_seconds=8, warmup_seconds=8))).read_text()
    assert "A/A: equal trials of this run differ" in text
    assert "Not drawn: this run compares no levels" in text


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
