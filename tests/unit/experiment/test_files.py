"""Workloads on files in experiment files: what the agent is asked for, and how their faults are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plimsoll.experiment import Experiment, ExperimentError, load
from plimsoll.experiment.workload import OWNERS, FileMix, FileServing, RawStorage, SequentialIo
from plimsoll.experiment.workloads.on_files import mean_of

MIX = {"name": "files", "count": 100, "file_size": "1 MiB", "mix": [{"operation": "read", "bytes": "4 KiB"}]}
PHASES = {"warmup": {"until": "none"}}
MEASURE = {"measure": {"seconds": 1}}
HEAD = 'format = 1\nname = "mine"\ntitle = "A question"\n[target]\nserver = "files"\n'


def made(workload: dict[str, Any], **tables: Any) -> Experiment:
    document = {"name": "x", "title": "x", "target": {"server": "files"}, "workload": workload, **tables}
    return Experiment.model_validate(document)


def faults(tmp_path: Path, text: str) -> str:
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    with pytest.raises(ExperimentError) as caught:
        load(str(path))
    return str(caught.value)


def test_a_mix_is_asked_for_as_the_agent_takes_it() -> None:
    mix = [
        {"operation": "read", "weight": 70, "bytes": 4096},
        {"operation": "append", "weight": 5, "bytes": [512, "4 KiB"], "sync": "fdatasync"},
        {"operation": "unlink"},
    ]
    found = made({**MIX, "file_size": ["4 KiB", "1 MiB"], "keys": {"zipf": 0.9}, "mix": mix}, **MEASURE).workload
    assert found.request(2**30) == {
        "name": "files", "seed": 2004, "engine": "sync", "count": 100, "file_bytes": [4096, 2**20], "fanout": 100,
        "direct": False, "verify": True, "keys": {"zipf": 0.9},
        "mix": [
            {"operation": "read", "weight": 70, "bytes": 4096},
            {"operation": "append", "weight": 5, "bytes": [512, 4096], "sync": "fdatasync"},
            {"operation": "unlink", "weight": 1},
        ],
    }  # fmt: skip
    assert found.load_request(2) == {"clients": 1, "threads": 1}
    assert found.written_bytes() is None, "it appends, and nobody knows how much"
    assert made(MIX, **MEASURE).workload.written_bytes() == 0


def test_operations_that_go_on_from_one_another_say_in_how_many_streams() -> None:
    found = made({**MIX, "keys": {"sequential": 8}}, **MEASURE).workload
    assert found.request(2**30)["keys"] == {"sequential": 8}


def test_sizes_of_a_range_are_uniform_in_the_logarithm() -> None:
    # The mean of exp(u), u uniform from log 4096 to log 2**20, by the sum of many.
    assert mean_of([4096, 2**20]) == pytest.approx((2**20 - 4096) / 5.545177, rel=1e-6)
    assert mean_of(4096) == mean_of([4096, 4096]) == 4096
    assert made({**MIX, "file_size": "0.5 x memory"}, **MEASURE).workload.estimated_bytes(2**20 + 12) == 100 * 2**19


def test_a_ring_has_threads_and_calls_that_block_have_none() -> None:
    ring = made({**MIX, "engine": "io_uring", "clients": 32}, **MEASURE).workload
    assert ring.load_request(2) == {"clients": 32, "threads": 2}
    assert made({**MIX, "clients": 32}, **MEASURE).workload.load_request(2) == {"clients": 32, "threads": 1}


def test_phases_are_asked_for_one_by_one() -> None:
    found = made({"name": "raw_storage", "size": 1_000_000, "phases": ["putc", "seeks"]}, **PHASES).workload
    assert isinstance(found, RawStorage)
    assert found.phases_run() == ["putc", "seeks"]
    assert [found.phase_clients(phase) for phase in found.phases_run()] == [1, 3]
    assert found.phase_request("seeks", 0) == {
        "name": "raw_storage", "seed": 1990, "phase": "seeks", "file_bytes": 999_424, "chunk_bytes": 8192,
        "seeks": 4000, "seekers": 3, "update_every": 10, "fsync": False, "verify": True,
    }  # fmt: skip
    assert found.judged(made(MIX, **MEASURE).schedule) == "putc_bytes_per_second"


def test_passes_have_their_engine_and_as_many_sessions_as_are_under_way() -> None:
    settings = {"name": "sequential_io", "file_size": "1 MiB", "processes": 3, "engine": "io_uring", "depth": 8}
    found = made(settings, **PHASES).workload
    assert isinstance(found, SequentialIo)
    assert found.phases_run() == ["write", "rewrite", "read", "reread"]
    assert found.phase_clients("read") == 24
    assert found.load_request(2) == {"threads": 3}, "a ring of its own for each file, whatever CPUs there are"
    asked = found.phase_request("read", 0)
    assert (asked["pass"], asked["file_bytes"], asked["record_bytes"]) == ("read", 2**20, 65536)
    assert (asked["stop"], asked["depth"], asked["verify"]) == ("first", 8, True)
    assert found.estimated_bytes(0) == 3 * 2**20


@pytest.mark.parametrize(
    "settings",
    [{"name": "raw_storage", "size": "1 MiB", "fsync": True}, {"name": "sequential_io", "file_size": "1 MiB"}],
)
def test_phases_say_beforehand_that_they_do_not_verify(settings: dict[str, object]) -> None:
    verified, bare = (made(settings | {"verify": verify}, **PHASES).workload for verify in (True, False))
    assert verified.phase_request("write", 0)["verify"] is True and verified.caveats() == []
    assert bare.phase_request("write", 0)["verify"] is False
    assert [text.startswith("not verified: ") for text in bare.caveats()] == [True]


def test_a_file_server_has_a_script() -> None:
    found = made({"name": "file_serving", "clients": 4}, **MEASURE)
    assert isinstance(found.workload, FileServing)
    assert found.judged == "bytes_per_second"
    assert found.workload.request(0)["script"] == {"synthetic": {}}
    named = made({"name": "file_serving", "loadfile": "/a/client.txt"}, **MEASURE).workload
    assert named.request(0)["script"] == {"loadfile": "/a/client.txt"}
    assert found.workload.request(0)["descriptor_tables"] == "shared", "threads, as they are"
    own = made({"name": "file_serving", "descriptor_tables": "own"}, **MEASURE).workload
    assert own.request(0)["descriptor_tables"] == "own"
    assert own.subject().endswith("tables of descriptors of their own")
    assert "descriptors" not in found.workload.subject()
    open_loop = made({"name": "file_serving"}, schedule={"kind": "poisson", "rate": 10}, **MEASURE)
    assert open_loop.judged == "latency_ns_p99"


def test_metrics_have_all_their_owners() -> None:
    assert OWNERS["write_bytes_per_second"] == ["raw_storage", "sequential_io"]
    assert OWNERS["bytes_per_second"] == ["files", "file_serving"]
    assert OWNERS["seeks_per_second"] == ["raw_storage"]


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ('name = "files"\ncount = 1\nfile_size = 5000\nmix = [{operation = "stat"}]', "file_size = 5000 is not a mult"),
        ('name = "files"\ncount = 1\nfile_size = 4096\nmix = [{operation = "read"}]', "read moves bytes"),
        ('name = "files"\ncount = 1\nfile_size = 4096\nmix = [{operation = "stat", bytes = 1}]', "stat does not move"),
        (
            'name = "files"\ncount = 1\nfile_size = 4096\nmix = [{operation = "read", bytes = 4096, sync = "fsync"}]',
            "read has no sync; allowed: for write and append",
        ),
        (
            'name = "files"\ncount = 1\nfile_size = 4096\nmix = [{operation = "read", bytes = [512, 1024]}]',
            "read has a range of bytes",
        ),
        (
            'name = "files"\nengine = "io_uring"\ncount = 1\nfile_size = 4096\nmix = [{operation = "stat"}]',
            'engine is "io_uring", which does not perform stat',
        ),
        (
            'name = "files"\nthreads = 2\ncount = 1\nfile_size = 4096\nmix = [{operation = "stat"}]',
            "one thread a session",
        ),
        (
            'name = "files"\ncount = 1\nfile_size = 4096\nmix = [{operation = "stat", weight = 0}]',
            "every weight of mix",
        ),
        (
            'name = "files"\nkeys = {sequential = 2}\ncount = 1\nfile_size = 4096\nmix = [{operation = "unlink"}]',
            "keys are sequential, and unlink changes which files there are",
        ),
        ('name = "raw_storage"\nsize = "1 MiB"\nphases = ["read"]', "the first phase is read, which needs a file"),
        ('name = "raw_storage"\nsize = "1 MiB"\nphases = ["write", "putc"]', "phases are given twice or out of order"),
        ('name = "raw_storage"\nsize = "1 MiB"\nchunk = 4096', "chunk"),
        ('name = "sequential_io"\nfile_size = "1 MiB"\npasses = ["read"]', "the first pass is read"),
        (
            'name = "sequential_io"\nfile_size = "1 MiB"\nengine = "mmap"\ndirect = true',
            "direct: of calls, and mmap makes none",
        ),
        (
            'name = "sequential_io"\nfile_size = "1 MiB"\nengine = "mmap"\npasses = ["write", "pread"]',
            "the pass pread: of calls",
        ),
        ('name = "sequential_io"\nfile_size = "1 MiB"\nengine = "mmap"\ndepth = 2', "depth: only with io_uring"),
        ('name = "sequential_io"\nfile_size = "1 MiB"\npasses = ["pwrite", "pread"]', "the first pass is pwrite"),
        ('name = "sequential_io"\nfile_size = "1 MiB"\npasses = ["write", "write"]', "the pass write is given twice"),
        ('name = "sequential_io"\nfile_size = "1 MiB"\ndepth = 4', "depth: only with io_uring"),
        ('name = "sequential_io"\nfile_size = "1 MiB"\nrecord = 1000', "record = 1000 is not a multiple of 512"),
        ('name = "sequential_io"\nfile_size = "1 MiB"\ndirect = true\nuncached = true', "uncached with direct"),
        ('name = "file_serving"\nloadfile = "client.txt"', "'client.txt' is not an absolute path"),
        ('name = "file_serving"\ngeneration = "2.1"', 'generation "2.1" runs its script once'),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, workload: str, said: str) -> None:
    text = faults(tmp_path, f'{HEAD}[workload]\n{workload}\n[warmup]\nuntil = "none"\n')
    assert said in text, text


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"target": {}}, 'target.server is "postgresql", which has tables of a database'),
        ({"target": {"server": "files", "settings": {"a": 1}}}, "has no target.settings.a"),
        ({"target": {"server": "files", "dsn": "host=x"}}, "has no target.dsn"),
        ({"target": {"server": "files", "files": {"wal": "/mnt"}}}, "has no target.files.wal"),
        ({"warmup": {"prewarm": True}}, "has no warmup.prewarm"),
    ],
)
def test_what_a_folder_has_not_is_refused(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said.replace(".", r"\.")):
        made(MIX, **MEASURE, **tables) if "target" not in tables else Experiment.model_validate(
            {"name": "x", "title": "x", "workload": MIX, **MEASURE, **tables}
        )


def test_tables_are_no_load_of_a_folder() -> None:
    with pytest.raises(
        ValueError, match=r'bank is a load on tables of a database; allowed: target\.server = "postgresql"'
    ):
        made({"name": "bank", "scale": 1}, **MEASURE)


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({**PHASES, **MEASURE}, "the phases of raw_storage are measured whole"),
        ({}, "raw_storage has no warm-up"),
        ({**PHASES, "schedule": {"kind": "poisson", "rate": 1}}, "each phase of raw_storage goes on"),
        ({**PHASES, "design": {"judged": "reread_bytes_per_second"}}, "which these phases do not measure"),
        ({**PHASES, "design": {"judged": "throughput_per_second"}}, "which these phases do not measure"),
    ],
)
def test_phases_have_their_own_begin_and_end(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        made({"name": "raw_storage", "size": "1 MiB"}, **tables)


def test_a_mix_is_not_judged_by_a_phase() -> None:
    with pytest.raises(ValueError, match="which workload raw_storage or sequential_io alone has"):
        made(MIX, **MEASURE, design={"judged": "write_bytes_per_second"})


def test_what_has_no_rate_has_no_load_line() -> None:
    assert RawStorage(name="raw_storage", size="1 MiB").no_load_line() is not None
    assert FileServing(name="file_serving", passes=1).no_load_line() is not None
    assert FileServing(name="file_serving").no_load_line() is None
    assert FileMix.model_validate(MIX).no_load_line() is None
