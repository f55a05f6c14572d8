"""A table that grows by some rows at a time, readable at any moment as the agent's tables are.

The number of rows stands in the header only once the table is closed; readers of the record do not believe it anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

_ALIGNED = 64
_ROOM = 20  # digits for the number of rows


class Table:
    """One .npy file of named columns: [("t_ns", "<i8"), ...]."""

    def __init__(self, path: Path, columns: Sequence[tuple[str, str]]) -> None:
        self._dtype = np.dtype(list(columns))
        self._rows, self._length = 0, 0
        self._file: IO[bytes] = path.open("wb")
        self._file.write(self._header())

    def _header(self) -> bytes:
        text = repr({"descr": self._dtype.descr, "fortran_order": False, "shape": (self._rows,)})
        length = -(-(10 + len(text) + _ROOM) // _ALIGNED) * _ALIGNED
        self._length = self._length or length  # it stays, whatever number comes to stand in it
        length = self._length
        head = b"\x93NUMPY\x01\x00" + (length - 10).to_bytes(2, "little")
        return head + text.encode("latin-1").ljust(length - 11) + b"\n"

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows behind those that are there."""
        if rows:
            self._file.write(np.array(list(rows), self._dtype).tobytes())
            self._rows += len(rows)

    def close(self) -> None:
        """The header now has the number of rows."""
        if not self._file.closed:
            self._file.seek(0)
            self._file.write(self._header())
            self._file.close()
