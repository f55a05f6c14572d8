"""What a load line of order entry is asked of, and what is refused."""

import pytest

from plimsoll.analysis.capacity.objective import parse
from plimsoll.experiment import ExperimentError, Source
from plimsoll.run.capacity.source import check_lines, settings_for, source_of, subject_of


def asked(*sets: str) -> Source:
    return source_of("order_entry", quick=True, sets=list(sets), clients=8, dsn=None)


def test_order_entry_by_warehouses() -> None:
    settings = asked("workload.warehouses=1").experiment
    said = subject_of("order_entry", settings)
    assert "1 warehouse, 8 connections" in said
    assert "TPC-C-like, not comparable to published results" in said
    assert "a different benchmark" in said
    assert "7 warehouses" in subject_of("order_entry", asked("workload.warehouses=7").experiment)


def test_files_are_of_sessions_that_read_past_the_page_cache() -> None:
    settings = source_of("files", quick=True, sets=None, clients=4, dsn=None).experiment
    assert settings.target.server == "files"
    assert subject_of("files", settings) == "files (read 1), 50 files of 4 MiB, sync, direct, 4 sessions"


def test_users_who_wait_have_no_load_line() -> None:
    with pytest.raises(ExperimentError) as caught:
        asked("workload.keying_and_think=true")
    assert "workload.keying_and_think" in str(caught.value)
    assert "wait for each answer" in str(caught.value)


def test_a_guest_kernel_has_no_load_line() -> None:
    with pytest.raises(ExperimentError) as caught:
        asked('environment.kernel="guest"')
    assert "environment.kernel" in str(caught.value) and "mechanism and not speed" in str(caught.value)


def test_a_search_has_a_plan_of_its_own() -> None:
    """Whatever design the experiment has: one of windows would want several servers at once."""
    sets = ["workload.size=1 x memory", "target.settings.shared_buffers=64 MiB"]
    found = source_of("buffer-cache", quick=True, sets=sets, clients=8, dsn=None)
    assert found.experiment.design.kind == found.treatments[0].settings.design.kind == "full factorial"


def web(*, has_lines: bool) -> Source:
    return source_of("web", quick=True, sets=None, clients=None, dsn=None, has_lines=has_lines)


def test_a_web_server_is_asked_for_a_rate_or_for_connections() -> None:
    assert web(has_lines=False).experiment.workload.line_speed() is None
    check_lines(web(has_lines=False), parse("p99 <= 50ms"))
    check_lines(web(has_lines=True), parse("conforming >= 95%"))
    for source in (web(has_lines=False), asked()):
        with pytest.raises(ExperimentError) as caught:
            check_lines(source, parse("conforming >= 95%"))
        assert "line_bits_per_s" in str(caught.value)


def test_a_search_over_connections_keeps_the_set_of_files() -> None:
    base = web(has_lines=True).experiment
    few, many = (settings_for(base, {"kind": "closed"}, 5, warm=False, clients=count) for count in (3, 900))
    assert (few.workload.clients, many.workload.clients) == (3, 900)
    assert few.workload.data_request(0) == many.workload.data_request(0) == base.workload.data_request(0)
    assert many.workload.line_speed() == 400_000
    free = settings_for(base, {"kind": "closed"}, 5, warm=True, clients=64, has_lines=False)
    assert free.workload.line_speed() is None and free.workload.data_request(0) == base.workload.data_request(0)
