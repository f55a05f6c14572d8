"""Read-ahead of the devices under a path as a knob, in KiB.

The constraint: the kernel copies the value into a file when it is opened, so it must be set before the server starts;
and it rounds to pages, so the value is read back.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from plimsoll.environment import kernel_files
from plimsoll.environment.devices import Device, devices_of, diskseq, existing
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Entry, Journal
from plimsoll.environment.journal.registry import Args, ChangedSince, changed_since, puts_back, values_set
from plimsoll.environment.knob import AVAILABLE, Availability, KnobOfParts, Site

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ReadAhead:
    unseen_in_turns = ""  # a file keeps what was in force when it was opened, and a server opens its own in its turns

    def __init__(self, path: Path) -> None:
        self.name = "read_ahead"
        self._path = path

    def _deciding(self) -> list[Device]:
        every = [below for device in devices_of(self._path) for below in device.walk()]
        return [device for device in every if device.decides and device.read_ahead is not None]

    def available(self) -> Availability:
        deciding = self._deciding()
        if not deciding:
            return Availability(
                False, f"{self._path}: no block device with a read-ahead is under it", "use a disk file system"
            )
        for device in deciding:
            if not os.access(str(device.read_ahead), os.W_OK):
                return Availability(False, f"{device.read_ahead}: is not writable", "run as root, outside a container")
        return AVAILABLE

    def show(self) -> dict[str, int | None]:
        """KiB by device, for those whose read-ahead counts for the path."""
        return {
            device.name: kernel_files.read_int(device.read_ahead) for device in self._deciding() if device.read_ahead
        }

    def set(self, value: int, journal: Journal) -> Entry | None:
        able = self.available()
        if not able.ok:
            raise Fault(able.reason, remedy=able.remedy)
        _refuse_parts_of_pages(value)
        before = self._found()
        if all(text == str(value) for text in before.values()):
            return None
        known = _disks(before)
        return journal.change("read_ahead", lambda: self.write(value), found=before, set=str(value), diskseq=known)

    def expect(self, wanted: Mapping[str, Sequence[int]], journal: Journal) -> Entry:
        for value in wanted[self.name]:
            _refuse_parts_of_pages(value)
        found, values = self._found(), [str(value) for value in wanted[self.name]]
        return journal.record("read_ahead", found=found, set=values, diskseq=_disks(found))

    def write(self, value: int) -> None:
        for name in self._found():
            path = Path(name)
            kernel_files.write(path, str(value))
            if kernel_files.read_int(path) != value:
                raise Fault(
                    f"{path}: {value} was written, {kernel_files.read(path)} is in force",
                    remedy="use the value in force",
                )

    def _found(self) -> dict[str, str | None]:
        paths = [device.read_ahead for device in self._deciding() if device.read_ahead is not None]
        return {str(path): kernel_files.read(path) for path in paths}


class ReadAheadOfData(KnobOfParts[int]):
    name = "read_ahead"
    keys = ("environment.read_ahead",)
    why_shared = "it is set for a whole device"
    after = ("files",)  # of the device under the folder that they lie in

    def wanted(self, site: Site) -> Iterator[tuple[str, ReadAhead, int]]:
        wanted = site.settings.environment.read_ahead
        if isinstance(wanted, int):
            # A share of memory is seldom a whole number of pages.
            yield self.keys[0], ReadAhead(existing(site.data)), wanted // _PAGE_BYTES * (_PAGE_BYTES // 1024)

    def turned(self, site: Site) -> Iterator[tuple[str, ReadAhead, int]]:
        return self.wanted(site)


KNOB = ReadAheadOfData()


def _refuse_parts_of_pages(kib: int) -> None:
    page_kib = _PAGE_BYTES // 1024
    if kib < 0 or kib % page_kib:
        raise Fault(f"read-ahead of {kib} KiB: not a whole number of pages", remedy=f"use a multiple of {page_kib}")


def _disks(found: Iterable[str]) -> dict[str, int | None]:
    return {name: diskseq(Path(name).parent) for name in found}


@puts_back("read_ahead", survives_reboot=False)
def _put_back(args: Args) -> str:
    changed, commands = [], []
    known = args.get("diskseq", {})
    for name, value in args["found"].items():
        path = Path(name)
        if not path.exists() or (name in known and diskseq(path.parent) != known[name]):
            continue  # a device that was removed has nothing to put back
        now = kernel_files.read(path)
        ours = values_set(args, otherwise=now)
        if now not in (value, *ours):
            changed.append(changed_since(name, found=value, ours=" or ".join(ours), now=str(now)))
            commands.append(f"`echo {value} > {name}`")
        elif now != value:
            kernel_files.write(path, value)
    if changed:
        raise ChangedSince("; ".join(changed), f"to set it back: {', '.join(commands)}")
    return ", ".join(f"{name} = {value}" for name, value in args["found"].items())
