"""The page of a watched server: where its time went, over time, by query, backend and wait, its slowest transactions.

Computes nothing: every number stands in breakdown.json and is only given a unit here. Text of the server (queries,
users, programs, relations) is escaped by the template like any other.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from plimsoll.analysis.breakdown.parts import CLIENT, in_order
from plimsoll.analysis.watch.curve import began_ns, longest_ns
from plimsoll.analysis.watch.document import BucketRow, Session, WatchDocument
from plimsoll.analysis.watch.queries import exact_share, is_exact
from plimsoll.quantities import duration, share
from plimsoll.record import RecordError, Run, open_run, writer
from plimsoll.record.run import read_json
from plimsoll.report.drawing.html import filled
from plimsoll.report.drawing.machine import machine_rows
from plimsoll.report.watch import drawings as drawn
from plimsoll.words.watch_screen import watch_screen

Json = dict[str, Any]
NONE = "–"
_LARGEST_SHOWN = 5
_TITLES = {
    "caveats": "Caveats",
    "buckets": "Where the time went",
    "timeline": "Over time",
    "queries": "By query",
    "backends": "By backend",
    "waits": "By wait",
    "locks": "Who blocked whom",
    "slowest": "The slowest transactions",
    "rest": "Cost, processes and machine",
}
_NOT_ALWAYS = ("caveats", "locks", "slowest")  # sections, and what their templates are filled with


def _facts(run: Run, document: WatchDocument) -> list[tuple[str, str]]:
    plimsoll, server, session = run.data.get("plimsoll") or {}, document["server"], document["session"]
    clients = document["clients"]
    return [
        ("run", str(document["run"])),
        ("server", f"PostgreSQL {session.get('version') or server.get('major')}, process {server.get('pid')}"),
        ("data", str(server.get("data_directory"))),
        ("watched", f"{document['watched_ns'] / 1e9:.0f} s"),
        ("transactions", f"{document['transactions']:,} ({document['transactions_per_second'] or 0:,.1f} a second)"),
        (
            "clients at the end",
            f"{clients['busy']} busy, {clients['idle_in_transaction']} idle in a transaction, "
            + ("idle unknown" if clients["idle"] is None else f"{clients['idle']} idle"),
        ),
        ("plimsoll", f"{plimsoll.get('version', '?')} ({plimsoll.get('commit') or 'no commit'})"),
    ]


def _bucket_rows(buckets: list[BucketRow], document: WatchDocument) -> list[Json]:
    return [
        {
            "bucket": row["bucket"],
            "plain": document["plain"].get(row["bucket"], ""),
            "bar": drawn.bar({row["bucket"]: row["ns"]}, document["busy_ns"] or None, 420)
            if row["share"] is not None
            else "not busy",
            "share": share(row["share"]),
            "backends": f"{row['backends'] or 0:.3f}",
            "each": duration(row["ns_per_transaction"]),
        }
        for row in buckets
    ]


def _query_rows(document: WatchDocument) -> list[Json] | None:
    if document["queries"] is None:
        return None
    longest = longest_ns(document["queries"])
    rows = []
    for row in document["queries"]:
        exact = is_exact(row)
        who = [_session(one) for one in row["sessions"] if one]
        rows.append(
            {
                "text": drawn.shown_text(row["text"], row["cut"]),
                "id": row["query_id"],
                "bar": drawn.bar(row["buckets"], longest or None),
                "share": drawn.share_words(row["share"], None if exact else row["margin"]),
                "how": "exact" if exact else f"{exact_share(row):.0%} exact" if row["exact_ns"] else "sampled",
                "looks": f"{row['looks']:,}",
                "backends": row["backends"],
                "client": duration(row["client_ns"]) if row["client_ns"] else NONE,
                "who": "; ".join(dict.fromkeys(who)),
            }
        )
    return rows


def _session(one: Session) -> str:
    database, user, application = one
    return f"{user or NONE} in {database or NONE}" + (f" ({application})" if application else "")


def _backend_rows(document: WatchDocument) -> list[Json]:
    longest = longest_ns(document["backends"])
    rows = []
    for row in document["backends"]:
        who = _session([row["database"], row["user"], row["application"]]) if row["user"] or row["database"] else NONE
        rows.append(
            {
                "pid": row["pid"],
                "what": row["what"] or "",
                "workers": len(row["workers"]),
                "who": who,
                "bar": drawn.bar(row["buckets"], longest or None),
                "busy": NONE if row["busy"] is None else f"{row['busy']:.3f}",
                "transactions": f"{row['transactions']:,}",
                "query": row["query"] or NONE,
            }
        )
    return rows


def _wait_rows(document: WatchDocument) -> list[Json]:
    return [
        {
            "event": row["event"],
            "bucket": row["bucket"],
            "times": f"{row['per_second'] or 0:,.1f}",
            "each": duration(row["ns_each"]),
            "all": duration(row["ns"]),
            "share": share(row["share"]),
        }
        for row in document["waits"]
    ]


def _lock_rows(document: WatchDocument) -> list[Json]:
    return [
        {
            "waiter": row["waiter"],
            "blocker": row["blocker"] or "a prepared transaction",
            "kind": row["kind"],
            "mode": row["mode"],
            "relation": row["relation"] or "unknown",
            "waited": duration(row["ns"]) + (", and still does" if row["now"] else ""),
        }
        for row in document["lock_waits"]
    ]


def _slowest_rows(document: WatchDocument) -> list[Json]:
    rows = document["latency"]["slowest"] if document["latency"] else []
    longest, begin = max((row["ns"] for row in rows), default=1), began_ns(document["seconds"])
    return [
        {
            "pid": row["pid"],
            "at": f"{(row['began_ns'] - begin) / 1e9:,.1f} s" if begin is not None else NONE,
            "took": duration(row["ns"]) + (", not over" if row["open"] else ""),
            "bar": drawn.spread(row, longest),
            "query": row["query"] or "not sampled",
        }
        for row in rows
    ]


def _process_rows(document: WatchDocument) -> list[Json]:
    return [
        {
            "what": row["what"],
            "processes": row["processes"],
            "cpu": NONE if row["on_cpu"] is None else f"{100 * row['on_cpu']:.1f} %",
            "waits": "; ".join(f"{one['event']} {duration(one['ns'])}" for one in row["waits"]) or NONE,
            "task": "; ".join(text for text in row["at_work_on"] if text),
        }
        for row in document["processes"]
    ]


def _latency_rows(document: WatchDocument) -> list[tuple[str, str]]:
    one = document["latency"]
    if not one:
        return []
    rows = [("transactions that ended", f"{one['count']:,}"), ("mean", duration(one["mean_ns"]))]
    rows += [(f"p{key}", duration(value)) for key, value in one["percentiles"].items()]
    return [*rows, ("longest that ended", duration(one["max_ns"])), ("under way at the end", f"{one['open']:,}")]


def _cost_rows(document: WatchDocument) -> list[tuple[str, str]]:
    cost, looks = document["cost"], document["looks"]

    def of_machine(value: float | None) -> str:
        return NONE if value is None else f"{100 * value:.2f} % of the machine's CPU time"

    lost = ", ".join(f"{count:,} {what}" for what, count in document["probe"]["lost"].items())
    return [
        ("the probe's programs in the kernel", of_machine(cost["probe_share"])),
        ("sampling pg_stat_activity (server and client)", of_machine(cost["looks_share"])),
        ("Plimsoll's own processes, drawing included", of_machine(cost["plimsoll_share"])),
        ("samples", f"{looks['count']:,}, {looks['per_second'] or 0:.1f} a second" if looks else "none"),
        ("time of a sample, median", duration(looks["took_ns_p50"] if looks else None)),
        ("time of a sample, p99", duration(looks["took_ns_p99"] if looks else None)),
        ("events lost", lost or "none"),
    ]  # fmt: skip


def _context(run: Run, document: WatchDocument) -> Json:
    context = _filled(run, document)
    there = [key for key in _TITLES if key not in _NOT_ALWAYS or context[key]]
    return context | {"titles": _TITLES, "sections": [{"key": key, "title": _TITLES[key]} for key in there]}


def _filled(run: Run, document: WatchDocument) -> Json:
    command, settings = run.data.get("command"), (document["session"].get("settings") or {})
    names = in_order({name for one in document["seconds"] for name in one["buckets"]})
    version = document["session"].get("version") or document["server"].get("major")
    return {
        "title": f"Where the time of PostgreSQL {version} goes",
        "facts": _facts(run, document),
        "status": document["status"],
        "asked": document["asked_seconds"],
        "first": watch_screen(document),
        "caveats": document["caveats"],
        "buckets": _bucket_rows(document["buckets"], document),
        "largest": _bucket_rows(
            sorted(document["buckets"], key=lambda row: -(row["share"] or 0))[:_LARGEST_SHOWN], document
        ),
        "legend": drawn.legend(names, document["plain"]),
        "timeline": drawn.timeline(document["seconds"]),
        "queries": _query_rows(document),
        "why_no_queries": document["session"].get("why") or "no sample was taken",
        "sharing": document["sharing"],
        "backends": _backend_rows(document),
        "left_out": document["backends_left_out"],
        "waits": _wait_rows(document),
        "locks": _lock_rows(document),
        "relations": [{**row, "relation": row["relation"] or "unknown"} for row in document["relations"]],
        "slowest": _slowest_rows(document),
        "latency": _latency_rows(document),
        "processes": _process_rows(document),
        "cost": _cost_rows(document),
        "client": CLIENT,
        "machine": machine_rows(run),
        "settings": sorted({**settings.get("settings", {}), **settings.get("durability", {})}.items()),
        "command": " ".join(str(word) for word in command) if isinstance(command, list) else "",
    }


def write_live_report(run_dir: str | Path) -> Path:
    """Draws breakdown.json; returns the page's path."""
    run = open_run(run_dir)
    document = cast(WatchDocument | None, read_json(run.path / "breakdown.json"))
    if document is None:
        raise RecordError(f"{run.path}: no breakdown.json; judge the run first with plimsoll report")
    folder = run.path / "report"
    folder.mkdir(exist_ok=True)
    style = (Path(__file__).parent / "live.css").read_text(encoding="utf-8")
    writer.write_text(folder / "index.html", filled("watch/live.html.j2", _context(run, document), style))
    return folder / "index.html"
