"""What a run on a guest kernel needs and what stands in its way, as far as it is known without a boot.

The fact that constrains it: knobs ask the kernel they run on. The guest's own are asked inside, before the first trial;
here is asked what the guest has from the host (programs, data sets, memory, disk) and what its kernel was built with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from plimsoll.environment import StateDir, places
from plimsoll.environment.guest import kernel, machine
from plimsoll.environment.guest.layers import BeforeItsBoot
from plimsoll.environment.places import machine as places_machine
from plimsoll.experiment import Experiment, Plan, Treatment, size
from plimsoll.experiment.guest.table import GuestMachine
from plimsoll.run import datasets
from plimsoll.run.host import HERE, SERVER_USER
from plimsoll.run.planning import obstacles
from plimsoll.run.planning.needs import Needs
from plimsoll.run.planning.places import too_small
from plimsoll.run.servers.registry import kinds_of
from plimsoll.run.surroundings import knobs

# Beside what trials need: the record on its way out, the file system's own, and what is not estimated.
DISK_BESIDE_BYTES = 2 << 30
# Of the guest's memory the kernel and its first programs take about so much.
KERNEL_BYTES = 128 << 20
WINDOWS = 'environment.kernel is "guest": servers that are up at once would share one CPU and little memory'


def machine_of(experiment: Experiment) -> GuestMachine:
    """What the guest is given. Only of an experiment on a guest."""
    machine_given = experiment.guest_machine
    assert machine_given is not None
    return machine_given


def disk_bytes(needs: Needs, kept_bytes: int) -> int:
    """The size of the guest's disk, a sparse file: what trials need, and the data sets that are copied into it."""
    return DISK_BESIDE_BYTES + int(1.25 * (needs.disk_bytes + kept_bytes))


def refusals(plan: Plan, needs: Needs, state: StateDir) -> list[str]:
    """Every reason against the plan, each with its remedy."""
    able = kernel.available()
    if not able.ok:
        return [f'environment.kernel = "guest": {able.reason}; {able.remedy}, or set environment.kernel = "host"']
    reasons = [reason for treatment in plan.treatments if (reason := obstacles.unable(treatment.settings))]
    installed = kernel.installed()
    assert installed is not None
    reasons += [*_of_servers(plan), *_of_places(plan, state, lambda _: installed)]
    reasons += [*_room(plan, needs, state), *datasets.refusals(plan)]
    return list(dict.fromkeys(reasons))


def refusals_of_guest(
    plan: Plan, needs: Needs, state: StateDir, kernel_of: Callable[[Treatment], kernel.GuestKernel]
) -> list[str]:
    """Of guests whose memory is no file of the host's, each trial on the kernel that its treatment names."""
    reasons = [reason for treatment in plan.treatments if (reason := obstacles.unable(treatment.settings))]
    reasons += [*_of_servers(plan), *_of_places(plan, state, kernel_of), *datasets.refusals(plan)]
    reasons += [*_memory(plan, needs), *_disk(plan, needs, state)]
    return list(dict.fromkeys(reasons))


def _of_servers(plan: Plan) -> Iterator[str]:
    if not HERE.has_user(SERVER_USER):
        yield f"the user {SERVER_USER} does not exist, and the server never runs as root; ./plimsoll setup creates it"
    for kind, treatments in kinds_of(plan):
        for treatment in treatments:
            yield from kind.unfit(treatment.settings)


def _of_places(plan: Plan, state: StateDir, kernel_of: Callable[[Treatment], kernel.GuestKernel]) -> Iterator[str]:
    """What the kernel of a treatment's guest lacks for places, and what is not installed for them."""
    for treatment in plan.treatments:
        site = knobs.site_of(treatment.settings, state, "plan")
        with places_machine.asked_instead(BeforeItsBoot(kernel_of(treatment))):
            for knob in places.KNOBS:
                yield from knob.obstacles(site)
    yield from too_small(plan, state)


def _room(plan: Plan, needs: Needs, state: StateDir) -> Iterator[str]:
    memory = machine_of(plan.experiment).memory_bytes
    yield from _memory(plan, needs)
    _, memory_free = machine.free_for(state.work, kernel.MEMORY_FOLDER)
    if memory > memory_free:
        yield (
            f"environment.guest.memory = {size.show(memory)}: the guest's memory is a file in {kernel.MEMORY_FOLDER}, "
            f"where {size.show(memory_free)} are free; give the guest less, or "
            f"`mount -o remount,size={memory_free + memory} {kernel.MEMORY_FOLDER}`"
        )
    yield from _disk(plan, needs, state)


def _memory(plan: Plan, needs: Needs) -> Iterator[str]:
    memory = machine_of(plan.experiment).memory_bytes
    given = f"environment.guest.memory = {size.show(memory)}"
    if needs.memory_bytes + KERNEL_BYTES > memory:
        needed = size.show(needs.memory_bytes + KERNEL_BYTES)
        yield f"{given}: {needed} are needed (the group, the load generator, the kernel itself); give the guest more"
    if memory > HERE.available_bytes():
        yield f"{given}: {size.show(HERE.available_bytes())} are available on the host; give the guest less"


def _disk(plan: Plan, needs: Needs, state: StateDir) -> Iterator[str]:
    disk_free, _ = machine.free_for(state.work, kernel.MEMORY_FOLDER)
    # The image is sparse, and may become as large as it is said to be: what is freed in it is not given back.
    built, copied = datasets.missing_bytes(plan, state), datasets.bytes_of_all(plan, state)
    whole = sum(built) + disk_bytes(needs, copied)
    if whole > disk_free:
        yield (
            f"{size.show(whole)} of disk are needed in {state.work} (the guest's disk, with the data sets that are "
            f"copied into it), {size.show(disk_free)} are free; remove kept data sets (./plimsoll cache remove), or "
            "set PLIMSOLL_STATE to another folder"
        )
    if any(character.isspace() for character in str(state.root)):
        yield f"{state.root}: a guest's kernel takes no path with a blank; set PLIMSOLL_STATE to another folder"


def remarks(plan: Plan) -> Iterator[str]:
    """What the reader of the plan should know of the guest."""
    installed = kernel.installed()
    if installed is None:
        return
    given = machine_of(plan.experiment)
    memory = size.show(given.memory_bytes)
    booted = f", booted with {given.parameters}" if given.parameters else ""
    features = installed.features()
    there = ", ".join(name for name, has in features.items() if has)
    missing = ", ".join(name for name, has in features.items() if not has)
    text = f"on a guest kernel, {kernel.KIND} {installed.version} with {memory}{booted}"
    text += ", which shows mechanism and not speed"
    yield f"{text}; it has {there}" + (f"; it has no {missing}" if missing else "")
