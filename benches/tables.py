"""What the benches print of a result: ratios in pairs with their intervals, and which bounds hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

HELD: Final = {True: "holds", False: "BROKEN", None: "cannot tell"}


def ratio_lines(ratios: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line a ratio, as judge.Ratio has it."""
    return [
        f"  {ratio['what']:28}{ratio['value']:.3f} x [{ratio['low']:.3f}, {ratio['high']:.3f}], median "
        f"{ratio['median']:.3f}, {ratio['pairs']} pairs"
        for ratio in ratios
    ]


def bound_lines(bounds: Iterable[Mapping[str, Any]]) -> list[str]:
    """A line a bound, as judge.Bound has it."""
    return [f"    {bound['text']}: {HELD[bound['holds']]}" for bound in bounds]
