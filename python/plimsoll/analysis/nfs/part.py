"""Calls of NFS by treatment, with intervals over blocks, and what each level of a factor changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from plimsoll.analysis.captures.density import GROUPS, group_of
from plimsoll.analysis.nfs import client
from plimsoll.analysis.nfs import trial as of_trial
from plimsoll.analysis.nfs.document import (
    NfsAccount,
    NfsCalls,
    NfsClass,
    NfsEffect,
    NfsKind,
    NfsMoved,
    NfsOfTreatment,
    NfsOperation,
)
from plimsoll.analysis.nfs.means import over, percentile_over
from plimsoll.analysis.nfs.trial import PROBE, NfsTrial
from plimsoll.analysis.part import Context, Part
from plimsoll.analysis.statistics.intervals import paired
from plimsoll.record import Run, Trial
from plimsoll.record.verdict import Mean, Used

Json = dict[str, Any]
CALLS: Final = "calls"
APART_MAX: Final = 4  # settings of the other factors that effects are told by
PERCENTILES: Final = {"reply_ns_p50": 50, "reply_ns_p95": 95, "reply_ns_p99": 99}


Rates = dict[tuple[int, str], dict[str, float]]  # calls a transaction by group, of a block and treatment


def nfs_calls(run: Run, used: Used) -> NfsCalls | None:
    """The `nfs_calls` of verdict.json; None where no trial that stands recorded any.

    One treatment after the other: the calls of one are what memory has to hold.
    """
    trials = {trial.number: trial for trial in run.trials}
    standing: dict[str, list[tuple[int, Trial]]] = {name: [] for name in run.plan.get("treatments") or {}}
    for (block, treatment), entry in sorted(used.items()):
        standing.setdefault(treatment, []).append((block, trials[entry["number"]]))
    found: dict[str, NfsOfTreatment] = {}
    rates: Rates = {}
    for name, of_treatment in standing.items():
        mine = [(block, one) for block, trial in of_treatment if (one := of_trial.read(trial)) is not None]
        if mine:
            found[name] = _treatment([one for _, one in mine])
            rates |= {(block, name): _rates(one) for block, one in mine if one.transactions}
    return {"treatments": found, "effects": effects(run.plan, rates)} if found else None


def _each(mine: Sequence[NfsTrial], counts: Iterable[float]) -> Mean | None:
    """Of one transaction; `counts`: one of each trial."""
    return over(count / one.transactions for one, count in zip(mine, counts, strict=True) if one.transactions)


def _treatment(mine: list[NfsTrial]) -> NfsOfTreatment:
    with_transactions = [one.transactions for one in mine if one.transactions]
    lost: dict[str, int] = {}
    for one in mine:
        for what, count in one.lost.items():
            lost[what] = lost.get(what, 0) + count
    reports = {"mounts": [mount for one in mine for mount in one.report["mounts"]]}
    return {
        "trials": [one.number for one in mine],
        "mounts": of_trial.mounts(reports),
        "calls": sum(len(one.calls) for one in mine),
        "transactions": sum(with_transactions) or None,
        "calls_per_transaction": _each(mine, (len(one.calls) for one in mine)),
        "groups": {name: mean for name in GROUPS if (mean := _each(mine, (_in_group(one, name) for one in mine)))},
        "operations": _operations(mine),
        "classes": _classes(mine),
        "kinds": _kinds(mine),
        "moved": _moved(mine),
        "accounts": _accounts(mine),
        "lost": lost,
        "client": client.of_treatment(mine),
        "client_absent": _why_no_client(mine),
        "scatter": of_trial.scatter(mine[0]),
        "scatter_trial": mine[0].number,
    }


def _why_no_client(mine: Sequence[NfsTrial]) -> str | None:
    reasons = ((one.report.get("absent") or {}).get("tasks") for one in mine if one.tasks is None)
    return next((str(why) for why in reasons if why), None)


def _of(one: NfsTrial, operation: tuple[str, str]) -> np.ndarray:
    if operation not in one.names:
        return np.zeros(len(one.calls), bool)
    found: np.ndarray = one.calls["operation"] == one.names.index(operation)
    return found


def _in_group(one: NfsTrial, group: str) -> int:
    places = [place for place, (_, name) in enumerate(one.names) if group_of(name) == group]
    return int(np.isin(one.calls["operation"], places).sum())


def _operations(mine: Sequence[NfsTrial]) -> list[NfsOperation]:
    names = list(dict.fromkeys(name for one in mine for name in one.names))
    return sorted((_operation(mine, name) for name in names), key=lambda row: (-row["calls"], row["name"]))


def _operation(mine: Sequence[NfsTrial], operation: tuple[str, str]) -> NfsOperation:
    chosen = [(one, _of(one, operation)) for one in mine]
    calls = [one.calls[of_it] for one, of_it in chosen]
    replies = [one.reply_ns[of_it & one.answered] for one, of_it in chosen]
    answered_bytes = [int(rows["answered_bytes"].sum(dtype=np.int64)) for rows in calls]
    percentiles = {key: percentile_over(replies, percent) for key, percent in PERCENTILES.items()}
    return {
        "protocol": operation[0],
        "name": operation[1],
        "calls": sum(len(rows) for rows in calls),
        "unanswered": sum(len(rows) for rows in calls) - sum(len(of_one) for of_one in replies),
        "retransmissions": sum(int(rows["retransmissions"].sum()) for rows in calls),
        "errors": sum(int(np.count_nonzero((rows["status"] != 0) | (rows["rpc_status"] != 0))) for rows in calls),
        "per_transaction": _each(mine, (int(np.count_nonzero(of_it)) for _, of_it in chosen)),
        "answered_bytes": sum(answered_bytes),
        "bytes_per_call": over(
            total / len(of_one) for total, of_one in zip(answered_bytes, replies, strict=True) if total and len(of_one)
        ),
        "reply_ns_p50": percentiles["reply_ns_p50"],
        "reply_ns_p95": percentiles["reply_ns_p95"],
        "reply_ns_p99": percentiles["reply_ns_p99"],
    }


def _classes(mine: Sequence[NfsTrial]) -> list[NfsClass]:
    names = sorted({name for one in mine for name in one.file_class[0]})
    rows: list[NfsClass] = []
    for file_class in names:
        for operation in dict.fromkeys(name for one in mine for name in one.names):
            chosen = [(one, _of_class(one, file_class) & _of(one, operation)) for one in mine]
            if not (calls := sum(int(np.count_nonzero(of_it)) for _, of_it in chosen)):
                continue
            rows.append(
                {
                    "file_class": file_class,
                    "name": operation[1],
                    "calls": calls,
                    "per_transaction": _each(mine, (int(np.count_nonzero(of_it)) for _, of_it in chosen)),
                    "answered_bytes": sum(
                        int(one.calls["answered_bytes"][of_it].sum(dtype=np.int64)) for one, of_it in chosen
                    ),
                    "reply_ns_p50": percentile_over((one.reply_ns[of_it & one.answered] for one, of_it in chosen), 50),
                }
            )
    return sorted(rows, key=lambda row: (row["file_class"], -row["calls"], row["name"]))


def _of_class(one: NfsTrial, file_class: str) -> np.ndarray:
    names, of_call = one.file_class
    found: np.ndarray = of_call == (names.index(file_class) if file_class in names else -1)
    return found


def _kinds(mine: Sequence[NfsTrial]) -> list[NfsKind]:
    """Of the trials whose transactions went one after the other."""
    told = [(one, by_kind) for one in mine if (by_kind := of_trial.by_transaction(one))]
    rows: list[NfsKind] = []
    for kind in dict.fromkeys(name for _, by_kind in told for name in by_kind):
        with_it = [(one, *by_kind[kind]) for one, by_kind in told if kind in by_kind]
        operations = dict.fromkeys(name for one, _, _ in with_it for name in one.names)
        each = {
            name: over(np.count_nonzero(_of(one, (protocol, name)) & sent) / count for one, count, sent in with_it)
            for protocol, name in operations
        }
        rows.append(
            {
                "kind": kind,
                "transactions": sum(count for _, count, _ in with_it),
                "operations": {name: mean for name, mean in each.items() if mean and mean["value"]},
                "read_bytes": over(_bytes(one, sent, "READ") / count for one, count, sent in with_it),
                "written_bytes": over(_bytes(one, sent, "WRITE") / count for one, count, sent in with_it),
            }
        )
    return rows


def _bytes(one: NfsTrial, sent: np.ndarray, name: str) -> int:
    places = [place for place, (_, known) in enumerate(one.names) if known == name]
    chosen = sent & np.isin(one.calls["operation"], places)
    return int(one.calls["answered_bytes"][chosen].sum(dtype=np.int64))


def _moved(mine: Sequence[NfsTrial]) -> NfsMoved | None:
    told = [(one.transactions or 1, moved) for one in mine if (moved := of_trial.bytes_moved(one)) is not None]
    if not told:
        return None
    asked = [(moved["read"] + moved["read_direct"], moved["from_server"]) for _, moved in told]
    return {
        "asked_read": over((moved["read"] + moved["read_direct"]) / count for count, moved in told),
        "served_read": over(moved["from_server"] / count for count, moved in told),
        "asked_write": over((moved["written"] + moved["written_direct"]) / count for count, moved in told),
        "served_write": over(moved["to_server"] / count for count, moved in told),
        "kept_share": over((1 - served / wanted for wanted, served in asked if wanted), floor=None),
    }


def _accounts(mine: Sequence[NfsTrial]) -> list[NfsAccount] | None:
    """Of all trials together; explained where it is in each."""
    found: dict[str, NfsAccount] = {}
    for one in mine:
        rows = of_trial.accounts(one)
        if rows is None:
            return None
        for row in rows:
            known = found.get(row["operation"])
            if known is None:
                found[row["operation"]] = row
                continue
            found[row["operation"]] = {
                "operation": row["operation"],
                "client_calls": known["client_calls"] + row["client_calls"],
                "capture_calls": known["capture_calls"] + row["capture_calls"],
                "difference": known["difference"] + row["difference"],
                "client_retransmissions": known["client_retransmissions"] + row["client_retransmissions"],
                "capture_retransmissions": known["capture_retransmissions"] + row["capture_retransmissions"],
                "fewer_max": known["fewer_max"] + row["fewer_max"],
                "more_max": known["more_max"] + row["more_max"],
                "is_of_mount": row["is_of_mount"],
                "is_explained": known["is_explained"] and row["is_explained"],
            }
    return [found[name] for name in sorted(found)]


def effects(plan: Json, each: Rates) -> list[NfsEffect]:
    """Each level of a factor against its first one: within the block, all other factors equal.

    Where the others have a few settings, by each of them: a mean over data that fit memory and data that do not is
    that of neither.
    """
    rows: list[NfsEffect] = []
    for factor in plan.get("factors") or []:
        labels = [str(level["label"]) for level in factor["levels"]]
        by_rest = _by_rest(plan, str(factor["path"]))
        measured = [label for label in labels if any(_has(each, pairs.get(label)) for _, pairs in by_rest)]
        if not measured:
            continue
        compared = [one for one in by_rest if sum(_has(each, name) for name in one[1].values()) > 1]
        apart = [[one] for one in compared] if len(compared) <= APART_MAX else [compared]
        varying = {key for rest, _ in compared for key, level in rest.items() if level != compared[0][0].get(key)}
        for label in measured[1:]:
            for together in apart:
                pairs = [
                    (block, name, of_rest[label])
                    for _, of_rest in together
                    if (name := of_rest.get(measured[0])) is not None and label in of_rest
                    for block in sorted({block for block, _ in each})
                    if (block, name) in each and (block, of_rest[label]) in each
                ]
                rest = together[0][0] if len(together) == 1 else {}
                at = {key: level for key, level in rest.items() if key in varying}
                rows += (
                    effect
                    for what in (CALLS, *GROUPS)
                    if (effect := _effect(plan, factor, (measured[0], label, what), at, pairs, each)) is not None
                )
    return rows


def _has(each: Rates, treatment: str | None) -> bool:
    return any(name == treatment for _, name in each)


def _by_rest(plan: Json, path: str) -> list[tuple[dict[str, str], dict[str, str]]]:
    """Treatments that differ in this factor alone: the levels of the others, and {level: treatment}."""
    found: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for name, treatment in (plan.get("treatments") or {}).items():
        levels = {key: str(value) for key, value in (treatment.get("levels") or {}).items()}
        rest = tuple(sorted((key, value) for key, value in levels.items() if key != path))
        if path in levels:
            found.setdefault(rest, {})[levels[path]] = name
    return [(dict(rest), of_rest) for rest, of_rest in found.items()]


def _rates(one: NfsTrial) -> dict[str, float]:
    """Calls a transaction."""
    count = one.transactions or 1
    return {CALLS: len(one.calls) / count} | {name: _in_group(one, name) / count for name in GROUPS}


def _effect(
    plan: Json,
    factor: Json,
    compared: tuple[str, str, str],
    at: dict[str, str],
    pairs: Sequence[tuple[int, str, str]],
    each: Rates,
) -> NfsEffect | None:
    """`compared`: the level that the other one is set against, the other one, and what of the calls; `at`: by path."""
    against, level, what = compared
    names = {str(one["path"]): str(one.get("label") or one["path"]) for one in plan["factors"]}
    by_block: dict[int, list[tuple[float, float]]] = {}
    for block, one, other in pairs:
        by_block.setdefault(block, []).append((each[block, one][what], each[block, other][what]))
    sides = [tuple(float(np.mean(side)) for side in zip(*values, strict=True)) for values in by_block.values()]
    first, second = over(side[0] for side in sides), over(side[1] for side in sides)
    difference = paired([side[1] - side[0] for side in sides])
    if first is None or second is None or difference is None:
        return None
    ratios = [side[1] / side[0] for side in sides if side[0] and side[1]]
    return {
        "factor": names[str(factor["path"])],
        "level": level,
        "against": against,
        "at": ", ".join(f"{names.get(path, path)} {of_other}" for path, of_other in at.items()),
        "what": what,
        "first": first,
        "second": second,
        "difference": difference.interval(),
        "ratio": over(ratios, log=True) if len(ratios) == len(sides) else None,
    }


def _judge(context: Context) -> NfsCalls | None:
    return nfs_calls(context.run, context.used)


def _trial_caveats(trial: Trial, _read: object) -> list[str]:
    one = of_trial.read(trial)
    if one is None:
        return []
    rows = of_trial.accounts(one)
    if rows is None:
        return ["the client's own account of NFS calls could not be read: they are not checked"]
    said = []
    if wrong := [row["operation"] for row in rows if not row["is_explained"]]:
        said.append(f"NFS calls by the capture and by the client differ unexplained: {', '.join(wrong)}")
    if wrong := client.differs_in(one):
        said.append(f"NFS calls by the capture and by the kernel's tracepoint are not the same: {', '.join(wrong)}")
    return said


PART = Part(PROBE, _judge, trial_caveats=_trial_caveats)
