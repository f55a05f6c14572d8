"""What the agent is asked for, against requests written by hand from schema/agent.md."""

from pathlib import Path
from typing import Any

import pytest

from plimsoll.experiment import Experiment
from plimsoll.experiment.reading.source import load
from plimsoll.run.planning.documents import plan_document, resolved
from plimsoll.run.planning.needs import measured_seconds
from plimsoll.run.requests import data_request, load_request, machine_probes, schedule_request, workload_request
from plimsoll.run.sizes import data_bytes
from plimsoll.run.surroundings.arranged import PrivatePlace
from plimsoll.run.surroundings.file_locations import FileLocations
from plimsoll.target.dataset import key_of

BANK = {"name": "bank", "scale": 3}
POISSON = {"kind": "poisson", "rate": 200.0}


def made(workload: dict[str, Any], **tables: Any) -> Experiment:
    document = {"name": "x", "title": "x", "workload": workload, "measure": {"seconds": 10}, **tables}
    return Experiment.model_validate(document)


def test_bank() -> None:
    request = workload_request(made(BANK))
    assert request == {
        "name": "bank", "scale": 3, "seed": 2001, "partitions": 0, "partition_method": "range", "unlogged": False,
        "fillfactor": 100, "keys": "uniform", "transaction": "tpcb_like",
    }  # fmt: skip
    mixed = workload_request(made({**BANK, "mix": {"select_only": 9, "simple_update": 1}, "keys": {"zipf": 1.2}}))
    assert "transaction" not in mixed
    assert mixed["mix"] == {"select_only": 9, "simple_update": 1}
    assert mixed["keys"] == {"zipf": 1.2}


def test_what_watches_the_machine_is_asked_for_alike_of_every_server() -> None:
    assert set(machine_probes(made(BANK)).values()) == {None}
    asked = machine_probes(made(BANK, probes={"machine_speed": True}))
    assert {name: asks for name, asks in asked.items() if asks is not None} == {"machine_speed": {}}
    asked = machine_probes(made(BANK, probes={"kernel": True, "kernel_every_seconds": 60}))
    every = {"every_seconds": 60}
    assert asked == {"kernel_log": {}, "kernel_memory": every, "slabs": every, "machine_speed": None}


def test_what_is_done_with_the_data_does_not_change_them() -> None:
    one = data_request(made({**BANK, "transaction": "select_only", "keys": {"zipf": 2}}))
    assert one == data_request(made({**BANK, "mix": {"tpcb_like": 1}}))
    assert one != data_request(made({**BANK, "fillfactor": 90}))


def test_scripts_with_their_data() -> None:
    settings = made(
        {
            "name": "script", "files": [{"path": "a.sql", "text": "select :scale;", "weight": 3}], "clients": 7,
            "data": "bank", "scale": 5, "variables": {"k": 2}, "setup": "s.sql", "setup_text": "create table t ();",
        }
    )  # fmt: skip
    assert workload_request(settings) == {
        "name": "script", "scripts": [{"name": "a.sql", "text": "select :scale;", "weight": 3}],
        "variables": {"scale": 5, "k": 2}, "seed": 2001, "client_count": 7,
    }  # fmt: skip
    assert data_request(settings) == data_request(made({**BANK, "scale": 5}))
    assert settings.workload.setup_sql() == "create table t ();"
    assert "text" not in str(resolved(settings)["workload"])


def test_scripts_without_data() -> None:
    settings = made({"name": "script", "files": [{"path": "a.sql", "text": "select 1;"}]})
    assert data_request(settings) is None
    assert settings.workload.setup_sql() is None
    assert workload_request(settings)["variables"] == {}
    assert data_bytes(settings) == 0


@pytest.mark.parametrize(
    ("schedule", "measured", "warmup"),
    [
        (
            {"kind": "closed", "think_ms": {"exponential": 5}},
            {"kind": "closed", "think_ms": {"exponential": 5.0}, "keying_ms": 0.0, "seed": 1},
            {"kind": "closed", "think_ms": {"exponential": 5.0}, "keying_ms": 0.0, "seed": 1},
        ),
        (
            {**POISSON, "late_limit_ms": 50},
            {**POISSON, "late_limit_ms": 50.0, "seed": 3},
            {**POISSON, "late_limit_ms": 50.0, "seed": 3},
        ),
        (
            {"kind": "steps", "steps": [{"rate": 10, "seconds": 5}, {"rate": 20, "seconds": 5}], "seed": 9},
            {
                "kind": "steps", "arrivals": "poisson", "seed": 11,
                "steps": [{"rate": 10.0, "seconds": 5.0}, {"rate": 20.0, "seconds": 5.0}],
            },
            {"kind": "poisson", "rate": 10.0, "seed": 11},
        ),
        (
            {"kind": "ramp", "from": 10, "to": 90, "seconds": 8, "arrivals": "constant"},
            {"kind": "ramp", "arrivals": "constant", "from": 10.0, "to": 90.0, "seconds": 8.0, "seed": 3},
            {"kind": "constant", "rate": 10.0, "seed": 3},
        ),
    ],
)  # fmt: skip
def test_schedules_of_the_third_block(schedule: Any, measured: Any, warmup: Any) -> None:
    settings = made(BANK, schedule=schedule)
    assert schedule_request(settings, 3) == measured
    assert schedule_request(settings, 3, warmup=True) == warmup


def test_threads_are_the_load_cpus_and_at_most_the_clients() -> None:
    assert load_request(made({**BANK, "clients": 9}), cpus=4)["threads"] == 4
    assert load_request(made({**BANK, "clients": 3}), cpus=4)["threads"] == 3
    assert load_request(made({**BANK, "clients": 9, "threads": 2}), cpus=4)["threads"] == 2
    assert load_request(made({**BANK, "clients": 2, "threads": 8}), cpus=4)["threads"] == 2


def test_transactions_per_client_are_the_product() -> None:
    settings = made({**BANK, "clients": 30}, measure={"transactions_per_client": 50})
    assert settings.measure.transactions_of(settings.workload.clients) == 1500
    open_loop = made(BANK, measure={"transactions": 1000}, schedule=POISSON)
    assert measured_seconds(open_loop) == 5


def test_a_bank_is_some_fifteen_mib_a_unit() -> None:
    # 61 accounts a page: 1,640 pages of accounts, 274 leaves of their key, an inner page and a root, a branch.
    assert data_bytes(made({**BANK, "scale": 1})) == (1640 + 274 + 1 + 1 + 1) * 8192
    assert data_bytes(made({**BANK, "scale": 100})) / 100 / 2**20 == pytest.approx(14.97, rel=0.01)
    assert data_bytes(made({**BANK, "fillfactor": 50})) > 1.6 * data_bytes(made(BANK))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"clients": 4}, True),
        ({"clients": 3}, False),
        ({"clients": 4, "transaction": "select_only"}, False),
        ({"clients": 4, "mix": {"select_only": 1, "tpcb_like": 1}}, True),
        ({"clients": 4, "mix": {"select_only": 1, "tpcb_like": 0}}, False),
    ],
)
def test_fewer_branches_than_clients_is_said(more: dict[str, Any], said: bool) -> None:
    assert bool(made({**BANK, **more}).workload.caveats()) is said


def test_the_plan_names_what_is_judged(tmp_path: Path) -> None:
    from plimsoll.experiment import plan_trials

    source = load("pgbench-clients", quick=True)
    document = plan_document(plan_trials(source.experiment, source.treatments, 1))
    assert document["judged"] == "throughput_per_second"
    assert document["factors"][0]["paths"] == ["workload.scale"]
    assert made(BANK, schedule=POISSON).judged == "latency_ns_p99"
    assert made(BANK, schedule=POISSON, design={"judged": "latency_ns_p999"}).judged == "latency_ns_p999"
    del tmp_path


ORDERS = {"name": "order_entry", "warehouses": 3}


def test_order_entry() -> None:
    assert workload_request(made(ORDERS)) == {
        "name": "order_entry", "warehouses": 3, "seed": 1992, "foreign_keys": True, "statements": "client",
        "isolation": "read committed", "mix": "deck", "keying_and_think": False, "ledger": False,
    }  # fmt: skip
    users = {"keying_and_think": True, "time_scale": 0.5, "delivery": "in turn", "mix": {"payment": 2}, "ledger": True}
    asked = workload_request(made({**ORDERS, **users}))
    assert {key: asked[key] for key in users} == users


def test_one_data_set_serves_all_that_is_done_with_it() -> None:
    users = {"keying_and_think": True, "statements": "functions", "isolation": "serializable", "ledger": True}
    assert data_request(made({**ORDERS, **users})) == data_request(made(ORDERS))
    for other in ({"warehouses": 4}, {"seed": 1}, {"foreign_keys": False}):
        assert data_request(made({**ORDERS, **other})) != data_request(made(ORDERS))


def test_the_key_of_order_entry_tells_its_data_apart() -> None:
    described = {"tables": {}, "ddl": []}
    keys = [
        key_of(data_request(made({**ORDERS, **other})), described, None, "15")
        for other in ({}, {"warehouses": 4}, {"seed": 1}, {"foreign_keys": False}, {"statements": "functions"})
    ]
    assert keys[0].startswith("order_entry-3-pg15-")
    assert len(set(keys)) == 4
    assert keys[0] == keys[-1]


def test_what_is_said_beside_order_entry() -> None:
    alone = made({**ORDERS, "clients": 4}).workload.caveats()
    assert any("a different benchmark" in text for text in alone)
    assert any("warehouse rows" in text for text in alone)
    users = {**ORDERS, "keying_and_think": True, "clients": 30}
    assert made(users).workload.caveats() == []
    assert "without retries_max" in made({**users, "isolation": "serializable"}).workload.caveats()[0]
    assert made({**users, "isolation": "serializable", "retries_max": 5}).workload.caveats() == []


def test_order_entry_takes_some_100_mib_a_warehouse() -> None:
    one, four = (data_bytes(made({**ORDERS, "warehouses": count})) for count in (1, 4))
    assert 95 * 2**20 < (four - one) / 3 < 105 * 2**20


@pytest.mark.parametrize(("percent", "budget"), [({}, 0.005), ({"breakdown_budget_percent": 0}, None)])
def test_what_the_breakdown_may_take(percent: dict[str, float], budget: float | None) -> None:
    place = PrivatePlace([], None, None, locations=FileLocations.together(Path("/x")), owner=(0, 0), limits=None)
    asked = place.probes(made(BANK, probes={"breakdown_rows": "requests", **percent}))
    assert asked is not None
    assert asked["breakdown"] == {"data_directory": "/x/data", "rows": "requests", "budget": budget}
    plain = place.probes(made(BANK))
    assert plain is not None
    assert plain["breakdown"]["rows"] == "transactions"
    off = place.probes(made(BANK, probes={"breakdown": False}))
    assert off is not None
    assert off["breakdown"] is None


def test_the_profile_is_asked_for_with_its_rate() -> None:
    place = PrivatePlace([], None, None, locations=FileLocations.together(Path("/x")), owner=(0, 0), limits=None)
    plain = place.probes(made(BANK))
    assert plain is not None
    assert plain["profile"] is None
    asked = place.probes(made(BANK, probes={"profile": True, "profile_hz": 499, "profile_locks": True}))
    assert asked is not None
    assert asked["profile"] == {"data_directory": "/x/data", "hz": 499, "locks": True}
    with pytest.raises(ValueError, match="profile_hz"):
        made(BANK, probes={"profile_hz": 0})


@pytest.mark.parametrize("wrong", [{"breakdown_budget_percent": -1}, {"breakdown_budget_percent": 101}])
def test_a_budget_that_is_no_share_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="breakdown_budget_percent"):
        made(BANK, probes=wrong)


def test_what_decides_the_rows_is_all_that_fills_the_tables_or_less() -> None:
    """What a data set is known by: stored ones would be made anew if it said more."""
    bank = {"name": "bank", "scale": 3, "partitions": 0, "partition_method": "range", "unlogged": False}
    study = {"name": "wpi_orders", "size": "1 MiB"}
    orders = {"name": "order_entry", "warehouses": 2, "seed": 2010, "foreign_keys": True}
    support = {"name": "decision_support", "scale_factor": 1.0}

    def rows(workload: dict[str, Any], **tables: Any) -> dict[str, Any] | None:
        return made(workload, **tables).workload.rows_from(2**30)

    assert rows({**BANK, "seed": 7, "transaction": "select_only"}) == {**bank, "fillfactor": 100}
    assert rows({**study, "access": "scan"}) == {"name": "wpi_orders", "size_bytes": 2**20, "seed": 2002}
    assert rows({**ORDERS, "warehouses": 2, "seed": 2010}) == orders
    assert rows({**support, "seed": 9}, measure={}, warmup={"until": "none"}) == support
