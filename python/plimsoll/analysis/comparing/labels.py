"""What a treatment is called."""

from typing import Any

Json = dict[str, Any]


def treatment_labels(verdict: Json) -> dict[str, str]:
    """A label a treatment: the swept level alone when nothing else varies."""
    found = {name: entry["label"] for name, entry in verdict["treatments"].items()}
    if len(verdict["comparisons"]) == 1:
        only = verdict["comparisons"][0]
        found |= {level["treatment"]: f"{only['label']} {level['level']}" for level in only["levels"]}
    return found
