"""The launcher and the set-up: no code comes from the folder that the caller stands in; what `undo` asks for."""

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


def fakes(folder: Path) -> Path:
    """Programs of a set-up that fail, and leave a note that they were called."""
    folder.mkdir()
    for name in ("cargo", "rustc", "python3", "apt-get", "curl"):
        program(folder / name, f"echo {name} >>{folder / 'called'}; exit 1")
    return folder


def test_undo_sets_nothing_up_after_a_pull(copy: Path, tmp_path: Path) -> None:
    """Sources newer than the set-up, libraries that are to be installed, no agent."""
    tools = fakes(tmp_path / "tools")
    (copy / ".plimsoll/venv").unlink()
    venv = copy / ".plimsoll/venv"
    venv.mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (venv / name).symlink_to(ROOT / ".plimsoll/venv" / name)
    (copy / "target/release/plimsoll-agent").unlink()
    later = (copy / ".plimsoll/stamp").stat().st_mtime + 10
    os.utime(copy / "crates", (later, later))
    for argv in (["undo"], ["undo", "--help"]):
        done = call(copy, *argv, cwd=tmp_path, path=tools)
        assert done.returncode == 0, done.stderr
        assert "Nothing was left to put back." in done.stdout or "Puts back what killed runs left" in done.stdout
        assert not (tools / "called").exists(), (tools / "called").read_text()


def test_undo_sets_up_where_no_python_starts(copy: Path, tmp_path: Path) -> None:
    program(copy / "setup/setup", f'echo "$@" >{tmp_path / "asked"}; exit 1')
    (copy / ".plimsoll/venv").unlink()
    assert call(copy, "undo", cwd=tmp_path).returncode == 1
    assert (tmp_path / "asked").read_text() == "--needed-for undo\n"


def test_a_web_server_whose_package_starts_a_service_is_unpacked_and_not_installed(copy: Path, tmp_path: Path) -> None:
    asked = call(copy, "setup", "--web", "--dry-run", cwd=tmp_path)
    assert asked.returncode == 0, asked.stderr
    installed = next((line for line in asked.stdout.splitlines() if "install system packages" in line), "")
    unpacked = next((line for line in asked.stdout.splitlines() if "without installing them" in line), "")
    assert "nginx" not in installed and "apache2-bin" not in unpacked
    assert ("nginx" in unpacked) == (not Path("/usr/sbin/nginx").exists())
    # What was unpacked before is there.
    program_of = copy / ".plimsoll/unpacked/usr/sbin"
    program_of.mkdir(parents=True)
    program(program_of / "nginx", "exit 0")
    assert "without installing them" not in call(copy, "setup", "--web", "--dry-run", cwd=tmp_path).stdout
