#!/usr/bin/env python3
"""A soak of fourteen days by a clock that runs fast: what its record, its front and its page cost.

    ./plimsoll soak oltp-soak --quick --out SHORT
    .plimsoll/venv/bin/python benches/soak_fortnight.py SHORT

Rounds of a soak that was recorded are repeated second by second until each is as long as asked for, as its agent would
have left it in full, and the product's own soak carries them, thins them and writes what it writes, with a clock that
goes on by a round at each round. No server and no agent run; the front's memory is that of the process that carries
the soak, and rounds are made in processes of their own. Then `plimsoll report` is timed, and the page's load. Exits 1
where a bound is broken: the record 2 GiB, the page 3 s, what the front takes more in the second half of its rounds
than in the first 1 MiB.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from plimsoll.environment.processes import boot_id
from plimsoll.experiment import Experiment, size
from plimsoll.experiment.soaking import seconds_of
from plimsoll.record import open_run, writer
from plimsoll.record.run import ROUND, SERIES, Run, read_json
from plimsoll.record.thinning import bytes_of
from plimsoll.run.observer import Silent
from plimsoll.run.signals import Interrupts
from plimsoll.run.soak import carry as of_soak
from plimsoll.run.soak import round as of_rounds
from plimsoll.run.soak.round import most_resident_bytes, resident_bytes
from plimsoll.run.soak.source import ROWS_MAX, SAMPLE_ONE_IN
from plimsoll.run.trial.at_work import TrialServer
from plimsoll.run.trial.log import TrialLog

Json = dict[str, Any]
ROOT: Final = Path(__file__).resolve().parents[1]
NS: Final = 10**9
TIDYING_S: Final = 60.0
RECORD_MAX, PAGE_S_MAX, FRONT_GROWTH_MAX = 2 * 2**30, 3.0, 2**20
LOADS: Final = 5
# Series whose numbers are levels; of all others what is counted from the machine's start goes on from part to part.
_LEVELS: Final = ("_kib", "_bytes", "procs_", "in_flight", "free_order", "files_open", "inodes", "dentries", "objects")


def long_round(source: Path, to: Path, seconds: int, began_ns: int) -> None:
    """A round as the agent would have left it after so many seconds of what was recorded, second by second."""
    told = read_json(source / "summary.json") or {}
    length_ns = int(told["ended_ns"]) - int(told["started_ns"])
    parts = max(1, -(-seconds * NS // length_ns))
    to.mkdir(parents=True)
    shift = began_ns - int(told["started_ns"])
    for path in sorted(source.glob("*.npy")):
        table = np.load(path)
        if path.stem in SERIES:
            table = _series(table, parts, length_ns, shift)
        elif path.stem in ("latency_seconds", "lag_seconds"):
            table = _by_second(table, parts, length_ns // NS)
        elif path.stem == "latency":
            table["count"] *= parts
        elif path.stem == "transactions":
            table = _rows(table, parts, length_ns, shift)
        np.save(to / path.name, table)
    for counted in (told["identity"], told.get("totals", {}), *told.get("by_kind", {}).values()):
        for name, value in counted.items():
            counted[name] = value * parts
    told |= {"started_ns": began_ns, "ended_ns": began_ns + parts * length_ns}
    told["rows"] = {"recorded": ROWS_MAX, "all_below_index": 0, "sample_one_in": SAMPLE_ONE_IN}
    (to / "summary.json").write_text(json.dumps(told))


def _series(table: np.ndarray, parts: int, length_ns: int, shift: int) -> np.ndarray:
    """Its samples again and again; what was counted goes on from part to part."""
    whole = np.concatenate([table] * parts)
    number = np.repeat(np.arange(parts), len(table))
    whole["t_ns"] += shift + number * length_ns
    keys = [name for name in ("device", "slab") if name in (table.dtype.names or ())]
    for name in table.dtype.names or ():
        if name in ("t_ns", *keys) or any(word in name for word in _LEVELS) or not len(table):
            continue
        risen = np.zeros(len(table), table[name].dtype)
        for key in np.unique(table[keys[0]]) if keys else [None]:
            rows = np.ones(len(table), bool) if key is None else table[keys[0]] == key
            risen[rows] = table[name][rows][-1] - table[name][rows][0]
        whole[name] += np.tile(risen, parts) * number.astype(whole[name].dtype)
    return whole


def _by_second(table: np.ndarray, parts: int, seconds: int) -> np.ndarray:
    whole = np.concatenate([table[table["second"] < seconds]] * parts)
    each = int(np.count_nonzero(table["second"] < seconds))
    whole["second"] += np.repeat(np.arange(parts, dtype=whole["second"].dtype), each) * seconds
    return whole


def _rows(table: np.ndarray, parts: int, length_ns: int, shift: int) -> np.ndarray:
    """As many single transactions as a soak keeps of a round, over its whole length."""
    each = max(1, ROWS_MAX // parts)
    one = table[np.linspace(0, len(table) - 1, min(each, len(table))).astype(int)]
    whole = np.concatenate([one] * parts)[:ROWS_MAX]
    number = np.repeat(np.arange(parts), len(one))[:ROWS_MAX]
    for name in ("planned_ns", "start_ns", "end_ns"):
        whole[name] += shift + number * length_ns
    return whole


class Fortnight(TrialServer):
    """A server without processes: what a round leaves is made of what was recorded, and the clock goes on by it."""

    data_outlive_kills = True

    def __init__(self, source: Run, out: Path, settings: Experiment) -> None:
        self.out, self.settings, self.source = out, settings, source
        self.recorded = source.trials[0].rounds
        self.now = 1e6
        self.front: list[int] = []
        self.full_bytes: list[int] = []

    def __call__(self) -> float:
        return self.now

    @property
    def data(self) -> Path:
        return self.out / "data"

    def remove_data(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)

    @contextlib.contextmanager
    def opened(self, log: TrialLog, *, goes_on: bool = False) -> Iterator[Any]:
        del log, goes_on
        self.data.mkdir(parents=True, exist_ok=True)
        yield AtWork(self)

    def perform(self, _at: Any, name: str, number: int, entry: Json) -> None:
        """One round, made in a process of its own so that making it is no memory of the front."""
        assert self.settings.measure.seconds is not None
        began = self.now
        source = self.recorded[(number - 1) % len(self.recorded)]
        to = writer.trial_folder(self.out, 1) / name
        words = [str(source.measure.path), str(to), str(round(self.settings.measure.seconds)), str(round(began * NS))]
        subprocess.run([sys.executable, __file__, "--make", *words], check=True)
        self.full_bytes.append(bytes_of(to))
        self.now += self.settings.measure.seconds
        entry["of"] = source.name
        self.front.append(resident_bytes())


class AtWork:
    """What a round asks of a server at work; its counters are those that the recorded round has read."""

    def __init__(self, server: Fortnight) -> None:
        self._server, self.settings, self.observer = server, server.settings, Silent()
        self.folder = writer.trial_folder(server.out, 1)
        here = SimpleNamespace(device_counters=lambda _devices: self._read("device_counters"))
        self.place = SimpleNamespace(devices=[], members=[], group=None, host=here)
        self.server = SimpleNamespace(
            is_settled=lambda: True,
            counters=lambda: self._read("counters"),
            sizes=lambda: self._recorded().get("sizes"),
            is_running=lambda: True,
            crashes=list,
            log_tail=lambda _size=0: "",
        )

    def _recorded(self) -> Json:
        found: Json = self._server.recorded[len(self._server.front) % len(self._server.recorded)].data
        return found

    def _read(self, name: str) -> Json:
        found: Json = (self._recorded().get(name) or {}).get("after") or {}
        return found

    @contextlib.contextmanager
    def watched(self, log: TrialLog) -> Iterator[None]:
        del log
        yield

    def vacuum(self) -> None:
        self._server.now += TIDYING_S

    checkpoint = vacuum

    def check(self, log: TrialLog) -> None:
        log.facts["checks"] = []

    def end(self, log: TrialLog) -> None:
        del log


def record(source: Run, out: Path, length: str, round_s: float) -> Fortnight:
    """A record of so long in `out`, carried by the product's soak."""
    documents = {name: read_json(source.path / f"{name}.json") for name in ("run", "experiment", "plan", "fingerprint")}
    for name, document in documents.items():
        if document is None:
            raise SystemExit(f"{source.path}/{name}.json: not there")
        for one in (document, *(trial["resolved"] for trial in document.get("trials") or [])):
            if isinstance(one.get("soak"), dict):
                one["soak"]["length"] = length
            if isinstance(one.get("measure"), dict):
                one["measure"]["seconds"] = round_s
        writer.write_json(out / f"{name}.json", document)
    named = {name: (documents["experiment"] or {})[name] for name in ("name", "title", "soak")}
    settings = Experiment.model_validate(named | (documents["plan"] or {})["trials"][0]["resolved"])
    server = Fortnight(source, out, settings)
    planned = SimpleNamespace(number=1, treatment=SimpleNamespace(settings=settings))
    log = TrialLog(planned)  # type: ignore[arg-type]
    of_rounds.work_of = lambda _at: server.perform  # type: ignore[assignment]
    of_rounds.kernel_log.position = lambda *_: (boot_id(), 0)  # type: ignore[assignment]
    context: Any = SimpleNamespace(out=out, observer=Silent(), interrupts=Interrupts(Silent()))
    of_soak.carry(context, log, server, server)
    trial = read_json(source.trials[0].path / "trial.json") or {}
    writer.write_json(writer.trial_folder(out, 1) / "trial.json", trial | log.facts)
    return server


_MOST_RESIDENT = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def most_resident(words: list[str]) -> int:
    """Runs a program; the most bytes that it, and what it waited for, had resident: no other child of ours counts."""
    # Begun by a small process: until it is another program, a child has resident what its parent had, and that counts.
    asked = subprocess.run([sys.executable, "-c", _MOST_RESIDENT, *words], check=True, stdout=subprocess.PIPE)
    return int(asked.stdout) * 1024


def load_seconds(page: Path) -> list[float]:
    """How long a browser takes from its start until the page is laid out and its scripts have run, times over."""
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if browser is None:
        return []
    times = []
    for _ in range(LOADS):
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as profile:
            words = ["--headless", "--no-sandbox", f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
            subprocess.run([browser, *words], check=True, capture_output=True)
        times.append(time.monotonic() - began)
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("short", type=Path, help="the folder of a soak that was recorded")
    parser.add_argument("--for", dest="length", default="14d")
    parser.add_argument("--round", default="6h")
    parser.add_argument("--out", type=Path, help="keep the record there")
    words = parser.parse_args()
    source = open_run(words.short)
    with contextlib.ExitStack() as stack:
        out = words.out
        if out is None:
            out = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="plimsoll-fortnight-", dir="/var/tmp")))
        out.mkdir(parents=True, exist_ok=True)
        return _measure(source, out, words.length, seconds_of(words.round))


def _measure(source: Run, out: Path, length: str, round_s: float) -> int:
    began = time.monotonic()
    server = record(source, out, length, round_s)
    print(f"{len(server.front)} rounds of {round_s:g} s, carried in {time.monotonic() - began:.0f} s")
    each = sorted(bytes_of(path) for path in writer.trial_folder(out, 1).glob(f"{ROUND}*"))
    print(f"a round: {size.show(max(server.full_bytes))} in full, {size.show(each[-1])} as it is kept")
    half = len(server.front) // 2
    grown = max(server.front[half:]) - max(server.front[:half], default=0)
    more = f"in the second half of the rounds {size.show(max(0, grown))} more than in the first"
    print(f"front: {size.show(max(server.front))} at most at the ends of rounds; {more}")
    print(f"front: {size.show(most_resident_bytes())} at most at any time, with what thinning a round takes")
    agent = [one.measure.health.get("memory_bytes_max") or 0 for one in source.trials[0].rounds]
    both = f"first round {size.show(agent[0])}, last {size.show(agent[-1])}"
    print(f"agent, as recorded: {size.show(max(agent))} at most; {both}")
    began = time.monotonic()
    most = most_resident([str(ROOT / "plimsoll"), "report", str(out)])
    drawn_s = time.monotonic() - began
    print(f"plimsoll report: {drawn_s:.1f} s, at most {size.show(most)} resident")
    record_bytes, page = bytes_of(out), out / "report" / "index.html"
    print(f"record: {size.show(record_bytes)} with its page of {size.show(page.stat().st_size)}")
    times = load_seconds(page)
    blank = out / "blank.html"
    blank.write_text("<!doctype html><title>blank</title>")
    none = load_seconds(blank)
    blank.unlink()
    loads = statistics.median(times) if times else None
    if loads is not None:
        own = loads - statistics.median(none)
        print(f"the page's load: {loads:.2f} s with the browser's own start, {own:.2f} s without")
    held = {
        f"the record has at most {size.show(RECORD_MAX)}": record_bytes <= RECORD_MAX,
        f"the page opens in {PAGE_S_MAX:g} s": loads is None or loads <= PAGE_S_MAX,
        "the front's memory does not grow": grown <= FRONT_GROWTH_MAX,
    }
    for what, holds in held.items():
        print(f"{'holds' if holds else 'broken'}: {what}")
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--make"]:
        long_round(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
        sys.exit(0)
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")
    sys.exit(main())
