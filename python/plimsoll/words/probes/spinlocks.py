"""How much of the server's CPU time went into waiting for spinlocks, in one sentence over all treatments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plimsoll.analysis.comparing.labels import treatment_labels
from plimsoll.analysis.probes.document import Profile, Share, Spinlocks
from plimsoll.words.part import Sentences

Json = dict[str, Any]


def _told(verdict: Json, of: Callable[[Spinlocks], Share | None]) -> str | None:
    profiles: Profile | None = verdict.get("profile")
    entries = (profiles or {"treatments": {}})["treatments"]
    told = {name: of(entry["spinlocks"]) for name, entry in entries.items()}
    shares = {name: share for name, share in told.items() if share is not None}
    if not shares:
        return None
    most = max(shares, key=lambda name: shares[name]["value"])
    least = min(share["value"] for share in shares.values())
    share = shares[most]
    text = f"{share['value']:.2%} [{share['low']:.2%}, {share['high']:.2%}]"
    if len(shares) == 1 or share["value"] == least:
        return text
    return f"{least:.2%} to {text}, most with {treatment_labels(verdict).get(most, most)}"


def _explains(verdict: Json) -> list[str]:
    own, kernels = _told(verdict, lambda waits: waits["server"]), _told(verdict, lambda waits: waits["kernel"])
    if own is None and kernels is None:
        return []
    own = own or "not known, since its functions have no names"
    return [f"Waiting for spinlocks, of the server's CPU time: its own {own}; the kernel's {kernels}"]


SENTENCES = Sentences("profile", explains=_explains, section="profile")
