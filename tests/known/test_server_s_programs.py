"""Programs that SQL has a server start, as its user: they reach nothing of root's, and they end with the server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plimsoll.environment import StateDir, processes
from plimsoll.experiment import Experiment
from plimsoll.run.context import RunContext
from plimsoll.run.host import HERE
from plimsoll.run.observer import Silent
from plimsoll.run.servers.registry import kind_of
from plimsoll.run.signals import Interrupts
from plimsoll.run.surroundings.arranged import arranged
from plimsoll.run.trial.log import TrialLog

# Each has a session of its own and no parent: what a daemon does.
DETACHED = "setsid -f sleep {seconds} </dev/null >/dev/null 2>&1"


def _sleepers(seconds: str) -> list[int]:
    return [pid for pid in processes.all_pids() if list(processes.arguments(pid))[:2] == ["sleep", seconds]]


def _wait_for(is_so: Callable[[], bool]) -> bool:
    until = time.monotonic() + 5
    while not is_so() and time.monotonic() < until:
        time.sleep(0.01)
    return is_so()


def _gone(seconds: str) -> bool:
    left = _sleepers(seconds)
    for pid in left:
        os.kill(pid, 9)
    return not left


def _settings(setup: str | None = None, **files: str) -> Experiment:
    workload: dict[str, Any] = {"name": "script", "files": [{"path": "a.sql", "text": "select 1;"}]}
    if setup is not None:
        workload |= {"setup": "setup.sql", "setup_text": setup}
    document = {"name": "x", "title": "x", "workload": workload, "measure": {"seconds": 1}, "target": {"files": files}}
    return Experiment.model_validate(document | {"warmup": {"until": "none"}})


def test_what_a_server_without_limits_has_started_ends_with_its_trial(
    needs: Callable[..., None], state: StateDir, run_id: str
) -> None:
    needs("root", "cgroup memory", "server user")
    seconds = f"3141.{os.getpid()}"
    runner = RunContext(SimpleNamespace(), state.root / "out", state, Silent())  # type: ignore[arg-type]  # no source
    log = TrialLog(SimpleNamespace(number=1))  # type: ignore[arg-type]
    with arranged(runner, _settings(), run_id, log) as place:
        assert place.group is None and place.describe_group() is None  # nothing is measured of it
        found = place.folder.stat()
        assert (found.st_uid, found.st_mode & 0o777) == (os.geteuid(), 0o755)
        place.launch(["sh", "-c", DETACHED.format(seconds=seconds)], user=HERE.server_user()).wait()
        assert _wait_for(lambda: len(_sleepers(seconds)) == 1)
    assert _gone(seconds)


def test_set_up_sql_reaches_no_file_of_root_s_and_leaves_no_program(
    needs: Callable[..., None], state: StateDir, tmp_path: Path
) -> None:
    needs("root", "cgroup memory", "postgresql", "server user")
    seconds, precious = f"2718.{os.getpid()}", tmp_path / "precious"
    precious.write_text("secret")
    # COPY fails where its program does: the folder of the log and the configuration must not be writable.
    put = f"cd ..; touch x && exit 1; ln -sfn {precious} server.log && exit 1; rm -f postgresql.conf && exit 1; exit 0"
    setup = f"copy (select 1) to program '{put}'; copy (select 1) to program '{DETACHED.format(seconds=seconds)}';"
    settings = _settings(setup)
    try:
        built = kind_of(settings).build(settings, "script-pg-0123456789ab", state, Silent(), Interrupts(Silent()))
        assert sorted(path.name for path in built.path.iterdir()) == ["data", "dataset.json"]
        assert built.path.stat().st_uid == os.geteuid()
        assert precious.read_text() == "secret"
    finally:
        assert _gone(seconds)


@pytest.mark.parametrize("name", ["data", "wal"])
def test_places_of_their_own_are_root_s(needs: Callable[..., None], state: StateDir, tmp_path: Path, name: str) -> None:
    needs("root", "server user")
    tmp_path.chmod(0o755)
    runner = RunContext(SimpleNamespace(), state.root / "out", state, Silent())  # type: ignore[arg-type]  # no source
    with arranged(
        runner, _settings(**{name: str(tmp_path)}), "place-0001", TrialLog(SimpleNamespace(number=1))
    ) as place:  # type: ignore[arg-type]
        (folder,) = place.locations.apart
        assert (folder.stat().st_uid, folder.stat().st_mode & 0o777) == (os.geteuid(), 0o755)
    assert not folder.exists()
