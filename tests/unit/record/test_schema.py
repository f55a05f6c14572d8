"""Every key that a verdict carries is named in the schema's document, in the sections that are about it.

The keys are those of the types. That what is made is of its type, with no key besides, other tests hold: test_types.py
beside this one, and each room's own.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict, get_args, get_type_hints, is_typeddict

import pytest

from plimsoll.analysis import parts
from plimsoll.analysis.breakdown.document import Breakdown
from plimsoll.analysis.caches import document as of_caches
from plimsoll.analysis.capacity.document import Capacity
from plimsoll.analysis.decision_support.document import DecisionSupport
from plimsoll.analysis.files import document as of_files
from plimsoll.analysis.guest.document import GuestOfRun
from plimsoll.analysis.kernel.document import KernelOfRun
from plimsoll.analysis.next_steps.step import Step
from plimsoll.analysis.nfs import document as of_nfs
from plimsoll.analysis.order_entry.document import OrderEntry
from plimsoll.analysis.places import document as of_places
from plimsoll.analysis.probes import document as of_probes
from plimsoll.analysis.soak.document import SoakOfRun
from plimsoll.analysis.studies import document as of_studies
from plimsoll.analysis.watch.document import WatchDocument
from plimsoll.analysis.web.document import WebServing, WebWorkers
from plimsoll.analysis.windows.document import WindowsOfRun
from plimsoll.record import summary, trial
from plimsoll.record.verdict import Mean, Verdict

SCHEMA = Path(__file__).parents[3] / "schema"
HEAD = ""  # what stands before the first heading
# What each part adds to a verdict, and the sections of verdict.md that say so.
PARTS: dict[str, tuple[list[Any], list[str]]] = {
    "instruments": ([of_probes.Instrument], ["The caches"]),
    "reconciliation": (
        [of_caches.Reconciliation, of_caches.DeviceReads, of_caches.MeanDeviceReads],
        [HEAD, "The caches"],
    ),
    "double_caching": ([of_caches.Readings], ["The caches"]),
    "double_caching_absent": ([of_caches.NotRead], [HEAD]),
    "layout": ([of_places.Layout], ["Where files lie"]),
    "storage": ([of_places.Cells], [HEAD, "Where files lie"]),
    "promise": ([of_places.Promise, of_places.Promised], [HEAD, "Where files lie"]),
    "clients": ([of_studies.Clients], [HEAD]),
    "scaling": ([of_studies.Scaling], [HEAD, "Scaling laws"]),
    "memory_scaling": ([of_studies.MemoryScaling], [HEAD]),
    "breakdown": ([Breakdown], ["The breakdown"]),
    "profile": ([of_probes.Profile], [HEAD]),
    "off_cpu": ([of_probes.Box], [HEAD]),
    "order_entry": ([OrderEntry], ["Order entry by its rules"]),
    "decision_support": ([DecisionSupport], ["Decision support"]),
    "phases": ([of_files.Phases], ["Loads on files"]),
    "operations": ([of_files.Operations], ["Loads on files"]),
    "file_waits": ([of_files.FileWaits], ["Loads on files"]),
    "web_serving": ([WebServing], ["Web serving"]),
    "web_workers": ([WebWorkers], ["Web serving"]),
    "syscalls": ([of_probes.SystemCalls], ["System calls, syncs, and requests of the disks"]),
    "block": ([of_probes.BlockRequests], ["System calls, syncs, and requests of the disks"]),
    "nfs_calls": ([of_nfs.NfsCalls], ["Calls of NFS"]),
    "windows": ([WindowsOfRun], ["Windows"]),
    "kernel": ([KernelOfRun], ["The kernel itself"]),
    "soak": ([SoakOfRun], ["Soaks", "The kernel itself"]),
    "guest": ([GuestOfRun], ["A guest kernel"]),
    "next_steps": ([Step], ["What to do next"]),
}


def named(text: str) -> set[str]:
    """The words between backticks."""
    return {word for span in re.findall(r"`([^`]+)`", text) for word in re.findall(r"\w+", span)}


def sections(name: str) -> dict[str, set[str]]:
    """What the sections of a document name, by heading."""
    head, *rest = re.split(r"^## ", (SCHEMA / name).read_text(), flags=re.MULTILINE)
    return {HEAD: named(head)} | {text.partition("\n")[0]: named(text) for text in rest}


def reached(kind: Any, met: set[Any]) -> Iterator[Any]:
    """The types of objects that a document of this type has anywhere in it."""
    if is_typeddict(kind):
        if kind not in met:
            met.add(kind)
            yield kind
            for hint in get_type_hints(kind).values():
                yield from reached(hint, met)
        return
    for inner in get_args(kind):
        yield from reached(inner, met)


def unnamed(kind: Any, words: set[str], besides: Mapping[Any, set[str]]) -> list[str]:
    """Keys that neither `words` nor the words `besides` for the module of a type, or for the type, have."""
    return [
        f"{one.__name__}.{key}"
        for one in reached(kind, set())
        for key in get_type_hints(one)
        if key not in words | besides.get(one, set()) | besides.get(one.__module__, set())
    ]


def besides() -> dict[Any, set[str]]:
    """What is said once for all: of the record in record.md, of load tests in agent.md, of means at the head of
    verdict.md."""
    agent = set(re.findall(r'"(\w+)"', (SCHEMA / "agent.md").read_text()))  # it writes keys as JSON does
    record = agent.union(*sections("record.md").values())
    return {summary.__name__: record, trial.__name__: record, Mean: sections("verdict.md")[HEAD]}


@pytest.mark.parametrize("key", [part.key for part in parts.PARTS])
def test_what_a_part_adds_to_a_verdict_is_described(key: str) -> None:
    kinds, headings = PARTS[key]
    found = sections("verdict.md")
    words = set().union(*(found[heading] for heading in headings))
    assert [one for kind in kinds for one in unnamed(kind, words, besides())] == []
    assert key in set().union(*found.values())


def test_what_every_verdict_has_is_described() -> None:
    found = sections("verdict.md")
    words = found[HEAD] | found["comparisons"] | found["Windows"] | found["What enters"]
    assert unnamed(Verdict, words, besides()) == []


@pytest.mark.parametrize(("kind", "name"), [(Capacity, "capacity.md"), (WatchDocument, "breakdown.md")])
def test_what_other_kinds_of_runs_say_is_described(kind: Any, name: str) -> None:
    assert unnamed(kind, set().union(*sections(name).values()), besides()) == []


class Row(TypedDict):
    """For the test below."""

    known: int
    strange: int


class Rows(TypedDict):
    """The same, with rows in it."""

    known: dict[str, list[Row] | None]


def test_a_key_that_no_section_names_is_told() -> None:
    assert unnamed(Rows, {"known"}, {}) == ["Row.strange"]
    assert unnamed(Rows, {"known"}, {Row: {"strange"}}) == []
    assert "trend" in sections("verdict.md")["Decision support"] - sections("verdict.md")["The breakdown"]
