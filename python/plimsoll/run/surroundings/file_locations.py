"""Where the server's files lie during a trial: with its socket in the work folder, in folders, or on places.

The fact that constrains it: a folder that is in a journal is gone after a kill. What has to outlive one (the data of a
series) is in none, and whoever made it removes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from plimsoll.environment import Fault, Journal, StateDir
from plimsoll.environment.folders import placed
from plimsoll.environment.folders.others import others_may_change, remedy
from plimsoll.environment.knob import Knob, Site
from plimsoll.environment.places import mount_point
from plimsoll.experiment import Experiment
from plimsoll.experiment.places import is_name, used_places
from plimsoll.experiment.servers.registry import facts_of
from plimsoll.run.host import HERE


@dataclass(frozen=True)
class FileLocations:
    """Folders of one trial: what the server keeps is in `data`/data; the others: None where they lie with it.

    `spaces`: of tablespaces, by the name of the relation that lies in each; `program`: of a web server's program.
    """

    data: Path
    wal: Path | None
    temp: Path | None
    work: Path
    spaces: Mapping[str, Path] = field(default_factory=dict)
    program: Path | None = None

    @staticmethod
    def together(folder: Path) -> FileLocations:
        """Everything in one folder."""
        return FileLocations(folder, None, None, folder)

    @property
    def apart(self) -> list[Path]:
        """Those that are not in the work folder."""
        every = dict.fromkeys((self.data, self.wal, self.temp, self.program, *self.spaces.values()))
        return [folder for folder in every if folder is not None and folder != self.work]

    def make(self, owner: tuple[int, int], journal: Journal | None) -> None:
        """Makes them; without a journal they stay until `remove`, and may be there already.

        What the server writes lies below the one of the data and the one of the log, which are ours; the one of the
        temporary files is a tablespace, and so the server's.
        """
        for folder in self.apart:
            if folder == self.temp or folder in self.spaces.values():
                placed.make(folder, uid=owner[0], gid=owner[1], journal=journal)
            else:
                placed.make(folder, uid=os.geteuid(), gid=os.getegid(), mode=0o755, journal=journal)

    def remove(self) -> None:
        """Removes those that are not in the work folder."""
        for folder in self.apart:
            placed.remove(folder)


def is_series(settings: Experiment) -> bool:
    """Whether the trial goes on after a kill with the data that it had: it is to, and its server can."""
    return facts_of(settings.target).recovers and settings.goes_on_after_kills


def are_varied(settings: Experiment) -> bool:
    """Whether trials of the run have their files at different places, or at places that differ."""
    paths = [path for factor in settings.factors for path in factor.paths]
    return any(path.startswith(("target.files.", "environment.places.")) for path in paths)


def folders_of(settings: Experiment) -> list[str]:
    """The folders of the user that files of the server, or images of its places, lie in."""
    places, given = settings.environment.places, settings.target.files.given.values()
    used = [places[name] for name in used_places(places, given)]
    own = [folder for place in used for folder in (place.folder, place.images_in) if folder is not None]
    return [*(value for value in given if not is_name(value)), *own]


def devices_of(settings: Experiment) -> list[str]:
    """The block devices of the user that its places are made on."""
    places, given = settings.environment.places, settings.target.files.given.values()
    return [path for name in used_places(places, given) for path in places[name].devices]


def locations_of(settings: Experiment, state: StateDir, name: str) -> FileLocations:
    """Where the files of the trial `name` lie; nothing is made."""
    files = settings.target.files
    work = state.work / name

    def on(value: str) -> Path:
        """The folder that a part's own is made in."""
        if not is_name(value):
            return Path(value)
        folder = settings.environment.places[value].folder
        return mount_point(state.work, name, value) if folder is None else Path(folder)

    data = placed.folder_of(state.datasets, name) if is_series(settings) else work
    if files.data is not None:
        data = placed.folder_of(on(files.data), name)
    wal = None if files.wal is None else placed.folder_of(on(files.wal), f"{name}-wal")
    temp = None if files.temp is None else placed.folder_of(on(files.temp), f"{name}-temp")
    spaces = {
        relation: placed.folder_of(on(value), f"{name}-{relation}") for relation, value in files.tablespaces.items()
    }
    program = None if files.program is None else placed.folder_of(on(files.program), f"{name}-program")
    return FileLocations(data, wal, temp, work, spaces, program)


class Files(Knob[FileLocations]):
    """The folders of a trial's files, at places that the user names."""

    name = "files"
    keys = ("target.files",)
    after = ("place_mounts", "place_nfs_mounts")
    why_shared = ""

    def obstacles(self, site: Site) -> Iterator[str]:
        """Places have to be folders that the server's user can reach."""
        target = site.settings.target
        if target.files.given and not facts_of(target).has_file_locations:
            yield f"target.files: {target.server} keeps all its files in one folder; leave target.files out"
            return
        places = site.settings.environment.places
        made = [one for one in used_places(places, target.files.given.values()) if places[one].is_made]
        if made and is_series(site.settings):
            yield (
                f"environment.places.{made[0]}: this trial goes on after a kill with the data that it had, and a place "
                "that is made for a trial goes with it; name a folder"
            )
        for key, value in target.files.given.items():
            if value in made:
                continue
            place = Path(places[value].folder or "") if is_name(value) else Path(value)
            if not place.is_dir():
                yield f"target.files.{key} = {value}: no such folder; make it, or mount its file system there"
                continue
            if why := others_may_change(place):
                yield f"target.files.{key} = {value}: {why}; {remedy()}"
            try:
                StateDir(place).check_traversable(HERE.server_user(), f"target.files.{key} =")
            except Fault as fault:
                yield f"{fault.what}; `chmod o+x` grants it"

    def arrange(self, site: Site, journal: Journal) -> FileLocations:
        locations = locations_of(site.settings, site.state, site.name)
        locations.make(HERE.account(HERE.server_user()), None if is_series(site.settings) else journal)
        return locations


KNOB = Files()
