"""Which paths a factor may name: read off the tables, and every refusal says why and what is near."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

from plimsoll.experiment import ExperimentError, Source, load, shipped
from plimsoll.experiment.factors import PATHS
from plimsoll.experiment.paths import paths_of
from plimsoll.experiment.strict import Fixed, FreeKeys, Strict

FILE = """
format = 1
name = "mine"
title = "A question"

[workload]
name = "bank"
scale = 1

[measure]
seconds = 1

[[factors]]
path = "PATH"
levels = LEVELS
"""


def read(folder: Path, path: str, levels: str, sets: list[str] | None = None) -> Source:
    file = folder / "experiment.toml"
    file.write_text(FILE.replace("PATH", path).replace("LEVELS", levels))
    return load(str(file), sets=sets)


@pytest.mark.parametrize("path", shipped(), ids=lambda path: path.parent.name)
@pytest.mark.parametrize("quick", [False, True])
def test_what_ships_varies_what_may_be_varied(path: Path, quick: bool) -> None:
    experiment = load(str(path), quick=quick).experiment
    for factor in experiment.factors:
        for one in factor.paths:
            PATHS.check(one)


@pytest.mark.parametrize(
    "path",
    [
        "environment.memory", "environment.load_cpus", "environment.page_cache", "environment.sysctl",
        "environment.sysctl.vm.dirty_bytes", "environment.places.disk.file_system",
        "environment.places.disk.raid.chunk",
        "environment.places.disk.mkfs.stride", "environment.places.disk.mount", "environment.places.disk.mount.data",
        "environment.places.disk.mount.compress-force",
        "environment.places.a-disk.devices", "target.files.tablespaces",
        "target.files.tablespaces.history",
        "target.server", "target.version", "target.transport", "target.files.data",
        "target.files.wal", "target.files.temp", "target.settings.work_mem",
        "target.settings.auto_explain.log_min_duration", "workload.clients", "workload.size", "workload.warehouses",
        "workload.tests", "workload.files", "workload.data", "workload.keys", "workload.mix", "workload.variables",
        "workload.variables.Rows_1", "schedule.kind", "schedule.rate", "schedule.from", "schedule.to", "schedule.steps",
        "schedule.think_ms", "probes.sync", "warmup.until", "measure.transactions_per_client",
    ],
)  # fmt: skip
def test_can_be_varied(path: str) -> None:
    PATHS.check(path)


@pytest.mark.parametrize(
    ("path", "why", "allowed"),
    [
        ("target.dsn", "a run on an existing server has that one server", "target.*"),
        ("design.blocks", "a run has one design", "environment.*"),
        ("design", "a run has one design", "environment.*"),
        ("title", "every trial answers the same one", "environment.*"),
        ("workload.name", "each workload has keys of its own", "workload.*"),
        ("workload.setup", "makes the tables that every trial finds", "workload.*"),
        ("workload.setup_text", "makes the tables that every trial finds", "workload.*"),
        ("workload", "it is a table", "its keys, workload.*"),
        ("target.files", "it is a table", "its keys, target.files.*"),
        ("target.settings", "it is a table", "its keys, target.settings.*"),
        ("target.settings.Work-Mem", "'Work-Mem' is not the name of a setting", "lower-case names such as work_mem"),
        ("environment.sysctl.kernel.panic", "'kernel.panic' is not a vm.* setting", "environment.sysctl.* with"),
        ("environment.places", "it is a table", "its keys, environment.places.*"),
        ("environment.places.disk", "it is a table", "its keys, environment.places.*"),
        ("environment.places.Disk.log", "'Disk' is not the name of a place", "lower-case letters, digits and dashes"),
        ("environment.places.disk.raid", "it is a table", "its keys, environment.places.*.raid.*"),
        ("environment.places.disk.chunk", "there is no such key", "environment.*"),
        ("environment.places.disk.mount.No", "'No' is not the name of a mount option", "noatime, data, commit"),
        ("workload.variables.1st", "'1st' is not the name of a variable", "letters, digits and _"),
        ("workload.keys.zipf", "workload.keys is one setting and is given whole", "workload.keys"),
        ("workload.mix.payment", "workload.mix is one setting and is given whole", "workload.mix"),
        ("workload.klients", "there is no such key", "workload.clients, "),
        ("environment.swapiness", "there is no such key", "environment.swappiness, "),
        ("schedule.first", "there is no such key", "schedule.*"),
        ("clients", "there is no such key", "workload.clients, or other keys of environment.*"),
        ("environment.memory ", "there is no such key", "environment.memory, "),
        ("factors.0.levels", "there is no such key", "environment.*"),
        ("", "there is no such key", "environment.*"),
    ],
)
def test_cannot_be_varied_and_why(path: str, why: str, allowed: str, tmp_path: Path) -> None:
    with pytest.raises(ExperimentError) as caught:
        read(tmp_path, path, "[1]")
    (problem,) = caught.value.problems
    assert problem.where.endswith("experiment.toml:14") and problem.key == "factors.0.path"
    assert f"{path!r} cannot be varied: " in problem.message and why in problem.message
    assert problem.allowed is not None and allowed in problem.allowed


def test_what_is_varied_of_a_place_is_set_in_its_table(tmp_path: Path) -> None:
    sets = ['environment.places.disk.image="1 GiB"', "environment.places.disk.mount.noatime=true"]
    sets.append('target.files.data="disk"')
    source = read(tmp_path, "environment.places.disk.mount.data", '["ordered", "journal"]', sets)
    found = [one.settings.environment.places["disk"] for one in source.treatments]
    assert [one.mount for one in found] == [{"noatime": True, "data": data} for data in ("ordered", "journal")]
    assert [one.image for one in found] == ["1 GiB", "1 GiB"]


def test_a_key_with_dots_of_its_own_is_one_key(tmp_path: Path) -> None:
    sets = ["environment.sysctl.vm.swappiness=10", "target.settings.auto_explain.log_nested_statements=true"]
    source = read(tmp_path, "target.settings.auto_explain.log_min_duration", "[0, 100]", sets)
    assert [one.settings.target.settings for one in source.treatments] == [
        {"auto_explain.log_nested_statements": True, "auto_explain.log_min_duration": value} for value in (0, 100)
    ]
    assert source.experiment.environment.sysctl == {"vm.swappiness": 10}


class Stripes(Strict):
    chunk: int = 64
    label: Annotated[str, Fixed("it is painted on")] = "r0"


class Mirror(Strict):
    copies: int = 2


class Place(Strict):
    array: Stripes | Mirror | None = None
    fs: Literal["ext4", "xfs"] | Mirror = "ext4"
    options: Annotated[dict[str, str], FreeKeys(r"[a-z]+", "an option", "words", is_varied_whole=False)] = Field({})
    weights: dict[str, int] = Field({})


class File(Strict):
    place: Place = Place()
    first: int = Field(1, alias="from")


def test_tables_in_tables_and_tables_of_several_kinds() -> None:
    found = paths_of(File)
    assert found.settings == {"place.array.chunk", "place.array.copies", "place.fs", "place.weights", "from"}
    assert found.tables == {"place", "place.array", "place.options"}
    assert set(found.fixed) == {"place.array.label"} and set(found.free) == {"place.options"}
    found.check("place.options.noatime")
    with pytest.raises(ValueError, match="it is painted on"):
        found.check("place.array.label")
    assert found.parts("place.options.a.b") == ["place", "options", "a.b"]
    assert found.parts("place.array.chunk") == ["place", "array", "chunk"]
