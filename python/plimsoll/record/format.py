"""The version of the record and the two ways in which reading one can fail.

A record is kept for years: FORMAT grows only when an old reader would misread a new record, and its history stays
beside it.
"""

FORMAT = 1

HISTORY = {
    1: "first",
}

# A single sample that could not be read. Absent columns are absent; neither is ever 0.
MISSING = -(2**63)


class RecordError(Exception):
    """A record that cannot be read; the message names the file and the next action."""


class FormatTooNew(RecordError):
    """A record written by a newer Plimsoll than this one."""

    def __init__(self, where: object, found: object) -> None:
        super().__init__(
            f"{where}: format {found} is newer than {FORMAT}, the newest this Plimsoll reads; "
            "open it with the version of Plimsoll that wrote it, or a newer one"
        )


def check_format(where: object, found: object) -> None:
    """Refuse a newer format by name; a missing one is taken for the first."""
    if found is None:
        return
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise RecordError(f"{where}: format is {found!r}, expected a whole number from 1 to {FORMAT}")
    if found > FORMAT:
        raise FormatTooNew(where, found)
