"""Transparent huge pages as a knob (enabled, defrag, shmem_enabled), and what the kernel says about explicit ones.

The constraint: the files show all choices with the one in force in brackets, and a build without the feature lacks
the whole folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from plimsoll.environment import kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Entry, Journal
from plimsoll.environment.journal.registry import Args, ChangedSince, changed_since, puts_back, values_set
from plimsoll.environment.knob import AVAILABLE, Availability, KnobOfParts, Site

_ROOT = Path("/sys/kernel/mm/transparent_hugepage")
SETTINGS = ("enabled", "defrag", "shmem_enabled")


class TransparentHugePages:
    unseen_in_turns = "it applies to pages first touched in its turns; what khugepaged does later is not shown"

    def __init__(self, setting: str = "enabled", root: Path = _ROOT) -> None:
        self.name = f"transparent_hugepage.{setting}"
        self._path = root / setting

    def choices(self) -> list[str]:
        return [word.strip("[]") for word in (kernel_files.read(self._path) or "").split()]

    def available(self) -> Availability:
        if not self.choices():
            return Availability(
                False, f"{self._path}: this kernel does not have it", "leave it out, or use another kernel"
            )
        try:
            with self._path.open("r+b", buffering=0):
                return AVAILABLE
        except OSError:
            return Availability(False, f"{self._path}: is not writable", "run as root, outside a container")

    def show(self) -> str | None:
        text = kernel_files.read(self._path)
        return kernel_files.selected(text) if text is not None else None

    def set(self, value: str, journal: Journal) -> Entry | None:
        able = self.available()
        if not able.ok:
            raise Fault(able.reason, remedy=able.remedy)
        if value not in self.choices():
            raise Fault(f"{self._path}: {value!r} is not a choice", remedy=f"use one of {', '.join(self.choices())}")
        before = self.show()
        if before == value:
            return None
        return journal.change("huge_pages", lambda: self.write(value), path=str(self._path), found=before, set=value)

    def expect(self, wanted: Mapping[str, Sequence[str]], journal: Journal) -> Entry:
        return journal.record("huge_pages", path=str(self._path), found=self.show(), set=list(wanted[self.name]))

    def write(self, value: str) -> None:
        kernel_files.write(self._path, value)


class HugePages(KnobOfParts[str]):
    name = "transparent_huge_pages"
    keys = ("environment.transparent_huge_pages",)

    def wanted(self, site: Site) -> Iterator[tuple[str, TransparentHugePages, str]]:
        wanted = site.settings.environment.transparent_huge_pages
        if wanted != "as found":
            yield self.keys[0], TransparentHugePages(), wanted

    def turned(self, site: Site) -> Iterator[tuple[str, TransparentHugePages, str]]:
        return self.wanted(site)


KNOB = HugePages()


@puts_back("huge_pages", survives_reboot=False)
def _put_back(args: Args) -> str:
    path, found = Path(args["path"]), args["found"]
    now = kernel_files.selected(kernel_files.read(path) or "")
    ours = values_set(args, otherwise=now)
    if now not in (found, *ours):
        remedy = f"to set it back: `echo {found} > {path}`"
        raise ChangedSince(changed_since(str(path), found=found, ours=" or ".join(ours), now=now), remedy)
    if now != found:
        kernel_files.write(path, found)
    return f"{path} = {found}"


def explicit() -> dict[str, dict[str, int]]:
    """Pools of explicit huge pages by size: {"2048": {"nr_hugepages", "free_hugepages", ...}}; sizes in KiB."""
    pools = {}
    for folder in sorted(Path("/sys/kernel/mm/hugepages").glob("hugepages-*kB")):
        size_kib = folder.name.removeprefix("hugepages-").removesuffix("kB")
        values = {path.name: kernel_files.read_int(path) for path in sorted(folder.iterdir()) if path.is_file()}
        pools[size_kib] = {name: value for name, value in values.items() if value is not None}
    return pools


def transparent(root: Path = _ROOT) -> dict[str, str]:
    """Every setting of transparent huge pages, those per size and of khugepaged included."""
    settings = {}
    for path in sorted(root.rglob("*")) if root.is_dir() else []:
        counter = path.parent.name == "stats" or path.name in ("pages_collapsed", "full_scans")
        if path.is_file() and not counter and (text := kernel_files.read(path)) is not None:
            settings[str(path.relative_to(root))] = kernel_files.selected(text)
    return settings
