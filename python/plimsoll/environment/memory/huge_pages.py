"""Transparent huge pages as a knob (enabled, defrag, shmem_enabled), and what the kernel says about explicit ones.

The constraint: the files show all choices with the one in force in brackets, and a build without the feature lacks
the whole folder.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from plimsoll.environment import choice, kernel_files
from plimsoll.environment.choice import Choice, KnobOfChoices
from plimsoll.environment.journal.registry import Args, puts_back
from plimsoll.environment.knob import Site
from plimsoll.experiment.environment import AS_FOUND

_ROOT = Path("/sys/kernel/mm/transparent_hugepage")
SETTINGS = ("enabled", "defrag", "shmem_enabled")


class TransparentHugePages(Choice):
    kind = "huge_pages"
    unseen_in_turns = "it applies to pages first touched in its turns; what khugepaged does later is not shown"

    def __init__(self, setting: str = "enabled", root: Path = _ROOT) -> None:
        self.name = f"transparent_hugepage.{setting}"
        self._path = root / setting

    def path(self) -> Path:
        return self._path

    def located(self) -> dict[str, str]:
        return {"path": str(self._path)}


class HugePages(KnobOfChoices):
    name = "transparent_huge_pages"
    keys = ("environment.transparent_huge_pages", "environment.transparent_huge_pages_defrag")

    def wanted(self, site: Site) -> Iterator[tuple[str, TransparentHugePages, str]]:
        environment = site.settings.environment
        asked = (environment.transparent_huge_pages, environment.transparent_huge_pages_defrag)
        for key, setting, wanted in zip(self.keys, SETTINGS, asked, strict=False):
            if wanted != AS_FOUND:
                yield key, TransparentHugePages(setting), wanted


KNOB = HugePages()


@puts_back("huge_pages", survives_reboot=False)
def _put_back(args: Args) -> str:
    return choice.put_back(Path(args["path"]), args)


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
