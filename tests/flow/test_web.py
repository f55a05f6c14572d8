"""Web serving with real servers: a trial of each to its record and page, and what becomes of one that is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory

from plimsoll.environment import web_processes

NEEDS = ("root", "server user")
Json = dict[str, Any]
EXPERIMENT = """
format = 1
name = "web"
title = "Is it served?"

[target]
server = "{server}"

[workload]
name = "web"
clients = 8
directories = 2
mix = "static"

[probes]
page_cache = false
breakdown = false
double_caching = false

[warmup]
until = "none"

[measure]
seconds = {seconds}

[design]
blocks = {blocks}
repeat_share_max = 0  # what is planted is planted in the first attempt
{more}
"""
SERVERS = {"nginx": "nginx", "apache": "apache2"}  # by what their processes are called


@pytest.fixture(params=sorted(SERVERS))
def server(request: pytest.FixtureRequest, needs: Callable[..., None]) -> Iterator[str]:
    needs(request.param)
    yield request.param


def by_turns(first: str) -> pytest.MarkDecorator:
    """The test on this server; on the others with --long."""
    others = [pytest.param(one, marks=pytest.mark.long) for one in sorted(SERVERS) if one != first]
    return pytest.mark.parametrize("server", [first, *others], indirect=True)


def written(laboratory: Laboratory, server: str, *, seconds: float = 1, blocks: int = 1, more: str = "") -> str:
    path = laboratory.state / f"web-{server}.toml"
    path.write_text(EXPERIMENT.format(server=server, seconds=seconds, blocks=blocks, more=more))
    return str(path)


def trials(out: Path) -> list[Json]:
    return [json.loads(path.read_text()) for path in sorted(out.glob("trials/*/trial.json"))]


def summary(out: Path, number: int = 1) -> Json:
    found: Json = json.loads((out / "trials" / f"{number:04}" / "measure" / "summary.json").read_text())
    return found


def test_a_server_serves_what_is_asked_and_leaves_nothing(laboratory: Laboratory, server: str) -> None:
    out = laboratory.state / f"served-{server}"
    factor = f'[[factors]]\npath = "target.settings.{"sendfile" if server == "nginx" else "enablesendfile"}"\n'
    asked = written(laboratory, server, more=f"{factor}levels = [true, false]")
    laboratory.call("run", asked, "--out", str(out))
    for trial in trials(out):
        assert trial["status"] == "finished" and all(check["ok"] for check in trial["checks"]), trial
        assert trial["server"]["version"].startswith(("nginx ", "Apache "))
        assert len(trial["residency"]["by_class"]["after"]) == 4
    told = summary(out)
    assert sum(told["totals"][f"class{number}_requests"] for number in range(4)) == told["identity"]["planned"]
    assert told["identity"]["done"] > 100 and told["identity"]["failed"] == told["verification"]["wrong"] == 0
    assert told["totals"]["clients_with_work"] == 8
    assert "Web serving" in (out / "report/index.html").read_text()
    settings = [trial["server"]["settings"] for trial in trials(out)]
    assert {one.get("sendfile", one.get("enablesendfile")) for one in settings} == {"on", "off"}
    # The files are laid out once for all servers.
    assert len(list((laboratory.state / "datasets").glob("web-2-files-*"))) == 1
    assert laboratory.left_behind() == []


def check_workers(told: Json, server: str) -> None:
    """Each process's parts add up to its time, and the kernel's count of switches says that none was missed."""
    probed = told["probes"]["worker_waits"]
    assert probed["status"] == "on", probed
    workers = probed["workers"]
    found = {(one["role"], one["name"]) for one in workers}
    assert found >= {("server", SERVERS[server]), ("program", "plimsoll-agent")}
    for one in workers:
        assert one["cpu_ns"] + one["run_queue_ns"] + sum(one["asleep_ns"].values()) == one["span_ns"], one
    busy = sum(one["cpu_ns"] for one in workers if one["role"] == "server")
    assert busy > 10_000 * told["identity"]["done"], "a request takes a server more than 10 us"
    assert sum(one["asleep_ns"].get("socket", 0) for one in workers) > 0
    counted = sum(sum(one["waits"].values()) for one in workers)
    assert sum(one["missed"] for one in workers) <= counted / 1000 + len(workers)


def test_a_program_answers_behind_it_and_logs_every_post(
    laboratory: Laboratory, server: str, needs: Callable[..., None]
) -> None:
    out = laboratory.state / f"whole-{server}"
    asked = written(laboratory, server)
    sets = ("--set", "workload.mix=whole", "--set", "probes.breakdown=true", "--set", "probes.page_cache=true")
    laboratory.call("run", asked, "--no-page", "--out", str(out), *sets)
    (trial,) = trials(out)
    told = summary(out)
    assert trial["status"] == "finished" and all(check["ok"] for check in trial["checks"]), trial
    posts = next(check["found"] for check in trial["checks"] if check["name"] == "count of the post log")
    assert int(posts) == told["by_kind"]["post"]["done"] > 0
    assert told["by_kind"]["custom_ad"]["done"] > 0 and told["verification"]["wrong"] == 0
    assert laboratory.left_behind() == []
    needs("bpf")  # what went before asks nothing of the kernel
    check_workers(told, server)
    written_pages = {name: one["write_pages"] for name, one in told["probes"]["page_cache"]["totals"].items()}
    assert written_pages["posts"] > 0 and not any(written_pages[f"class{number}"] for number in range(4))


# The front, with the files of class 2 evicted after all were read into the page cache and before the server starts.
EVICTED = """
from plimsoll.environment.memory import page_cache
from plimsoll.run.servers.web import private

def evict(self, at, log):
    page_cache.evict(*sorted(at.place.site.rglob("class2_*")))

private.PrivateWeb.has_warmed = evict
from plimsoll.__main__ import main
main()
"""
LARGEST = (921, 9216, 92_160, 921_600)  # bytes of the largest file of each class
READ_BYTES = {"nginx": 32_768, "apache": 8000}  # of a call: output_buffers, APR_BUCKET_BUFF_SIZE
PAGE, DIRECTORIES = 4096, 2


def pages_asked_for(size: int, at_once: int) -> int:
    """By calls of so many bytes each; what two of them have in common is asked for twice."""
    parts = [(start, min(start + at_once, size)) for start in range(0, size, at_once)]
    return sum((end - 1) // PAGE - start // PAGE + 1 for start, end in parts)


def pages_that_come(number: int, around: list[Json], evicted: int) -> tuple[int, int]:
    """At least and at most; alike, unless others evict pages of a class. Those come once more where they are asked for:
    what left under the load, as the probe has seen, and what left before it: `around` tells of both ends."""
    whole = DIRECTORIES * pages_asked_for(LARGEST[number], LARGEST[number])
    if number == 2:
        return whole, whole + evicted
    has_lost = evicted > 0 or any(one["resident_bytes"] < one["total_bytes"] for one in around)
    return 0, evicted + whole if has_lost else 0


def test_hits_are_told_by_class_of_file(laboratory: Laboratory, server: str, needs: Callable[..., None]) -> None:
    """Each class has one file that is asked for in each directory; those of one class were evicted, and come once."""
    needs("bpf")
    out = laboratory.state / f"classes-{server}"
    # So that each call says how much it asks for.
    copied = {"nginx": ("sendfile",), "apache": ("enablesendfile", "enablemmap")}[server]
    sets = [
        *("environment.page_cache=warm", "environment.memory=512 MiB", "probes.page_cache=true"),
        *("workload.zipf=0", "workload.classes=[30, 30, 30, 10]", "workload.class_files=[0, 0, 0, 0, 0, 0, 0, 0, 1]"),
        *(f"target.settings.{name}=false" for name in copied),
    ]
    asked = written(laboratory, server, seconds=2)
    argv = ["run", asked, "--out", str(out), *(part for one in sets for part in ("--set", one))]
    front = laboratory.start(*argv, program=("-c", EVICTED))
    said = front.communicate(timeout=300)
    assert front.returncode == 0, said
    told = summary(out)
    probed = told["probes"]["page_cache"]
    assert probed["status"] == "on", probed
    assert probed["part_of"] == {**{f"class{number}": "data" for number in range(4)}, "posts": "other"}
    assert all(one["holds"] for one in probed["identity"].values()), probed["identity"]
    assert told["identity"]["planned"] == told["identity"]["done"] > 100
    (trial,) = trials(out)
    before, after = (trial["residency"]["by_class"][when] for when in ("before", "after"))
    assert before[2]["resident_bytes"] == 0
    for number, size in enumerate(LARGEST):
        counted, requests = probed["totals"][f"class{number}"], told["totals"][f"class{number}_requests"]
        asked_for = requests * pages_asked_for(size, READ_BYTES[server])
        assert counted["read_pages"] == asked_for, (number, requests, counted)
        brought = counted["read_missed_pages"] + counted["readahead_pages"] + counted["prefetch_pages"]
        least, most = pages_that_come(number, [before[number], after[number]], counted["evicted_pages"])
        assert least <= brought == counted["added_pages"] <= most, (number, least, most, before, after, counted)
        assert (counted["read_missed_pages"] > 0) == (number == 2) or most > least, (number, counted)
    verdict = json.loads((out / "verdict.json").read_text())
    (served,) = verdict["web_serving"]["treatments"].values()
    ratios = [one["hit_ratio"]["value"] for one in served["kept"]]
    each = [probed["totals"][f"class{number}"] for number in range(4)]
    missed, asked_for = ([one[column] for one in each] for column in ("read_missed_pages", "read_pages"))
    assert ratios == pytest.approx([1 - part / whole for part, whole in zip(missed, asked_for, strict=True)])
    assert [ratio == 1 for ratio in ratios] == [not part for part in missed] and ratios[2] < 1
    assert "pages<br>asked for" in (out / "report/index.html").read_text()
    assert laboratory.left_behind() == []


class Serving:
    """A run whose first trial is under load."""

    def __init__(self, laboratory: Laboratory, server: str, name: str, *, seconds: float = 2, more: str = "") -> None:
        self.laboratory, self.out = laboratory, laboratory.state / f"{name}-{server}"
        asked = written(laboratory, server, seconds=seconds, blocks=2, more=more)
        sets = () if not more else ("--set", "workload.mix=whole", "--set", "target.files.program=logs")
        self.front = laboratory.start("run", asked, "--no-page", "--out", str(self.out), *sets)
        until = time.monotonic() + 60
        while not (self.out / "trials/0001/measure/transactions.npy").exists():
            assert self.front.poll() is None and time.monotonic() < until, self.front.communicate()
            time.sleep(0.02)
        time.sleep(0.3)

    def processes(self) -> list[int]:
        """Of the server: its first process, which has started the others, first."""
        (work,) = (path for path in (self.laboratory.state / "work").iterdir() if path.is_dir())
        return sorted(web_processes.processes_of(work))

    def ended(self) -> tuple[int, str]:
        out, error = self.front.communicate(timeout=90)
        return self.front.returncode, f"{out}\n{error}"


@by_turns("nginx")
def test_a_server_that_is_killed_fails_its_trial_alone(laboratory: Laboratory, server: str) -> None:
    run = Serving(laboratory, server, "killed")
    for pid in run.processes():
        with contextlib.suppress(ProcessLookupError):  # ended with its parent
            os.kill(pid, signal.SIGKILL)
    code, said = run.ended()
    assert code == 0, said
    first, second = trials(run.out)
    assert (first["status"], second["status"]) == ("failed", "finished"), said
    assert laboratory.left_behind() == []


@by_turns("nginx")
def test_a_worker_that_is_killed_is_told_of(laboratory: Laboratory, server: str) -> None:
    """The server starts another one; requests of the one that is gone have failed, and are counted."""
    run = Serving(laboratory, server, "worker")
    os.kill(run.processes()[-1], signal.SIGKILL)
    code, said = run.ended()
    assert code == 0, said
    first = trials(run.out)[0]
    assert first["status"] == "finished" and any("processes were killed" in text for text in first["caveats"]), first
    assert summary(run.out)["verification"]["wrong"] == 0
    assert laboratory.left_behind() == []


@pytest.mark.long
def test_a_log_of_posts_without_room_fails_its_trial_and_says_which(
    laboratory: Laboratory, server: str, needs: Callable[..., None]
) -> None:
    """Of its own place: what was measured is no serving of the mix, and the place is what has to be larger."""
    needs("loop devices and mkfs.ext4")
    run = Serving(laboratory, server, "full", seconds=8, more='[environment.places.logs]\nimage = "32 MiB"\n')
    (log,) = (laboratory.state / "work").glob("*.at-logs/plimsoll-*/**/post.log")
    with contextlib.suppress(OSError), (log.parent.parent / "filler").open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(1 << 16))
    code, said = run.ended()
    first, second = trials(run.out)
    assert (first["status"], second["status"]) == ("failed", "finished"), said
    reason = first["reason"]
    assert "at-logs is full" in reason and "make its image larger" in reason, reason
    assert "POSTs cannot be logged and are refused: post.log: No space left on device" in reason, reason
    assert summary(run.out)["totals"]["wrong_status"] > 0
    assert code == 0 and laboratory.left_behind() == []


@by_turns("apache")
def test_a_server_that_stands_still_for_a_second_is_waited_for(laboratory: Laboratory, server: str) -> None:
    run = Serving(laboratory, server, "still")
    processes = run.processes()
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(1)
    for pid in processes:
        os.kill(pid, signal.SIGCONT)
    code, said = run.ended()
    assert code == 0 and [trial["status"] for trial in trials(run.out)] == ["finished"] * 2, said
    told = summary(run.out)
    assert told["identity"]["failed"] == told["identity"]["lost"] == 0
    assert laboratory.left_behind() == []


@pytest.mark.parametrize(
    ("server", "what"),
    [
        ("nginx", "SIGKILL"),
        ("apache", "SIGTERM"),
        pytest.param("nginx", "SIGTERM", marks=pytest.mark.long),
        pytest.param("apache", "SIGKILL", marks=pytest.mark.long),
    ],
    indirect=["server"],
)
def test_a_front_that_ends_leaves_no_server(laboratory: Laboratory, server: str, what: str) -> None:
    run = Serving(laboratory, server, what)
    assert run.processes()
    run.front.send_signal(getattr(signal, what))
    code, said = run.ended()
    assert code == (-signal.SIGKILL if what == "SIGKILL" else 4), said
    if what == "SIGKILL":
        laboratory.call("undo")
    assert laboratory.left_behind() == []
    assert laboratory.call("undo").startswith("Nothing")


def test_a_directive_that_the_server_does_not_know_is_told_in_its_words(laboratory: Laboratory, server: str) -> None:
    out = laboratory.state / f"unknown-{server}"
    asked = written(laboratory, server)
    laboratory.call("run", asked, "--no-page", "--out", str(out), "--set", "target.settings.colour=blue", code=None)
    (trial,) = trials(out)
    assert trial["status"] == "failed" and "colour" in trial["reason"].lower()
    assert laboratory.left_behind() == []
