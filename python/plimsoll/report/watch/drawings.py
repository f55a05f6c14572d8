"""Bars and the timeline of a watched server, drawn as SVG by hand.

The page has to be there within two seconds of the end of the watch, on the machine that was watched: loading a library
of charts takes longer than that, and takes it from the server. Everything drawn has a title that a pointer shows.
"""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup, escape

from plimsoll.analysis.breakdown.parts import CLIENT, in_order
from plimsoll.analysis.watch.curve import backends, began_ns
from plimsoll.analysis.watch.document import SlowTransaction, Stretch
from plimsoll.quantities import duration, share
from plimsoll.report.drawing import theme

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 1050, 210, 44, 22, 8
_TICKS = 4
_STEPS = (1, 2, 5)


def colour(bucket: str) -> str:
    """As in every other report."""
    return theme.SPENT.get(bucket, theme.UNJUDGED)


def _rect(x: float, y: float, width: float, height: float, fill: str, title: str) -> Markup:
    shape = Markup('<rect x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}" fill="{}">').format(
        x, y, width, height, fill
    )
    return shape + Markup("<title>{}</title></rect>").format(title)


def _text(x: float, y: float, anchor: str, words: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, words)


def _svg(width: float, height: float, name: str, inside: list[Markup]) -> Markup:
    head = Markup('<svg class="drawn" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">')
    return head.format(width, height, name) + Markup("").join(inside) + Markup("</svg>")


def bar(buckets: Mapping[str, float], whole: float | None = None, width: int = 260, height: int = 12) -> Markup:
    """One stacked bar; `whole` is what its full width stands for."""
    total = whole or sum(buckets.values())
    inside, at = [], 0.0
    for name in in_order(set(buckets)):
        part = buckets[name] / total * width if total else 0.0
        if part > 0.05:
            inside.append(_rect(at, 0, part, height, colour(name), f"{name} {duration(buckets[name])}"))
        at += part
    return (
        Markup('<svg class="bar" width="{}" height="{}" role="img" aria-label="{}">').format(
            width, height, ", ".join(f"{name} {duration(ns)}" for name, ns in buckets.items())
        )
        + Markup("").join(inside)
        + Markup("</svg>")
    )


def legend(names: list[str], plain: Mapping[str, str]) -> Markup:
    """Every bucket that occurs, with its colour."""
    row = Markup('<span title="{}"><i style="background:{}"></i>{}</span>')
    return (
        Markup('<p class="legend">')
        + Markup(" ").join(row.format(plain.get(name, ""), colour(name), name) for name in names)
        + Markup("</p>")
    )


def _ceiling(value: float) -> float:
    """The smallest 1, 2 or 5 times a power of ten that is not below it."""
    size = 1e-6
    while True:
        for step in _STEPS:
            if step * size >= value:
                return step * size
        size *= 10


def timeline(seconds: list[Stretch]) -> Markup | None:
    """How many backends were in which bucket, over time; None without time."""
    shown = [one for one in seconds if one["lasted_ns"]]
    if not shown:
        return None
    begin = began_ns(shown)
    assert begin is not None
    span = shown[-1]["t_ns"] - begin
    means = [backends(one) for one in shown]
    most = _ceiling(max(*(sum(one.values()) for one in means), 0.01))
    across, down = WIDTH - LEFT - 8, HEIGHT - BOTTOM - TOP
    inside = []
    for step in range(_TICKS + 1):
        value, y = most * step / _TICKS, TOP + down * (1 - step / _TICKS)
        inside.append(Markup('<line x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>').format(LEFT, WIDTH - 8, y, y))
        inside.append(_text(LEFT - 6, y + 4, "end", f"{value:.3g}"))
    names = in_order({name for one in shown for name in one["buckets"]})
    for one, of_stretch in zip(shown, means, strict=True):
        x = LEFT + (one["t_ns"] - one["span_ns"] - begin) / span * across
        width, y = one["span_ns"] / span * across, float(TOP + down)
        when = f"{(one['t_ns'] - begin) / 1e9:.0f} s"
        for name in [each for each in names if each != CLIENT] + [each for each in names if each == CLIENT]:
            mean = of_stretch.get(name, 0)
            if mean > 0:
                height = mean / most * down
                y -= height
                inside.append(_rect(x, y, width * 0.96, height, colour(name), f"{when}: {name} {mean:.2f} backends"))
    for step in range(_TICKS + 1):
        anchor = "start" if step == 0 else "end" if step == _TICKS else "middle"
        inside.append(_text(LEFT + across * step / _TICKS, HEIGHT - 6, anchor, f"{span / 1e9 * step / _TICKS:.0f} s"))
    return _svg(WIDTH, HEIGHT, "backends by bucket, over time", inside)


def spread(row: SlowTransaction, longest_ns: float) -> Markup:
    """A transaction's parts, as long as it took against the longest."""
    return bar(row["parts"], float(longest_ns), 420, 14)


def shown_text(text: str | None, cut: bool = False) -> Markup:
    """A query's text; where the server was asked for its beginning only, that is said."""
    return escape(text or "–") + (Markup(' <span class="why">(truncated)</span>') if cut else Markup(""))


def share_words(value: float | None, margin: float | None = None) -> str:
    """A share with its margin."""
    return share(value) + (f" ± {100 * margin:.1f}" if margin is not None else "")
