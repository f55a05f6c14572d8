"""A soak of seconds through what days may bring: the front killed, the server killed, a warning of the kernel; each is
named with its time, the rounds are as many as the time was enough for, and nothing is left.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from laboratory import Laboratory, in_this_process

from plimsoll.record import open_run
from plimsoll.words.soak import sentences

Json = dict[str, Any]
SECONDS_MAX = 240
TEXT = """
format = 1
name = "tiny-soak"
title = "Does it last?"

[target.settings]
autovacuum = false
shared_buffers = "16 MiB"

[workload]
name = "bank"
scale = 1
clients = 2

[warmup]
until = "none"

[measure]
seconds = 2

[probes]
kernel_every_seconds = 1

[soak]
length = "20s"
between = "vacuum"
after_crash = "go on"
record_max = "64 MiB"
"""


class Soak:
    """The soak under test, as its folder tells it."""

    def __init__(self, laboratory: Laboratory, text: str = TEXT) -> None:
        self.laboratory = laboratory
        self.out = laboratory.state / "soak"
        self.trial = self.out / "trials" / "0001"
        path = laboratory.state / "soak.toml"
        path.write_text(text)
        self.first = ("soak", str(path), "--out", str(self.out))
        self.again = ("soak", "--resume", str(self.out))

    def state(self) -> Json:
        try:
            found: Json = json.loads((self.trial / "series.json").read_text())
        except FileNotFoundError:
            return {"done": [], "under_way": None}
        return found

    def inside(self, name: str) -> Callable[[], bool]:
        """Whether the load of a round is under way."""

        def look() -> bool:
            under_way = (self.state()["under_way"] or {}).get("segment") == name
            return under_way and (self.trial / name / "host.npy").exists()

        return look

    def wait(self, process: subprocess.Popen[str], for_what: Callable[[], bool]) -> None:
        until = time.monotonic() + SECONDS_MAX
        while not for_what():
            if process.poll() is not None:
                raise AssertionError("the soak ended before: " + "\n".join(process.communicate()))
            assert time.monotonic() < until, self.state()
            time.sleep(0.02)

    def postmaster(self) -> int:
        """Of the soak's server, whose children have it as their parent."""
        return min(self.laboratory.processes("postgres"))


def warn(text: str) -> None:
    with Path("/dev/kmsg").open("w") as log:
        log.write(f"<4>{text}\n")


def test_a_soak_outlives_its_front_and_its_server_and_names_what_happened(
    laboratory: Laboratory, needs: Callable[..., None]
) -> None:
    needs("root", "kernel log and slabinfo")
    soak = Soak(laboratory)

    # Inside the second round the front is killed; the kernel warns while nobody is there.
    process = laboratory.start(*soak.first)
    soak.wait(process, soak.inside("round-0002"))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert soak.state()["done"] == ["round-0001"]
    warn("WARNING: planted while the front was dead")

    # It goes on where it was; inside the third round the server is killed, and the kernel warns again.
    process = laboratory.start(*soak.again, "--json")
    soak.wait(process, soak.inside("round-0003"))
    warn("WARNING: planted inside a round")
    before = time.time()
    os.kill(soak.postmaster(), signal.SIGKILL)
    output, error = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, output + error
    told = json.loads(output.splitlines()[-1])
    verdict, found = told["verdict"], told["verdict"]["soak"]

    rounds = [one["round"] for one in found["each"]]
    assert rounds == list(range(1, len(rounds) + 1)) and len(rounds) >= 3
    assert all(one["value"] > 0 for one in found["each"]) and found["ended_by"] == "time"
    assert [one["round"] for one in found["interruptions"]] == ["round-0002", "round-0003"]
    (crash,) = found["crashes"]
    assert crash["round"] == 3 and "the server ended in round-0003" in crash["text"]
    assert before - 1 <= crash["epoch_ns"] / 1e9 <= before + 60
    planted = {event["text"]: event for event in verdict["kernel"]["events"] if "planted" in event["text"]}
    assert set(planted) == {"WARNING: planted while the front was dead", "WARNING: planted inside a round"}
    assert all(abs(event["epoch_ns"] / 1e9 - before) < 600 and event["by"] == "program" for event in planted.values())
    assert any("the server crashed" in line for line in sentences.SENTENCES.warns(verdict))
    assert found["memory"]["front_bytes_max"] and found["memory"]["agent_bytes_max"]
    assert found["record_bytes"] < found["record_bytes_max"]
    assert laboratory.left_behind() == [] and not list((laboratory.state / "datasets").glob("plimsoll-*"))

    page = (soak.out / "report" / "index.html").read_text()
    for text in ("The rounds of the soak", "planted inside a round", "the server ended in round-0003", "soak-vmstat"):
        assert text in page, text
    assert open_run(soak.out).data["kind"] == "soak"
    laboratory.call("soak", "--resume", str(soak.out), "--json")  # what is done is not done again
    assert [one.place for one in open_run(soak.out).trials[0].rounds] == rounds


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("soak",), "a soak is of an experiment"),
        (("soak", "oltp-soak", "--for", "a fortnight"), "is not a duration of a soak"),
        (("soak", "oltp-soak", "--between", "prayers"), "vacuum, checkpoint or nothing"),
        (("soak", "--resume", "x", "--for", "1h"), "with the settings that it began with"),
        (("soak", "buffer-cache"), "levels, and a soak is of one treatment"),
        (("run", "oltp-soak"), "./plimsoll soak oltp-soak"),
    ],
)
def test_a_wrong_request_starts_nothing(laboratory: Laboratory, argv: tuple[str, ...], said: str) -> None:
    done = in_this_process(list(argv), laboratory.state, laboratory.state)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
