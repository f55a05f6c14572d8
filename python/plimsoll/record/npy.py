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
    except (ValueError, SyntaxError) as wrong:
        raise RecordError(f"{path}: unreadable header: {wrong}") from None
    return header, begin + size


def read_table(path: Path) -> "np.ndarray | None":
    """A structured table, or None when there is no such file or it ends inside its header."""
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
    descr = header.get("descr")
    if not isinstance(descr, list):
        raise RecordError(f"{path}: expected a table with named columns, found {descr!r}")
    dtype = np.lib.format.descr_to_dtype(descr)
    rows = (size - begin) // dtype.itemsize
    if rows <= 0:
        return np.empty(0, dtype)
    return np.memmap(path, dtype, "r", offset=begin, shape=(rows,)).view(np.ndarray)
