"""What DAMON is told to do on this machine. Read only: these schemes belong to whoever set them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plimsoll.environment import kernel_files

_SYSFS = Path("/sys/kernel/mm/damon/admin/kdamonds")
_MODULES = Path("/sys/module")


def state(sysfs: Path = _SYSFS, modules: Path = _MODULES) -> dict[str, Any]:
    """{"kdamonds": [{"state", "contexts": [...]}], "modules": {name: parameters}}; empty where DAMON is absent."""
    kdamonds = []
    for folder in _numbered(sysfs):
        contexts = [
            {
                "operations": kernel_files.read(context / "operations"),
                "schemes": [_scheme(scheme) for scheme in _numbered(context / "schemes")],
            }
            for context in _numbered(folder / "contexts")
        ]
        kdamonds.append({"state": kernel_files.read(folder / "state"), "contexts": contexts})
    parameters = {
        module.name: {file.name: kernel_files.read(file) for file in sorted((module / "parameters").glob("*"))}
        for module in sorted(modules.glob("damon_*"))
    }
    return {"kdamonds": kdamonds, "modules": parameters}


def _numbered(folder: Path) -> list[Path]:
    entries = [entry for entry in folder.iterdir() if entry.name.isdigit()] if folder.is_dir() else []
    return sorted(entries, key=lambda entry: int(entry.name))


def _scheme(folder: Path) -> dict[str, Any]:
    """What a scheme is set to do. Its counters are left out: they change all the time and compare with nothing."""
    scheme: dict[str, Any] = {"action": kernel_files.read(folder / "action")}
    for part in ("access_pattern", "quotas", "watermarks"):
        for file in sorted((folder / part).rglob("*")):
            if file.is_file() and file.name != "effective_bytes":
                scheme[f"{part}.{file.relative_to(folder / part)}".replace("/", ".")] = kernel_files.read(file)
    return scheme


def active_schemes(daemons: dict[str, Any] | None = None) -> list[str]:
    """Schemes that act now, in words. `stat` only counts and is left out."""
    daemons = state() if daemons is None else daemons
    active = [
        f"kdamond {number}: {scheme['action']}"
        for number, kdamond in enumerate(daemons["kdamonds"])
        if kdamond["state"] == "on"
        for context in kdamond["contexts"]
        for scheme in context["schemes"]
        if scheme["action"] not in (None, "stat")
    ]
    return active + [
        name for name, values in daemons["modules"].items() if values.get("enabled") == "Y" and name != "damon_stat"
    ]
