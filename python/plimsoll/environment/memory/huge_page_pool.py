"""The kernel's pool of explicit huge pages (vm.nr_hugepages) as a knob: so many bytes of them, free for the server.

The constraint: the pool is one for the machine, and others may have pages of it. So it is only made larger, by what is
lacking, and made as large as it was found; and the kernel gives as many as it can gather, which may be fewer. What is
taken from it while programs have it stays theirs as surplus, which the kernel counts among its pages until they end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from plimsoll.environment import kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Entry, Journal, step
from plimsoll.environment.journal.registry import Args, ChangedSince, changed_since, puts_back
from plimsoll.environment.knob import AVAILABLE, Availability, KnobOfParts, Site

_ROOT, _COMPACT = Path("/sys/kernel/mm/hugepages"), Path("/proc/sys/vm/compact_memory")
_KIB = 1024


def default_kib(meminfo: Path = Path("/proc/meminfo")) -> int | None:
    """The size of a page of the pool that programs get who name none."""
    lines = (line.partition(":") for line in (kernel_files.read(meminfo) or "").splitlines())
    return next((int(value.split()[0]) for name, _, value in lines if name == "Hugepagesize"), None)


class HugePagePool:
    name = "huge_pages"

    def __init__(self, root: Path = _ROOT) -> None:
        self._kib = default_kib() or 0
        self._folder = root / f"hugepages-{self._kib}kB"

    @property
    def path(self) -> Path:
        return self._folder / "nr_hugepages"

    def available(self) -> Availability:
        if kernel_files.read_int(self.path) is None:
            return Availability(False, f"{self.path}: this kernel does not have it", "leave it out")
        try:
            with self.path.open("r+b", buffering=0):
                return AVAILABLE
        except OSError:
            return Availability(False, f"{self.path}: is not writable", "run as root, outside a container")

    def show(self) -> int | None:
        """Pages in the pool, without surplus."""
        return _pages(self.path)

    def free(self) -> int:
        """Pages that nobody has, and nobody was promised."""
        free, promised = (kernel_files.read_int(self._folder / f"{name}_hugepages") for name in ("free", "resv"))
        return max((free or 0) - (promised or 0), 0)

    def set(self, value: int, journal: Journal) -> Entry | None:
        """`value`: bytes that are to be free."""
        able = self.available()
        if not able.ok:
            raise Fault(able.reason, remedy=able.remedy)
        found, lacking = self.show() or 0, -(-value // (self._kib * _KIB)) - self.free()
        if lacking <= 0:
            return None
        wanted = found + lacking
        return journal.change(
            "huge_page_pool", lambda: self._fill(wanted), path=str(self.path), found=found, set=wanted
        )

    def _fill(self, wanted: int) -> None:
        kernel_files.write(self.path, str(wanted))
        if self.show() != wanted:  # free memory may be in pieces
            step("after huge pages asked for")
            with suppress(Fault):
                kernel_files.write(_COMPACT, "1")
            kernel_files.write(self.path, str(wanted))
        if (now := self.show()) != wanted:
            what = f"{self.path}: {wanted} pages of {self._kib} KiB were asked for and {now} could be had"
            raise Fault(f"{what}: memory is in use, or in pieces", remedy="ask for less, free memory, or reboot")


class Pool(KnobOfParts[int]):
    name = "huge_pages"
    keys = ("environment.huge_pages",)
    why_shared = "the pool is one for all servers, and one that asks for none could take another's"
    after = ("sysctl",)  # which may name vm.nr_hugepages

    def wanted(self, site: Site) -> Iterator[tuple[str, HugePagePool, int]]:
        wanted = site.settings.environment.huge_pages
        if isinstance(wanted, int):
            yield self.keys[0], HugePagePool(), wanted


KNOB = Pool()


def _pages(path: Path) -> int | None:
    pages, surplus = (kernel_files.read_int(path.with_name(f"{name}_hugepages")) for name in ("nr", "surplus"))
    return None if pages is None else pages - (surplus or 0)


@puts_back("huge_page_pool", survives_reboot=False)
def _put_back(args: Args) -> str:
    path, found, ours = Path(args["path"]), int(args["found"]), int(args["set"])
    now = _pages(path)
    if now is None or not found <= now <= ours:  # fewer than ours: the kernel could not gather all of them
        said = changed_since(str(path), found=str(found), ours=str(ours), now=str(now))
        raise ChangedSince(said, f"to set it back: `echo {found} > {path}`")
    if now != found:
        kernel_files.write(path, str(found))
    if (now := _pages(path)) != found:
        raise Fault(f"{path}: is {now} and not {found} as found", remedy=f"`echo {found} > {path}`")
    return f"{path} = {found}"
