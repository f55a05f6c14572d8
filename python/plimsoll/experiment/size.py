"""Sizes: what people write ("768 MiB", "2 x memory", 4096) and the bytes it means.

Units are powers of 1024 whether written MiB or MB: that is how PostgreSQL and the kernel read them too, and a size
that meant two things in one file would be a trap.
"""

from __future__ import annotations

import re
from typing import Any

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
ALLOWED = 'a number of bytes, a size such as "768 MiB" or "1.5 GiB", or a multiple such as "2 x memory"'
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kKmMgGtT]?)i?[bB]\s*$")
_RELATIVE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*(?:x|\*)\s*memory\s*$")


def parse(value: int | float | str, memory: int | None = None) -> int:
    """The bytes that `value` means; `memory` is what a multiple refers to. Raises ValueError with what is allowed."""
    if isinstance(value, bool):
        raise ValueError(f"{value!r} is not a size")
    if isinstance(value, int):
        if value < 0:
            raise ValueError(f"{value} is negative")
        return value
    if isinstance(value, float):
        raise ValueError(f"{value} is not a whole number of bytes")
    if found := _SIZE.match(value):
        return round(float(found[1]) * UNITS[found[2].upper()])
    if found := _RELATIVE.match(value):
        if memory is None:
            raise ValueError(f"{value!r} is relative to memory, and memory is not known here")
        return round(float(found[1]) * memory)
    raise ValueError(f"{value!r} is not a size")


def is_size(value: object) -> bool:
    """Whether a value is a size with a unit or a multiple of memory (bare numbers are not)."""
    return isinstance(value, str) and bool(_SIZE.match(value) or _RELATIVE.match(value))


def in_bytes(value: Any, memory: int) -> Any:
    """A value of a document with every size in it as bytes; bare numbers are bytes already."""
    if isinstance(value, dict):
        return {key: in_bytes(one, memory) for key, one in value.items()}
    return parse(value, memory) if is_size(value) else value


def show(size: int) -> str:
    """`size` bytes for people: the largest unit that needs at most one decimal."""
    for unit, factor in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            number = size / factor
            if number >= 10 or size % factor == 0 or unit == "KiB":
                return f"{number:.0f} {unit}"
            if unit == "GiB" and size % 2**20 == 0 and size < 4 * 2**30:
                continue
            return f"{number:.1f} {unit}"
    return f"{size} B"
