"""A next step, as verdict.json has it: what kind of step, of what, and what it would take."""

from typing import Literal, NotRequired, TypedDict

# resume: what was stopped goes on; mend: what kept trials out is put right; full: the quick run in full; choose: the
# setting that the verdict names; ease: a lower rate, where what was due was not answered; extend: the best level is the
# last of the sweep; longer: more blocks; vary: a run of one treatment is given something to compare; look: none of
# these, so that what is left is to read where the time goes.
StepKind = Literal["resume", "mend", "full", "choose", "ease", "extend", "longer", "vary", "look"]


class Step(TypedDict):
    """`command` are the words of the command line that does it, without its output folder and seed."""

    kind: StepKind
    command: NotRequired[list[str]]
    factor: NotRequired[str]  # of choose and extend: its path
    label: NotRequired[str]  # the factor's name
    levels: NotRequired[list[str]]  # choose: those that are left; extend: the last one; longer: the two in doubt
    at: NotRequired[dict[str, str]]  # the other factors' levels by their labels
    end: NotRequired[Literal["largest", "smallest"]]  # extend: which end of the sweep it is
    ratio: NotRequired[float]  # longer: the ratio that would be told
    blocks: NotRequired[int]  # longer: blocks of the run that would tell it
    seconds: NotRequired[float | None]  # longer: how long that run takes, from the blocks of this one
