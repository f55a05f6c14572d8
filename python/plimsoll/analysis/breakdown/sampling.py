"""Which transactions have a breakdown where only slices of time were watched, and what a reader has to know of that.

To keep within its budget the probe watches one slice of 50 ms in `one_in`, which only grows during a segment. From a
backend's first answer in a slice, or its waking up from waiting for its client, what it begins there is followed to its
end; of what is between slices nothing is known. So that early transactions count no more than late ones, one that was
recorded at 1 in a is kept with probability a/max; then all count alike.

The fact that constrains it: a transaction has figures only if all its requests were recorded. One of several of the
server's transactions (tried again, say, or each request by itself) that begins near the end of a slice, or before it,
is recorded in part and left out. That loss grows with its length against 50 ms: of those, the long count too little.
"""

from collections.abc import Mapping

import numpy as np

from plimsoll.analysis.breakdown.reading import Sampling
from plimsoll.record.summary import Probe

# Bits of `flags`: it counts from the answer before it; its end could not be read.
QUEUED, NO_REPLY = 1, 16
# The largest count of requests that a row of transactions.npy can hold.
SENT_MAX = 65_535
# More in part than this, of those met, and what is left may be no picture of all.
IN_PART_MAX = 0.05


def column(table: np.ndarray, name: str, absent: int) -> np.ndarray:
    """A column as whole numbers; `absent` throughout where the record has none, as earlier ones."""
    if name in (table.dtype.names or ()):
        return table[name].astype(np.int64)
    return np.full(len(table), absent, np.int64)


def requests_in(rows: np.ndarray) -> np.ndarray:
    """How many requests were answered in each row."""
    return column(rows, "requests", 1)


def one_in(rows: np.ndarray) -> np.ndarray:
    """Of how many slices of time one was watched when each row was recorded."""
    return np.maximum(column(rows, "one_in", 1), 1)


def one_in_max(rows: np.ndarray, said: int = 1) -> int:
    """The highest of a segment; `said` is what the probe says of itself."""
    return max(int(one_in(rows).max(initial=1)), said)


def kept(transactions: np.ndarray, rows: np.ndarray, owner: np.ndarray, highest: int) -> np.ndarray:
    """Transactions that thinning to 1 in `highest` keeps: decided by their indices, so always the same.

    `owner` is each row's transaction or -1; the first of a transaction's rows, of the least rate, let it in.
    """
    least = np.full(len(transactions), highest, np.int64)
    np.minimum.at(least, owner[owner >= 0], one_in(rows)[owner >= 0])
    return _shares(transactions["index"]) * highest < least


def _shares(numbers: np.ndarray) -> np.ndarray:
    """A share of one from 0 on for each number, as if drawn (the finaliser of SplitMix64)."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: np.ndarray = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
    return found


def whole(transactions: np.ndarray, rows: np.ndarray, first: np.ndarray, last: np.ndarray, highest: int) -> np.ndarray:
    """Whether every request sent for a transaction is in its rows; `first` and `last` (exclusive) are those."""
    met = last > first
    if "requests" not in (transactions.dtype.names or ()):
        return met
    sent, found = column(transactions, "requests", 0), between(requests_in(rows), first, last)
    every = (found == sent) | ((sent == SENT_MAX) & (found > sent))
    if highest > 1:
        return met & every
    # On encrypted connections several requests may be one; nothing else can be missing where all were recorded.
    return met & (every | (between(rows["flags"] & NO_REPLY != 0, first, last) > 0))


def between(values: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Sums of a column from `first` up to `last`."""
    upto = np.concatenate([np.zeros(1, np.int64), np.cumsum(values, dtype=np.int64)])
    found: np.ndarray = upto[last] - upto[first]
    return found


def sampling_of(found: Probe, rows: np.ndarray) -> Sampling:
    """{one_in_max, budget_share, share, cut} of a segment, from what the probe says and from its rows."""
    said = found.get("sampling") or {}
    return {
        "one_in_max": one_in_max(rows, int(said.get("one_in_max") or 1)),
        "budget_share": said.get("budget_share"),
        "share": said.get("share"),
        "cut": int(said.get("cut") or 0),
    }


def sampling_words(sampling: Sampling) -> str | None:
    """How much of the time was watched; None where all of it was."""
    highest, budget = sampling["one_in_max"], sampling["budget_share"]
    if highest == 1:
        return None
    said = f"1 in {highest:,} slices of time was watched"
    within = f"{budget:.3%}".rstrip("%").rstrip("0").rstrip(".") if budget is not None else ""
    return said + (f", to keep the probe within {within} % of the machine's CPU time" if within else "")


def sampling_caveats(sampling: Sampling, joined: Mapping[str, int]) -> list[str]:
    """What bears on figures that are from a part of the transactions; `joined`: the counts."""
    watched, cut, part = sampling_words(sampling), sampling["cut"], joined["transactions_in_part"]
    said = [watched] if watched else []
    if cut:
        said.append(f"the breakdown lacks {cut:,} transactions that lasted longer than one watched slice of time")
    met = part + joined["transactions_joined"] + joined["transactions_thinned"]
    if part > IN_PART_MAX * met:
        left_out = f"the breakdown leaves out {part / met:.0%} of the transactions it saw"
        said.append(f"{left_out}, the long ones more often: it has only a part of each")
    return said
