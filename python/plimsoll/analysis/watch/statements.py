"""What the picture of a server at work says in breakdown.json: its headline and its caveats."""

from __future__ import annotations

from plimsoll.analysis.breakdown.parts import BY_CALLS, CPU, PLAIN, RUN_QUEUE, UNATTRIBUTED, is_by_calls
from plimsoll.analysis.watch.document import Watched
from plimsoll.analysis.watch.sums import largest
from plimsoll.quantities import duration, share

SAID = 3
UNNAMED_MAX = 0.05
UNSHARED_MAX = 0.01
LOOK_SLOW_NS = 100_000_000


def headline(document: Watched) -> str:
    """How busy the server was, and with what."""
    busy = document["busy_backends"]
    if not document["watched_ns"]:
        return "Nothing was watched: the watch ended before its first line"
    if not document["busy_ns"]:
        return "No backend did anything while it was watched"
    parts = {row["bucket"]: float(row["ns"]) for row in document["buckets"] if row["share"] is not None}
    named = "; ".join(f"{part:.0%} {PLAIN.get(name, name)}" for name, part in largest(parts, SAID))
    return f"On average {busy:.2f} backends were busy: {named}"


def caveats(document: Watched) -> list[str]:
    """What bears on the figures."""
    said = []
    session = document["session"]
    if not session.get("pid"):
        said.append(
            "queries, users and lock chains are not shown: no session on the server "
            f"({session.get('why') or session.get('lost')}); name one with --dsn"
        )
    elif not session.get("sees_all"):
        said.append(
            f"the queries of others are hidden from user {session.get('user')}: use a superuser, or "
            f"grant pg_read_all_stats to {session.get('user')}"
        )
    if session.get("pid") and session.get("lost"):
        said.append(f"sampling of pg_stat_activity ended early: {session['lost']}")
    if document["ended_early"]:
        said.append(str(document["ended_early"]))
    if is_by_calls(document["probe"]):
        said.append(BY_CALLS)
    for what, count in document["probe"]["lost"].items():
        said.append(f"the probe lost events ({count:,} {what.replace('_', ' ')}): times are lower bounds")
    for row in document["buckets"]:
        if row["bucket"] == UNATTRIBUTED and (row["share"] or 0) > UNNAMED_MAX:
            said.append(f"{share(row['share'])} of the busy time is in {row['bucket']}: {PLAIN[row['bucket']]}")
    return said + _of_sharing(document)


def _of_sharing(document: Watched) -> list[str]:
    sharing, said = document["sharing"], list[str]()
    if sharing is None:
        return said
    if document["queries"] and all(row["query_id"] is None for row in document["queries"]):
        said.append(
            "the server computes no query identifiers (from PostgreSQL 14: compute_query_id = on): queries are "
            "distinguished by the first 200 characters of their text without its values"
        )
    missed = sum(ns for name, ns in sharing["unshared"].items() if name != "client")
    if document["busy_ns"] and missed / document["busy_ns"] > UNSHARED_MAX:
        names = ", ".join(sorted(name for name in sharing["unshared"] if name not in ("client", CPU, RUN_QUEUE)))
        said.append(
            f"{share(missed / document['busy_ns'])} of the busy time has no query: no sample caught it ({names or CPU})"
        )
    looks = document["looks"]
    if looks is not None and looks["took_ns_p99"] > LOOK_SLOW_NS:
        said.append(
            f"one sample in a hundred took longer than {duration(looks['took_ns_p99'])}: the server was slow to answer"
        )
    return said
