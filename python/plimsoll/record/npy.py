"""Reader of the record's `.npy` tables.

The agent may be killed while it writes, so the row count in the header is not believed: a table is read up to its
last whole row.
"""

import ast
import mmap
import struct
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.record.format import RecordError

if TYPE_CHECKING:
    import numpy as np

_MAGIC = b"\x93NUMPY"
_HEAD_MAX = 65536 + 12  # bytes of a file's begin that are read at once: the header, and of most tables every row


def _header(path: Path, head: bytes) -> tuple[bytes, int] | None:
    """The header's text and where the rows begin; None when the file was cut short inside its header."""
    if len(head) < 10:
        return None
    if not head.startswith(_MAGIC):
        raise RecordError(f"{path}: not a NumPy table (its first bytes are {head[:6]!r})")
    wide = head[6] >= 2
    size = struct.unpack_from("<I" if wide else "<H", head, 8)[0]
    begin = 12 if wide else 10
    if len(head) < begin + size:
        return None
    return head[begin : begin + size], begin + size


@lru_cache(maxsize=256)
def _dtype(text: bytes) -> "np.dtype":
    """The columns that a header names. Only numbers: a file may be mapped, and a column of Python objects would have
    NumPy follow pointers that stand in it. Every trial has the same tables, so the headers of a run are few.

    Raises ValueError with what is wrong.
    """
    import numpy as np

    try:
        header = ast.literal_eval(text.decode("latin-1").strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as wrong:
        raise ValueError(f"unreadable header: {wrong}") from None
    descr = header.get("descr") if isinstance(header, dict) else None
    if not isinstance(descr, list):
        raise ValueError(f"expected a table with named columns, found {descr!r}")
    try:
        dtype = np.lib.format.descr_to_dtype(descr)
    except (TypeError, ValueError, IndexError, MemoryError, RecursionError) as wrong:
        raise ValueError(f"columns that NumPy does not know: {wrong}") from None
    if (column := _no_numbers(dtype)) is not None or dtype.hasobject:
        raise ValueError(
            f"column {column!r} does not hold numbers; it was not written by Plimsoll; leave it out of the record"
        )
    if dtype.itemsize == 0:
        raise ValueError("its rows are empty; it was not written by Plimsoll")
    return dtype


def _no_numbers(dtype: "np.dtype", name: str = "") -> str | None:
    """The first column, however deep, that is neither integer, float nor bool; None when all are."""
    if dtype.subdtype is not None:
        return _no_numbers(dtype.subdtype[0], name)
    if dtype.names is not None:
        fields = ((f"{name}.{field}".lstrip("."), dtype.fields[field][0]) for field in dtype.names)  # type: ignore[index]
        return next((found for label, below in fields if (found := _no_numbers(below, label)) is not None), None)
    return None if dtype.kind in "iufb" else name


def read_table(path: Path) -> "np.ndarray | None":
    """A structured table of numbers, or None when there is no such file or it ends inside its header.

    Raises RecordError where it is something else. A record may come from a stranger, so nothing of it is believed.
    """
    import numpy as np

    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_MAX)
            parsed = _header(path, head)
            size = file.seek(0, 2)
            if parsed is None:
                return None
            text, begin = parsed
            try:
                dtype = _dtype(text)
            except ValueError as wrong:
                raise RecordError(f"{path}: {wrong}") from None
            rows = (size - begin) // dtype.itemsize
            if rows <= 0:
                return np.empty(0, dtype)
            # A map of a small table costs ten times what its rows do.
            whole = head if size <= len(head) else mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        return None
    return np.frombuffer(whole, dtype, rows, begin)
