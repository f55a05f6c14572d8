"""Verbs about the machine: undo, doctor, and the data sets kept on it."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from plimsoll.cli.codes import FAILED
from plimsoll.cli.options import Json, print_json, refuse


def undo(as_json: Json = False) -> None:
    """Puts back what killed runs left behind."""
    from plimsoll.cli.console import console
    from plimsoll.environment import StateDir, Undone, live_runs
    from plimsoll.environment import undo as put_back
    from plimsoll.environment.state import OF_ROOT

    state, out = StateDir(), console()
    done = put_back(state)
    if os.geteuid() != 0 and StateDir(OF_ROOT).is_unfinished():
        what = f"a run of root's in {OF_ROOT} is at work, or was killed"
        done.append(Undone("", "journal", False, what, "`sudo ./plimsoll undo` looks there, which you may not"))
    if as_json:
        print_json([vars(undone) for undone in done])
    else:
        for undone in done:
            remedy = f"; {undone.remedy}" if undone.remedy else ""
            became = "left as it is" if undone.is_left else "put back" if undone.ok else "NOT put back"
            out.print(f"{became}: {undone.what}{remedy}")
        for run_id, pid in live_runs(state):
            out.print(f"left alone: run {run_id} is at work (process {pid})")
        if not done:
            out.print("Nothing was left to put back.")
    sys.exit(0 if all(undone.ok for undone in done) else FAILED)


def doctor(as_json: Json = False) -> None:
    """What this machine can do, and the remedy for what it cannot."""
    from plimsoll.cli import show
    from plimsoll.environment.doctor import diagnose

    checks = diagnose()
    if as_json:
        print_json([vars(a_check) for a_check in checks])
    else:
        show.doctor(checks)


def cache_show(as_json: Json = False) -> None:
    """What is kept, and how much disk it takes."""
    from plimsoll.cli import show
    from plimsoll.environment import StateDir
    from plimsoll.target.dataset import kept

    state = StateDir()
    datasets = kept(state.datasets)
    if as_json:
        print_json([vars(dataset) for dataset in datasets])
    else:
        show.datasets(state.datasets, datasets, sorted(path.name for path in state.datasets.glob("plimsoll-*")))


def cache_remove(
    keys: Annotated[list[str] | None, typer.Argument(metavar="[KEY]...", help="as `cache show` lists them")] = None,
    everything: Annotated[bool, typer.Option("--all", help="every data set")] = False,
) -> None:
    """Removes kept data sets; the next run that needs one builds it again."""
    import shutil

    from plimsoll.environment import StateDir
    from plimsoll.target.dataset import kept

    state = StateDir()
    known = {path.name for path in state.datasets.glob("*") if path.is_dir()}
    if bool(keys) == everything:
        refuse("cache remove", "names nothing to remove" if not keys else "names data sets and --all", "KEYs, or --all")
    for key in keys or []:
        if key not in known:
            refuse("cache remove", f"no data set {key} is kept", ", ".join(sorted(known)) or "none is kept")
    freed = {dataset.key: dataset.bytes for dataset in kept(state.datasets)}
    with state.hold_lock():
        for key in sorted(known if everything else keys or []):
            shutil.rmtree(state.datasets / key)
            print(f"removed {key} ({freed.get(key, 0) >> 20} MiB)")
