"""SQL over all records: what it answers, what it refuses, and that it leaves no trace."""

import json
import os
import runpy
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pytest

from plimsoll.cli.query import as_document
from plimsoll.export import ExportError
from plimsoll.export.query import ask, what_there_is
from plimsoll.export.sources import find_runs, find_tables
from plimsoll.record import MISSING, RecordError, Run, compact, writer

ROOT = Path(__file__).resolve().parents[3]
_MAKER = runpy.run_path(str(ROOT / "tests/golden/make_synthetic.py"))
_WORLD = runpy.run_path(str(ROOT / "tests/unit/analysis/breakdown_world.py"))
TABLE = np.array([(1, 10, 2), (2, MISSING, 3)], dtype=[("t_ns", "<i8"), ("value", "<i8"), ("kind", "u1")])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, the first with its Parquet copies and the second without."""
    place = tmp_path_factory.mktemp("runs")
    shape = _MAKER["Shape"](caches=(64, 1024), warmup_seconds=3, measure_seconds=3)
    for name in ("one", "two"):
        folder = _MAKER["make"](place / name, shape)
        _WORLD["add_to_run"](folder)
    compact(place / "one")
    return place


@pytest.fixture(scope="module")
def runs(place: Path) -> dict[str, Run]:
    return find_runs([place])


def _count(place: Path, table: str) -> int:
    return sum(len(np.load(path)) for path in place.glob(f"trials/*/*/{table}.npy"))


@pytest.mark.parametrize("table", ["transactions", "breakdown_waits", "host", "device", '"group"', "latency"])
def test_every_row_of_the_record_is_in_its_table(place: Path, runs: dict[str, Run], table: str) -> None:
    found = ask(runs, f"select run, count(*) from {table} group by run order by run").rows
    assert found == [(name, _count(place / name, table.strip('"'))) for name in ("one", "two")]


def test_copy_and_record_give_the_same_rows(runs: dict[str, Run]) -> None:
    """The runs are made from one seed, so that every column of every row has to be equal."""
    tables = find_tables(runs)
    for name in ("transactions", "breakdown", "breakdown_waits", "device"):
        table = tables[name]
        assert [source.parquet is None for source in table.sources] == [False, True], name
        rest = f'select * exclude (run) from "{name}" where run ='
        one, two = f"{rest} 'one'", f"{rest} 'two'"
        assert ask(runs, f"({one} except all {two}) union all ({two} except all {one})").rows == [], name


def test_tables_are_joined_by_run_and_trial(place: Path, runs: dict[str, Run]) -> None:
    sql = """select n.name, count(*) from transactions t
             join names n using (run, trial, segment)
             join trials using (run, trial)
             where n.of = 'kind' and n.number = t.kind and run = 'one' and segment = 'measure' group by all"""
    found = dict(ask(runs, sql).rows)
    counted: dict[str, int] = {}
    for path in (place / "one").glob("trials/*/measure/summary.json"):
        kinds = json.loads(path.read_text())["kinds"]
        for kind in np.load(path.with_name("transactions.npy"))["kind"].tolist():
            counted[kinds[kind]] = counted.get(kinds[kind], 0) + 1
    assert found == counted


def test_verdicts_can_be_asked(place: Path) -> None:
    from plimsoll.analysis import analyse
    from plimsoll.record import open_run

    verdict = analyse(open_run(place / "one"))
    (place / "one/verdict.json").write_text(json.dumps(verdict))
    try:
        sql = "select treatment, value, low, high from metrics where metric = 'throughput_per_second' order by 1"
        found = ask(find_runs([place / "one"]), sql).rows
        wanted = {name: one["metrics"]["throughput_per_second"] for name, one in verdict["treatments"].items()}
        assert found == [(name, one["value"], one["low"], one["high"]) for name, one in sorted(wanted.items())]
        trials = ask(find_runs([place]), "select count(*) from trial_metrics where metric = 'throughput_per_second'")
        assert trials.rows == [(len(verdict["trials"]),)]
    finally:
        (place / "one/verdict.json").unlink()


def _run(folder: Path, *tables: np.ndarray) -> Path:
    trials = [{"number": n, "block": n, "treatment": "t1", "levels": {}} for n in range(1, len(tables) + 1)]
    writer.create_run(folder, {"id": "r", "status": "finished", "command": []}, {"trials": trials, "treatments": {}})
    for number, table in enumerate(tables, 1):
        place = writer.trial_folder(folder, number) / "measure"
        place.mkdir(parents=True)
        np.save(place / "host.npy", table)
    return folder


def test_what_could_not_be_read_is_null_and_what_is_absent_too(tmp_path: Path) -> None:
    folder = _run(tmp_path / "run", TABLE, TABLE[["t_ns", "kind"]])
    sql = "select trial, t_ns, value, kind from host order by 1, 2"
    wanted = [(1, 1, 10, 2), (1, 2, None, 3), (2, 1, None, 2), (2, 2, None, 3)]
    assert ask(find_runs([folder]), sql).rows == wanted
    compact(folder)
    assert find_tables(find_runs([folder]))["host"].held == []
    assert ask(find_runs([folder]), sql).rows == wanted


def test_an_old_copy_is_not_taken(tmp_path: Path) -> None:
    folder = _run(tmp_path / "run", TABLE)
    compact(folder)
    path = writer.trial_folder(folder, 1) / "measure/host.npy"
    np.save(path, TABLE[:1])
    copy = (folder / "series_host.parquet").stat()
    os.utime(path, ns=(copy.st_atime_ns, copy.st_mtime_ns - 10**9))  # the number of rows tells it
    assert ask(find_runs([folder]), "select count(*) from host").rows == [(1,)]
    np.save(path, np.concatenate([TABLE[1:], TABLE[1:]]))
    os.utime(path, ns=(copy.st_atime_ns, copy.st_mtime_ns + 10**9))  # its age tells it
    assert ask(find_runs([folder]), "select distinct kind from host").rows == [(3,)]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("select * from nosuch", "nosuch does not exist!\n  available: "),
        ("from group", 'write "group" in double quotes'),
        ("select nosuch from runs", '"nosuch" not found'),
        ("selec 1", "syntax error"),
        ("select 1; select 2", "only one SELECT"),
        ("", "only one SELECT"),
        ("drop table held.runs", "only one SELECT"),
        ("set threads = 1", "only one SELECT"),
        ("install httpfs", "only one SELECT"),
        ("attach 'other.db'", "only one SELECT"),
        ("copy (select 1) to 'out.csv'", "only one SELECT"),
        ("from read_csv('/etc/passwd')", "disabled by configuration"),
        ("from glob('/etc/*')", "disabled by configuration"),
        ("from '/etc/passwd'", "does not exist"),
        ("from read_parquet('http://127.0.0.1:9/x.parquet')", "disabled by configuration"),
        ("from query('copy (select 1) to ''x''')", "single SELECT"),
        ("from query('with x as (copy (select 1 as a) to ''x'') from x')", "COPY"),
    ],
)
def test_what_is_refused(runs: dict[str, Run], tmp_path: Path, sql: str, said: str) -> None:
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        with pytest.raises(ExportError) as refused:
            ask(runs, sql)
    finally:
        os.chdir(before)
    assert said in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def _unchanged(place: Path) -> Iterator[None]:
    def state() -> dict[Path, tuple[int, int]]:
        return {path: (path.stat().st_size, path.stat().st_mtime_ns) for path in place.rglob("*")}

    before = state()
    yield
    assert state() == before


@pytest.mark.usefixtures("_unchanged")
def test_no_select_writes_a_copy_of_a_run(place: Path, runs: dict[str, Run]) -> None:
    """DuckDB itself would: the file may be opened, and a COPY may stand in a SELECT."""
    path = place / "one/series_host.parquet"
    sql = f"with x as (copy (select 7 as a) to '{path}' (use_tmp_file false)) from x"
    with pytest.raises(ExportError, match="would write a file"):
        ask(runs, sql)
    bare = duckdb.connect(":memory:")
    other = place.parent / "other.parquet"
    bare.execute(sql.replace(str(path), str(other)))
    assert other.exists(), "if this fails, DuckDB refuses it by itself"
    other.unlink()


@pytest.mark.usefixtures("_unchanged")
def test_a_delete_in_a_select_is_of_the_copy_in_memory(runs: dict[str, Run]) -> None:
    assert ask(runs, "with x as (delete from held.host returning *) select count(*) from x").rows[0][0] > 0


def test_folders_without_runs_are_named(tmp_path: Path, place: Path) -> None:
    with pytest.raises(RecordError, match="no such folder"):
        find_runs([tmp_path / "nosuch"])
    with pytest.raises(RecordError, match="no run in it"):
        find_runs([tmp_path])
    assert list(find_runs([place / "one", place, place])) == ["one", "two"]


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    first, second = (_run(tmp_path / above / "run", TABLE) for above in ("a", "b"))
    assert list(find_runs([first, second])) == ["run", str(second)]
    assert ask(find_runs([first, second]), "select count(distinct run) from host").rows == [(2,)]


def test_a_folder_s_name_is_no_pattern_and_no_sql(tmp_path: Path) -> None:
    for name in ("ru[n]*", "it's"):
        folder = _run(tmp_path / name, TABLE)
        compact(folder)
        assert ask(find_runs([folder]), "select distinct run from host").rows == [(name,)]


def test_every_table_and_column_told_can_be_asked(runs: dict[str, Run]) -> None:
    for name, columns in what_there_is(runs).items():
        listed = ", ".join(f'"{column}"' for column in columns)
        assert ask(runs, f'select {listed} from "{name}" limit 1').columns == list(columns)


def test_json_has_numbers_and_no_nan(runs: dict[str, Run]) -> None:
    sql = "select 1.50 as a, 2::hugeint as a, 'nan'::double as c, null as d, [1, 2] as e, date '2001-06-19' as f, true"
    document = json.loads(json.dumps(as_document(ask(runs, sql)), allow_nan=False))
    assert [one["name"] for one in document["columns"]][:2] == ["a", "a"]
    assert document["rows"] == [[1.5, 2, None, None, [1, 2], "2001-06-19", True]]
