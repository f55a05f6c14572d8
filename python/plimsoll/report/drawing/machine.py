"""The machine in a dozen rows, from the fingerprint; the rest stays in the fold below them."""

from typing import Any

from plimsoll.quantities import size
from plimsoll.record import Run

Json = dict[str, Any]
_BYTES_PER_KIB = 1024


def _text(tree: Any, *path: str) -> str | None:
    for key in path:
        tree = tree.get(key) if isinstance(tree, dict) else None
    if tree is None or isinstance(tree, dict | list):
        return None
    return str(tree)


def _joined(*parts: str | None) -> str | None:
    known = [part for part in parts if part]
    return ", ".join(known) or None


def _device(device: Json) -> str:
    ahead = device.get("read_ahead_kib")
    parts = [
        f"read-ahead {size(ahead * _BYTES_PER_KIB)}" if isinstance(ahead, int) else None,
        f"write cache {device['write_cache']}" if device.get("write_cache") else None,
        f"scheduler {device['scheduler']}" if device.get("scheduler") else None,
    ]
    return _joined(*parts) or "nothing known"


def _group(run: Run) -> str | None:
    """The memory limit the server's group had."""
    seen = []
    for trial in run.trials:
        group = trial.data.get("group") or {}
        limit, swap = group.get("limit_bytes"), group.get("swap_limit_bytes")
        if limit:
            text = f"{size(limit)} of memory"
            if swap is not None:
                text += f", {size(swap)} of swap"
            text += f" (cgroup v{group.get('version', '?')})"
            if text not in seen:
                seen.append(text)
    return " and ".join(seen) or None


def _cpus(run: Run) -> str | None:
    seen = []
    for trial in run.trials:
        cpus = trial.data.get("cpus") or {}
        if cpus:
            text = f"server on {cpus.get('target')}, load on {cpus.get('load')}"
            if text not in seen:
                seen.append(text)
    return " and ".join(seen) or None


def machine_rows(run: Run) -> list[tuple[str, str]]:
    """What a reader looks for first; rows that are not known are left out."""
    print_ = run.fingerprint
    memory = _text(print_, "machine", "memory_kib")
    schemes = [
        str(scheme.get("action"))
        for kdamond in (print_.get("damon") or {}).get("kdamonds") or []
        for context in kdamond.get("contexts") or []
        for scheme in context.get("schemes") or []
    ]
    rows: list[tuple[str, str | None]] = [
        ("CPU", _joined(_text(print_, "machine", "cpu_model"), _text(print_, "machine", "architecture"))),
        ("CPUs usable", _text(print_, "machine", "cpus_usable")),
        ("CPUs given", _cpus(run)),
        ("memory", size(int(memory) * _BYTES_PER_KIB) if memory and memory.isdigit() else None),
        ("server's group", _group(run)),
        ("virtualisation", _text(print_, "machine", "virtualisation")),
        ("kernel", _joined(_text(print_, "kernel", "sysname"), _text(print_, "kernel", "release"))),
        *((f"kernel {name}", _text(own, "kernel", "release")) for name, own in (print_.get("kernels") or {}).items()),
        ("system", _text(print_, "versions", "os")),
        ("transparent huge pages", _text(print_, "huge_pages", "transparent", "enabled")),
        ("DAMON", f"active: {', '.join(schemes)}" if schemes else "no scheme" if "damon" in print_ else None),
    ]
    rows += [(f"device {device.get('name')}", _device(device)) for device in print_.get("devices") or []]
    rows += [
        (f"file system of {mount.get('path')}", _joined(mount.get("fs"), ",".join(mount.get("options") or [])))
        for mount in print_.get("mounts") or []
    ]
    return [(key, value) for key, value in rows if value]
