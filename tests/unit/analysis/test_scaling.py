"""Study S4's and S5's answers from hand-made rates: factors within blocks, the law, the knob's pairs, what is said."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from plimsoll.analysis.estimates import estimates
from plimsoll.analysis.statistics.usl import rate
from plimsoll.analysis.studies.memory_scaling import memory_scaling
from plimsoll.analysis.studies.scaling import ABOUT, pairs, scaling
from plimsoll.record import open_run
from plimsoll.words.studies import scaling as scaling_words

_WORLD = runpy.run_path(str(Path(__file__).with_name("scaling_world.py")))
CPUS, CLIENTS, MEMORY, HUGE = (_WORLD[name] for name in ("CPUS", "CLIENTS", "MEMORY", "HUGE"))
EXPERIMENT, plan, used, cpu_text = (_WORLD[name] for name in ("EXPERIMENT", "plan", "used", "cpu_text"))
Json = dict[str, Any]
COUNTS = [1, 2, 4, 8]


def count_of(settings: Json) -> int:
    text = settings["environment"]["target_cpus"]
    return int(text.partition("-")[2] or 0) + 1


def by_law(settings: Json, block: int) -> Json:
    """1000 a second of one CPU, a tenth more in each block, a hair of noise."""
    count, clients = count_of(settings), settings["workload"]["clients"]
    noise = np.random.default_rng([block, count, clients]).normal(0, 0.005)
    return {
        "throughput_per_second": rate(count, 1000 * clients**0.5, 0.05, 0.01) * (1 + block / 10) * np.exp(noise),
        "cpu_ns_per_transaction": 400_000.0 + 10_000 * count,
        "cpu_steal_share": 0.01 * block,
    }


def cpu_run(counts: list[int], blocks: int = 3, metrics: Any = by_law, **more: Any) -> Json | None:
    found = plan({CPUS: [cpu_text(count) for count in counts], CLIENTS: [4, 16]})
    return scaling(found, EXPERIMENT, used(found, blocks, metrics, **more), 0.05)


def test_factors_are_within_blocks_and_over_the_fewest() -> None:
    found = cpu_run(COUNTS)
    assert found is not None
    rows = {(row["cpus"], row["clients"]): row for row in found["factors"]}
    assert set(rows) == {(count, clients) for count in (2, 4, 8) for clients in (4, 16)}
    expected = rate(8, 1, 0.05, 0.01)
    one = rows[8, 4]
    assert one["fewest"] == 1
    assert one["ratio"] == pytest.approx(expected, rel=0.02)
    assert one["low"] < expected < one["high"]
    assert one["efficiency"] == pytest.approx(one["ratio"] / 8)
    row = next(row for row in found["rows"] if (row["cpus"], row["clients"]) == (2, 4))
    assert row["cpu_ns_per_transaction"]["value"] == pytest.approx(420_000)
    assert row["cpu_steal_share"]["value"] == pytest.approx(0.02)


def test_the_law_is_fitted_over_cpus_and_withheld_over_two_numbers_of_clients() -> None:
    found = cpu_run(COUNTS)
    assert found is not None
    laws = {(law["over"], law["clients"], law["cpus"]): law for law in found["laws"]}
    over_cpus = laws["cpus", 16, None]
    assert over_cpus["status"] == "fitted"
    assert over_cpus["sigma"]["low"] < 0.05 < over_cpus["sigma"]["high"]
    over_clients = laws["clients", None, 8]
    assert over_clients["status"] == "cannot tell"
    assert "2 levels" in over_clients["why"]
    text = scaling_words.scaling_lines({"scaling": found})
    assert text[-1].startswith("16 clients: 8 CPUs carry")
    assert "contention 5" in text[-1] or "contention 4" in text[-1]
    assert "throughput is largest at" in text[-1]


def test_two_numbers_of_cpus_have_a_factor_and_no_law() -> None:
    found = cpu_run([1, 2])
    assert found is not None
    text = scaling_words.scaling_lines({"scaling": found})[0]
    assert "2 CPUs carry 1.8" in text
    assert "scaling law: cannot tell (2 levels" in text


def test_what_equal_trials_differ_by_is_no_scaling() -> None:
    def flat(settings: Json, block: int) -> Json:
        return {"throughput_per_second": 1000 * (1 + block / 10) * (1 + 0.01 * (count_of(settings) > 1))}

    found = cpu_run([1, 2], metrics=flat)
    assert (
        "equal trials differ as much"
        in scaling_words.scaling_lines({"scaling": found, "a_a": {"ratio_spread": 1.2}})[0]
    )
    falling = cpu_run(
        [1, 2], metrics=lambda settings, block: {"throughput_per_second": 90.0 * block / count_of(settings)}
    )
    assert "so fewer" in scaling_words.scaling_lines({"scaling": falling})[0]


def test_two_blocks_have_no_interval() -> None:
    found = cpu_run([1, 2], blocks=2)
    assert found is not None
    assert found["factors"][0]["low"] is None
    assert "from fewer than three blocks" in scaling_words.scaling_lines({"scaling": found})[0]


def test_a_generator_that_loses_its_own_cpus_is_named() -> None:
    found = cpu_run([1, 2], load="0-1")
    assert found is not None
    assert (
        "with 1 CPU for the server the load generator had CPUs of its own, with 2 CPUs it had none" in found["notes"][0]
    )
    apart = cpu_run([1, 2], load="2-3")
    assert apart is not None
    assert apart["notes"] == []


def test_clients_set_by_the_factor_of_the_cpus_make_one_line() -> None:
    found = plan({CPUS: ["0", "0-1"]})
    found["factors"][0] |= {"path": "size", "paths": [CPUS, CLIENTS]}
    for trial, (name, clients) in zip(found["trials"], (("t1", 4), ("t2", 8)), strict=True):
        trial["resolved"]["workload"]["clients"] = clients
        found["treatments"][name]["levels"] = {"size": str(clients)}
    verdict = scaling(found, EXPERIMENT, used(found, 3, by_law), 0.05)
    assert verdict is not None
    assert [(row["cpus"], row["clients"]) for row in verdict["rows"]] == [(1, None), (2, None)]
    assert len(verdict["factors"]) == 1


def test_all_cpus_are_as_many_as_the_trial_recorded() -> None:
    found = plan({CPUS: ["0", "all"]})
    entries = used(found, 3, lambda _settings, block: {"throughput_per_second": 100.0 * block})
    for entry in entries.values():
        if entry["placement"]["target"] == "all":
            entry["placement"]["target"] = "0-5"
    verdict = scaling(found, EXPERIMENT, entries, 0.05)
    assert verdict is not None
    assert [row["cpus"] for row in verdict["rows"]] == [1, 6]


def test_the_breakdown_is_asked_for_the_ends_of_each_line() -> None:
    rows = pairs(cpu_run(COUNTS))
    assert {row["about"] for row in rows} == set(ABOUT.values())
    first = next(row for row in rows if row["about"] == ABOUT["cpus"])
    assert (first["first_label"], first["second_label"], first["at"]) == ("1", "CPUs 8", {"clients": "4"})
    assert pairs(None) == []


def test_other_runs_have_none() -> None:
    found = plan({CLIENTS: [1, 2]})
    assert scaling(found, EXPERIMENT, used(found, 3, by_clients_alone), 0.05) is None
    assert memory_scaling(found, EXPERIMENT, used(found, 3, by_clients_alone), 0.05, 0.0) is None
    one = plan({CPUS: ["0", "1"]})
    assert scaling(one, EXPERIMENT, used(one, 3, by_clients_alone), 0.05) is None, "as many CPUs at either level"
    assert scaling_words.SENTENCES.leads({}) == scaling_words.MEMORY.leads({}) == []


def by_clients_alone(_settings: Json, block: int) -> Json:
    return {"throughput_per_second": 100.0 * block}


GIB = 2**30


def by_pages(settings: Json, block: int) -> Json:
    """Huge pages carry a fifth more in the larger memory at a tenth more CPU, and nothing in the smaller one."""
    environment = settings["environment"]
    on, large = environment["transparent_huge_pages"] == "always", environment["memory"] > GIB
    noise = np.random.default_rng([block, on, large]).normal(0, 0.004)
    return {
        "throughput_per_second": 500 * (1 + large) * (1 + 0.2 * (on and large)) * (1 + block / 5) * np.exp(noise),
        "cpu_ns_per_transaction": 300_000.0 * (1 + 0.1 * on) * (1 + block / 5),
        "cpu_steal_share": 0.0,
    }


def memory_run(blocks: int = 3, spread_log: float = 0.0) -> Json:
    found = plan({MEMORY: [GIB, 2 * GIB], HUGE: ["always", "never"]})
    result = memory_scaling(found, EXPERIMENT, used(found, blocks, by_pages), 0.05, spread_log)
    assert result is not None
    return result


def test_the_knob_is_judged_at_each_memory_size() -> None:
    found = memory_run()
    assert (found["knob"]["on"], found["knob"]["off"]) == ("always", "never")
    small, large = found["pairs"]
    assert (small["memory_bytes"], large["memory_bytes"]) == (GIB, 2 * GIB)
    assert small["throughput"]["verdict"] == "no relevant difference"
    assert large["throughput"]["verdict"] == "better"
    assert large["throughput"]["low"] < 1.2 < large["throughput"]["high"]
    assert large["cpu"]["ratio"] == pytest.approx(1.1)
    assert large["cpu"]["verdict"] == "worse"
    assert large["steal"] == {"value": 0.0, "low": 0.0, "high": 0.0, "blocks": 3}
    growth = {row["on"]: row["ratio"] for row in found["growth"]}
    assert growth[False] == pytest.approx(2, rel=0.02)
    assert growth[True] == pytest.approx(2.4, rel=0.02)


def test_the_knob_in_words() -> None:
    text = scaling_words.memory_lines({"memory_scaling": memory_run()})
    assert len(text) == 2
    assert "transparent_huge_pages always carries 1.20 x" in text[1]
    assert text[1].endswith("the CPU cost (more)")
    assert "(no relevant difference)" in text[0]
    assert memory_run(spread_log=0.3)["pairs"][1]["throughput"]["verdict"] == "cannot tell"
    assert memory_run(blocks=2)["pairs"][1]["throughput"]["verdict"] == "cannot tell"


def test_a_factor_that_is_not_off_is_no_knob() -> None:
    found = plan({MEMORY: [GIB, 2 * GIB], "target.settings.work_mem": ["4 MiB", "8 MiB"]})
    assert memory_scaling(found, EXPERIMENT, {}, 0.05, 0.0) is None


def test_decision_support_has_no_stream_of_transactions() -> None:
    found = plan({MEMORY: [GIB, 2 * GIB], "target.settings.max_parallel_workers_per_gather": [2, 0]})
    assert memory_scaling(found, EXPERIMENT, {}, 0.05, 0.0) is not None
    of_tests = EXPERIMENT | {"workload": {"name": "decision_support"}}
    assert memory_scaling(found, of_tests, {}, 0.05, 0.0) is None


def test_the_cpu_cost_is_the_hosts_busy_ticks_a_transaction() -> None:
    run = open_run(Path(__file__).parents[2] / "golden" / "synthetic")
    trial = run.trials[0]
    host = trial.measure.series("host")
    assert host is not None
    names = ("cpu_user", "cpu_nice", "cpu_system", "cpu_irq", "cpu_softirq")
    ticks = sum(int(host[name][-1]) - int(host[name][0]) for name in names if name in (host.dtype.names or ()))
    done = trial.measure.summary["identity"]["done"]
    assert ticks > 0
    assert estimates(trial)["cpu_ns_per_transaction"] == pytest.approx(ticks * 1e9 / 100 / done)
