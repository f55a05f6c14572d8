"""A unit of ours, and a soak that has one, when the machine is rebooted under them: a guest with Debian's systemd.

The constraint: `reboot -f` stops no service. Whatever is at work is killed, in the middle of a round, of a write, of
putting something back; what goes on after it goes on from what is on the disk. One CPU is emulated: all is small.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import systemd_guest
from user_mode_linux import ROOT

from plimsoll.record import open_run

NEEDS = ("user-mode-linux", "systemd")
SECONDS_MAX, SECONDS_MAX_SOAK = 900, 3000  # of a hang: a minute and a quarter of an hour on two quiet cores
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

SOAK = """format = 1
name = "tiny-soak"
title = "Does it last through reboots?"

[target.settings]
autovacuum = false
shared_buffers = "16 MiB"

[workload]
name = "bank"
scale = 1
clients = 2

[warmup]
until = "none"

[measure]
seconds = 12

[probes]
kernel_every_seconds = 2

[soak]
length = "3m"
between = "checkpoint"
record_max = "256 MiB"
"""
# The machine is rebooted inside the load of the third and of the sixth round, whoever carries the soak.
OF_SOAK = f"""{EXPORTED}
cd /root
plimsoll="{PYTHON} -P -m plimsoll"
if [ $boot = 1 ]; then
    mkdir -p $PLIMSOLL_STATE && chmod 755 $PLIMSOLL_STATE
    $plimsoll soak /told/soak.toml --unit --out /var/soak --seed 24 >>/told/first 2>&1 &
fi
trial=/var/soak/trials/0001
case $boot in 1) round=round-0003 ;; 2) round=round-0006 ;; *) round=never ;; esac
over() {{ [ -e /var/soak/report/index.html ] && ! ls /etc/systemd/system/plimsoll-* >/dev/null 2>&1; }}
fails() {{ [ -n "$(systemctl list-units --state=failed --no-legend --plain 'plimsoll*')" ]; }}
until [ -s $trial/$round/host.npy ] || over; do
    if fails; then journalctl --no-pager -b -n 200 >/told/journal 2>&1; touch /told/failed; exec sleep 3600; fi
    sleep 0.5
done
ls /etc/systemd/system | grep plimsoll | sed "s/^/at boot $boot: /" >>/told/units
if ! over; then
    cp $trial/series.json /told/series-$boot.json
    reboot -f
    exec sleep 3600
fi
while systemctl list-units --all --no-legend --plain 'plimsoll*' | grep -q ' running '; do sleep 0.5; done
cd $PLIMSOLL_STATE
find journal work datasets -mindepth 1 -maxdepth 1 | grep -v '^datasets/bank-' >/told/left
ls /etc/systemd/system/multi-user.target.wants >/told/wants
ps -e -o comm= | grep -E '^(postgres|plimsoll-agen)' >/told/processes
cp -a /var/soak /told/record
journalctl --no-pager -u 'plimsoll*' >/told/journal 2>&1
sync
touch /told/over
poweroff -f
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


@pytest.mark.long
def test_a_soak_cut_by_two_reboots_ends_as_one_series(needs: Callable[..., None], tmp_path: Path) -> None:
    needs(*NEEDS, "postgresql", "server user")
    with systemd_guest.booted(OF_SOAK, {"soak.toml": SOAK}, memory_mib=1024) as guest:
        guest.wait(
            lambda: any((guest.told / name).exists() for name in ("over", "failed")), "the soak's end", SECONDS_MAX_SOAK
        )
        told = f"{guest.transcript()}\nfirst: {guest.said('first')[-2000:]}\nunit: {guest.said('journal')[-3000:]}"
        assert not (guest.told / "failed").exists(), f"the unit failed\n{told}"
        boots = guest.boots()
        assert len(set(boots)) == len(boots) == 3, told
        units = guest.said("units").splitlines()
        assert [line.partition(": ")[0] for line in units] == ["at boot 1", "at boot 2"], told
        assert len({line.partition(": ")[2] for line in units}) == 1, told
        assert "plimsoll" not in guest.said("wants") and guest.said("left") == guest.said("processes") == "", told
        shutil.copytree(guest.told / "record", tmp_path / "record")

    run = open_run(tmp_path / "record")
    (trial,) = run.trials
    assert run.data["kind"] == "soak" and trial.status == "finished", told
    numbers = [one.place for one in trial.rounds]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) > 6, told
    # Each round was measured within one boot, and the boots follow one another: one series, made of three pieces.
    of_boots = [str(one.measure.probes["kernel_log"]["boot_id"]) for one in trial.rounds]
    assert [one for one in of_boots if one in boots] == of_boots and of_boots == sorted(of_boots, key=boots.index), told
    assert (of_boots.count(boots[0]), of_boots.count(boots[1])) == (2, 3), (of_boots, told)

    found = json.loads((tmp_path / "record" / "verdict.json").read_text())["soak"]
    assert found["ended_by"] == "time" and found["sittings"] == 3 and found["crashes"] == [], found
    assert [one["round"] for one in found["interruptions"]] == ["round-0003", "round-0006"], found
    assert [one["round"] for one in found["each"]] == numbers and all(one["value"] > 0 for one in found["each"])
    assert found["spent_s"] >= found["length_s"] - 12, found  # the whole length, whatever the reboots took of it
