"""The launcher and the set-up: no code comes from the folder that the caller stands in."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Plimsoll as it is after a set-up: the environment and the sources are links, the agent is none."""
    copy = tmp_path / "copy"
    (copy / ".plimsoll").mkdir(parents=True)
    (copy / ".plimsoll/venv").symlink_to(ROOT / ".plimsoll/venv")
    (copy / "python").symlink_to(ROOT / "python")
    (copy / "crates").mkdir()
    (copy / "target/release").mkdir(parents=True)
    program(copy / "target/release/plimsoll-agent", "exit 1")
    shutil.copytree(ROOT / "setup", copy / "setup")
    for name in ("plimsoll", "Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, copy / name)
    (copy / ".plimsoll/stamp").touch()
    return copy


def program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def call(copy: Path, *argv: str, cwd: Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PLIMSOLL_STATE": str(copy / "state")}
    if path is not None:
        environment["PATH"] = f"{path}:{environment['PATH']}"
    return subprocess.run(
        [copy / "plimsoll", *argv], cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


def test_no_code_comes_from_the_folder_that_the_caller_stands_in(copy: Path, tmp_path: Path) -> None:
    strange = tmp_path / "strange"
    strange.mkdir()
    for name in ("typer", "venv", "plimsoll", "json"):
        (strange / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    for argv in (["undo"], ["setup", "--dry-run"]):
        done = call(copy, *argv, cwd=strange)
        assert done.returncode == 0, done.stderr
        assert not (tmp_path / "ran").exists(), argv


def test_set_up_asks_no_compiler_in_the_folder_that_the_caller_stands_in(copy: Path, tmp_path: Path) -> None:
    """A rust-toolchain.toml there would choose the compiler."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("cargo", "rustc"):
        program(tools / name, f"pwd >>{tmp_path / 'where'}; echo 'rustc 9.9.9'")
    done = call(copy, "setup", "--dry-run", cwd=tmp_path, path=tools)
    assert done.returncode == 0, done.stderr
    assert set((tmp_path / "where").read_text().split()) == {str(copy)}
