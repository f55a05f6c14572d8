"""What both caches hold, over blocks and in words, against values worked out by hand."""

import json
from pathlib import Path
from typing import Any

from plimsoll.analysis.caches import double_caching
from plimsoll.analysis.probes.page_cache import double_cached_bytes
from plimsoll.record import Trial
from plimsoll.words.probes import caches as cache_words

Json = dict[str, Any]
MB = 10**6


def _reading(rows: dict[str, tuple[int, int, int, int]], elsewhere: int = 0) -> Json:
    names = ("bytes", "server_bytes", "page_cache_bytes", "both_bytes")
    relations = [
        {"relation": name, "kind": "table", **{key: value * MB for key, value in zip(names, values, strict=True)}}
        for name, values in rows.items()
    ]
    total = {key: sum(row[key] for row in relations) for key in names}
    return {"source": "mincore", "relations": relations, "total": total, "elsewhere_bytes": elsewhere * MB}


def _trial(folder: Path, number: int, entry: Json | None, status: str = "finished") -> Trial:
    place = folder / f"{number:04d}"
    place.mkdir(parents=True)
    data: Json = {"number": number, "status": status}
    if entry is not None:
        data["double_caching"] = entry
    (place / "trial.json").write_text(json.dumps(data))
    return Trial(place, {"number": number})


def _two(folder: Path) -> list[Trial]:
    """Two blocks: history is read in both, items in the second only."""
    first = {"after": _reading({"history": (400, 100, 300, 60), "stock": (100, 90, 50, 45)}, 4), "absent": None}
    rows = {"history": (400, 140, 260, 80), "stock": (100, 100, 30, 30), "items": (10, 20, 0, 0)}
    second = {"after": _reading(rows, 6), "before_measure": _reading({"history": (400, 10, 0, 0)}), "absent": None}
    return [_trial(folder, 1, first), _trial(folder, 2, second)]


def test_the_parts_of_a_relation_are_means_over_blocks(tmp_path: Path) -> None:
    trials = _two(tmp_path)
    shown = double_caching.shown_relations(trials)
    assert shown == ["history", "stock", "items"]
    found = double_caching.over_trials(trials, shown)
    assert found is not None
    after = found["after"]
    assert after["trials"] == 2
    history, stock, items = after["relations"]
    parts = ("server_only_bytes", "both_bytes", "page_cache_only_bytes", "neither_bytes")
    assert [history[part] / MB for part in parts] == [50, 70, 210, 70]
    assert sum(history[part] for part in parts) == history["bytes"]
    assert [stock[part] / MB for part in parts] == [57.5, 37.5, 2.5, 2.5]
    # More in the server's cache than in the file: what it has not written yet is its own, and nothing is in neither.
    assert [items[part] / MB for part in parts] == [10, 0, 0, 0]
    assert after["total"]["both_bytes"] == 107.5 * MB
    assert after["total"]["share_of_server"] == 107.5 / 225
    assert after["total"]["share_of_page_cache"] == 107.5 / 320
    assert after["elsewhere_bytes"] == 5 * MB
    assert found["before_measure"]["trials"] == 1
    assert double_cached_bytes(trials[0]) == 105 * MB


def test_small_relations_are_put_together(tmp_path: Path) -> None:
    rows = {f"r{place:02d}": (50, 50 - place, 0, 0) for place in range(15)}
    trial = _trial(tmp_path, 1, {"after": _reading(rows), "absent": None})
    shown = double_caching.shown_relations([trial])
    assert shown == [f"r{place:02d}" for place in range(10)]
    found = double_caching.over_trials([trial], shown)
    assert found is not None
    assert found["after"]["relations"][-1]["relation"] == double_caching.OTHERS
    assert found["after"]["relations"][-1]["server_bytes"] == sum(50 - place for place in range(10, 15)) * MB
    assert found["after"]["relations"][-1]["bytes"] == 250 * MB


def test_the_sentence_names_what_is_held_twice(tmp_path: Path) -> None:
    trials = _two(tmp_path)
    little = _trial(tmp_path, 3, {"after": _reading({"history": (400, 10, 20, 1)}), "absent": None})
    shown = double_caching.shown_relations([*trials, little])
    verdict = {
        "treatments": {
            "t1": {"double_caching": double_caching.over_trials([little], shown)},
            "t2": {"double_caching": double_caching.over_trials(trials, shown)},
            "t3": {"double_caching": None},
        }
    }
    levels = [{"treatment": f"t{place}", "level": f"{size} MiB"} for place, size in ((1, 64), (2, 512), (3, 1024))]
    line = cache_words.held_twice_line(verdict, {"label": "shared_buffers", "levels": levels}, "at size 2 x memory")
    assert line == (
        "In both caches, most at shared_buffers 512 MiB at size 2 x memory: 108 MB (history 70, stock 38); "
        "48% of what the server's cache and 34% of what the page cache holds of the database"
    )
    assert cache_words.held_twice_line(verdict, {"label": "shared_buffers", "levels": levels[2:]}) is None


def test_the_sentence_on_device_reads_says_its_parts() -> None:
    parts = {"demand_bytes": 60, "ahead_used_bytes": 10, "ahead_unused_bytes": 20, "other_bytes": 0, "swap_in_bytes": 5}
    found = {key: value * MB for key, value in parts.items()}
    found |= {"device_bytes": 100 * MB, "unexplained_bytes": 5 * MB, "unexplained_share": 0.05}
    verdict = {"treatments": {"t1": {"reconciliation": found}, "t2": {"reconciliation": None}}}
    levels = [{"treatment": "t1", "level": "64 MiB"}, {"treatment": "t2", "level": "512 MiB"}]
    assert cache_words.device_reads_line(verdict, {"label": "shared_buffers", "levels": levels}) == (
        "Device reads, most at shared_buffers 64 MiB: 100 MB, of which 60% asked for and missed, 30% prefetched "
        "(33% of it used), 5% swapped in, 5.0% not explained"
    )


def test_absent_readings_say_why(tmp_path: Path) -> None:
    trials = [
        _trial(tmp_path, 1, {"after": None, "before_measure": None, "absent": "no extension pg_buffercache"}),
        _trial(tmp_path, 2, None),
        _trial(tmp_path, 3, None, status="failed"),
    ]
    assert double_caching.absent(trials) == [
        {"reason": "no extension pg_buffercache", "trials": [1]},
        {"reason": "the record has none: it is of an earlier version", "trials": [2]},
    ]
    assert double_caching.over_trials(trials, []) is None
    assert double_cached_bytes(trials[0]) is None
