"""Where the time of transactions goes as collapsed stacks, for flame graph tools: treatment;type;part;wait event µs.

Microseconds of all done transactions of which the breakdown has all. A part is as wide as its time; what the server
named within it stands above it, and the rest of the part (gaps between requests, say) above nothing.
"""

from collections.abc import Iterator

from plimsoll.analysis.breakdown.difference import kinds_of
from plimsoll.analysis.breakdown.reading import Reading
from plimsoll.analysis.breakdown.trial import MEAN, mean_parts, reading
from plimsoll.analysis.trial.histograms import ALL
from plimsoll.export import ExportError
from plimsoll.record import Run, Trial


def folded(run: Run, trials: list[Trial]) -> Iterator[str]:
    """The lines, sorted; of these trials together."""
    sums: dict[tuple[str, ...], float] = {}
    reasons = []
    for trial in trials:
        found = reading(trial)
        if found is None or not found.get("types"):
            why = (found and found["reason"]) or "no breakdown, or none of a whole transaction"
            reasons.append(f"trial {trial.number}: {why}")
            continue
        label = (run.plan.get("treatments") or {}).get(trial.treatment, {}).get("label") or trial.treatment
        for stack, ns in _stacks(found):
            key = (str(label), *stack)
            sums[key] = sums.get(key, 0.0) + ns
    if not sums:
        raise ExportError(f"{run.path.name} has no breakdown to fold: {'; '.join(reasons) or 'no trial is finished'}")
    for stack, ns in sorted(sums.items()):
        if round(ns / 1000) > 0:
            yield f"{';'.join(_frame(word) for word in stack)} {round(ns / 1000)}"


def _stacks(found: Reading) -> Iterator[tuple[tuple[str, ...], float]]:
    kinds = [kind for kind in kinds_of([found]) if kind != ALL] or [ALL]
    for kind in kinds:
        one = found["types"][kind]
        band = one["bands"][MEAN]
        named: dict[str, float] = {}
        for wait in one[MEAN]["waits"]:
            named[wait["bucket"]] = named.get(wait["bucket"], 0.0) + wait["ns"]
            yield (kind, wait["bucket"], wait["name"]), wait["ns"]
        if not band["transactions"]:
            continue
        for part, ns in mean_parts(band, band["cpu_can_be_split"]).items():
            rest = ns * band["transactions"] - named.get(part, 0.0)
            if rest > 0:
                yield (kind, part), rest


def _frame(word: str) -> str:
    """A frame's name: a semicolon would end it."""
    return " ".join(word.replace(";", ",").split())
