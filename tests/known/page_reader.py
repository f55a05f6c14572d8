"""A process of its own that reads a file from end to end: `page_reader.py FILE PAGES_A_CALL [TIMES]`.

Says `ready`, waits for a line, reads, says how many bytes it got.
"""

import os
import sys

PAGE = os.sysconf("SC_PAGE_SIZE")


def main(path: str, pages_a_call: str, times: str = "1") -> None:
    """The whole of it."""
    descriptor = os.open(path, os.O_RDONLY)
    print("ready", flush=True)
    sys.stdin.readline()
    length, total = int(pages_a_call) * PAGE, 0
    for _ in range(int(times)):
        offset = 0
        while got := len(os.pread(descriptor, length, offset)):
            offset += got
        total += offset
    print(total, flush=True)


main(*sys.argv[1:])
