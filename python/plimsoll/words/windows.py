"""Windows in words: what was measured, where its noise comes from, why the run ended."""

from dataclasses import replace
from typing import Any

from plimsoll.analysis.windows.budget import POWER, Arrangement, ratio_told
from plimsoll.analysis.windows.document import LeadIn, Looks, OthersWrites, TogetherGroups, WindowsOfRun
from plimsoll.record.verdict import NoiseLevels, StoredEquals
from plimsoll.words.part import Sentences

Json = dict[str, Any]


def lines(verdict: Json) -> list[str]:
    """What was measured, with its noise by level; and why the run ended where a look ended it."""
    found: WindowsOfRun | None = verdict.get("windows")
    if not found or not found["windows"]:
        return []
    text = (
        f"Measured in {found['windows']:,} windows of {found['seconds']:g} s, of which the first "
        f"{found['lead_in_seconds']:g} s are left out"
    )
    noise = [one["noise"]["levels"] for one in verdict["comparisons"] if (one.get("noise") or {}).get("levels")]
    measured = text + (f"; {noise_words(noise[0])}" if noise else "")
    return [measured, *groups_words(verdict), *_ended(found["looks"])]


def groups_words(verdict: Json) -> list[str]:
    """That treatments were up in groups, why, and how levels of different groups are compared."""
    groups: TogetherGroups | None = verdict["windows"].get("groups")
    if not groups:
        return []
    shared = verdict["treatments"][groups["reference"]]["label"]
    return [
        f"A block had one of {len(groups['members'])} groups of treatments, which share {shared} ({groups['why']}): "
        "levels of different groups are compared through it, with the errors of both comparisons"
    ]


def members_words(verdict: Json) -> list[str]:
    """The treatments of each group, without the one that all share."""
    groups: TogetherGroups | None = verdict["windows"].get("groups")
    if not groups:
        return []
    labels = {name: treatment["label"] for name, treatment in verdict["treatments"].items()}
    return [", ".join(labels[name] for name in members if name != groups["reference"]) for members in groups["members"]]


def noise_words(noise: NoiseLevels) -> str:
    """ "a trial scatters by 1.9 % for its windows and 0.8 % for its start", of a comparison's `noise.levels`."""
    windows = f"a trial scatters by {noise['windows_sd_log']:.1%} for its windows"
    if noise["start_sd_log"] is None:
        return f"{windows}; how starts differ is not known from one block"
    if noise["start_sd_log"] == 0:
        return f"{windows}, which explain all of it: starts are not seen to differ"
    start = f"{windows} and by {noise['start_sd_log']:.1%} for its start"
    return start + (f" (known from the A/A run {noise['starts_from']})" if noise["starts_from"] else "")


def _ended(looks: Looks) -> list[str]:
    if looks["decided_after"] is None:
        return []
    return [f"Ended early, after block {looks['decided_after']} of {looks['planned_blocks']}: the question was decided"]


def lead_in_words(tested: LeadIn | None) -> str:
    """Whether the lead-in is long enough."""
    if tested is None:
        return "Whether the lead-in is long enough is not known: too few windows"
    ratio = f"{tested['ratio']:.3f} x [{tested['low']:.3f}, {tested['high']:.3f}, 99 %]"
    against = f"the first third of what counts of a window has {ratio} the rate of the rest"
    said = {
        "too short": f"The lead-in is too short: {against}; raise design.lead_in_seconds",
        "long enough": f"The lead-in is long enough: {against}",
        "cannot tell": f"The lead-in is not shown to be too short: {against}",
    }
    return said[tested["verdict"]]


def writes_words(written: OthersWrites | None) -> str:
    """How much of what the disks wrote was of frozen servers."""
    if written is None:
        return "How much frozen servers wrote is not known: the groups' dirty pages were not read"
    whole = f"{written['share']:.1%} of what the disks wrote came from frozen servers"
    if not written["is_named"]:
        return whole
    return f"{whole}: writes of one treatment fell into the windows of others"


def budget_words(stored: StoredEquals | None, planned: Arrangement) -> str:
    """What a plan can tell by the stored A/A of this machine, and what with twice the blocks; "" of a single level."""
    if planned.levels < 2:
        return ""
    noise = stored.get("windows") if stored else None
    if not stored or not noise:
        return (
            "What difference this can detect is not known: `./plimsoll run a-a` measures how equal levels differ here."
        )
    told = ratio_told(noise, planned)
    if told is None:
        return "What difference this can detect is not known: that needs two blocks, in the A/A run as well."
    text = f"Detects a difference of {told - 1:.1%} between levels in {POWER:.0%} of such runs"
    twice = ratio_told(noise, replace(planned, blocks=2 * planned.blocks))
    if twice is not None:
        text += f", of {twice - 1:.1%} with twice the blocks"
    scatter = f"a window scatters by {noise['window_sd_log']:.1%}, a start by {noise['start_sd_log']:.1%}"
    return f"{text} (by the A/A run {stored.get('run')}: {scatter})."


SENTENCES = Sentences("windows", adds=lines, section="windows")
