"""The kinds of runs there are. A new one is a file here, and a line in the list."""

from __future__ import annotations

from plimsoll.cli.kinds import capacity, capture, experiment, soak, watch
from plimsoll.cli.kinds.kind import RunKind
from plimsoll.record import RecordError, Run

KINDS: tuple[RunKind, ...] = (watch.KIND, capacity.KIND, capture.KIND, soak.KIND, experiment.KIND)


def kind_of(run: Run) -> RunKind:
    """The kind of a run; one that only a later version knows is refused."""
    key = run.data.get("kind")
    found = next((kind for kind in KINDS if kind.key == key), None)
    if found is None:
        known = ", ".join(str(kind.key) for kind in KINDS if kind.key)
        raise RecordError(f"{run.path}: a run of the kind {key!r}, which this version does not know; known: {known}")
    return found
