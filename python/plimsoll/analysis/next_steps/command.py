"""The command that made a run, as it would be given again: with other options, and without those of one run alone."""

from plimsoll.analysis.soak.kind import KIND as SOAK
from plimsoll.record import Run

_PROGRAM = "./plimsoll"
_VERB = "run"
_VERBS = {SOAK: "soak"}  # by the kind of run
_OF_ONE_RUN = {"--out": 1, "--seed": 1, "--metrics": 1, "--resume": 0, "--json": 0, "--no-page": 0}


def again(run: Run, without: dict[str, int], *more: str) -> list[str]:
    """The words of the command line: `without` names options to leave out by how many values they take.

    A run that a verb of its own made (demo), or that was resumed, is one of its experiment's name.
    """
    words = [str(word) for word in run.data.get("command") or []]
    leave = {**_OF_ONE_RUN, **without}
    verb = _VERBS.get(str(run.data.get("kind")), _VERB)
    # What was resumed names a folder and no experiment, and no longer how it began.
    if verb not in words[1:2] or "--resume" in words:
        quick = ["--quick"] if run.data.get("quick") and "--quick" not in leave else []
        return [_PROGRAM, verb, str(run.data.get("experiment") or "EXPERIMENT"), *quick, *more]
    kept: list[str] = []
    left = iter(words[2:])
    for word in left:
        name, equals, _ = word.partition("=")
        if name not in leave:
            kept.append(word)
        elif not equals:
            for _ in range(leave[name]):
                next(left, None)
    return [_PROGRAM, verb, *kept, *more]
