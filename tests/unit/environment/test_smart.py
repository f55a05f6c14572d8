"""SMART as smartctl and nvme write it; the outputs are written by hand after their documents."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence

import pytest

from plimsoll.environment import smart
from plimsoll.environment.smart import Health

ATA = {
    "smartctl": {"version": [7, 3], "exit_status": 0},
    "smart_status": {"passed": True},
    "ata_smart_attributes": {
        "table": [
            {"id": 5, "name": "Reallocated_Sector_Ct", "raw": {"value": 8, "string": "8"}},
            {"id": 9, "name": "Power_On_Hours", "raw": {"value": 20001, "string": "20001"}},
            {"id": 197, "name": "Current_Pending_Sector", "raw": {"value": 2, "string": "2"}},
        ]
    },
    "power_on_time": {"hours": 20001},
    "temperature": {"current": 34},
}
NVME = {
    "smart_status": {"passed": False, "nvme": {"value": 4}},
    "nvme_smart_health_information_log": {"critical_warning": 4, "percentage_used": 101, "media_errors": 3},
    "temperature": {"current": 41},
}
REFUSED = {
    "smartctl": {
        "exit_status": 1,
        "messages": [{"string": "/dev/vda: Unable to detect device type", "severity": "error"}],
    }
}
LOG = {"critical_warning": 0, "temperature": 310, "percent_used": 3, "media_errors": "1,002", "power_on_hours": 77}


def test_smartctl_tells_of_ata_and_of_nvme() -> None:
    ata = smart.of_smartctl(json.dumps(ATA))
    assert ata == Health(passed=True, reallocated=8, pending=2, temperature_c=34, power_on_hours=20001)
    nvme = smart.of_smartctl(json.dumps(NVME))
    assert nvme == Health(passed=False, media_errors=3, percent_used=101, temperature_c=41)


def test_what_is_refused_is_said_in_its_own_words() -> None:
    assert smart.of_smartctl(json.dumps(REFUSED)) == "smartctl: /dev/vda: Unable to detect device type"
    assert "version 7" in str(smart.of_smartctl("smartctl 6.6\n"))
    assert smart.of_nvme("NVMe status: Invalid Command Opcode") == "nvme: NVMe status: Invalid Command Opcode"


def test_nvme_tells_kelvin_and_numbers_with_commas() -> None:
    found = smart.of_nvme(json.dumps(LOG))
    assert found == Health(passed=True, media_errors=1002, percent_used=3, temperature_c=37, power_on_hours=77)
    newer = smart.of_nvme(json.dumps(LOG | {"critical_warning": {"value": 1, "available_spare": 1}}))
    assert isinstance(newer, Health) and newer.passed is False


def test_the_tool_that_answers_is_taken() -> None:
    asked: list[str] = []

    def run(words: Sequence[str]) -> str:
        asked.append(words[0])
        return json.dumps(REFUSED if words[0] == "smartctl" else LOG)

    found = smart.read("nvme0n1", run, ("smartctl", "nvme"))
    assert isinstance(found, Health) and found.percent_used == 3 and asked == ["smartctl", "nvme"]
    assert "Unable to detect" in str(smart.read("vda", run, ("smartctl", "nvme")))
    assert smart.read("vda", run, ()) == "neither smartctl nor nvme is installed"
    assert "not an NVMe device" in str(smart.read("vda", run, ("nvme",)))


def test_a_disk_that_does_not_answer_holds_nobody_up() -> None:
    def hangs(words: Sequence[str]) -> str:
        raise subprocess.TimeoutExpired(list(words), smart.SECONDS_MAX)

    assert "timed out" in str(smart.read("sda", hangs, ("smartctl",)))


def test_what_a_tool_writes_in_another_shape_ends_no_soak() -> None:
    for odd in ({"temperature": 40}, {"ata_smart_attributes": {"table": [5]}}, {"smart_status": True}):
        assert "not understood" in str(smart.read("sda", lambda _, odd=odd: json.dumps(odd), ("smartctl",)))  # type: ignore[misc]


def test_a_tool_that_no_signal_reaches_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[bool] = []

    class Hangs:
        """Asleep in the driver of a disk that hangs."""

        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> Hangs:
            return self

        def __exit__(self, *_: object) -> None:
            self.wait()

        def communicate(self, *_: object, timeout: float | None = None) -> tuple[str, str]:
            assert timeout is not None, "for ever"
            raise subprocess.TimeoutExpired("smartctl", timeout)

        def kill(self) -> None:
            killed.append(True)

        def wait(self) -> int:
            raise AssertionError("for ever")

    monkeypatch.setattr(subprocess, "Popen", Hangs)
    assert "timed out" in str(smart.read("sda", have=("smartctl",))) and killed
