"""A trace read back by the published schema: its tracks, slices, arrows and counters are those of the record."""

from __future__ import annotations

import runpy
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

from plimsoll.export import ExportError
from plimsoll.export.perfetto import write_trace
from plimsoll.export.trace import Trace, varint
from plimsoll.record import open_run

_HERE = runpy.run_path(str(Path(__file__).with_name("trace_world.py")))
_WORLD, START, EPOCH = _HERE["WORLD"], _HERE["START"], _HERE["EPOCH"]
transactions, server_rows, waits = _WORLD["sent"], _WORLD["server_rows"], _WORLD["waits"]
Event = schema.TrackEvent


class Read:
    """A trace as a program that shows it would take it: names by their numbers, slices from begin to end."""

    def __init__(self, path: Path) -> None:
        trace = schema.Trace()
        trace.ParseFromString(path.read_bytes())
        trace.DiscardUnknownFields()
        assert len(trace.SerializeToString()) == path.stat().st_size, "nothing is beside the schema"
        self.tracks: dict[int, Any] = {}
        self.slices: dict[str, list[tuple[int, int, str, dict[str, int]]]] = {}
        self.counters: dict[str, list[tuple[int, float]]] = {}
        self.arrows: list[tuple[tuple[str, int], tuple[str, int]]] = []
        self.clocks: dict[int, int] = {}
        names: dict[int, str] = {}
        open_slices: dict[int, tuple[int, str, dict[str, int]]] = {}
        leaving: dict[int, tuple[str, int]] = {}
        ending: dict[int, tuple[str, int]] = {}
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id == 1
            names |= {one.iid: one.name for one in packet.interned_data.event_names}
            names |= {one.iid: one.name for one in packet.interned_data.debug_annotation_names}
            if packet.HasField("clock_snapshot"):
                assert packet.clock_snapshot.primary_trace_clock == 3
                self.clocks = {one.clock_id: one.timestamp for one in packet.clock_snapshot.clocks}
            if packet.HasField("track_descriptor"):
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if not packet.HasField("track_event"):
                continue
            event, track = packet.track_event, self.tracks[packet.track_event.track_uuid].name
            if event.type == Event.TYPE_COUNTER:
                self.counters.setdefault(track, []).append((packet.timestamp, event.double_counter_value))
            elif event.type == Event.TYPE_SLICE_BEGIN:
                assert event.track_uuid not in open_slices, "slices of a track do not overlap"
                arguments = {names[one.name_iid]: one.uint_value for one in event.debug_annotations}
                open_slices[event.track_uuid] = (packet.timestamp, names[event.name_iid], arguments)
                leaving |= {arrow: (track, packet.timestamp) for arrow in event.flow_ids}
            else:
                assert event.type == Event.TYPE_SLICE_END
                begin, name, arguments = open_slices.pop(event.track_uuid)
                self.slices.setdefault(track, []).append((begin, packet.timestamp, name, arguments))
                ending |= {arrow: (track, begin) for arrow in event.terminating_flow_ids}
        assert not open_slices
        assert leaving.keys() == ending.keys()
        self.arrows = [(leaving[arrow], ending[arrow]) for arrow in sorted(leaving)]


def _export(folder: Path, window: tuple[float, float] = (0.0, 60.0)) -> tuple[Read, dict[str, Any]]:
    run = open_run(folder)
    out = folder / "out.pftrace"
    said = write_trace(run, run.trials[0], window, out)
    return Read(out), said


def _at(us: int) -> int:
    return int(START + us * 1000)


def _two_backends(folder: Path, one_in: int = 1) -> Path:
    """Backend 7 syncs the log from 100 to 900 µs, and 8 waits for that from 300 to 950; then 8 does one by itself."""
    rows = transactions(
        {"planned_ns": _at(50), "start_ns": _at(90), "end_ns": _at(910), "backend_pid": 7, "requests": 1},
        {"planned_ns": _at(290), "start_ns": _at(290), "end_ns": _at(960), "backend_pid": 8, "requests": 1, "kind": 1},
        {"planned_ns": _at(990), "start_ns": _at(990), "end_ns": _at(1200), "backend_pid": 8, "outcome": 1},
    )
    asked = server_rows(
        {"backend_pid": 7, "arrived_ns": _at(100), "ended_ns": _at(900), "cpu_ns": 100_000, "one_in": one_in},
        {"backend_pid": 8, "arrived_ns": _at(300), "ended_ns": _at(950), "cpu_ns": 90_000, "one_in": one_in},
        {"backend_pid": 8, "arrived_ns": _at(1000), "ended_ns": _at(1100), "cpu_ns": 60_000, "run_queue_ns": 40_000},
    )
    # Rows are numbered by their ends.
    waited = waits(
        (0, _WORLD["WAL_SYNC"], "wal_sync", 600_000),
        (1, _WORLD["WAL_WRITE_LOCK"], "wal_wait", 500_000, 7),
    )
    found: Path = _HERE["run_of"](folder, rows, asked, waited)
    return found


def test_a_track_a_backend_and_a_slice_a_transaction(tmp_path: Path) -> None:
    read, said = _export(_two_backends(tmp_path / "run"))
    assert read.slices["backend 7: the server"] == [
        (_at(100), _at(900), "wal_sync", {"cpu, ns": 100_000, "run_queue, ns": 0, "wal_sync: IO:WALSync, ns": 600_000})
    ]
    first, second = read.slices["backend 8: the server"]
    assert first[:3] == (_at(300), _at(950), "wal_wait")
    assert (first[3]["wal_wait: LWLock:WALWrite, ns"], first[3]["last woken by pid"]) == (500_000, 7)
    assert second[2:] == ("cpu", {"cpu, ns": 60_000, "run_queue, ns": 40_000})
    assert [one[:3] for one in read.slices["backend 8: its client"]] == [
        (_at(290), _at(960), "look"),
        (_at(990), _at(1200), "pay (failed)"),
    ]
    assert read.slices["backend 7: its client"][0][3] == {"index": 0, "lag, ns": 40_000}
    parents = {track.name: track.parent_uuid for track in read.tracks.values()}
    above = {track.uuid: track.name for track in read.tracks.values()}
    assert above[parents["backend 8: the server"]] == "backend 8"
    assert (said["server_transactions"], said["client_transactions"], said["backends"]) == (3, 3, 2)
    assert read.slices["run"] == [(START, START + 3 * 10**9, "run, trial 1: level; one", {})], (
        "no longer than the trial"
    )
    assert read.clocks == {3: START, 1: START + EPOCH}


def test_an_arrow_leads_from_who_synced_to_who_waited(tmp_path: Path) -> None:
    read, said = _export(_two_backends(tmp_path / "run"))
    assert read.arrows == [(("backend 7: the server", _at(100)), ("backend 8: the server", _at(300)))]
    assert (said["arrows"], said["arrows_not_drawn"]) == (1, {})


def test_no_arrow_where_the_waker_s_transaction_is_not_known(tmp_path: Path) -> None:
    sampled, said = _export(_two_backends(tmp_path / "sampled", one_in=2))
    assert sampled.arrows == []
    assert list(said["arrows_not_drawn"]) == [
        "only slices of time were watched, and the waker may have had other transactions"
    ]
    rows = [
        {"backend_pid": 7, "arrived_ns": _at(100), "ended_ns": _at(400)},
        {"backend_pid": 7, "arrived_ns": _at(450), "ended_ns": _at(800)},
        {"backend_pid": 8, "arrived_ns": _at(300), "ended_ns": _at(950)},
        {"backend_pid": 9, "arrived_ns": _at(960), "ended_ns": _at(990)},
    ]
    event = _WORLD["WAL_WRITE_LOCK"]
    waited = waits(*((2, event + n, "wal_wait", 100, waker) for n, waker in enumerate((7, 77, 78, 9))))
    walwriter = {"pid": 77, "what": "walwriter"}
    folder = _HERE["run_of"](tmp_path / "more", transactions(), server_rows(*rows), waited, processes=[walwriter])
    read, said = _export(folder)
    assert read.arrows == []
    assert said["arrows_not_drawn"] == {
        "by one of several transactions of the waker": 1,
        "by the walwriter, of which no times are known": 1,
        "waker unknown": 1,
        "by one not recorded": 1,
    }


def test_counters_stand_where_they_hold(tmp_path: Path) -> None:
    read, _ = _export(_two_backends(tmp_path / "run"))
    second = 10**9
    assert read.counters["dirty pages, host"] == [(START + n * second, (100 + n) * 1024.0) for n in range(3)]
    # 2000 ms a second squared: 2, 6 and 10 requests in the mean of each second, from its begin on.
    queue = read.counters["vda: requests queued or under way, mean"]
    assert queue == [(START, 2.0), (START + second, 6.0), (START + 2 * second, 10.0)]


def test_a_window_holds_what_begins_in_it(tmp_path: Path) -> None:
    folder = _HERE["busy"](tmp_path / "run", 3000, 3, backends=10)
    whole, _ = _export(folder)
    read, said = _export(folder, (1.0, 0.5))
    begins = [one[0] for name, found in whole.slices.items() if name.endswith("server") for one in found]
    wanted = sum(START + 10**9 <= at < START + 1.5 * 10**9 for at in begins)
    assert said["server_transactions"] == wanted == 500
    assert len(read.counters["dirty pages, host"]) == 1
    with pytest.raises(ExportError, match=r"begins there; it lasted 3\.0 s"):
        _export(folder, (10.0, 1.0))


def test_everything_of_a_busy_record_is_in_its_trace(tmp_path: Path) -> None:
    read, said = _export(_HERE["busy"](tmp_path / "run", 3000, 3, backends=10))
    server = [one for name, found in read.slices.items() if name.endswith("server") for one in found]
    assert len(server) == 3000
    assert Counter(tuple(one[3]) for one in server).most_common(1)[0][1] == 3000
    assert said["arrows"] == len(read.arrows)
    assert said["arrows"] + sum(said["arrows_not_drawn"].values()) == 3000
    assert all(one < two[1] + 10**9 for (_, one), two in read.arrows)


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    run = open_run(_two_backends(tmp_path / "run"))
    (run.trials[0].measure.path / "breakdown.npy").unlink()
    with pytest.raises(ExportError, match="has no breakdown"):
        write_trace(open_run(run.path), open_run(run.path).trials[0], (0.0, 1.0), tmp_path / "out")
    folder = _HERE["run_of"](
        tmp_path / "twice",
        transactions(),
        server_rows(*({"backend_pid": 7, "arrived_ns": _at(n), "ended_ns": _at(n + 90)} for n in (100, 150))),
        waits(),
    )
    with pytest.raises(ExportError, match="counts time twice"):
        _export(folder)


def test_numbers_of_every_length_are_read_back(tmp_path: Path) -> None:
    values = [0, 1, 127, 128, 16383, 16384, 2**32, 2**63, 2**64 - 1]
    for value in values:
        packet = schema.TracePacket.FromString(b"\x40" + varint(value))
        assert packet.timestamp == value
    path = tmp_path / "t"
    with path.open("wb") as file, Trace(file, START, EPOCH) as trace:
        track = trace.track("ü")
        names = [trace.argument_name(f"n{value}") for value in values]
        trace.slice(track, (START, START + 1), trace.slice_name("ü"), zip(names, values, strict=True))
    assert Read(path).slices["ü"] == [(START, START + 1, "ü", {f"n{value}": value for value in values})]


@pytest.mark.long
def test_a_minute_at_5000_a_second_is_exported_in_time(tmp_path: Path) -> None:
    folder = _HERE["busy"](tmp_path / "run", 300_000, 60)
    # Of one thread, so that on a machine of its own this is the time that it takes; others' work is not in it.
    started = time.process_time()
    run = open_run(folder)
    said = write_trace(run, run.trials[0], (0.0, 60.0), tmp_path / "out")
    seconds = time.process_time() - started
    print(f"{seconds:.1f} s of CPU time, {said['bytes'] / 2**20:.0f} MiB")
    assert said["server_transactions"] == 300_000
    assert seconds <= 20
