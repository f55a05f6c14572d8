"""What somebody reads of a run of an experiment who has a minute; the same for the page and for the terminal.

Says nothing that the verdict does not hold.
"""

from collections.abc import Callable
from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.metric import OPERATION, REQUEST, TRANSACTION
from plimsoll.words import parts
from plimsoll.words.next_steps import next_lines
from plimsoll.words.part import Sentences
from plimsoll.words.said import FirstScreen, Said
from plimsoll.words.sureness import sure_words
from plimsoll.words.verdict import LEVELS, answers, evidence_lines, trials_begun

Json = dict[str, Any]
WHY_MAX, EVIDENCE_MAX = 3, 2
# How sure it is and what to do next say these; the last is of every run without duplicates.
_LESS_TELLING = ("three or four blocks:", "quick:", "no A/A evidence:")
# Before all others: what was measured is not what was asked for.
_FAILED = tuple(f" {work}s failed" for work in (TRANSACTION, OPERATION, REQUEST))
TRIALS, CAVEATS = "trials", "caveats"  # sections of every run's page


def first_screen(verdict: Json) -> FirstScreen:
    """The five answers, from verdict.json."""
    sure, leading = sure_words(verdict), answers(verdict)
    return FirstScreen(
        leading,
        [Said(sure, LEVELS)] if sure else [],
        [said for said in why(verdict) if said not in leading][:WHY_MAX],
        next_lines(verdict),
        wrong(verdict),
    )


def why(verdict: Json) -> list[Said]:
    """What parts can tell stands behind the differences, else the measures that may; and what is to be known beside."""
    explained = _of_parts(verdict, lambda part: part.explains) if verdict["comparisons"] else []
    measures = [] if explained else [Said(line, LEVELS) for line in evidence_lines(verdict, EVIDENCE_MAX)]
    return [*explained, *measures, *_of_parts(verdict, lambda part: part.adds)]


def _of_parts(verdict: Json, of_part: Callable[[Sentences], Callable[[Json], list[str]]]) -> list[Said]:
    return [Said(line, part.section) for part in parts.SENTENCES for line in of_part(part)(verdict)]


def wrong(verdict: Json) -> list[Said]:
    """What entered no verdict and why, what parts warn of, and the first of the caveats with their number."""
    found = [Said(exclusion_words(verdict), TRIALS)] if verdict["exclusions"] else []
    found += _of_parts(verdict, lambda part: part.warns)
    caveats = verdict["caveats"]
    failed = [caveat for caveat in caveats if any(words in caveat for words in _FAILED)]
    telling = failed or [caveat for caveat in caveats if not caveat.startswith(_LESS_TELLING)] or caveats
    if caveats:
        more = f" (and {len(caveats) - 1} more)" if len(caveats) > 1 else ""
        found.append(Said(f"{telling[0]}{more}", CAVEATS))
    return found


def exclusion_words(verdict: Json) -> str:
    """How many trials entered no verdict, and the first with its reason, which ends with what to do."""
    excluded, labels = verdict["exclusions"], treatment_labels(verdict)
    first = excluded[0]
    label = labels.get(first["treatment"], first["treatment"])
    more = f"; and {len(excluded) - 1} more" if len(excluded) > 1 else ""
    return (
        f"{len(excluded)} of {trials_begun(verdict)} trials excluded: trial {first['trial']} ({label}, "
        f"block {first['block']}): {'; '.join(first['reasons'])}{more}"
    )
