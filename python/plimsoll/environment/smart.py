"""What disks tell of their own health (SMART), by smartctl or nvme, where either is installed and the disk answers.

The fact that constrains it: each kind of disk counts what it likes under names of its own. What is kept is the few
counters that mean the same everywhere, and none where a disk does not tell it; a disk that tells nothing, as those of
virtual machines do not, is a reason in words and no fault.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

Json = dict[str, Any]
Run = Callable[[Sequence[str]], str]
SECONDS_MAX: Final = 20.0  # a disk that is failing may not answer at all
_KELVIN: Final = 273
# Of ATA, by the attribute's number: sectors that were given another place, that wait for one, that could not be read.
_ATA: Final = {5: "reallocated", 197: "pending", 198: "uncorrectable"}


@dataclass(frozen=True)
class Health:
    """None: the disk does not tell it."""

    passed: bool | None = None  # what it says of itself
    reallocated: int | None = None
    pending: int | None = None
    uncorrectable: int | None = None
    media_errors: int | None = None
    percent_used: int | None = None
    temperature_c: int | None = None
    power_on_hours: int | None = None

    def as_json(self) -> Json:
        return asdict(self)


def tools() -> list[str]:
    """Those that are installed."""
    return [name for name in ("smartctl", "nvme") if shutil.which(name)]


def of_smartctl(text: str) -> Health | str:
    """Of `smartctl -j -a`; why it tells nothing, in its own words, else."""
    told = _object(text)
    if told is None:
        return "smartctl: no JSON; version 7 or later writes it"
    nvme = told.get("nvme_smart_health_information_log") or {}
    table = (told.get("ata_smart_attributes") or {}).get("table") or []
    raw = {_ATA[one["id"]]: _raw(one) for one in table if one.get("id") in _ATA}
    health = Health(
        **raw,
        passed=(told.get("smart_status") or {}).get("passed"),
        media_errors=nvme.get("media_errors"),
        percent_used=nvme.get("percentage_used"),
        temperature_c=(told.get("temperature") or {}).get("current"),
        power_on_hours=(told.get("power_on_time") or {}).get("hours"),
    )
    if health != Health():
        return health
    said = [str(one.get("string")) for one in (told.get("smartctl") or {}).get("messages") or []]
    return "smartctl: " + ("; ".join(said) or "the disk tells nothing")


def _raw(one: Json) -> int | None:
    value = (one.get("raw") or {}).get("value")
    return None if value is None else int(value)


def of_nvme(text: str) -> Health | str:
    """Of `nvme smart-log -o json`."""
    told = _object(text)
    if told is None or "critical_warning" not in told:
        return f"nvme: {' '.join(text.split())[:200] or 'the disk tells nothing'}"
    warning = told["critical_warning"]
    warning = warning.get("value") if isinstance(warning, dict) else warning  # newer ones spell the bits out
    kelvin = told.get("temperature")
    return Health(
        passed=None if warning is None else int(warning) == 0,
        media_errors=_whole(told.get("media_errors")),
        percent_used=_whole(told.get("percent_used")),
        temperature_c=None if kelvin is None else int(kelvin) - _KELVIN,
        power_on_hours=_whole(told.get("power_on_hours")),
    )


def _whole(value: Any) -> int | None:
    """Some versions write numbers of 128 bits as text with commas."""
    return None if value is None else int(str(value).replace(",", ""))


def _object(text: str) -> Json | None:
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        return None
    return found if isinstance(found, dict) else None


def _run(words: Sequence[str]) -> str:
    """What it has written, whatever its exit code: smartctl's has a bit for each thing that is wrong with a disk."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, said = process.communicate(timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()  # and not waited for: inside the driver of a disk that hangs no signal reaches it
        raise
    return out or said


def read(device: str, run: Run = _run, have: Sequence[str] | None = None) -> Health | str:
    """Of one device by its kernel's name; why not, where nothing is told."""
    installed = tools() if have is None else have
    if not installed:
        return "neither smartctl nor nvme is installed"
    path = f"/dev/{device}"
    why = ""
    try:
        if "smartctl" in installed:
            found = of_smartctl(run(["smartctl", "-j", "-a", path]))
            if isinstance(found, Health):
                return found
            why = found
        if "nvme" in installed and device.startswith("nvme"):
            return of_nvme(run(["nvme", "smart-log", "-o", "json", path]))
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{path}: {error}"
    except (ValueError, TypeError, AttributeError, KeyError) as error:  # of another shape than is known
        return f"{path}: not understood: {error}"
    return why or f"{path}: not an NVMe device, and smartctl is not installed"


def read_all(devices: Sequence[str]) -> dict[str, Json]:
    """Of those that tell something."""
    found = {name: read(name) for name in devices} if tools() else {}
    return {name: one.as_json() for name, one in found.items() if isinstance(one, Health)}
