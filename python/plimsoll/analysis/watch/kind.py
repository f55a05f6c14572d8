"""How a record of a server that was only watched is told from one of an experiment, without loading its statistics."""

from plimsoll.record import Run

KIND = "breakdown"


def is_breakdown(run: Run) -> bool:
    """Whether a run watched a server's own load."""
    return run.data.get("kind") == KIND
