"""The workload `web` and its servers: what an experiment may say, what is refused, and what the agent is asked."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.experiment import Experiment
from plimsoll.experiment.workloads.web import SPECIFIED, Web
from plimsoll.run import agent

WHOLE = {"format": 1, "name": "w", "title": "t", "measure": {"seconds": 1}, "target": {"server": "nginx"}}


def web(**given: Any) -> Web:
    return Web.model_validate({"name": "web", **given})


def experiment(**tables: Any) -> Experiment:
    return Experiment.model_validate({**WHOLE, "workload": {"name": "web"}, **tables})


def test_the_set_of_files_grows_with_the_load_as_the_original_s() -> None:
    assert [web(clients=load).directories_made() for load in (1, 100, 500, 1000)] == [25, 90, 352, 680]
    assert web(clients=7, load=100).directories_made() == 90
    assert web(clients=7, directories=3).estimated_bytes(0) == 3 * 5_119_484 + 2000 * 15 + 360 * 39
    with pytest.raises(ValidationError, match="one of the two"):
        web(load=5, directories=5)


def test_files_are_known_again_whatever_is_asked_of_them() -> None:
    """Trials that differ in mix, seed, users or line speed share a set of files."""
    first = web(load=100, clients=1)
    others = [web(load=100, clients=9, seed=3), web(directories=90, users=7, mix="static", line_bits_per_s=400_000)]
    assert all(one.rows_from(0) == first.rows_from(0) for one in others)
    assert web(load=100, ad_every_bytes=2048).rows_from(0) != first.rows_from(0)
    assert web(load=200).rows_from(0) != first.rows_from(0)


def test_a_mix_is_the_original_s_or_static_or_weights() -> None:
    assert web().shares == SPECIFIED and sum(SPECIFIED.values()) == pytest.approx(100)
    static = web(mix="static")
    assert static.shares == {"static": 1.0, "dynamic": 0, "cgi": 0, "custom_ad": 0, "post": 0}
    assert (web().has_program, static.has_program) == (True, False)
    assert (web().written_bytes(), static.written_bytes()) == (None, 0)
    posts = web(mix={"post": 2})
    assert posts.shares["static"] == 0 and posts.has_program
    for wrong in ({"static": 0}, {"pots": 1}, "dynamic", {"post": -1}):
        with pytest.raises(ValidationError):
            web(mix=wrong)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"requests_a_connection": [9, 5]}, "the first is larger"),
        ({"line_bits_per_s": 300_000}, "no connection can conform"),
        ({"classes": [0, 0, 0, 0]}, "every share"),
        ({"classes": [1, 1, 1]}, "classes"),
        ({"http_1_0": 2}, "http_1_0"),
        ({"ad_every_bytes": 100}, "multiple of 64"),
        ({"verify": "none"}, "verify"),
        ({"color": 1}, "color"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        web(**given)


def test_what_is_judged_follows_from_the_lines() -> None:
    assert experiment().judged == "throughput_per_second"
    assert experiment(workload={"name": "web", "line_bits_per_s": 400_000}).judged == "conforming_connections"
    at_a_rate = {"kind": "poisson", "rate": 10}
    assert (
        experiment(workload={"name": "web", "line_bits_per_s": 400_000}, schedule=at_a_rate).judged == "latency_ns_p99"
    )
    with pytest.raises(ValidationError, match="which workload web alone has"):
        Experiment.model_validate(
            {
                **WHOLE,
                "target": {},
                "workload": {"name": "bank", "scale": 1},
                "design": {"judged": "conforming_connections"},
            }
        )


def test_a_load_on_pages_needs_a_web_server() -> None:
    with pytest.raises(ValidationError, match=r'allowed: target.server = "nginx" or "apache"'):
        experiment(target={})
    with pytest.raises(ValidationError, match="pages of a web server, and bank"):
        experiment(workload={"name": "bank", "scale": 1})


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"target": {"server": "nginx", "dsn": "host=x"}}, r"target\.dsn"),
        ({"target": {"server": "nginx", "version": "1"}}, r"target\.version"),
        ({"target": {"server": "nginx", "transport": "tcp"}}, r"target\.transport"),
        ({"target": {"server": "nginx", "files": {"wal": "/tmp"}}}, r"target\.files\.wal"),
        ({"target": {"server": "nginx"}, "probes": {"sync": True}}, r"probes\.sync"),
        ({"target": {"server": "nginx", "settings": {"listen": 80}}}, "listen is chosen by Plimsoll"),
        ({"target": {"server": "apache", "settings": {"documentroot": "/"}}}, "documentroot is chosen by Plimsoll"),
        ({"target": {"server": "nginx", "settings": {"sendfile": "on; root /"}}}, "the value of one directive"),
        ({"target": {"server": "apache", "settings": {"keepalive": "On\nListen 1"}}}, "one line"),
        ({"warmup": {"prewarm": True}}, "prewarm"),
    ],
)
def test_what_a_web_server_has_not_is_refused(tables: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        experiment(**tables)


def test_a_place_of_the_program_s_files_is_of_web_servers_alone() -> None:
    files = {"files": {"program": "/mnt/log"}}
    assert experiment(target={"server": "nginx", **files}).target.files.given == {"program": "/mnt/log"}
    for target in (files, {"server": "files", **files}, {"server": "duckdb", **files}):
        with pytest.raises(ValidationError):
            Experiment.model_validate({**WHOLE, "target": target, "workload": {"name": "bank", "scale": 1}})


def test_the_agent_knows_every_key_of_the_request() -> None:
    """Unknown fields are refused by name."""
    request = web(line_bits_per_s=400_000, class_files=[1] * 9, mix={"static": 1, "post": 1}).request(0)
    assert agent.call("describe", {"workload": request})["facts"]["directories"] == 25


URL = {"url": "http://127.0.0.1:8080/pages", "files": {"data": "/srv/pages"}}


def test_a_web_server_of_somebody_else_is_asked_for_its_files() -> None:
    found = experiment(target=URL, workload={"name": "web", "mix": "static"})
    assert found.target.is_of_somebody_else and found.target.named == "target.url names a web server"
    assert not experiment(workload={"name": "web"}).target.is_of_somebody_else


@pytest.mark.parametrize(
    ("target", "workload", "said"),
    [
        (URL, {"name": "web"}, 'no program of ours is started; allowed: workload.mix = "static"'),
        (URL | {"settings": {"sendfile": True}}, {"name": "web", "mix": "static"}, r"target\.settings\.sendfile"),
        (URL | {"dsn": "host=x"}, {"name": "web", "mix": "static"}, r"target\.dsn"),
        ({"url": "127.0.0.1"}, {"name": "web", "mix": "static"}, "url"),
        ({"url": "http://me:secret@host/"}, {"name": "web", "mix": "static"}, "url"),
        (URL, {"name": "bank", "scale": 1}, "target.url names a web server, which has pages of a web server, and bank"),
    ],
)
def test_what_a_server_of_somebody_else_is_not_given(target: Any, workload: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        experiment(target=target, workload=workload)


def test_calls_of_nfs_are_watched_for_files_of_ours_alone() -> None:
    asked = {"workload": {"name": "web", "mix": "static"}, "probes": {"nfs_calls": True}}
    assert experiment(**asked).probes.nfs_calls
    with pytest.raises(ValidationError, match=r"probes\.nfs_calls"):
        experiment(target=URL, **asked)
