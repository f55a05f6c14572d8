"""A unit of ours, when the machine is rebooted under it: a guest with Debian's systemd.

The constraint: `reboot -f` stops no service. Whatever is at work is killed, in the middle of a round, of a write, of
putting something back; what goes on after it goes on from what is on the disk. One CPU is emulated: all is small.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import systemd_guest
from user_mode_linux import ROOT

NEEDS = ("user-mode-linux", "systemd")
SECONDS_MAX = 900  # of a hang: a minute on two quiet cores
SURROUNDINGS = {
    "PLIMSOLL_STATE": "/var/lib/plimsoll",
    "PYTHONPATH": str(ROOT / "python"),
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/root",
}
PYTHON = shlex.quote(str(Path(sys.prefix) / "bin/python"))
EXPORTED = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in SURROUNDINGS.items())

# A unit that writes down at which boot it was started. At the first boot it is installed, at the second taken over by
# another process as a soak does it, at the third undone.
SMALL = """import sys, time
from pathlib import Path
from plimsoll.environment import Journal, StateDir, undo
from plimsoll.environment.units import Unit

state, boot = StateDir().prepare(), int(sys.argv[1])
unit = Unit("plimsoll-small.service", "A 100 % small unit", ["/bin/sh", "/began", "with a blank", "$HOME"], Path("/"))
if boot < 3:
    journal = Journal.create(state, f"boot-{boot}")
    unit.install(journal, state)
    left = undo(state)
    print("undone at boot", boot, [one.what for one in left if not one.ok], unit.path.exists())
else:
    print("undone at the end", [one.what for one in undo(state) if not one.ok], unit.path.exists())
print("journals", len(list(state.journal.glob("*.jsonl"))), flush=True)
Path(f"/told/done-{boot}").touch()
time.sleep(3600 if boot < 3 else 0)  # its owner is alive when the machine goes down
"""
OF_SMALL = f"""{EXPORTED}
if [ $boot -gt 1 ]; then
    until grep -q "$(cat /proc/sys/kernel/random/boot_id)" /told/began 2>/dev/null; do sleep 0.5; done
fi
{PYTHON} -P /told/small.py $boot &
until [ -e /told/done-$boot ]; do kill -0 $! || break; sleep 0.2; done
if [ $boot -lt 3 ]; then reboot -f; exec sleep 3600; fi
wait
systemctl cat plimsoll-small.service >/dev/null 2>&1 && echo "the unit is known still"
ls /etc/systemd/system | grep plimsoll
poweroff -f
"""
BEGAN = """echo "$(cat /proc/sys/kernel/random/boot_id): $1, $2" >>/told/began
"""


@pytest.mark.long
def test_a_unit_is_started_at_each_boot_until_it_is_undone(needs: Callable[..., None]) -> None:
    needs(*NEEDS)
    with systemd_guest.booted(OF_SMALL, {"small.py": SMALL}, {"began": BEGAN}) as guest:
        guest.wait(lambda: guest.process.poll() is not None, "the third boot's end", SECONDS_MAX)
        told = guest.transcript()
        assert len(set(guest.boots())) == len(guest.boots()) == 3, told
        # It was enabled while the machine was up: it is started from the second boot on, with its words as they were.
        began = guest.said("began").splitlines()
        assert began == [f"{boot}: with a blank, $HOME" for boot in guest.boots()[1:]], told
        said = guest.said().splitlines()
        # A predecessor's journal is put back, and what its successor has taken over stays.
        assert [line for line in said if line.startswith("undone at")] == [
            "undone at boot 1 [] True",
            "undone at boot 2 [] True",
            "undone at the end [] False",
        ], told
        assert [line for line in said if line.startswith("journals")] == ["journals 1", "journals 1", "journals 0"], (
            told
        )
        assert not any("plimsoll-small" in line or "is known still" in line for line in said), told
