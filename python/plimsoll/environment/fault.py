"""What goes wrong with the machine, said so that the reader can act: every fault names the item and the next action."""

from __future__ import annotations


class Fault(Exception):
    """Something about the machine stands in the way. `what` names the file or item, `remedy` the next action."""

    def __init__(self, what: str, *, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}" if remedy else what)
        self.what = what
        self.remedy = remedy


def refused_by_the_system(error: OSError) -> Fault | None:
    """What the system refused, as a fault; None where it is none of its: without a number, or a broken connection."""
    if error.errno is None or isinstance(error, ConnectionError):
        return None
    what = f"{error.filename or 'a file'}: {error.strerror}"
    return Fault(what, remedy="fix it (disk space, permissions), then resume: ./plimsoll run --resume RUN")
