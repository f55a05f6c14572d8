"""The JavaScript library that draws a page's figures in the browser: 0.9 MB, the same for every page.

Making it takes seconds of a CPU, so it is kept beside the Python environment, under the version of what makes it;
set-up makes it before the first page needs it. Where it cannot be kept it is made again.
"""

import contextlib
import sys
from functools import cache
from importlib import metadata
from pathlib import Path

from plimsoll.record import writer

VEGA_LITE = "6.1"


def kept_at() -> Path:
    """Where the library of this environment is kept."""
    maker = metadata.version("vl-convert-python")
    return Path(sys.prefix).parent / f"vega-lite-{VEGA_LITE}-by-{maker}.js"


@cache
def bundle() -> str:
    """The library, as it may stand in a script: no "</script" is in it."""
    place = kept_at()
    with contextlib.suppress(OSError):
        return place.read_text(encoding="utf-8")
    import vl_convert

    made = vl_convert.javascript_bundle(None, vl_version=VEGA_LITE)  # type: ignore[arg-type]  # None: all of it
    made = made.replace("</script", "<\\/script")
    if place.parent.name == ".plimsoll":  # the project's own, and never a system's folder
        with contextlib.suppress(OSError):
            writer.write_text(place, made)
    return made


if __name__ == "__main__":
    bundle()
