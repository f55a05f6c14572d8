"""What went wrong, as one message that says what to do, and an exit code that says what kind of failure it was."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from plimsoll.cli.codes import BAD_REQUEST, FAILED, FAULT, IMPOSSIBLE


@contextmanager
def exit_codes() -> Iterator[None]:
    """One message that says what to do, and the exit code that says what kind of failure it was."""
    try:
        yield
    except Exception as error:
        _explain(error)


def _explain(error: Exception) -> NoReturn:
    from plimsoll.analysis import NotComparable, Unknown
    from plimsoll.cli.console import tell
    from plimsoll.environment.fault import Fault, refused_by_the_system
    from plimsoll.experiment import ExperimentError
    from plimsoll.export import ExportError
    from plimsoll.record import RecordError
    from plimsoll.run import agent
    from plimsoll.run.runner import Impossible
    from plimsoll.target.running import Elsewhere, NotFound

    if isinstance(error, ExperimentError):
        for problem in error.problems:
            tell(f"plimsoll: {problem}")
        sys.exit(BAD_REQUEST)
    if isinstance(error, Impossible):
        tell("plimsoll: this cannot be run here:")
        for reason in error.reasons:
            tell(f"  - {reason}")
        sys.exit(IMPOSSIBLE)
    if isinstance(error, NotComparable):
        tell("plimsoll: these runs come from machines that differ in what affects results:")
        for difference in error.differences:
            tell(f"  - {difference}")
        tell("  what to do: compare runs of one machine in one state, or --force")
        sys.exit(BAD_REQUEST)
    if isinstance(error, RecordError | ExportError | Unknown):
        tell(f"plimsoll: {error}")
        sys.exit(BAD_REQUEST)
    if isinstance(error, OSError):
        error = refused_by_the_system(error) or error
    if isinstance(error, Fault):
        tell(f"plimsoll: {error.what}\n  what to do: {error.remedy}")
        sys.exit({NotFound: BAD_REQUEST, Elsewhere: IMPOSSIBLE}.get(type(error), FAILED))
    if isinstance(error, agent.AgentFailed) and error.code != agent.EXIT_IDENTITY:
        tell(f"plimsoll: {error}")
        sys.exit(FAILED)
    traceback.print_exception(error)
    tell("plimsoll: this is a bug in Plimsoll; please report it with the lines above")
    sys.exit(FAULT)
