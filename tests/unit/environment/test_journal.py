"""The journal's promises: durable before acting, torn lines, newest first, twice is once, all failures told."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from plimsoll.cli.verbs import machine
from plimsoll.environment import Fault, Journal, PutBackFailed, live_runs, undo
from plimsoll.environment import state as state_of_machine
from plimsoll.environment.journal import journal as journals
from plimsoll.environment.journal import recovery, registry

done: list[str] = []


@registry.puts_back("test-note", survives_reboot=False)
def _note(args):
    if args.get("fail"):
        raise Fault(f"item {args['what']} is stuck", remedy="unstick it")
    done.append(args["what"])
    return args["what"]


@registry.puts_back("test-file", survives_reboot=True)
def _file(args):
    done.append(args["what"])
    return args["what"]


@pytest.fixture(autouse=True)
def clean():
    done.clear()
    yield
    journals.step_hook = None


def test_an_entry_is_on_disk_before_the_change_is_made(state):
    journal = Journal.create(state, "run")
    seen = []
    journal.change("test-note", lambda: seen.append(journal.path.read_text().splitlines()[-1]), what="a")
    assert json.loads(seen[0]) == {"n": 1, "kind": "test-note", "by": __name__, "args": {"what": "a"}}


def test_put_back_is_newest_first_and_removes_the_journal(state):
    journal = Journal.create(state, "run")
    for name in "abc":
        journal.record("test-note", what=name)
    journal.put_back_all()
    assert done == ["c", "b", "a"]
    assert not list(state.journal.iterdir())


def test_a_single_put_back_is_not_done_again(state):
    journal = Journal.create(state, "run")
    first = journal.record("test-note", what="a")
    journal.record("test-note", what="b")
    journal.put_back(first)
    assert [entry.args["what"] for entry in Journal.load(journal.path).remaining] == ["b"]
    journal.put_back_all()
    assert done == ["a", "b"]


def test_a_failing_put_back_does_not_stop_the_others_and_is_told_with_its_remedy(state):
    journal = Journal.create(state, "run")
    journal.record("test-note", what="a")
    journal.record("test-note", what="b", fail=True)
    journal.record("test-note", what="c", fail=True)
    journal.record("test-note", what="d")
    with pytest.raises(PutBackFailed) as caught:
        journal.put_back_all()
    assert done == ["d", "a"]
    assert [failure.what for failure in caught.value.failures] == ["item c is stuck", "item b is stuck"]
    assert "item b is stuck; unstick it" in str(caught.value)
    assert len(Journal.load(journal.path).remaining) == 2  # kept for undo


@pytest.mark.parametrize("where", [{"pid_namespace": "pid:[1]"}, {"boot_id": "of another machine"}])
def test_a_run_whose_processes_cannot_be_asked_lives_while_it_holds_its_journal(state, where):
    """In a container, or on a machine that shares the state folder, its number is nobody's here, or somebody else's."""
    journal = Journal.create(state, "run")
    journal.record("test-file", what="a")
    _rewrite_owner(journal.path, pid=2**22 + 1, **where)
    assert live_runs(state) == [("run", 2**22 + 1)]
    assert undo(state) == [] and done == []
    journal.release()
    assert live_runs(state) == []
    assert [result.ok for result in undo(state)] == [True] and done == ["a"]


def test_undo_waits_for_a_program_that_outlives_its_run(state):
    """It may be in the middle of a mount: what it does now comes after undo has looked."""
    child = os.fork()
    if child == 0:
        journal = Journal.create(state, "run")
        journal.record("test-file", what="a")
        with journals.handed_on() as descriptors:
            subprocess.Popen(["sleep", "1"], pass_fds=descriptors)
        os._exit(0)
    os.waitpid(child, 0)
    began = time.monotonic()
    assert [result.ok for result in undo(state)] == [True]
    assert 0.5 < time.monotonic() - began < 9 and done == ["a"]


def test_a_journal_that_is_being_begun_elsewhere_is_not_swept_away(state):
    unborn = state.journal / f"run.jsonl.{2**22 + 1}.tmp"
    with unborn.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        undo(state)
        assert unborn.exists()
    undo(state)
    assert not unborn.exists()


@pytest.mark.parametrize("tail", [b'{"n": 2, "kind": "test-no', b"{", b'{"n":1,"undone":tr'])
def test_a_torn_last_line_is_left_out_and_cut_by_the_next(state, tail):
    journal = Journal.create(state, "run")
    journal.record("test-note", what="a")
    with journal.path.open("ab") as file:
        file.write(tail)
    loaded = Journal.load(journal.path)
    assert [entry.args["what"] for entry in loaded.remaining] == ["a"]
    loaded.record("test-note", what="b")
    assert [entry.args["what"] for entry in Journal.load(journal.path).remaining] == ["b", "a"]


def test_a_damaged_line_in_the_middle_is_reported_and_the_rest_put_back(state):
    journal = Journal.create(state, "run")
    journal.record("test-note", what="a")
    with journal.path.open("ab") as file:
        file.write(b"garbage\n")
    journal.record("test-note", what="b")
    results = undo(state, force=True)
    assert done == ["b", "a"]
    assert [result.ok for result in results] == [True, True, False]
    assert "line 3" in results[-1].what
    assert journal.path.exists()


def test_undo_leaves_a_living_run_alone_unless_forced(state):
    Journal.create(state, "run").record("test-note", what="a")
    assert undo(state) == []
    assert live_runs(state) == [("run", os.getpid())]
    assert [result.ok for result in undo(state, force=True)] == [True]
    assert undo(state) == []


def _rewrite_owner(path, **changes):
    """In the same file, or its lock would be another's."""
    lines = path.read_text().splitlines()
    lines[0] = json.dumps(json.loads(lines[0]) | changes)
    path.write_text("\n".join(lines) + "\n")


def test_a_reused_pid_is_not_the_owner(state):
    journal = Journal.create(state, "run")
    journal.record("test-note", what="a")
    _rewrite_owner(journal.path, start_ticks=1)
    journal.release()
    assert [result.what for result in undo(state)] == ["a"]


def test_after_a_reboot_only_what_survives_it_is_put_back(state):
    journal = Journal.create(state, "run")
    journal.record("test-note", what="a")
    journal.record("test-file", what="b")
    _rewrite_owner(journal.path, boot_id="another")
    journal.release()
    assert [result.what for result in undo(state)] == ["b", "gone with the reboot"]
    assert done == ["b"]
    assert not list(state.journal.iterdir())


def test_dead_runs_are_undone_newest_first(state):
    for place, name in enumerate(["old", "new"]):
        journal = Journal.create(state, name)
        journal.record("test-note", what=name)
        _rewrite_owner(journal.path, start_ticks=1, epoch_ns=place)
        journal.release()
    undo(state)
    assert done == ["new", "old"]


def test_an_unknown_kind_is_refused_before_the_change(state):
    journal = Journal.create(state, "run")
    with pytest.raises(Fault, match="cannot put it back"):
        journal.change("no-such-kind", lambda: done.append("changed"))
    assert done == []


def test_a_kind_of_another_stage_is_found_by_the_module_that_the_journal_names(state, monkeypatch):
    asked = []

    def load(name):
        asked.append(name)
        if name == "plimsoll.another.stage":
            registry.puts_back("test-other", survives_reboot=True)(_file)

    journal = Journal.create(state, "run")
    journal.record("test-note", what="a")
    journal.path.write_text(
        journal.path.read_text().replace("test-note", "test-other").replace(__name__, "plimsoll.another.stage")
    )
    monkeypatch.setattr(registry.importlib, "import_module", load)
    monkeypatch.setattr(registry, "_kinds", dict(registry._kinds))
    assert [result.ok for result in undo(state, force=True)] == [True]
    assert asked[-1] == "plimsoll.another.stage" and done == ["a"]


def test_a_module_that_has_moved_is_found_by_the_name_in_an_old_journal():
    script = """
from plimsoll.environment import state as state_of_machine
from plimsoll.environment.journal import recovery, registry
print(registry.find("schema", "plimsoll.run.existing").action.__module__)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "plimsoll.run.servers.postgresql.schema"


def test_a_journal_of_the_same_name_is_not_overwritten(state):
    Journal.create(state, "run")
    with pytest.raises(Fault, match="plimsoll undo"):
        Journal.create(state, "run")


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden"])
def test_a_run_id_that_is_no_file_name_is_refused(state, name):
    with pytest.raises(Fault, match="run id"):
        Journal.create(state, name)


def test_a_folder_of_someone_elses_format_is_told_and_left(state):
    (state.journal / "odd.jsonl").write_text('{"journal": 99}\n')
    (state.journal / "odder.jsonl").write_text("not json\n")
    (state.journal / "empty.jsonl").write_text("")
    assert sorted(result.ok for result in undo(state)) == [False, False, False]


def test_steps_are_announced_in_order(state):
    names = []
    journals.step_hook = lambda name, _: names.append(name)
    journal = Journal.create(state, "run")
    journal.change("test-note", lambda: None, what="a")
    journal.put_back_all()
    assert names == [
        "before journal", "written journal", "after journal",
        "before record test-note", "after record test-note", "after test-note",
        "before put back test-note", "after put back test-note", "after mark test-note", "removed journal",
    ]  # fmt: skip


def test_the_lock_names_its_holder_and_goes_with_it(state):
    script = (
        "import sys, time; from pathlib import Path; from plimsoll.environment import StateDir\n"
        "with StateDir(Path(sys.argv[1])).hold_lock(): print('held', flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(state.root)], stdout=subprocess.PIPE, env=environment, text=True
    )
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(Fault, match=rf"process {holder.pid}\b.*kill -INT {holder.pid}"), state.hold_lock():
        pass
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    with state.hold_lock(), pytest.raises(Fault, match=f"process {os.getpid()}"), state.hold_lock():
        pass


def test_nobody_else_may_open_the_journals_or_the_lock(state):
    state.journal.chmod(0o755)  # as earlier versions made them
    (state.root / "lock").touch(0o644)
    with state.hold_lock():
        modes = {path.name: path.stat().st_mode & 0o777 for path in (state.root, state.work, state.journal)}
        assert modes == {state.root.name: 0o755, "work": 0o755, "journal": 0o700}
        assert (state.root / "lock").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", [".", "journal", "work", "lock"])
def test_what_another_user_owns_in_the_state_folder_is_refused(state, monkeypatch, name):
    (state.root / "lock").touch()
    theirs = os.path.normpath(state.root / name)
    _belongs_to_another(monkeypatch, theirs)
    with pytest.raises(Fault, match=rf"^{theirs}: belongs to user 4242.*PLIMSOLL_STATE"), state.hold_lock():
        pass


def test_undo_takes_no_journal_from_another_user(state, monkeypatch):
    journal = Journal.create(state, "run")
    journal.record("test-note", what="a")
    with monkeypatch.context() as inner:
        _belongs_to_another(inner, str(journal.path))
        assert [(one.ok, "belongs to user 4242" in one.what) for one in undo(state, force=True)] == [(False, True)]
    with monkeypatch.context() as inner:
        _belongs_to_another(inner, str(state.root))
        with pytest.raises(Fault, match=rf"^{state.root}: belongs to user 4242"):
            undo(state, force=True)
    (state.journal / "link.jsonl").symlink_to(journal.path)
    assert sorted(one.ok for one in undo(state, force=True)) == [False, True]
    assert done == ["a"]


def _belongs_to_another(monkeypatch, path):
    """As if a user without a name owned it; to give it away needs root."""
    number = os.stat(path).st_ino  # noqa: PTH116

    def shown(ask):
        def asked(*given, **options):
            found = ask(*given, **options)
            values = list(found)
            values[4] = 4242 if found.st_ino == number else found.st_uid
            return os.stat_result(values)

        return asked

    for name in ("stat", "lstat", "fstat"):
        monkeypatch.setattr(os, name, shown(getattr(os, name)))


def test_a_state_folder_the_server_cannot_reach_is_told(state):
    state.check_traversable("nobody")
    state.root.chmod(0o700)
    with pytest.raises(Fault, match=r"has no search permission on .*chmod o\+x"):
        state.check_traversable("nobody")
    with pytest.raises(Fault, match="no such user"):
        state.check_traversable("no-such-user")


def test_anybody_sees_whether_a_run_was_killed_and_not_put_back(state):
    assert not state.is_unfinished()
    with state.hold_lock():
        assert state.is_unfinished()
        undo(state)
        assert state.is_unfinished(), "it is at work"
    with pytest.raises(ZeroDivisionError), state.hold_lock():
        raise ZeroDivisionError
    assert not state.is_unfinished()
    child = os.fork()
    if child == 0:
        with state.hold_lock():
            Journal.create(state, "run").record("test-file", what="a", fail=False)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert state.is_unfinished()
    assert [result.ok for result in undo(state)] == [True]
    assert not state.is_unfinished()


def test_undo_of_a_plain_user_says_that_a_run_of_root_was_killed(state, monkeypatch, capsys):
    """He may not look into its journals, and what is left there is not nothing."""
    monkeypatch.setattr(state_of_machine, "OF_ROOT", state.root)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(recovery.StateDir, "check_owned", lambda *_: None)
    monkeypatch.setenv("PLIMSOLL_STATE", str(state.root / "mine"))
    for pid, code, said in (("", 0, "Nothing was left"), ("4711\n", 1, "sudo ./plimsoll undo")):
        (state.root / "lock").write_text(pid)
        with pytest.raises(SystemExit) as ended:
            machine.undo()
        assert ended.value.code == code and said in capsys.readouterr().out
