"""Colours and chart settings. Okabe and Ito's colours, which people with any colour vision tell apart; what a colour
says, a shape or a word says too.
"""

from typing import Any

BEST = "#0072B2"
WORSE = "#D55E00"
UNJUDGED = "#7A828E"
BAND = "#E69F00"
PARTS = {"anonymous": "#E69F00", "shared memory": "#0072B2", "page cache": "#56B4E9", "in swap": "#D55E00"}
BROUGHT = {
    "asked for and missed": "#0072B2",
    "prefetched, used": "#009E73",
    "prefetched, not seen used": "#E69F00",
    "loaded otherwise": "#CC79A7",
    "swapped in": "#D55E00",
    "unexplained": "#7A828E",
}
HELD = {
    "server's cache only": "#0072B2",
    "both": "#D55E00",
    "page cache only": "#56B4E9",
    "neither": "#B9C0C9",
}
# Where the time of a transaction goes: blues on a CPU, purples the log, greens the data, greys the load's own side.
SPENT = {
    "lag": "#DDE1E6",
    "transport_in": "#C3CAD3",
    "cpu": "#2A4B7C",
    "cpu_user": "#0072B2",
    "cpu_kernel": "#56B4E9",
    "run_queue": "#E69F00",
    "lock": "#D55E00",
    "wal_sync": "#CC79A7",
    "wal_wait": "#8F4471",
    "wal_write": "#E8C3D9",
    "data_read": "#009E73",
    "data_write": "#7BCDB5",
    "data_sync": "#00634A",
    "temp_io": "#B3A125",
    "swap_in": "#8A3100",
    "throttle": "#F0E442",
    "network_send": "#7C6CB5",
    "client": "#9AA5B4",
    "other_wait": "#5F6B7A",
    "unattributed": "#7A5C3E",
    "transport_out": "#B1BAC5",
    "others": "#EBEDF0",
}
# Boxes of flame graphs: light enough for dark text on them.
FLAME = {"whose": "#C3CAD3", "server": "#F2B66D", "kernel": "#7FC4EE", "no name": "#DDE1E6", "wait": "#A9D8C8"}
# The same of a difference: red where there is more in the second, blue where there is less.
CHANGED = {
    "more": "#EE7F57",
    "more, or chance": "#FBE3D9",
    "less, or chance": "#DCEBF7",
    "less": "#67ABDA",
}
SERIES = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#7A828E"]
SHADE = "#8A93A3"
FONT = "'Inter', 'Segoe UI', 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"

INK = {"light": "#2A3240", "dark": "#D7DDE6"}
SOFT = {"light": "#5B6675", "dark": "#9AA5B4"}
GRID = {"light": "#E3E7EC", "dark": "#323B48"}


def config(mode: str) -> dict[str, Any]:
    """Vega-Lite's config for "light" or "dark"."""
    ink, soft, grid = INK[mode], SOFT[mode], GRID[mode]
    return {
        "background": "transparent",
        "font": FONT,
        "padding": {"left": 4, "right": 8, "top": 6, "bottom": 4},
        "view": {"stroke": None},
        "axis": {
            "labelColor": soft,
            "titleColor": ink,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "titlePadding": 10,
            "labelPadding": 6,
            "gridColor": grid,
            "domainColor": soft,
            "tickColor": soft,
            "tickSize": 4,
            "labelAngle": 0,
        },
        "axisX": {"grid": False},
        "axisY": {"domain": False, "ticks": False},
        "legend": {
            "labelColor": soft,
            "titleColor": ink,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "symbolStrokeWidth": 2,
        },
        "header": {"labelColor": ink, "titleColor": ink, "labelFontSize": 12.5, "labelFontWeight": 600},
        "title": {"color": ink, "fontSize": 13, "fontWeight": 600, "anchor": "start", "offset": 10},
        "tick": {"color": ink},
        "text": {"color": soft, "fontSize": 11.5},
    }
