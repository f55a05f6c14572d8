"""How sure a verdict is: from how many blocks, from which ratio on levels are told apart, how often that is wrong."""

from typing import Any

from plimsoll.analysis.metrics import metric_of

Json = dict[str, Any]
WIDE = 1.1  # comparisons whose ratios lie farther apart are not told by one of them


def sure_words(verdict: Json) -> str:
    """How sure the comparisons are, in a sentence; empty for a run that compares nothing."""
    comparisons = verdict["comparisons"]
    if not comparisons:
        return ""
    blocks = max(one["blocks"] for one in comparisons)  # that were compared: a run may end before those it planned
    text = f"from {blocks} {'block' if blocks == 1 else 'blocks'}"
    if all(one["grade"] == "none" for one in comparisons):
        return f"{text}: no interval"
    if any(one["grade"] == "indicative" for one in comparisons):
        text += " (indicative)"
    ratios = [one["noise"]["ratio_told"] for one in comparisons if one.get("noise")]
    if ratios:
        least, most = min(ratios), max(ratios)
        # Of a guest counts lead, of which these ratios say nothing.
        of = f" of {metric_of(verdict.get('metric'), verdict).name}" if verdict.get("guest") else ""
        if most > WIDE * least:
            text += f"; ratios{of} from {least:.2f} on are significant where trials scatter least, "
            text += f"from {most:,.2f} where most"
        else:
            text += f"; ratios{of} from {most:.2f} on are significant"
    return f"{text}; at most {verdict['alpha']:.0%} of runs call equals worse"
