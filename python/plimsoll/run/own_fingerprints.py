"""Fingerprints of a run on several kernels: one for each trial, and for the run what all share and each kernel's own.

The fact that constrains it: what the design varies must differ and the rest must not. So a kernel is held against its
own earlier boots in everything, and against the others in what no kernel decides.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from plimsoll.environment.fingerprint import comparable
from plimsoll.record import writer
from plimsoll.record.run import read_json
from plimsoll.run.runner import Impossible

Json = dict[str, Any]
FILE: Final = "fingerprint.json"
# Of the machine, what is there whatever kernel it has; a governor, say, comes with the kernel's driver.
_OF_THE_MACHINE: Final = (
    "vendor", "product", "architecture", "cpu_model", "cpus_online", "sockets", "threads_per_core",
)  # fmt: skip
_OF_ALL: Final = ("format", "versions", "host")


def shared(fingerprint: Json) -> Json:
    """What no kernel decides."""
    machine = fingerprint.get("machine", {})
    kept = {name: fingerprint[name] for name in _OF_ALL if name in fingerprint}
    return kept | {"machine": {name: machine[name] for name in _OF_THE_MACHINE if name in machine}}


def own(fingerprint: Json) -> Json:
    """What is a kernel's own, with the rest of the machine as it shows it."""
    machine = {key: value for key, value in fingerprint.get("machine", {}).items() if key not in _OF_THE_MACHINE}
    rest = {key: value for key, value in fingerprint.items() if key not in (*_OF_ALL, "machine")}
    return rest | {"machine": machine}


def note(out: Path, name: str, fingerprint: Json) -> None:
    """One boot of a kernel, before its first trial. Raises Impossible where something differs that must not."""
    known = read_json(out / FILE)
    document: Json = known or shared(fingerprint) | {"kernels": {}}
    differences = comparable({key: value for key, value in document.items() if key != "kernels"}, shared(fingerprint))
    if (before := document["kernels"].get(name)) is not None:
        differences += comparable(before, own(fingerprint))
    if differences:
        raise Impossible(
            [f"kernel {name}: {one['key']} was {one['a']} and is {one['b']}: begin a new run" for one in differences]
        )
    if before is None:
        document["kernels"][name] = own(fingerprint)
        writer.write_json(out / FILE, document)


def of_trial(out: Path, number: int, fingerprint: Json) -> None:
    """What a trial was measured on, in its folder."""
    folder = writer.trial_folder(out, number)
    folder.mkdir(parents=True, exist_ok=True)
    writer.write_json(folder / FILE, fingerprint)
