"""Study S2's answer from hand-made throughputs: ratios within blocks, and what is said of them."""

from typing import Any

import pytest

from plimsoll.analysis.studies.clients import CLIENTS, EACH, SCALE, clients
from plimsoll.words.studies.clients import lines

EXPERIMENT = {"workload": {"name": "bank", "scale": 1}, "measure": {"transactions_per_client": 200}}


def plan(scales: list[int], counts: list[int]) -> dict[str, Any]:
    treatments = {
        f"s{scale}c{count}": {"levels": {SCALE: str(scale), CLIENTS: str(count)}}
        for scale in scales
        for count in counts
    }
    factors = [
        {"path": path, "levels": [{"label": str(value), "value": value} for value in values]}
        for path, values in ((SCALE, scales), (CLIENTS, counts))
    ]
    return {"treatments": treatments, "factors": factors}


def used(blocks: int, rate: Any) -> dict[tuple[int, str], dict[str, Any]]:
    return {
        (block, f"s{scale}c{count}"): {"metrics": {"throughput_per_second": rate(scale, count) * (1 + block / 10)}}
        for block in range(1, blocks + 1)
        for scale in (1, 32)
        for count in (1, 30)
    }


def locked(scale: int, count: int) -> float:
    return 500.0 if scale == 1 else 500.0 * count**0.5


def test_block_levels_cancel_and_the_rows_are_blamed() -> None:
    found = clients(plan([1, 32], [1, 30]), EXPERIMENT, used(3, locked), 0.05)
    assert found is not None
    at = {row["clients"]: row for row in found["against_smallest"]}
    assert at[1]["ratio"] == pytest.approx(1)
    assert at[30]["ratio"] == pytest.approx(30**0.5)
    assert at[30]["low"] == pytest.approx(30**0.5)
    assert at[1]["beyond_fewest"] is None
    assert at[30]["beyond_fewest"]["low"] == pytest.approx(30**0.5)
    assert {(row["scale"], row["clients"]) for row in found["growth"]} == {(1, 30), (32, 30)}
    text = lines({"clients": found})
    assert text[-1].startswith("30 clients: scale 32 carries 5.48 x")
    assert text[-1].endswith("are what limits them")
    assert "not what limits" in text[0]
    assert lines({"clients": found, "a_a": {"ratio_spread": 1.2}})[-1] == text[-1]
    assert "equal trials differ as much" in lines({"clients": found, "a_a": {"ratio_spread": 6.0}})[-1]


def test_a_scale_below_the_clients_acquits_nobody() -> None:
    found = clients(plan([1, 32], [1, 30]), EXPERIMENT, used(3, lambda _scale, _count: 500.0), 0.05)
    assert found is not None
    assert lines({"clients": found})[-1].endswith("are not what limits them here")
    for row in found["against_smallest"]:
        row["scale"] = 25
    assert "cannot tell whether branch rows limit them" in lines({"clients": found})[-1]


def test_a_gain_that_one_client_has_too_is_not_the_rows() -> None:
    found = clients(plan([1, 32], [1, 30]), EXPERIMENT, used(3, lambda scale, _count: 500.0 * (1 + (scale > 1))), 0.05)
    assert found is not None
    text = lines({"clients": found})[-1]
    assert text.startswith("30 clients: scale 32 carries 2.00 x")
    assert text.endswith("the fewest clients seem to gain as much by the scale")


def test_one_client_that_scatters_is_no_gain() -> None:
    entries = used(3, locked)
    for (block, name), entry in entries.items():
        if name == "s32c1":
            entry["metrics"]["throughput_per_second"] *= (1.0, 0.2, 0.9)[block - 1]
    found = clients(plan([1, 32], [1, 30]), EXPERIMENT, entries, 0.05)
    assert found is not None
    assert lines({"clients": found})[-1].endswith("are what limits them")


def test_two_blocks_are_no_answer() -> None:
    found = clients(plan([1, 32], [1, 30]), EXPERIMENT, used(2, locked), 0.05)
    assert lines({"clients": found})[-1].endswith("no interval from fewer than three blocks")


def test_levels_of_transactions_per_client_are_averaged_within_the_block() -> None:
    both = plan([1, 32], [1, 30])
    both["factors"].append({"path": EACH, "levels": [{"label": str(each), "value": each} for each in (50, 200)]})
    both["treatments"] = {
        f"{name}e{each}": {"levels": {**entry["levels"], EACH: str(each)}}
        for name, entry in both["treatments"].items()
        for each in (50, 200)
    }
    entries = {}
    for (block, name), entry in used(3, locked).items():
        for each, factor in ((50, 1.0), (200, 4.0)):
            value = entry["metrics"]["throughput_per_second"] * (factor if "s32" in name else 1)
            entries[block, f"{name}e{each}"] = {"metrics": {"throughput_per_second": value}}
    found = clients(both, EXPERIMENT, entries, 0.05)
    assert found is not None
    assert len(found["rows"]) == 8
    assert found["against_smallest"][0]["ratio"] == pytest.approx(2)  # the geometric mean of 1 and 4


def test_other_runs_have_none() -> None:
    assert clients(plan([1], [1]), EXPERIMENT, {}, 0.05) is None
    assert clients(plan([1], [1, 2]), {"workload": {"name": "wpi_orders"}}, {}, 0.05) is None
    assert lines({"clients": None}) == []
    assert lines({}) == []
