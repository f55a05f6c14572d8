"""A file system that shows a folder as it is, and fails the calls that a file names, with the error that it names.

Every line of the file is a call and an error: `read EIO`, `write ENOSPC`, `create EROFS`; empty, nothing fails. It is
read at each call, so that a test says in the middle of a load from when on. The protocol is breakdown_slow_sync's.

    python failing_files.py SOURCE POINT FAILURES
"""

from __future__ import annotations

import errno
import sys
import tempfile
import threading
from pathlib import Path

from breakdown_slow_sync import SlowSync, unmount_at_the_end

# `flush` is what close(2) asks for and gives the answer of.
_CALLS = {"read": 15, "write": 16, "create": 35, "fsync": 20, "flush": 25}


class FailingFiles(SlowSync):
    """Answers as the folder would, or with the error that is asked for."""

    def __init__(self, source: Path, failures: Path, nothing: Path) -> None:
        nothing.write_text("0")
        super().__init__(source, nothing, nothing.with_name("log"))
        self._failures = failures
        # A call that is not known is never asked for again.
        self._calls[_CALLS["flush"]] = lambda _node, _body: b""

    def fails(self, call: int) -> int:
        for line in self._failures.read_text().splitlines():
            name, error = line.split()
            if _CALLS[name] == call:
                return int(getattr(errno, error))
        return 0


def main() -> None:
    source, point, failures = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        made = FailingFiles(source, failures, Path(folder, "delay"))
        made.mount(point)
        threading.Thread(target=unmount_at_the_end, args=(point,), daemon=True).start()
        print("mounted", flush=True)
        made.serve()


if __name__ == "__main__":
    main()
