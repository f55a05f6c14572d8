"""Reading what a crash left, what a newer Plimsoll wrote, and what never was there."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from plimsoll.record import MISSING, FormatTooNew, RecordError, compact, open_run, parquet, read_table, redact, writer

ROOT = Path(__file__).parents[3]
TABLE = np.array([(1, 10, 2), (2, MISSING, 3), (3, 30, 4)], dtype=[("t_ns", "<i8"), ("value", "<i8"), ("kind", "u1")])


def _run(tmp_path: Path) -> Path:
    plan = {
        "trials": [
            {"number": 1, "block": 1, "position": 1, "treatment": "t1", "levels": {"a.b": "x"}, "duplicate": False}
        ],
        "treatments": {"t1": {"label": "b x", "levels": {"a.b": "x"}}},
        "factors": [],
    }
    return writer.create_run(tmp_path / "run", {"id": "r", "status": "running", "command": ["plimsoll"]}, plan)


def test_a_table_is_read_up_to_its_last_whole_row(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    np.save(path, TABLE)
    whole = path.read_bytes()
    for lost, rows in ((0, 3), (1, 2), (17, 2), (18, 1), (34, 1), (51, 0)):
        path.write_bytes(whole[: len(whole) - lost])
        found = read_table(path)
        assert found is not None
        assert found["t_ns"].tolist() == [1, 2, 3][:rows]
    path.write_bytes(whole[:40])
    assert read_table(path) is None
    assert read_table(tmp_path / "none.npy") is None


def test_windows_of_a_segment_are_read_and_compacted(tmp_path: Path) -> None:
    import polars as pl

    folder = _run(tmp_path)
    writer.write_trial(folder, {"number": 1, "block": 1, "treatment": "t1", "status": "finished"})
    place = writer.trial_folder(folder, 1) / "measure"
    place.mkdir()
    assert open_run(folder).trials[0].measure.windows is None
    described = (ROOT / "schema/record.md").read_text().split("## windows.npy", 1)[1].split("\n## ", 1)[0]
    columns = re.findall(r"^\| (\w+) \| ([iu]\d) \|", described, re.MULTILINE)
    declared = (ROOT / "crates/record/src/window.rs").read_text()
    assert [name for name, _ in columns] == re.findall(r"^    pub (\w+): \w+,$", declared, re.MULTILINE)
    row = np.zeros(3, dtype=[(name, f"<{kind}") for name, kind in columns])
    row["round"] = [1, 2, 3]
    np.save(place / "windows.npy", row)
    path = place / "windows.npy"
    path.write_bytes(path.read_bytes()[:-1])
    windows = open_run(folder).trials[0].measure.windows
    assert windows is not None
    assert windows["round"].tolist() == [1, 2], "up to the last whole row"
    assert "windows.parquet" in [path.name for path in compact(folder)]
    assert pl.read_parquet(folder / "windows.parquet")["round"].to_list() == [1, 2]


def test_rows_beyond_the_header_s_count_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    np.save(path, TABLE[:1])
    path.write_bytes(path.read_bytes() + TABLE[1:].tobytes())
    found = read_table(path)
    assert found is not None
    assert len(found) == 3


def test_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(RecordError, match="not a NumPy table"):
        read_table(path)
    np.save(path, np.arange(3))
    with pytest.raises(RecordError, match="named columns"):
        read_table(path)


@pytest.mark.parametrize(
    "descr",
    [
        "[('t_ns', '<i8'), ('value', '|O')]",
        "[('t_ns', '<i8'), ('value', '|O', (2,))]",
        "[('t_ns', '<i8'), ('value', [('a', '<f8'), ('b', '|O')])]",
        "[('t_ns', '<i8'), ('value', '|V8')]",
        "[('t_ns', '<i8'), ('value', '<U2')]",
        "[('t_ns', '<i8'), ('value', '<M8[ns]')]",
        "[('t_ns', 'no such type')]",
        "[('t_ns', '<i8', (0,))]",
    ],
)
def test_a_stranger_s_columns_that_are_no_numbers_are_never_mapped(tmp_path: Path, descr: str) -> None:
    path = tmp_path / "t.npy"
    head = f"{{'descr': {descr}, 'fortran_order': False, 'shape': (1,)}}\n".encode()
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + b"\x41" * 64)
    with pytest.raises(RecordError, match=rf"^{path}: "):
        read_table(path)


def test_columns_of_numbers_of_every_kind_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.npy"
    columns = [("a", "<u4"), ("b", "<f8", (3,)), ("c", [("d", "?"), ("e", "<i2", (2, 2))])]
    np.save(path, np.zeros(2, columns))
    found = read_table(path)
    assert found is not None
    assert found.dtype == np.dtype(columns)


def test_missing_stays_missing(tmp_path: Path) -> None:
    run = open_run(_run(tmp_path))
    trial = run.trials[0]
    assert (trial.status, trial.treatment, trial.block) == ("not run", "t1", 1)
    assert trial.measure.summary is None
    assert trial.measure.transactions is None
    assert trial.measure.column("host", "pswpin") is None
    assert list(run.events()) == []
    trial.measure.path.mkdir(parents=True)
    np.save(trial.measure.path / "host.npy", TABLE)
    values = trial.measure.column("host", "value")
    assert values is not None
    assert np.isnan(values[1])
    assert trial.measure.column("host", "no such column") is None


def test_a_newer_format_is_refused_by_name(tmp_path: Path) -> None:
    folder = _run(tmp_path)
    data = json.loads((folder / "run.json").read_text())
    assert data["format"] == 1
    (folder / "run.json").write_text(json.dumps({**data, "format": 99, "unknown": {"field": 1}}))
    with pytest.raises(FormatTooNew, match="format 99 is newer than 1"):
        open_run(folder)
    (folder / "run.json").write_text(json.dumps({**data, "unknown": {"field": 1}}))
    assert open_run(folder).data["id"] == "r"
    with pytest.raises(RecordError, match="not a run folder"):
        open_run(tmp_path)


def test_written_files_are_whole_or_old(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    writer.write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        writer.write_json(path, {"a": float("nan")})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_events_survive_a_cut_last_line(tmp_path: Path) -> None:
    folder = _run(tmp_path)
    writer.append_event(folder, "trial", trial=1, text="Ä\udcff")
    writer.append_event(folder, "trial", trial=2)
    log = folder / "events.jsonl"
    log.write_bytes(log.read_bytes()[:-9])
    assert [event["trial"] for event in open_run(folder).events()] == [1]


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("postgresql://bob:s3:c@r@et@host/db?password=x1&a=1", "postgresql://bob:***@host/db?password=***&a=1"),
        ("host=x password='se cr\\'et' user=u", "host=x password=*** user=u"),
        ("PGPASSWORD=secret psql", "PGPASSWORD=*** psql"),
        ("--set=target.dsn=postgres://u:secret@h/d", "--set=target.dsn=postgres://u:***@h/d"),
        ("postgres://bob@host:5432/db", "postgres://bob@host:5432/db"),
    ],
)
def test_passwords_are_redacted(text: str, hidden: str) -> None:
    assert redact(text) == hidden


def test_the_command_in_run_json_holds_no_password(tmp_path: Path) -> None:
    writer.write_run(tmp_path, {"id": "r", "command": ["plimsoll", "run", "--set", "target.dsn=postgres://u:hush@h/d"]})
    assert "hush" not in (tmp_path / "run.json").read_text()


def test_compact_joins_trials_with_different_columns(tmp_path: Path) -> None:
    import polars as pl

    folder = _run(tmp_path)
    for number, table in ((1, TABLE), (2, TABLE[["t_ns", "kind"]])):
        writer.write_trial(folder, {"number": number, "block": number, "treatment": "t1", "status": "finished"})
        place = writer.trial_folder(folder, number) / "measure"
        place.mkdir()
        np.save(place / "host.npy", table)
    written = [path.name for path in compact(folder)]
    assert written == ["trials.parquet", "series_host.parquet"]
    series = pl.read_parquet(folder / "series_host.parquet")
    assert series.columns[:4] == ["trial", "block", "treatment", "segment"]
    assert series["value"].to_list() == [10, None, 30, None, None, None]
    assert pl.read_parquet(folder / "trials.parquet")["level.a.b"].to_list() == ["x", None]


def test_a_table_is_compacted_by_parts_of_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a round of a soak, of millions of rows, is not held whole a second time; its rows stay in their order."""
    import polars as pl

    folder, held = _run(tmp_path), []
    for number in (1, 2):
        writer.write_trial(folder, {"number": number, "block": number, "treatment": "t1", "status": "finished"})
        place = writer.trial_folder(folder, number) / "measure"
        place.mkdir()
        rows = np.zeros(25, [("t_ns", "<i8"), ("value", "<i8")])
        rows["t_ns"], rows["value"] = np.arange(25), 100 * number + np.arange(25)
        np.save(place / "host.npy", rows)
    frame = parquet._frame
    monkeypatch.setattr(parquet, "ROWS_A_PART", 10)
    monkeypatch.setattr(parquet, "_frame", lambda *given: held.append(len(given[2])) or frame(*given))
    compact(folder)
    assert held == [10, 10, 5] * 2
    found = pl.read_parquet(folder / "series_host.parquet")
    assert found["value"].to_list() == [*range(100, 125), *range(200, 225)]
    assert found["trial"].to_list() == [1] * 25 + [2] * 25


def test_importing_the_record_is_quick() -> None:
    code = "import sys, plimsoll.record; print(any(name in sys.modules for name in ('numpy', 'polars', 'scipy')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
