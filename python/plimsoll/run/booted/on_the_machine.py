"""A run whose kernels this machine itself is booted into, one boot for each kernel of each block.

The fact that constrains it: between two boots there is nobody but a systemd unit and what stands on the disk. So what
the next boot is for is written down before the machine goes down, and a boot that came up with another kernel is told
and measured nothing on.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from plimsoll.environment import Fault, devices
from plimsoll.environment.boots.once import Way, of_the_machine
from plimsoll.environment.journal.journal import Journal, step
from plimsoll.environment.units import Unit, is_going_down
from plimsoll.experiment import PlannedTrial
from plimsoll.experiment.design import boots_of
from plimsoll.record import writer
from plimsoll.record.run import read_json
from plimsoll.run import designs, own_fingerprints
from plimsoll.run.booted.in_qemu import kernels_words, wanted_of
from plimsoll.run.planning.needs import Needs
from plimsoll.run.runner import Runner
from plimsoll.run.signals import Stopped

Json = dict[str, Any]
BOOTS: Final = "boots.json"  # in the record: the boots there were, and what the next one is for
ENDED: Final = "ended"  # of a boot there: we have seen its trials end or stop, and not the machine go down under them
CUT_MAX: Final = 2  # boots of the same trials that the machine went down under
BOOT_S: Final = 90.0
VOLATILE = frozenset({"tmpfs", "ramfs"})
LAST_MINUTES: Final = 5  # from the last trial to the last reboot: the page is drawn meanwhile
SETTLED_S: Final = 120.0  # after a boot, in which services start
# Of the user's surroundings, what a unit needs to find the same state folder and the same programs.
VARIABLES: Final = ("PLIMSOLL_STATE", "PLIMSOLL_AGENT", "PATH", "PYTHONPATH", "LANG")
_RELEASE, _BOOT_ID, _UPTIME = "/proc/sys/kernel/osrelease", "/proc/sys/kernel/random/boot_id", "/proc/uptime"


@dataclass
class MachineRunner(Runner):
    """One run, its kernels on this machine."""

    way: Way = field(init=False)
    _only: frozenset[int] | None = field(init=False, default=None)  # trials of this boot
    _journals: list[Journal] = field(init=False, default_factory=list)  # that outlive the reboot
    _has_unit: bool = field(init=False, default=False)
    _goes_down: bool = field(init=False, default=False)  # into the kernel that is armed, or back

    def __post_init__(self) -> None:
        super().__post_init__()
        self.way = of_the_machine(self.source.experiment.environment.boot.by)
        if designs.arrangement_of(self.plan) is not designs.ONE_BY_ONE:
            self.fell_back = ["a machine has one kernel at a time, so servers on several are not up at once"]
            self.plan = designs.fallen_back(self.plan)

    @property
    def left(self) -> list[PlannedTrial]:
        """Those that have no result yet; while a boot's are carried out, of that boot."""
        return [trial for trial in super().left if self._only is None or trial.number in self._only]

    # --- the plan -----------------------------------------------------------------------------------------------------

    def needs(self) -> Needs:
        needs = super().needs()
        boots = len(boots_of(self.left))
        needs.seconds += (BOOT_S + SETTLED_S) * boots
        needs.remarks.append(f"this machine is rebooted {boots + 1} times, by {self.way.name}; its default entry stays")
        needs.remarks += kernels_words(self.plan.treatments, boots)
        needs.impossible += self._refusals(boots)
        return needs

    def _refusals(self, boots: int) -> list[str]:
        reasons = []
        if not self.source.experiment.environment.boot.reboots:
            reasons.append(
                f"environment.boot.reboots is false: this machine would be rebooted {boots + 1} times; allow it with "
                "--set environment.boot.reboots=true, or take guests: --set 'environment.boot.by=\"qemu\"'"
            )
        for treatment in self.plan.treatments:
            if (why := self.way.why_not(wanted_of(treatment))) is not None:
                reasons.append(f"environment.kernels.{treatment.settings.environment.kernel}: {self.way.name}: {why}")
        for what, folder in (("the state folder", self.state.root), ("the record", self.out)):
            if (mount := devices.mount_of(folder)).fs in VOLATILE:
                reasons.append(
                    f"{what} {folder} lies on {mount.fs}, which a reboot empties, with what is to be put back after "
                    f"it; choose another ({'PLIMSOLL_STATE' if folder == self.state.root else '--out'})"
                )
        if (why := self.unit().why_not()) is not None:
            reasons.append(f"what goes on after a reboot: {why.partition(';')[0]}")
        return list(dict.fromkeys(reasons))

    # --- the record ---------------------------------------------------------------------------------------------------

    def _open_record(self) -> Json:
        document = super()._open_record()
        if read_json(self.out / BOOTS) is None:  # written last: a run that was killed before it has booted nothing
            document |= {"a_a": None}  # that of the machine is of equals in one boot, and says too little of these
            writer.write_run(self.out, document)
            now = self.fingerprint()
            writer.write_json(self.out / own_fingerprints.FILE, own_fingerprints.shared(now) | {"kernels": {}})
            began = {"release": self._told(_RELEASE), "boot_id": self._told(_BOOT_ID)}
            writer.write_json(self.out / BOOTS, {"began": began, "next": None, "boots": []})
        return document

    def _refuse_another_machine(self) -> None:
        """Each boot's own kernel is held against its earlier boots, before its first trial."""

    def _told(self, path: str) -> str:
        return self.host.read(path).strip()

    # --- boot by boot -------------------------------------------------------------------------------------------------

    def run(self) -> str:
        try:
            status = super().run()
        except BaseException:  # refused, say, with the unit taken over from its predecessor: nothing waits for a boot
            if not self._is_ended_by_a_shutdown():
                self._put_back_own()
            self._say_where_it_is_left()
            raise
        if not self._goes_down:
            self._say_where_it_is_left()
        return status

    def _say_where_it_is_left(self) -> None:
        """A stop reboots nothing, so the machine may be in a kernel that is not its default."""
        state, here = read_json(self.out / BOOTS) or {}, self._told(_BOOT_ID)
        booted = [boot for boot in state.get("boots", []) if boot["boot_id"] == here]
        asked = state.get("next")  # of a boot that was refused before its first trial
        if not booted and asked and asked["asked_in"] != here and asked["release"] == self._told(_RELEASE):
            booted = [asked]
        if booted:
            named = f"{booted[-1]['kernel']} ({booted[-1]['release']})"
            text = f"this machine is still in kernel {named}, which the run booted"
            self.observer.event("note", text=f"{text}; `systemctl reboot` boots its default")

    def _recorded(self) -> str:
        """The machine goes down while the signals are still heard: who stops the run stops its reboot, too."""
        status = super()._recorded()
        if self._goes_down and not self.interrupts.stopping:
            self._go_down()
        elif self._goes_down and not self._is_ended_by_a_shutdown():
            self._goes_down = False
            self._put_back_own()
            self.observer.event("note", text="the machine is not rebooted, since the run was stopped")
        return status

    def _is_ended_by_a_shutdown(self) -> bool:
        """Then the run goes on after it, with what it left for that."""
        return self.interrupts.is_stopping() and is_going_down()

    def _put_back_own(self) -> None:
        """What is to outlive us and shall not after all: the entry of the next boot, and the unit."""
        left = [journal for journal in reversed(self._journals) if journal.path.exists()]
        for undone in [undone for journal in left for undone in journal.put_back_each() if not undone.ok]:
            self.observer.event("note", text=f"NOT put back: {undone.what}; {undone.remedy}")

    def _trials(self) -> None:
        self._install_unit()
        state = self._came_up(read_json(self.out / BOOTS) or {})
        if (left := boots_of(self.left)) and self._is_of_this_boot(state, left[0]):
            with self._noted_as_ended(state):
                self._carry_out(left[0])
            left = boots_of(self.left)
        if not left:
            here = self._told(_BOOT_ID)  # back into what it booted before, from a boot of ours and from no other
            self._goes_down = any(boot["boot_id"] == here for boot in state["boots"])
            return
        self._refuse_a_loop(left[0], state)
        if not self.interrupts.stopping:  # a signal while the last trial was put back has raised nothing
            self._arm(left[0], state)
        raise Stopped

    def _came_up(self, state: Json) -> Json:
        """The boot that the machine is in, written down. Raises Fault where it is not the one that was wanted."""
        wanted, here = state.get("next"), self._told(_BOOT_ID)
        if wanted is None or wanted["asked_in"] == here:
            return state
        state |= {"next": None}
        release = self._told(_RELEASE)
        why = "" if release == wanted["release"] else f"came up with {release}"
        why = why or self.way.is_another_boot(wanted.get("parameters", ""))  # two names may have one release
        if not why:
            boot = {name: wanted[name] for name in ("kernel", "release", "trials")}
            state["boots"] = [*state["boots"], boot | {"boot_id": here}]
            writer.write_json(self.out / BOOTS, state)
            return state
        writer.write_json(self.out / BOOTS, state)
        raise Fault(
            f"this machine was to boot {wanted['release']} by {self.way.name}, and {why}",
            remedy=f"see what the boot loader says; go on with: ./plimsoll run --resume {self.out}",
        )

    def _is_of_this_boot(self, state: Json, trials: list[PlannedTrial]) -> bool:
        """Whether the machine was booted for them, and nothing else since."""
        here = [boot for boot in state["boots"] if boot["boot_id"] == self._told(_BOOT_ID)]
        return bool(here) and {trial.number for trial in trials} <= set(here[-1]["trials"])

    @contextlib.contextmanager
    def _noted_as_ended(self, state: Json) -> Iterator[None]:
        """That the machine has not gone down under the trials of its boot, whatever else became of them."""
        boot = state["boots"][-1]
        if boot.pop(ENDED, False):  # gone on with by hand
            writer.write_json(self.out / BOOTS, state)
        try:
            yield
        finally:
            step("boot has ended")
            boot[ENDED] = True
            with contextlib.suppress(OSError):
                writer.write_json(self.out / BOOTS, state)

    def _refuse_a_loop(self, trials: list[PlannedTrial], state: Json) -> None:
        """Raises Fault where the machine went down under these trials again and again, as by a kernel that panics: the
        unit would boot it for ever."""
        cut = [boot for boot in state["boots"] if trials[0].number in boot["trials"] and not boot.get(ENDED)]
        if len(cut) < CUT_MAX:
            return
        for boot in cut:  # told once: whoever resumes by hand has as many again
            boot[ENDED] = True
        writer.write_json(self.out / BOOTS, state)
        raise Fault(
            f"this machine went down {len(cut)} times under trial {trials[0].number}, in kernel {cut[-1]['kernel']} "
            f"({cut[-1]['release']}), and is not booted into it again",
            remedy=f"see its log (`journalctl -b -1`); go on with: ./plimsoll run --resume {self.out}",
        )

    def _carry_out(self, trials: list[PlannedTrial]) -> None:
        self._settle()
        name = trials[0].treatment.settings.environment.kernel
        own_fingerprints.note(self.out, name, self.fingerprint())
        self._only = frozenset(trial.number for trial in trials)
        try:
            with self._servers() as server_of:
                designs.ONE_BY_ONE.carry_out(self, server_of)
        finally:
            self._only = None

    def begin(self, trial: PlannedTrial) -> Any:
        log = super().begin(trial)
        own_fingerprints.of_trial(self.out, trial.number, self.fingerprint())
        return log

    def _settle(self) -> None:
        """Services are still starting after a boot."""
        while (left := SETTLED_S - float(self._told(_UPTIME).split()[0])) > 0:
            self.observer.event("note", text=f"waiting {left:.0f} s until the machine has settled after its boot")
            time.sleep(left)

    def _arm(self, trials: list[PlannedTrial], state: Json) -> None:
        """The next boot is into the kernel of these trials, and the run goes on there."""
        treatment = trials[0].treatment
        wanted, name = wanted_of(treatment), treatment.settings.environment.kernel
        numbers = [trial.number for trial in trials]
        state["next"] = {
            "kernel": name, "release": wanted.release, "parameters": wanted.parameters, "trials": numbers,
            "asked_in": self._told(_BOOT_ID),
        }  # fmt: skip
        writer.write_json(self.out / BOOTS, state)
        step("written next boot")
        journal = Journal.create(self.state, f"{self.trial_name(trials[0])}-boot-{time.time_ns()}")
        self._journals.append(journal)
        self.way.arm(wanted, journal)
        self.observer.event("note", text=f"the machine reboots into {name} ({wanted.release}); the run goes on there")
        self._goes_down = True  # last: whatever is raised before it, nothing that is armed is left

    def _go_down(self) -> None:
        try:
            if self.left:
                self.way.reboot()
            elif self.way.is_to_go_down():
                self._goes_down = False
                self.observer.event("note", text="a shutdown is planned already, and stays as it is")
            else:
                self.way.reboot_in(LAST_MINUTES)
                text = (
                    f"the machine reboots into its default kernel in {LAST_MINUTES} minutes (`shutdown -c` keeps it up)"
                )
                self.observer.event("note", text=text)
        except (Fault, OSError):
            self._put_back_own()  # it stays up, with nothing that waits for a boot
            raise

    # --- after a reboot -----------------------------------------------------------------------------------------------

    def unit(self) -> Unit:
        """What goes on with this run once the machine is up again."""
        return Unit(
            name=f"plimsoll-run-{self.trial_name(self.plan.trials[0])}.service",
            description=f"Plimsoll goes on with the run {self.out}",
            command=[sys.executable, "-P", "-m", "plimsoll", "run", "--resume", str(self.out)],
            folder=Path.cwd(),
            environment={name: os.environ[name] for name in VARIABLES if name in os.environ},
        )

    def _take_over(self) -> None:
        if (self.out / "run.json").exists():  # a new one installs it when nothing stands in its way
            self._install_unit()

    def _install_unit(self) -> None:
        if self._has_unit:
            return
        journal = Journal.create(self.state, f"{self.trial_name(self.plan.trials[0])}-unit-{time.time_ns()}")
        self._journals.append(journal)
        self.unit().install(journal, self.state)
        self._has_unit = True

    def _left_to_its_successor(self) -> Collection[str]:
        goes_on = bool(self._goes_down and self.left) and not self.interrupts.stopping
        if goes_on or self._is_ended_by_a_shutdown():
            return [journal.run_id for journal in self._journals]
        return ()
