"""The page has a part on writeback when a run sets vm.dirty_*, and none when it does not."""

import json
import re
import runpy
from pathlib import Path

import numpy as np

from plimsoll.report import write_report

_FIGURES = runpy.run_path(str(Path(__file__).with_name("page_figures.py")))
svg, section = _FIGURES["svg"], _FIGURES["section"]
_MAKER = runpy.run_path(str(Path(__file__).parents[2] / "golden" / "make_synthetic.py"))
make, Shape = _MAKER["make"], _MAKER["Shape"]
MIB = 2**20


def _give_dirty_pages(host: Path) -> None:
    """Adds the columns of dirty pages to a host series: 10, 11, 12... MiB dirty, none under writeback."""
    old = np.load(host)
    new = np.zeros(len(old), [*old.dtype.descr, ("dirty_kib", "<i8"), ("writeback_kib", "<i8")])
    for name in old.dtype.names:
        new[name] = old[name]
    new["dirty_kib"] = (10 + np.arange(len(new))) * 1024
    np.save(host, new)


def test_a_run_that_sets_dirty_limits_has_the_part(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(caches=(64, 1024), measure_seconds=8, warmup_seconds=8))
    plan = json.loads((folder / "plan.json").read_text())
    for trial in plan["trials"]:
        sysctl = {
            "vm.dirty_background_bytes": 77 * MIB,
            "vm.dirty_bytes": 154 * MIB,
            "vm.dirty_writeback_centisecs": 125,
            "vm.dirty_expire_centisecs": 3000,
        }
        trial["resolved"] = {"environment": {"sysctl": sysctl}, "measure": {"transactions": 12_345}}
        _give_dirty_pages(folder / f"trials/{trial['number']:04d}/measure/host.npy")
        summary = folder / f"trials/{trial['number']:04d}/measure/summary.json"
        probes = {"throttle": {"status": "on", "totals": {"vda": {"pauses": 2, "paused_ns": 3_250_000_000}}}}
        summary.write_text(json.dumps(json.loads(summary.read_text()) | {"ended_by": "transactions", "probes": probes}))
    (folder / "plan.json").write_text(json.dumps(plan))
    experiment = json.loads((folder / "experiment.json").read_text())
    experiment["factors"] = [{"name": "writeback", "levels": [{"set": {"environment.sysctl.vm.dirty_bytes": 1}}]}]
    (folder / "experiment.json").write_text(json.dumps(experiment | {"source": "Study S1"}))
    text = write_report(folder).read_text()
    part = section(text, "writeback")
    assert re.search(r"<td[^>]*>77 MiB</td><td[^>]*>154 MiB</td><td[^>]*>1.25</td><td[^>]*>30</td>", part)
    assert "3.25 [3.25, 3.25]" in part
    assert "up to 15 minutes longer" in part
    for name in ("dirty-pages", "run-time", "throttled", "device-writes", "dirty-mean"):
        assert f'data-figure="{name}"' in part
    assert "12,345 transactions" in part
    assert "background 77 MiB · limit 154 MiB" in svg(folder / "report" / "index.html", "dirty-pages")


def test_any_other_run_is_without_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", Shape(caches=(64, 1024), measure_seconds=8, warmup_seconds=8))
    assert 'data-section="writeback"' not in write_report(folder).read_text()
