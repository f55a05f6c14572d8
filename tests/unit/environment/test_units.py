"""The unit that goes on with a run: what it says, that nothing of it is left, and that a reboot leaves it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from plimsoll.environment import Fault, Journal, StateDir, undo, units
from plimsoll.environment.journal import journal as journals
from plimsoll.environment.journal import recovery
from plimsoll.environment.units import Unit


class Systemd:
    """As much of systemd as a unit meets: it is enabled or not."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.enabled: set[str] = set()
        self.says = "running"
        self.fails = ""

    def __call__(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.asked.append(" ".join(words))
        if words[0] == self.fails:
            return subprocess.CompletedProcess(words, 1, "", "it will not")
        if words[0] == "enable":
            self.enabled.add(words[1])
        if words[0] == "disable":
            self.enabled.discard(words[1])
        return subprocess.CompletedProcess(words, 0, self.says, "")


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    found = Systemd()
    (tmp_path / "system").mkdir()
    (tmp_path / "runtime").mkdir()
    monkeypatch.setattr(units, "FOLDER", tmp_path / "system")
    monkeypatch.setattr(units, "RUNTIME", tmp_path / "runtime")
    monkeypatch.setattr(units, "systemctl", found)
    yield found
    journals.step_hook = None


@pytest.fixture
def state(tmp_path: Path) -> StateDir:
    return StateDir(tmp_path / "state").prepare()


def unit(**given: object) -> Unit:
    known = {"name": "plimsoll-soak-x.service", "description": "goes on", "command": ["/bin/python", "-m", "plimsoll"]}
    return Unit(**{**known, "folder": Path("/somewhere"), "user_id": 0, **given})  # type: ignore[arg-type]


def test_what_it_starts_survives_blanks_quotes_and_signs() -> None:
    text = unit(
        command=["/usr/bin/python3", "-m", "plimsoll", "soak", "--resume", '/data/a b "ü" 50% $HOME'],
        environment={"PLIMSOLL_STATE": "/var/lib/my state/100%"},
        description="soak 100%",
    ).text()
    assert 'ExecStart="/usr/bin/python3" "-m" "plimsoll" "soak" "--resume" "/data/a b \\"ü\\" 50%% $$HOME"\n' in text
    assert 'Environment="PLIMSOLL_STATE=/var/lib/my state/100%%"\n' in text and "Description=soak 100%%\n" in text
    assert "WantedBy=multi-user.target\n" in text


@pytest.mark.usefixtures("systemd")
@pytest.mark.parametrize("sign", ["a\nExecStart=/bin/evil", "a\rExecStartPre=/bin/evil", "a\\", "a\udcfc", "a\0b"])
def test_what_would_be_another_line_of_it_is_refused(sign: str) -> None:
    assert unit(command=["/bin/x", '/data/a b "ü" 50% $HOME'], folder=Path("/ü ö")).why_not() is None
    assert "starts no program with $" in (unit(command=["/$x/bin/x"]).why_not() or "")
    for given in ({"folder": Path("/") / sign}, {"command": ["/bin/x", sign]}, {"environment": {"PATH": sign}}):
        assert "can stand in no unit" in (unit(**given).why_not() or "")


def test_it_is_there_for_as_long_as_the_run(systemd: Systemd, state: StateDir) -> None:
    one = unit()
    with Journal.create(state, "run") as journal:
        one.install(journal, state)
        assert one.path.read_text() == one.text() and systemd.enabled == {one.name}
        assert undo(state) == [], "the run lives"
    assert not one.path.exists() and systemd.enabled == set() and systemd.asked[-1] == "daemon-reload"


def test_a_kill_at_any_step_leaves_nothing_once_it_is_put_back(systemd: Systemd, state: StateDir) -> None:
    class Killed(BaseException):
        pass

    steps: list[str] = []

    def run(kill_at: int) -> None:
        count = 0

        def hook(name: str, _number: int) -> None:
            nonlocal count
            count += 1
            steps.append(name)
            if count == kill_at:
                raise Killed

        journals.step_hook = hook
        try:
            unit().install(Journal.create(state, "run"), state)
        finally:
            journals.step_hook = None

    run(0)
    undo(state, force=True)
    every = len(steps)
    assert "written unit" in steps
    for number in range(1, every + 1):
        with pytest.raises(Killed):
            run(number)
        assert all(undone.ok for undone in undo(state, force=True))
        for left in state.journal.glob("*.tmp"):
            left.unlink()  # of a process that lives, as the test's does
        assert not unit().path.exists() and systemd.enabled == set(), f"killed at step {number}"


def test_the_run_that_it_starts_takes_it_over(
    systemd: Systemd, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Journal.create(state, "before")
    unit().install(before, state)
    before.release()  # the machine goes down: the one process is gone, and the other begins
    alive = Journal.owner_is_alive
    monkeypatch.setattr(Journal, "owner_is_alive", lambda self: self.run_id != "before" and alive(self))
    after = Journal.create(state, "after")
    unit().install(after, state)
    (undone,) = undo(state)
    assert undone.ok and "the run that goes on has it" in undone.what
    assert unit().path.exists() and systemd.enabled == {unit().name}
    after.put_back_all()
    assert not unit().path.exists() and systemd.enabled == set()


def test_it_is_taken_over_from_other_surroundings_too(
    systemd: Systemd, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, manager = unit(environment={"PATH": "/bin"}), unit(environment={"PATH": "/bin", "LANG": "C.UTF-8"})
    shell.install(Journal.create(state, "before"), state)
    alive = Journal.owner_is_alive
    monkeypatch.setattr(Journal, "owner_is_alive", lambda self: self.run_id != "before" and alive(self))
    after = Journal.create(state, "after")
    manager.install(after, state)
    assert manager.path.read_text() == manager.text()
    (undone,) = undo(state)
    assert undone.ok and "the run that goes on has it" in undone.what and systemd.enabled == {manager.name}
    after.put_back_all()
    assert not manager.path.exists() and systemd.enabled == set()


@pytest.mark.parametrize("killed_at", ["before record systemd_unit", "after record systemd_unit", "written unit"])
def test_a_kill_while_it_is_taken_over_leaves_nothing_once_it_is_put_back(
    systemd: Systemd, state: StateDir, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    class Killed(BaseException):
        pass

    def hook(name: str, _number: int) -> None:
        if name == killed_at:
            raise Killed

    unit(environment={"PATH": "/bin"}).install(Journal.create(state, "before"), state)
    journals.step_hook = hook
    with pytest.raises(Killed):
        unit().install(Journal.create(state, "after"), state)
    journals.step_hook = None
    monkeypatch.setattr(Journal, "owner_is_alive", lambda _self: False)
    assert all(undone.ok for undone in undo(state))
    for left in state.journal.glob("*.tmp"):
        left.unlink()  # of a process that lives, as the test's does
    assert not [*units.FOLDER.iterdir()] and systemd.enabled == set() and not [*state.journal.iterdir()]


@pytest.mark.usefixtures("systemd")
def test_what_a_kill_left_beside_it_goes(state: StateDir) -> None:
    unit().install(Journal.create(state, "run"), state)
    (units.FOLDER / f".{unit().name}.4711.tmp").write_text("half")
    (units.FOLDER / ".other.service.4711.tmp").write_text("theirs")
    assert all(undone.ok for undone in undo(state, force=True))
    assert [path.name for path in units.FOLDER.iterdir()] == [".other.service.4711.tmp"]


def test_what_is_left_to_a_successor_is_left(systemd: Systemd, state: StateDir) -> None:
    unit().install(Journal.create(state, "unit"), state)
    assert recovery.undo(state, force=True, but_for=("unit",)) == []
    assert unit().path.exists() and systemd.enabled
    systemd.says = "stopping"
    assert units.is_going_down()
    systemd.says = "degraded"
    assert not units.is_going_down()
    assert [undone.ok for undone in undo(state, force=True)] == [True] and not unit().path.exists()


@pytest.mark.usefixtures("systemd")
def test_somebody_else_s_unit_is_neither_written_over_nor_removed(state: StateDir) -> None:
    unit().path.write_text("theirs")
    with pytest.raises(Fault, match="is not this run's"):
        unit().install(Journal.create(state, "run"), state)
    unit().path.unlink()
    unit().install(Journal.create(state, "other"), state)
    unit().path.write_text("changed since")
    (undone,) = [one for one in undo(state, force=True) if one.kind == units.SYSTEMD_UNIT]
    assert undone.is_left and "was changed since" in undone.what and unit().path.read_text() == "changed since"


@pytest.mark.usefixtures("systemd")
def test_why_it_cannot_be_had(tmp_path: Path) -> None:
    assert unit().why_not() is None
    assert "only root" in str(unit(user_id=1000).why_not())
    (tmp_path / "runtime").rmdir()
    assert "systemd is not this machine's init" in str(unit().why_not()) and not units.is_going_down()


def test_a_refusal_of_systemd_is_told(systemd: Systemd, state: StateDir) -> None:
    systemd.fails = "enable"
    with pytest.raises(Fault, match="it will not"):
        unit().install(Journal.create(state, "run"), state)
    assert all(undone.ok for undone in undo(state, force=True)) and not unit().path.exists()
