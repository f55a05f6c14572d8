"""Any vm.* sysctl as a knob.

The constraint: some exist as a pair in bytes and in per cent, and writing one clears the other. The pair is put back by
writing the one that was in force; writing a 0 into the other would set it to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from plimsoll.environment import kernel_files
from plimsoll.environment.fault import Fault
from plimsoll.environment.journal.journal import Entry, Journal
from plimsoll.environment.journal.registry import Args, ChangedSince, changed_since, puts_back, values_set
from plimsoll.environment.knob import AVAILABLE, Availability, KnobOfParts, Site
from plimsoll.experiment.environment import PAIRS

_ROOT = Path("/proc/sys")

_PARTNERS = dict(PAIRS) | {second: first for first, second in PAIRS}

#: The kernel moves these by itself, for instance when huge pages are switched on: no sign of anybody else.
_MOVING = {"vm.min_free_kbytes"}

#: Writing these does something once; there is no value to put back.
_ACTIONS = {"vm.drop_caches", "vm.compact_memory", "vm.stat_refresh"}

#: What no turn of a server can stand for: writing it moves memory about, or it is a time that is longer than a window.
_NO_TURNS = {
    *("vm.nr_hugepages", "vm.nr_hugepages_mempolicy", *_MOVING),
    *("vm.dirty_writeback_centisecs", "vm.dirty_expire_centisecs", "vm.dirtytime_expire_seconds"),
}


def path_of(name: str, root: Path = _ROOT) -> Path:
    return root.joinpath(*name.split("."))


def value_of(name: str, root: Path = _ROOT) -> str | None:
    text = kernel_files.read(path_of(name, root))
    return " ".join(text.split()) if text is not None else None


def all_vm(root: Path = _ROOT) -> dict[str, str]:
    """Every vm.* sysctl that has a value to read."""
    values = {}
    for path in sorted((root / "vm").iterdir()) if (root / "vm").is_dir() else []:
        value = value_of(f"vm.{path.name}", root)
        if value is not None and f"vm.{path.name}" not in _ACTIONS:
            values[f"vm.{path.name}"] = value
    return values


class Sysctl:
    def __init__(self, name: str, root: Path = _ROOT) -> None:
        self.name = name
        self.partner = _PARTNERS.get(name)
        self._root = root

    def available(self) -> Availability:
        path = path_of(self.name, self._root)
        if not self.name.startswith("vm.") or "/" in self.name or ".." in self.name:
            return Availability(False, f"{self.name} is not a vm.* sysctl", "use a name that `sysctl -a -r ^vm` lists")
        if self.name in _ACTIONS:
            return Availability(False, f"{self.name} is an action, not a setting", "use the cold page cache instead")
        if not path.exists():
            return Availability(False, f"{path}: this kernel does not have it", "leave it out, or use another kernel")
        if self.value() is None:
            return Availability(False, f"{path}: cannot be read, so it could not be put back", "run as root")
        if not _writable(path):
            return Availability(False, f"{path}: is not writable", "run as root, outside a container")
        return AVAILABLE

    def value(self) -> str | None:
        return value_of(self.name, self._root)

    def show(self) -> str | None:
        return self.value()

    def set(self, value: int | str, journal: Journal) -> Entry | None:
        wanted = _plain(value)
        able = self.available()
        if not able.ok:
            raise Fault(able.reason, remedy=able.remedy)
        if self.value() == wanted:
            return None
        return journal.change("sysctl", lambda: self.write(wanted), **self._found(), set=wanted)

    @property
    def unseen_in_turns(self) -> str:
        """Dirty pages are counted for the whole machine."""
        return "dirty pages of all servers count towards it" if self.name in _PARTNERS else ""

    def expect(self, wanted: Mapping[str, Sequence[int | str]], journal: Journal) -> Entry:
        values, partners = (
            [_plain(value) for value in wanted.get(name or "", ())] for name in (self.name, self.partner)
        )
        return journal.record("sysctl", **self._found(), set=values, partner_set=partners)

    def _found(self) -> dict[str, str | None]:
        return {
            "name": self.name,
            "found": self.value(),
            "partner": self.partner,
            "partner_found": value_of(self.partner, self._root) if self.partner else None,
            "root": str(self._root),
        }

    def write(self, value: int | str) -> None:
        wanted, path = _plain(value), path_of(self.name, self._root)
        kernel_files.write(path, wanted, remedy=f"choose a value that `sysctl -w {self.name}=...` accepts")
        now = self.value()
        if now != wanted:
            raise Fault(f"{path}: {wanted} was written and {now} is in force", remedy=f"use {now}")


class Sysctls(KnobOfParts[int | str]):
    name = "sysctl"
    keys = ("environment.sysctl",)

    def wanted(self, site: Site) -> Iterator[tuple[str, Sysctl, int | str]]:
        for name, value in site.settings.environment.sysctl.items():
            yield f"{self.keys[0]}.{name}", Sysctl(name), value

    def turned(self, site: Site) -> Iterator[tuple[str, Sysctl, int | str]]:
        return (wanted for wanted in self.wanted(site) if wanted[1].name not in _NO_TURNS)


KNOB = Sysctls()


def _plain(value: int | str) -> str:
    return " ".join(str(value).split())


def _writable(path: Path) -> bool:
    try:
        with path.open("r+b", buffering=0):
            return True
    except OSError:
        return False


@puts_back("sysctl", survives_reboot=False)
def _put_back(args: Args) -> str:
    root = Path(args["root"])
    name, found = args["name"], args["found"]
    partner, partner_found = args["partner"], args["partner_found"]
    if partner is not None and found == "0" and partner_found not in (None, "0"):
        name, found = partner, partner_found  # this one was in force; writing it clears the other
    _refuse_others(args, root, remedy=f"to set it back: `sysctl -w {name}='{found}'`")
    if value_of(name, root) != found or (partner and value_of(args["partner"], root) != partner_found):
        kernel_files.write(path_of(name, root), found)
    now = value_of(name, root)
    if now != found:
        raise Fault(f"{path_of(name, root)}: is {now} and not {found} as found", remedy=f"`sysctl -w {name}='{found}'`")
    return f"{name} = {found}"


def _refuse_others(args: Args, root: Path, remedy: str) -> None:
    """Raises ChangedSince where neither what was found nor what was set is in force. Journals of earlier versions do
    not hold what was set."""
    name, partner = args["name"], args["partner"]
    if "set" not in args or name in _MOVING:
        return
    found = (args["found"], args["partner_found"])
    # Writing one of a pair clears the other.
    ours = [(value, None if found[1] is None else "0") for value in values_set(args)]
    ours += [("0", value) for value in args.get("partner_set", ())]
    now = (value_of(name, root), value_of(partner, root) if partner else None)
    if now in (found, *ours):
        return

    def shown(values: tuple[str | None, str | None]) -> str:
        return " and ".join(value for value in values if value is not None)

    item = shown((name, partner))
    set_to = " or ".join(shown(values) for values in ours)
    raise ChangedSince(changed_since(item, found=shown(found), ours=set_to, now=shown(now)), remedy)
