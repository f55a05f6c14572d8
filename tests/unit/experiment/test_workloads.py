"""Workloads and schedules in experiment files: what they default to, and how their faults are named."""

import os
from pathlib import Path
from typing import Any

import pytest

from plimsoll.experiment import ExperimentError, load
from plimsoll.experiment.reading.source import reload

HEAD = """format = 1
name = "mine"
title = "A question"
"""
BANK = """[workload]
name = "bank"
scale = 2
"""
SCRIPT = """[workload]
name = "script"
files = [{path = "one.sql", weight = 2}, {path = "two.sql"}]
"""
MEASURE = """[measure]
seconds = 1
"""


def written(tmp_path: Path, *parts: str) -> Path:
    path = tmp_path / "experiment.toml"
    path.write_text(HEAD + "".join(parts))
    (tmp_path / "one.sql").write_text("\\set x random(1, 10)\nselect :x;\n")
    (tmp_path / "two.sql").write_text("select 2;\n")
    (tmp_path / "setup.sql").write_text("create table t (a int);\n")
    return path


def faults(tmp_path: Path, *parts: str, **options: Any) -> str:
    with pytest.raises(ExperimentError) as caught:
        load(str(written(tmp_path, *parts)), **options)
    return str(caught.value)


def test_a_bank_is_tpcb_like_and_closed_by_default(tmp_path: Path) -> None:
    one = load(str(written(tmp_path, BANK, MEASURE))).experiment
    assert one.workload.name == "bank"
    assert one.workload.transaction == "tpcb_like"
    assert one.workload.mode == "prepared"
    assert not one.is_open
    assert one.judged == "throughput_per_second"


def test_every_schedule_is_read_and_survives_its_record(tmp_path: Path) -> None:
    for schedule in (
        '{kind = "closed", think_ms = {uniform = [1, 2]}, keying_ms = {exponential = 3, max = 9}}',
        '{kind = "constant", rate = 10, late_limit_ms = 100}',
        '{kind = "poisson", rate = 10, seed = 4}',
        '{kind = "steps", arrivals = "constant", steps = [{rate = 1, seconds = 2}, {rate = 3, seconds = 4}]}',
        '{kind = "ramp", from = 1, to = 9, seconds = 5}',
    ):
        path = written(tmp_path, f"schedule = {schedule}\n", BANK, MEASURE)
        source = load(str(path))
        again = reload(source.experiment.model_dump(mode="json"), path, False)
        assert again.experiment == source.experiment, schedule


def test_a_rate_may_be_a_factor(tmp_path: Path) -> None:
    factor = '[[factors]]\npath = "schedule.rate"\nlevels = [10, 20]\n'
    source = load(str(written(tmp_path, 'schedule = {kind = "poisson", rate = 1}\n', BANK, MEASURE, factor)))
    assert [treatment.settings.schedule.rate for treatment in source.treatments] == [10, 20]  # type: ignore[union-attr]


def test_scripts_become_a_part_of_the_experiment(tmp_path: Path) -> None:
    path = written(tmp_path, SCRIPT, 'setup = "setup.sql"\n', MEASURE)
    source = load(str(path))
    workload = source.experiment.workload
    assert workload.name == "script"
    assert workload.mode == "simple"  # pgbench's own
    assert [(file.weight, file.text) for file in workload.files][1] == (1, "select 2;\n")
    assert workload.setup_text == "create table t (a int);\n"
    for file in tmp_path.glob("*.sql"):
        file.unlink()
    again = reload(source.experiment.model_dump(mode="json"), path, False)
    assert again.experiment == source.experiment


def test_scripts_may_be_compared(tmp_path: Path) -> None:
    levels = '[[factors]]\npath = "workload.files"\nlevels = [[{path = "one.sql"}], [{path = "two.sql"}]]\n'
    source = load(str(written(tmp_path, SCRIPT, MEASURE, levels)))
    texts = [treatment.settings.workload.files[0].text for treatment in source.treatments]  # type: ignore[union-attr]
    assert texts[0] != texts[1] == "select 2;\n"
    assert [treatment.label for treatment in source.treatments] == ["files one.sql", "files two.sql"]


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ((BANK.replace("scale = 2", ""), MEASURE), ["experiment.toml:4", "workload.scale", "is missing"]),
        ((BANK.replace("= 2", "= 0"), MEASURE), ["experiment.toml:6", "workload.scale", "greater than or equal to 1"]),
        ((BANK, 'size = "1 GiB"\n', MEASURE), ["workload.size", "no such key", "fillfactor", "scale"]),
        ((BANK, 'transaction = "tpcc"\n', MEASURE), ["workload.transaction", "'tpcb_like', 'simple_update'"]),
        (
            (BANK, 'transaction = "select_only"\nmix = {tpcb_like = 1}\n', MEASURE),
            ["workload", "both given", "one of the two"],
        ),
        ((BANK, "mix = {tpcb_like = 0}\n", MEASURE), ["workload", "at least one weight"]),
        ((BANK, 'mode = "binary"\n', MEASURE), ["workload.mode", "'prepared', 'extended' or 'simple'"]),
        ((BANK, "retries_max = -1\n", MEASURE), ["workload.retries_max", "greater than or equal to 0"]),
        (
            (BANK.replace('"bank"', '"tpcc"'), MEASURE),
            ["experiment.toml:5", "workload.name", "wpi_orders, bank, order_entry, script"],
        ),
        ((BANK.replace('name = "bank"', ""), MEASURE), ["workload.name", "is missing", "bank"]),
        ((SCRIPT.replace("one.sql", "none.sql"), MEASURE), ["experiment.toml:6", "none.sql cannot be read"]),
        ((SCRIPT, 'setup = "none.sql"\n', MEASURE), ["experiment.toml:7", "workload.setup", "none.sql cannot be read"]),
        ((SCRIPT, "scale = 3\n", MEASURE), ["workload", "data and scale belong together"]),
        ((SCRIPT, 'data = "bank"\n', MEASURE), ["workload", "data and scale belong together"]),
        ((SCRIPT, 'variables = {"a b" = 1}\n', MEASURE), ["workload.variables", "not the name of a variable"]),
        (('[workload]\nname = "script"\nfiles = []\n', MEASURE), ["workload.files", "at least 1 item"]),
        (('schedule = {kind = "burst"}\n', BANK, MEASURE), ["experiment.toml:4", "schedule.kind", "closed, constant"]),
        (("schedule = {rate = 3}\n", BANK, MEASURE), ["schedule.kind", "is missing", "poisson"]),
        (('schedule = {kind = "poisson"}\n', BANK, MEASURE), ["schedule.rate", "is missing"]),
        (('schedule = {kind = "poisson", rate = 0}\n', BANK, MEASURE), ["schedule.rate", "greater than 0"]),
        (
            ('schedule = {kind = "ramp", from = 1, up = 2, seconds = 3}\n', BANK, MEASURE),
            ["schedule.up", "no such key", "from, kind", "schedule.to: is missing"],
        ),
        (
            ('schedule = {kind = "steps", steps = [{rate = 1}]}\n', BANK, MEASURE),
            ["schedule.steps.0.seconds", "is missing"],
        ),
        (
            ('schedule = {kind = "closed", think_ms = {uniform = [3, 1]}}\n', BANK, MEASURE),
            ["schedule.think_ms", "shortest, longest"],
        ),
        ((BANK, MEASURE, "transactions_per_client = 3\n"), ["measure", "one of seconds and transactions"]),
        ((BANK, MEASURE, "rows_max = -1\n"), ["measure.rows_max", "greater than or equal to 0"]),
        ((BANK, MEASURE, '[design]\njudged = "mean"\n'), ["design.judged", "'latency_ns_p99'"]),
        ((BANK, MEASURE, '[[factors]]\npath = "workload.setup"\nlevels = ["a"]\n'), ["cannot be varied"]),
        (
            (BANK, MEASURE, '[[factors]]\npath = "schedule.rate"\nlevels = [1]\n'),
            ["schedule.kind", "is missing (with schedule.rate = 1)", "poisson"],
        ),
    ],
)
def test_faults_are_named(parts: tuple[str, ...], wanted: list[str], tmp_path: Path) -> None:
    found = faults(tmp_path, *parts)
    for part in wanted:
        assert part in found, found


def test_transactions_per_client_replace_seconds_on_the_command_line(tmp_path: Path) -> None:
    source = load(str(written(tmp_path, BANK, MEASURE)), sets=["measure.transactions_per_client=7"])
    assert source.experiment.measure.seconds is None
    assert source.experiment.measure.transactions_per_client == 7


def test_a_script_of_zero_bytes_or_another_encoding_is_refused(tmp_path: Path) -> None:
    for content, said in ((b"select 1\0;", "NUL byte"), (b"\xff\xfe", "not text in UTF-8")):
        path = written(tmp_path, SCRIPT, MEASURE)
        (tmp_path / "one.sql").write_bytes(content)
        with pytest.raises(ExperimentError, match=said):
            load(str(path))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    path = written(tmp_path, SCRIPT, MEASURE)
    (tmp_path / "one.sql").unlink()
    os.mkfifo(tmp_path / "one.sql")
    with pytest.raises(ExperimentError, match="is not a file"):
        load(str(path))


ORDERS = """[workload]
name = "order_entry"
warehouses = 3
"""


def test_order_entry_is_by_client_and_without_users_by_default(tmp_path: Path) -> None:
    one = load(str(written(tmp_path, ORDERS, MEASURE))).experiment.workload
    assert one.name == "order_entry"
    assert (one.statements, one.isolation, one.mix, one.delivery) == ("client", "read committed", "deck", None)
    assert (one.keying_and_think, one.time_scale, one.ledger, one.foreign_keys) == (False, None, False, True)


def test_order_entry_survives_its_record(tmp_path: Path) -> None:
    more = 'keying_and_think = true\ntime_scale = 0.5\ndelivery = "in turn"\nledger = true\nforeign_keys = false\n'
    more += 'mix = {new_order = 2, stock_level = 1}\nisolation = "serializable"\nretries_max = 3\n'
    path = written(tmp_path, ORDERS, more, MEASURE)
    source = load(str(path))
    assert reload(source.experiment.model_dump(mode="json"), path, False).experiment == source.experiment


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("terminals = 10\n", ["workload.terminals", "no such key"]),
        ('statements = "server"\n', ["workload.statements", "client", "functions"]),
        ('isolation = "chaos"\n', ["workload.isolation", "read committed"]),
        ("mix = {new_order = 0}\n", ["every weight of mix is 0"]),
        ("mix = {new_orders = 1}\n", ["new_order"]),
        ('mix = "cards"\n', ["workload.mix", "deck"]),
        ("time_scale = 2\n", ["time_scale", "keying_and_think = true"]),
        ("keying_and_think = true\ntime_scale = 0\n", ["workload.time_scale", "greater than 0"]),
        ("keying_and_think = true\ntime_scale = 41\n", ["workload.time_scale", "40"]),
        ('delivery = "deferred"\n', ["deferred", "keying_and_think = true"]),
        ('keying_and_think = true\n[schedule]\nkind = "poisson"\nrate = 9\n', ["keying_and_think", "closed"]),
    ],
)
def test_faults_of_order_entry(tmp_path: Path, more: str, words: list[str]) -> None:
    said = faults(tmp_path, ORDERS, more, MEASURE)
    for word in words:
        assert word in said, said


def test_order_entry_needs_warehouses(tmp_path: Path) -> None:
    said = faults(tmp_path, '[workload]\nname = "order_entry"\n', MEASURE)
    assert "workload.warehouses" in said
    assert "is missing" in said
    assert "workload.warehouses" in faults(tmp_path, '[workload]\nname = "order_entry"\nwarehouses = 0\n', MEASURE)
