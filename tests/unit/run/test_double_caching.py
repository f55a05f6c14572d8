"""What needs no server: file names, the server's answer as arrays, and both caches put together."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import psycopg
import pytest

from plimsoll.environment.memory import page_cache
from plimsoll.environment.memory.page_cache import PageMap
from plimsoll.run.servers import double_caching
from plimsoll.run.trial.log import TrialLog
from plimsoll.target import Connection, buffers
from plimsoll.target.buffers import Buffers, Layout, Relation

PAGE, BLOCK = 4096, 8192
ORDERS, ORDERS_INDEX, ORDERS_TOAST = (
    Relation("orders", "table"),
    Relation("orders_key", "index"),
    Relation("t", "toast"),
)
LAYOUT = Layout(
    database=5,
    folder="base/5",
    block_bytes=BLOCK,
    segment_blocks=4,
    relations={100: ORDERS, 101: ORDERS_INDEX, 102: ORDERS_TOAST, 103: ORDERS_TOAST},
)


def pages(text: str) -> PageMap:
    """A file drawn as its pages: # resident, . not; a file of whole pages."""
    return PageMap(len(text) * PAGE, np.array([mark == "#" for mark in text], bool))


def blocks(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("16384", ((16384, 0), 0)),
        ("16384.1", ((16384, 0), 1)),
        ("16384.12", ((16384, 0), 12)),
        ("16384_fsm", ((16384, 1), 0)),
        ("16384_vm.2", ((16384, 2), 2)),
        ("16384_init", ((16384, 3), 0)),
        ("t3_16384", None),  # a temporary table is in no shared buffer
        ("pg_filenode.map", None),
        ("PG_VERSION", None),
    ],
)
def test_what_a_file_holds(name: str, part: object) -> None:
    assert buffers.parse_file(name) == part


def test_the_servers_answer_as_arrays() -> None:
    rows = [(5, 100, 0, struct.pack(">3I", 7, 0, 2**31 + 1)), (5, 100, 2, struct.pack(">I", 0)), (1, 100, 0, b"\0" * 8)]
    found = buffers.as_buffers([*rows, (0, 1262, 0, b"\0\0\0\1")], database=5)
    assert {fork: held.tolist() for fork, held in found.blocks.items()} == {
        (100, 0): [7, 0, 2**31 + 1],
        (100, 2): [0],
    }
    assert found.elsewhere == 3


@pytest.mark.parametrize(
    ("drawn", "held", "page_bytes", "expected"),
    [
        ("....", [0, 1], 4096, 0),
        ("####", [], 4096, 0),
        ("####", [0, 1], 4096, 4 * 4096),
        ("#.##", [0], 4096, 4096),  # half a block is half a block
        ("#.##", [1], 4096, 8192),
        ("###", [1], 4096, 4096),  # a file cut in the middle of a block
        ("##", [0, 1, 9], 4096, 8192),  # blocks beyond the end
        ("#.#", [0, 2, 3], 8192, 16384),
        ("#.", [0, 1, 2, 7, 8], 65536, 4 * 8192),  # a page of eight blocks
    ],
)
def test_bytes_that_both_caches_hold(drawn: str, held: list[int], page_bytes: int, expected: int) -> None:
    resident = pages(drawn).resident
    assert double_caching.both_bytes(resident, blocks(*held), BLOCK, page_bytes) == expected


def test_relations_segments_forks_and_others() -> None:
    held = Buffers(
        {
            (100, 0): blocks(5, 0, 3),  # blocks 0 and 3 in the first segment, 5 in the second
            (100, 2): blocks(0),  # its visibility map: no part of the main fork
            (102, 0): blocks(0),
            (103, 0): blocks(0),
            (1259, 0): blocks(0, 1),
        },
        elsewhere=3,
    )
    files = [
        ("100", pages("##....#.")),
        ("100.1", pages("####")),
        ("100_vm", pages("##")),
        ("101", pages("#...")),
        ("102", pages("..")),
        ("103", pages("##")),
        ("1259", pages("..##")),
        ("PG_VERSION", PageMap(3, np.array([True]))),
    ]
    found = double_caching.combine(LAYOUT, held, files)
    rows = [list(row.values()) for row in found["relations"]]
    assert rows == [
        ["orders", "table", 12 * PAGE, 3 * BLOCK, 7 * PAGE, 5 * PAGE],
        ["orders_key", "index", 4 * PAGE, 0, PAGE, 0],
        ["t", "toast", 4 * PAGE, 2 * BLOCK, 2 * PAGE, 2 * PAGE],
        ["(catalogs and others)", "other", 6 * PAGE + 3, 3 * BLOCK, 4 * PAGE + 3, 4 * PAGE],
    ]
    assert list(found["relations"][0]) == [
        "relation",
        "kind",
        "bytes",
        "server_bytes",
        "page_cache_bytes",
        "both_bytes",
    ]
    for name, sum_ in found["total"].items():
        assert sum_ == sum(row[name] for row in found["relations"])
    assert (found["block_bytes"], found["source"], found["elsewhere_bytes"]) == (BLOCK, "mincore", 3 * BLOCK)


def test_the_pages_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * (3 * PAGE + 10))
    found = page_cache.page_map(file)
    assert found.resident.tolist() == [True] * 4
    assert found.resident_bytes == found.size_bytes == 3 * PAGE + 10
    file.write_bytes(b"")
    assert page_cache.page_map(file) == PageMap(0, pytest.approx(np.zeros(0)))


def test_a_file_that_shrinks_while_it_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 8 * PAGE)
    monkeypatch.setattr(page_cache, "_WINDOW", 2 * PAGE)
    descriptor = os.open(file, os.O_RDWR)
    try:
        os.ftruncate(descriptor, 5 * PAGE)
        found = page_cache._resident_pages(descriptor, 8 * PAGE)
    finally:
        os.close(descriptor)
    assert found.tolist() == [True] * 5 + [False] * 3


@pytest.mark.parametrize(("wanted", "why"), [(False, "probes.double_caching is false"), (True, "no extension")])
def test_what_cannot_be_had_is_absent_and_the_trial_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wanted: bool, why: str
) -> None:
    monkeypatch.setattr(buffers, "refusal", lambda _: "this server has no extension pg_buffercache")
    watch = double_caching.Watch(Connection("nowhere", 1, "u", "d"), tmp_path)
    watch.prepare(wanted=wanted)
    found = _watched(watch)
    assert found["before_measure"] is found["after"] is None
    assert why in found["absent"]


def test_a_reading_that_fails_is_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "base/5").mkdir(parents=True)
    (tmp_path / "base/5/100").write_bytes(b"x" * BLOCK)
    watch = double_caching.Watch(Connection("nowhere", 1, "u", "d"), tmp_path, layout=LAYOUT)
    answers = iter([Buffers({(100, 0): blocks(0)}, 0)])

    def answer(*_: object) -> Buffers:
        for one in answers:
            return one
        raise psycopg.OperationalError("the server closed the connection\nunexpectedly")

    monkeypatch.setattr(buffers, "read_buffers", answer)
    found = _watched(watch)
    assert found["before_measure"]["total"]["both_bytes"] == BLOCK
    assert found["after"] is None
    assert found["absent"] == "a reading failed: the server closed the connection"


def _watched(watch: double_caching.Watch) -> dict:
    log = TrialLog(trial=None)  # type: ignore[arg-type]
    with watch.around(log):
        pass
    return log.facts["double_caching"]
