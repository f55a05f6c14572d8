"""The verb `import` on a capture of two datagrams, and on what is none."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _datagram(source: tuple[int, int], target: tuple[int, int], words: list[int]) -> bytes:
    message = struct.pack(f">{len(words)}I", *words)
    header = bytes([0x45, 0, 0, 28 + len(message), 0, 0, 0, 0, 64, 17, 0, 0])
    addresses = bytes([10, 0, 0, source[0], 10, 0, 0, target[0]])
    return header + addresses + struct.pack(">4H", source[1], target[1], 8 + len(message), 0) + message


def _capture() -> bytes:
    """A GETATTR of NFS 3, sent twice, and its reply with the status "stale" 2.5 ms after the first time."""
    call = _datagram((1, 700), (2, 2049), [7, 0, 2, 100_003, 3, 1, 0, 0, 0, 0, 4, 0xABCD])
    reply = _datagram((2, 2049), (1, 700), [7, 1, 0, 0, 0, 0, 70])
    packets = [(0, call), (1_000, call), (2_500, reply)]
    rows = [struct.pack("<4I", 5, at_us, len(packet), len(packet)) + packet for at_us, packet in packets]
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 101) + b"".join(rows)


def _plimsoll(*words: str) -> subprocess.CompletedProcess[str]:
    program = "from plimsoll.cli.app import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *words], text=True, capture_output=True, cwd=ROOT, timeout=120
    )


def test_a_capture_becomes_a_record_that_other_verbs_read(tmp_path: Path) -> None:
    capture, run = tmp_path / "two.pcap", tmp_path / "run"
    capture.write_bytes(_capture())
    made = _plimsoll("import", str(capture), "--out", str(run), "--json")
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    assert told["capture"]["operations"] == [
        {
            "protocol": "nfs3",
            "name": "GETATTR",
            "calls": 1,
            "unanswered": 0,
            "retransmissions": 1,
            "errors": 1,
            "asked_bytes": 0,
            "answered_bytes": 0,
            "reply_ns_p50": 2.5e6,
            "reply_ns_p95": 2.5e6,
        }
    ]
    again = _plimsoll("report", str(run))
    assert again.returncode == 0, again.stderr
    assert "nfs3 GETATTR" in again.stdout
    assert "2.50 ms" in again.stdout
    asked = _plimsoll("query", "select xid, status, retransmissions from nfs_calls", str(run), "--json")
    assert json.loads(asked.stdout)["rows"] == [[7, 70, 1]], asked.stdout


def test_a_capture_that_was_cut_gives_what_came_before(tmp_path: Path) -> None:
    capture = tmp_path / "cut.pcap"
    capture.write_bytes(_capture()[:-3])
    made = _plimsoll("import", str(capture), "--out", str(tmp_path / "run"))
    assert made.returncode == 0, made.stderr
    assert "the file ends within a packet" in made.stdout
    assert "calls without a reply in the capture: 1" in made.stdout


def test_what_is_no_capture_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    text, run = tmp_path / "text.pcap", tmp_path / "run"
    text.write_text("GET / HTTP/1.1\r\n" * 9)
    refused = _plimsoll("import", str(text), "--out", str(run))
    assert refused.returncode == 2
    assert "neither pcap nor pcapng" in refused.stderr
    assert not run.exists()
    absent = _plimsoll("import", str(tmp_path / "none"), "--out", str(run))
    assert absent.returncode == 2
    assert "there is no such file" in absent.stderr


def test_the_clients_own_count_stands_beside_the_captures(tmp_path: Path) -> None:
    capture = tmp_path / "two.pcap"
    capture.write_bytes(_capture())
    form = (
        "device filer:/vol mounted on /mnt with fstype nfs statvers=1.1\n\topts:\trw,vers=3\n"
        "\tRPC iostats version: 1.1  p/v: 100003/3 (nfs)\n\tper-op statistics\n"
        "\t     GETATTR: {} {} 0 100 100 0 2 2 0\n"
    )
    before, after, more = (tmp_path / name for name in ("before", "after", "more"))
    before.write_text(form.format(4, 4))
    after.write_text(form.format(5, 6))
    more.write_text(form.format(7, 7))

    def said(last: Path, folder: str) -> str:
        out = str(tmp_path / folder)
        made = _plimsoll("import", str(capture), "--out", out, "--mountstats", str(before), str(last))
        assert made.returncode == 0, made.stderr
        return made.stdout

    assert "mountstats agrees on the calls of all 1 operations" in said(after, "agrees")
    assert "GETATTR: 1 in the capture, 3 by the client (-2)" in said(more, "differs")
    words = ["--out", str(tmp_path / "refused"), "--mountstats", str(after), str(before)]
    refused = _plimsoll("import", str(capture), *words)
    assert refused.returncode == 2
    assert "mounted anew" in refused.stderr
    assert not (tmp_path / "refused").exists()
