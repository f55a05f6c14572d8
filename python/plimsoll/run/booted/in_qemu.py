"""A run whose kernels are booted in guests of QEMU, one guest for each kernel of each block.

The fact that constrains it: with KVM a guest's times are times, and without it they are an emulator's. Which of the two
it is, is asked of the machine when the run is planned, stands in the record, and may not change while the run lasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plimsoll.environment.boots.once import Wanted
from plimsoll.environment.guest import qemu
from plimsoll.environment.guest.bootable import Bootable
from plimsoll.experiment import PlannedTrial, Treatment, size
from plimsoll.experiment.design import boots_of
from plimsoll.record.run import read_json
from plimsoll.run.guest import planning
from plimsoll.run.guest.runner import GuestRunner
from plimsoll.run.planning.needs import Needs

BOOT_S = {qemu.KVM: 20.0, qemu.TCG: 240.0}
SLOWER = 30.0  # emulated, by about so much, of what is not measured by the clock
SILENT_SECONDS_MAX = {qemu.KVM: 120.0, qemu.TCG: 900.0}
_KVM = "guests of QEMU with KVM: their results count, and are those of virtual machines on this host"
_TCG = "emulated: mechanism only. This machine has no KVM that boots a usual kernel, so times are those of an emulator"


def wanted_of(treatment: Treatment) -> Wanted:
    """The kernel that a treatment names."""
    named = treatment.settings.environment.named_kernel
    assert named is not None  # experiment/kernels/table.py has checked the levels
    return Wanted(named.release, named.parameters, Path(named.folder))


@dataclass
class QemuRunner(GuestRunner):
    """One run, its kernels in QEMU."""

    @property
    def accelerator(self) -> str:
        """What this machine has."""
        return qemu.KVM if qemu.has_kvm() else qemu.TCG

    def _windows(self) -> str:
        return "a guest has one kernel at a time, so servers on several are not up at once"

    def bootable(self, trial: PlannedTrial) -> Bootable:
        return qemu.of(wanted_of(trial.treatment), self.plan.experiment.environment.boot.cpus)

    def parameters(self, trial: PlannedTrial) -> str:
        return " ".join([self.given.parameters, wanted_of(trial.treatment).parameters]).strip()

    def boots(self) -> list[list[PlannedTrial]]:
        return boots_of(self.left)

    def _limits(self) -> tuple[float, float]:
        return self.bootable(self.plan.trials[0]).boot_seconds_max, SILENT_SECONDS_MAX[self.accelerator]

    def needs(self) -> Needs:
        needs = super().needs()
        if self.accelerator == qemu.TCG:
            measured = sum(trial.treatment.settings.measure.seconds or 0 for trial in self.left)
            needs.seconds = measured + SLOWER * max(0.0, needs.seconds - measured)
        needs.seconds += BOOT_S[self.accelerator] * len(self.boots())
        return needs

    def _remarks(self) -> list[str]:
        boots = len(self.boots())
        return [_KVM if self.accelerator == qemu.KVM else _TCG, *kernels_words(self.plan.treatments, boots)]

    def _refusals(self, needs: Needs) -> list[str]:
        able = qemu.available()
        if not able.ok:
            return [f'environment.boot.by = "qemu": {able.reason}; {able.remedy}']
        reasons = [
            f"environment.kernels.{treatment.settings.environment.kernel}: {why}"
            for treatment in self.plan.treatments
            if (why := qemu.why_not(wanted_of(treatment))) is not None
        ]
        if (unshown := qemu.cannot_show(self.out)) is not None:
            reasons.append(unshown)
        if reasons:
            return list(dict.fromkeys(reasons))
        if (before := self._began_with()) not in (None, self.accelerator):
            reasons.append(f"the run began with {before}, and this machine has {self.accelerator} now: begin a new run")
        of_guests = planning.refusals_of_guest(
            self.plan, needs, self.state, lambda treatment: qemu.kernel_of(wanted_of(treatment))
        )
        return [*reasons, *of_guests]

    def _began_with(self) -> str | None:
        guest = (read_json(self.out / "run.json") or {}).get("guest") or {}
        told = guest.get("accelerator")
        return None if told is None else str(told)

    def _guest_document(self) -> dict[str, Any]:
        document = super()._guest_document()
        kernels = {
            treatment.settings.environment.kernel: {
                "release": wanted_of(treatment).release,
                "parameters": wanted_of(treatment).parameters,
            }
            for treatment in self.plan.treatments
        }
        names = ", ".join(one["release"] for one in kernels.values())
        traced = all(qemu.kernel_of(wanted_of(treatment)).is_traced for treatment in self.plan.treatments)
        of_all = {"version": names, "probes_in_the_kernel": traced}
        return document | of_all | {"accelerator": self.accelerator, "kernels": kernels}


def kernels_words(treatments: list[Treatment], boots: int) -> list[str]:
    """Which kernels are booted, and how often in all."""
    named = {treatment.settings.environment.kernel: wanted_of(treatment) for treatment in treatments}
    booted = [
        f"{name} ({one.release}{f', booted with {one.parameters}' if one.parameters else ''})"
        for name, one in named.items()
    ]
    memory = {size.show(one.settings.guest_machine.memory_bytes) for one in treatments if one.settings.guest_machine}
    guests = f", {', '.join(sorted(memory))} each" if memory else ""
    return [f"{boots} boots of {' and '.join(booted)}, in random order, each block with boots of its own{guests}"]
