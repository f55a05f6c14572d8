"""What the places of a trial take: images in folders, and data on devices that have so many bytes and no more."""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.environment import StateDir
from plimsoll.environment.places import size_of, stacks_of
from plimsoll.experiment import Experiment, Plan, size
from plimsoll.experiment.places import used_places
from plimsoll.run.sizes import data_bytes, environment_in_bytes
from plimsoll.run.surroundings import knobs

FILE_SYSTEM_SHARE = 1.1  # what a file system keeps for itself, and a server's first files


def folder_of(settings: Experiment, value: str) -> str | None:
    """The folder of the user's that files of a part lie in; None where the place is made for the trial."""
    place = settings.environment.places.get(value)
    return value if place is None else place.folder


def image_bytes(settings: Experiment) -> dict[str | None, int]:
    """What the images of a trial take, by the folder they lie in; None: the state folder."""
    places, found = environment_in_bytes(settings).places, dict[str | None, int]()
    for name in used_places(places, settings.target.files.given.values()):
        if (each := places[name].image) is not None:
            folder = places[name].images_in
            found[folder] = found.get(folder, 0) + int(each) * places[name].images
    return found


def too_small(plan: Plan, state: StateDir) -> Iterator[str]:
    """Places that the data of a treatment do not fit on."""
    for treatment in plan.treatments:
        site = knobs.site_of(treatment.settings, state, "plan")
        needed = int(data_bytes(treatment.settings) * FILE_SYSTEM_SHARE)
        data = treatment.settings.target.files.data or ""
        place = treatment.settings.environment.places.get(data)
        exported = None if place is None else place.nfs.on
        for stack in stacks_of(site):
            room = size_of(stack)
            if stack.name in (data, exported) and room is not None and needed > room:
                yield (
                    f"{stack.key}: it has {size.show(room)}, and the data need {size.show(needed)}; choose a larger "
                    "image or device, or less data"
                )
