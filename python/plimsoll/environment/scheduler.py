"""The CPU scheduler as knobs: the preemption model that is in force, and the base slice of a task.

The constraint: both are files of debugfs, which may be mounted nowhere, so the journal knows them by name and not by
path. A kernel has one preemption model for good unless it was built with CONFIG_PREEMPT_DYNAMIC, and fewer choices
with each version: what it offers is asked, never assumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from plimsoll.environment import choice, debugfs, kernel_files
from plimsoll.environment.choice import Choice, KnobOfChoices
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Entry, Journal
from plimsoll.environment.journal.registry import Args, ChangedSince, changed_since, puts_back, values_set
from plimsoll.environment.knob import AVAILABLE, Availability, KnobOfParts, Site
from plimsoll.experiment.environment import AS_FOUND

_PREEMPT, _BASE_SLICE = "sched/preempt", "sched/base_slice_ns"
_NS_PER_US = 1000


def _file(name: str, root: str = "") -> Path:
    """Raises OSError where there is no debugfs. `root`: a folder that stands for it."""
    return (Path(root) if root else debugfs.folder()) / name


def _shown(name: str) -> str:
    """Where people find it, once debugfs is mounted."""
    return str(debugfs.MOUNTED / name)


def _without_debugfs(error: OSError) -> Availability:
    return Availability(False, f"debugfs cannot be had: {error.strerror}", "run as root, outside a container")


def _closed(name: str, root: str) -> Availability | None:
    """Of a file that is there and may not be opened; None where it may, or is not there. Raises OSError."""
    path = _file(name, root)
    try:
        with path.open("rb", buffering=0):
            return None
    except PermissionError:
        why = f"{_shown(name)}: may not be opened; a kernel that is locked down closes debugfs to root, too"
        return Availability(False, why, "boot without lockdown (/sys/kernel/security/lockdown)")
    except FileNotFoundError:
        return None


class Preemption(Choice):
    """The kernel's preemption model, of those that it can change to while it runs."""

    name = "preemption"
    kind = "preemption"

    def __init__(self, root: str = "") -> None:
        self._root = root

    def path(self) -> Path:
        return _file(_PREEMPT, self._root)

    def located(self) -> dict[str, str]:
        return {"root": self._root}

    @property
    def shown(self) -> str:
        return _shown(_PREEMPT)

    @property
    def lacking(self) -> Availability:
        why = f"{self.shown}: this kernel cannot change its preemption model while it runs"
        return Availability(False, why, "leave it out, or use a kernel built with CONFIG_PREEMPT_DYNAMIC")

    def available(self) -> Availability:
        try:
            return _closed(_PREEMPT, self._root) or super().available()
        except OSError as error:
            return _without_debugfs(error)

    def show(self) -> str | None:
        try:
            return super().show()
        except OSError:
            return None


class BaseSlice:
    """For how long a task may run before another is looked for, in microseconds."""

    name = "base_slice"
    unseen_in_turns = "a task has what was in force when its slice began"

    def __init__(self, root: str = "") -> None:
        self._root = root

    def path(self) -> Path:
        return _file(_BASE_SLICE, self._root)

    def available(self) -> Availability:
        try:
            path, closed = self.path(), _closed(_BASE_SLICE, self._root)
        except OSError as error:
            return _without_debugfs(error)
        if closed is not None:
            return closed
        if kernel_files.read_int(path) is None:
            why = f"{_shown(_BASE_SLICE)}: this kernel does not have it; it came with Linux 6.6"
            return Availability(False, why, "leave it out, or use another kernel")
        try:
            with path.open("r+b", buffering=0):
                return AVAILABLE
        except OSError:
            return Availability(False, f"{_shown(_BASE_SLICE)}: is not writable", "run as root, outside a container")

    def show_ns(self) -> int | None:
        try:
            return kernel_files.read_int(self.path())
        except OSError:
            return None

    def show(self) -> int | None:
        return self.show_ns()

    def set(self, value: int, journal: Journal) -> Entry | None:
        able = self.available()
        if not able.ok:
            raise Fault(able.reason, remedy=able.remedy)
        found, wanted = str(self.show_ns()), str(value * _NS_PER_US)
        if found == wanted:
            return None
        return journal.change("base_slice", lambda: self.write(value), root=self._root, found=found, set=wanted)

    def expect(self, wanted: Mapping[str, Sequence[int]], journal: Journal) -> Entry:
        values = [str(value * _NS_PER_US) for value in wanted[self.name]]
        return journal.record("base_slice", root=self._root, found=str(self.show_ns()), set=values)

    def write(self, value: int) -> None:
        kernel_files.write(self.path(), str(value * _NS_PER_US))
        if (now := self.show_ns()) != value * _NS_PER_US:
            raise Fault(
                f"{_shown(_BASE_SLICE)}: {value * _NS_PER_US} was written and {now} is in force",
                remedy="use the value in force",
            )


class PreemptionModel(KnobOfChoices):
    name = "preemption"
    keys = ("environment.preemption",)

    def wanted(self, site: Site) -> Iterator[tuple[str, Preemption, str]]:
        wanted = site.settings.environment.preemption
        if wanted != AS_FOUND:
            yield self.keys[0], Preemption(), wanted


class Slice(KnobOfParts[int]):
    name = "base_slice"
    keys = ("environment.base_slice_us",)

    def wanted(self, site: Site) -> Iterator[tuple[str, BaseSlice, int]]:
        wanted = site.settings.environment.base_slice_us
        if isinstance(wanted, int):
            yield self.keys[0], BaseSlice(), wanted

    def turned(self, site: Site) -> Iterator[tuple[str, BaseSlice, int]]:
        return self.wanted(site)


PREEMPTION_KNOB = PreemptionModel()
BASE_SLICE_KNOB = Slice()


@puts_back("preemption", survives_reboot=False)
def _put_preemption_back(args: Args) -> str:
    return choice.put_back(_file(_PREEMPT, args["root"]), args, _shown(_PREEMPT))


@puts_back("base_slice", survives_reboot=False)
def _put_base_slice_back(args: Args) -> str:
    path, found, ours = _file(_BASE_SLICE, args["root"]), args["found"], values_set(args)
    now = kernel_files.read(path)
    if now not in (found, *ours):
        remedy = f"to set it back: `echo {found} > {_shown(_BASE_SLICE)}`"
        said = changed_since(_shown(_BASE_SLICE), found=found, ours=" or ".join(ours), now=str(now))
        raise ChangedSince(said, remedy)
    if now != found:
        kernel_files.write(path, found)
    return f"{_shown(_BASE_SLICE)} = {found}"


def state() -> dict[str, str | int | None]:
    """What of the scheduler's settings a fingerprint has; None where it cannot be read."""
    return {"preemption": Preemption().show(), "base_slice_ns": BaseSlice().show_ns()}
