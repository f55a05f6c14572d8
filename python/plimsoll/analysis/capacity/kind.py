"""How a run that looked for a load line is told from one that compared settings, without loading its statistics."""

from plimsoll.record import Run

KIND = "capacity"


def is_capacity(run: Run) -> bool:
    """Whether a run looked for a load line."""
    return run.data.get("kind") == KIND
