"""A factor of a place varies something only where something lies on that place: elsewhere it makes no treatments."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll.experiment import ExperimentError, Source, load, plan_trials
from plimsoll.experiment.reading.source import reload
from plimsoll.run.planning.documents import plan_document

CHUNK, READ_AHEAD = "environment.places.stripe.raid.chunk", "environment.places.plain.read_ahead"
FILE = """format = 1
name = "mine"
title = "A question"

[environment.places.plain]
image = "1 GiB"

[environment.places.stripe]
image = "1 GiB"
images = 2
raid = {level = 0}

[target.files]
data = "plain"

[workload]
name = "bank"
scale = 1

[measure]
seconds = 1

[design]
kind = "full factorial"

[[factors]]
path = "target.files.data"
levels = ["plain", "stripe"]

[[factors]]
path = "environment.places.stripe.raid.chunk"
levels = ["8 KiB", "64 KiB", "512 KiB"]

[[factors]]
path = "workload.clients"
levels = [1, 4]
"""


def read(folder: Path, text: str = FILE) -> Source:
    path = folder / "experiment.toml"
    path.write_text(text)
    return load(str(path))


def varied(source: Source, *keys: str) -> list[tuple[object, ...]]:
    return [tuple(one.levels[key] for key in keys) for one in source.treatments]


def test_a_chunk_is_varied_where_something_lies_on_its_stripe(tmp_path: Path) -> None:
    source = read(tmp_path)
    assert varied(source, "target.files.data", CHUNK, "workload.clients") == [
        *[("plain", "8 KiB", clients) for clients in (1, 4)],
        *[("stripe", chunk, clients) for chunk in ("8 KiB", "64 KiB", "512 KiB") for clients in (1, 4)],
    ]
    assert [one.id for one in source.treatments] == [f"t{number}" for number in range(1, 9)]
    assert [one.label for one in source.treatments][:3] == [
        "data plain, clients 1", "data plain, clients 4", "data stripe, chunk 8 KiB, clients 1",
    ]  # fmt: skip
    assert [one.without for one in source.treatments] == [(CHUNK,)] * 2 + [()] * 6
    document = plan_document(plan_trials(source.experiment, source.treatments, 1))
    assert document["treatments"]["t1"]["without"] == [CHUNK] and "without" not in document["treatments"]["t3"]
    again = reload(source.experiment.model_dump(mode="json"), source.path, False)
    assert again.treatments == source.treatments, "a run that is resumed has the same"


def test_a_log_or_an_export_is_lain_on_by_what_stands_on_it(tmp_path: Path) -> None:
    held = FILE.replace('levels = ["plain", "stripe"]', 'levels = ["plain", "/srv"]').replace(
        "raid = {level = 0}", 'raid = {level = 0}\nfile_system = "none"'
    )
    assert {CHUNK} == {key for one in read(tmp_path, _logged(held)).treatments for key in one.without}
    assert varied(read(tmp_path, _logged(held)), "target.files.data", CHUNK)[::2] == [
        *[("plain", chunk) for chunk in ("8 KiB", "64 KiB", "512 KiB")], ("/srv", "8 KiB"),
    ]  # fmt: skip


def _logged(text: str) -> str:
    return text.replace('[environment.places.plain]\nimage = "1 GiB"', '[environment.places.plain]\nimage = "1 GiB"\n'
                        'log = "stripe"')  # fmt: skip


def test_one_factor_at_a_time_has_none_that_varies_nothing(tmp_path: Path) -> None:
    source = read(tmp_path, FILE.replace("full factorial", "one factor at a time"))
    assert varied(source, "target.files.data", CHUNK) == [("plain", "8 KiB"), ("stripe", "8 KiB"), ("plain", "8 KiB")]


def test_a_factor_that_varies_something_beside_a_place_is_varied_everywhere(tmp_path: Path) -> None:
    levels = "".join(
        f'[[factors.levels]]\nlabel = "{chunk}"\n[factors.levels.set]\n"{CHUNK}" = "{chunk}"\n'
        f'"workload.seed" = {seed}\n'
        for seed, chunk in enumerate(("8 KiB", "64 KiB"), start=1)
    )
    named = FILE.replace(f'path = "{CHUNK}"\nlevels = ["8 KiB", "64 KiB", "512 KiB"]\n', f'name = "both"\n{levels}')
    assert "both" in named
    assert len(read(tmp_path, named).treatments) == 2 * 2 * 2


def test_what_is_too_much_is_counted_without_what_is_the_same(tmp_path: Path) -> None:
    many = FILE.replace("levels = [1, 4]", f"levels = {[*range(1, 41)]}").replace(
        'levels = ["8 KiB", "64 KiB", "512 KiB"]', f"levels = {[4096 << power for power in range(9)]}"
    )
    fits = many.replace('kind = "full factorial"', 'kind = "full factorial"\nblocks = 25')
    assert len(read(tmp_path, fits).treatments) == 40 + 9 * 40, "25 blocks of 2 x 9 x 40 would be 18,000 trials"
    with pytest.raises(ExperimentError) as caught:
        read(tmp_path, fits.replace("blocks = 25", "blocks = 26"))
    assert "400 treatments in 26 blocks" in str(caught.value) and "at most 10000 trials" in str(caught.value)
