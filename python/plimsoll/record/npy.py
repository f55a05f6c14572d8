"""Reader of the record's `.npy` tables.

The agent may be killed while it writes, so the row count in the header is not believed: a table is read up to its
last whole row.
"""

import ast
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.record.format import RecordError

if TYPE_CHECKING:
    import numpy as np

_MAGIC = b"\x93NUMPY"


def _header(path: Path, head: bytes) -> tuple[dict[str, object], int] | None:
    """The header and where the rows begin; None when the file was cut short inside its header."""
    if len(head) < 10:
        return None
    if not head.startswith(_MAGIC):
        raise RecordError(f"{path}: not a NumPy table (its first bytes are {head[:6]!r})")
    wide = head[6] >= 2
    size = struct.unpack_from("<I" if wide else "<H", head, 8)[0]
    begin = 12 if wide else 10
    if len(head) < begin + size:
        return None
    try:
        header = ast.literal_eval(head[begin : begin + size].decode("latin-1").strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError) as wrong:
        raise RecordError(f"{path}: unreadable header: {wrong}") from None
    return header, begin + size


def _dtype(path: Path, header: object) -> "np.dtype":
    """The columns that the header names. Only numbers: the file is mapped, and a column of Python objects would have
    NumPy follow pointers that stand in it."""
    import numpy as np

    descr = header.get("descr") if isinstance(header, dict) else None
    if not isinstance(descr, list):
        raise RecordError(f"{path}: expected a table with named columns, found {descr!r}")
    try:
        dtype = np.lib.format.descr_to_dtype(descr)
    except (TypeError, ValueError, IndexError, MemoryError, RecursionError) as wrong:
        raise RecordError(f"{path}: columns that NumPy does not know: {wrong}") from None
    if (column := _no_numbers(dtype)) is not None or dtype.hasobject:
        remedy = "it was not written by Plimsoll; leave it out of the record"
        raise RecordError(f"{path}: column {column!r} does not hold numbers; {remedy}")
    if dtype.itemsize == 0:
        raise RecordError(f"{path}: its rows are empty; it was not written by Plimsoll")
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
            parsed = _header(path, file.read(65536 + 12))
            size = file.seek(0, 2)
    except FileNotFoundError:
        return None
    if parsed is None:
        return None
    header, begin = parsed
    dtype = _dtype(path, header)
    rows = (size - begin) // dtype.itemsize
    if rows <= 0:
        return np.empty(0, dtype)
    return np.memmap(path, dtype, "r", offset=begin, shape=(rows,)).view(np.ndarray)
