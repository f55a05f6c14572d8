"""The exit code that each kind of failure has, and that one message says what to do."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plimsoll.analysis import NotComparable
from plimsoll.cli import app
from plimsoll.cli.codes import FAULT, STOPPED
from plimsoll.cli.failures import exit_codes
from plimsoll.environment import Fault
from plimsoll.experiment import ExperimentError, Problem
from plimsoll.export import ExportError
from plimsoll.record import RecordError
from plimsoll.run.agent import EXIT_IDENTITY, AgentFailed
from plimsoll.run.runner import Impossible
from plimsoll.target.running import Elsewhere, NotFound


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ExperimentError([Problem("x.toml:3", "design.blocks", "0 is too few", "1 or more")]), 2, "x.toml:3"),
        (Impossible(["no swap", "no CPUs"]), 3, "no swap"),
        (NotComparable([{"key": "kernel", "a": "6.1", "b": "6.12"}]), 2, "--force"),
        (RecordError("runs/x: no run.json"), 2, "no run.json"),
        (ExportError("only one SELECT"), 2, "only one SELECT"),
        (Fault("swap stays on", remedy="stop the server"), 1, "what to do: stop the server"),
        (NotFound("no server", remedy="give another number"), 2, "give another number"),
        (Elsewhere("in a container", remedy="call it there"), 3, "call it there"),
        (OSError(28, "No space left on device", "/x"), 1, "/x: No space left on device"),
        (AgentFailed("load", 3, "the server is gone"), 1, "the server is gone"),
        (AgentFailed("load", EXIT_IDENTITY, "7 planned"), 70, "bug in Plimsoll"),
        (ZeroDivisionError(), 70, "bug in Plimsoll"),
        (OSError("no library of that name"), 70, "no library of that name"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_each_failure_has_its_code_and_says_what_to_do(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end, exit_codes():
        raise error
    assert end.value.code == code
    told = capsys.readouterr().err
    assert said in told and ("Traceback" in told) == (code == 70)


def test_what_was_ended_on_purpose_keeps_its_code() -> None:
    with pytest.raises(SystemExit) as end, exit_codes():
        raise SystemExit(4)
    assert end.value.code == 4
    with pytest.raises(KeyboardInterrupt), exit_codes():
        raise KeyboardInterrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_during_an_import_has_the_exit_code_of_a_stop(tmp_path: Path, number: signal.Signals) -> None:
    # Extensions run code of theirs like this while they are imported.
    code = f"""
import ctypes, signal
from plimsoll.cli import app
signal.signal(signal.SIGINT, signal.default_int_handler)  # this suite may have been started with it ignored
run = ctypes.pythonapi.PyRun_String
run.restype, run.argtypes = ctypes.py_object, [ctypes.c_char_p, ctypes.c_int, ctypes.py_object, ctypes.py_object]
text = b"import os, time; os.kill(os.getpid(), {int(number)}); time.sleep(20)"
app.app = lambda **_: run(text, 257, {{}}, {{}})
app.main()
"""
    (tmp_path / "verb.py").write_text(code)
    # As a module, which is how the command line is started: a script's end is another one.
    call = [sys.executable, "-m", "verb"]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (4, "")


BROKEN_PIPE = """
import subprocess, sys
from plimsoll.cli import app, show

def tells(_found):
    if {to_reader}:
        print("x" * 100_000)
    gone = subprocess.Popen(["true"], stdin=subprocess.PIPE)
    gone.wait()
    gone.stdin.write(b"x" * 100_000)
    gone.stdin.flush()

show.experiments = tells
sys.argv = ["plimsoll", "list"]
app.main()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_an_extension_hands_on_as_its_own_error_is_a_stop(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def while_models_are_built(**_: object) -> None:
        try:
            signal.raise_signal(number)
        except SystemExit as end:
            raise ValueError(f"error building the validator: {end!r}") from None

    monkeypatch.setattr(app, "app", while_models_are_built)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit) as end:
            app.main()
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])
    assert end.value.code == STOPPED and capsys.readouterr().err == ""


def test_a_pipe_to_a_process_that_has_ended_is_no_reader_that_has_gone() -> None:
    said = subprocess.run([sys.executable, "-c", BROKEN_PIPE.format(to_reader=False)], capture_output=True, text=True)
    assert said.returncode == FAULT
    assert "a process that Plimsoll was writing to had ended" in said.stderr
    piped = f"{shlex.quote(sys.executable)} -c {shlex.quote(BROKEN_PIPE.format(to_reader=True))} | true"
    said = subprocess.run(["sh", "-c", piped], capture_output=True, text=True)
    assert said.stderr == ""
