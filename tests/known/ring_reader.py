"""Reads pages of a file through io_uring, as a database may: `ring_reader.py FILE HOW AT_ONCE PAGES PAGE [PAGE ...]`.

Of the given starting pages it has AT_ONCE reads of PAGES pages under way at a time; says how many bytes came. HOW:
`read` into one place, `readv` into a vector a page, or `worker`, in which a thread of the kernel's does the reading.
"""

import ctypes
import mmap
import os
import struct
import sys

PAGE = os.sysconf("SC_PAGE_SIZE")
ENTRIES, ENTRY_BYTES, DONE_BYTES = 32, 64, 16
SETUP, ENTER = 425, 426
READV, READ, GET_EVENTS = 1, 22, 1
BY_WORKER = 16  # the flag "async" of a request
SQ_RING, SQ_ENTRIES = 0, 0x10000000  # where to map; with the feature "single mmap" both rings are one
_libc = ctypes.CDLL(None, use_errno=True)


class Ring:
    """One ring; one thread uses it."""

    def __init__(self) -> None:
        asked = ctypes.create_string_buffer(120)
        self.fd = _libc.syscall(SETUP, ENTRIES, asked)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "io_uring_setup")
        words = struct.unpack("<30I", asked.raw)
        self.sq_tail, self.sq_mask, self.sq_array = words[11], words[12], words[16]
        self.cq_head, self.cq_tail, self.cq_mask, self.cqes = words[20], words[21], words[22], words[25]
        length = max(self.sq_array + 4 * ENTRIES, self.cqes + DONE_BYTES * 2 * ENTRIES)
        self.ring = mmap.mmap(self.fd, length, offset=SQ_RING)
        self.entries = mmap.mmap(self.fd, ENTRIES * ENTRY_BYTES, offset=SQ_ENTRIES)

    def _word(self, at: int) -> int:
        return struct.unpack_from("<I", self.ring, at)[0]

    def submit(self, how: str, reads: list[tuple[int, int, int, int]]) -> list[int]:
        """(descriptor, address, length in bytes or vectors, offset) each; waits for all and returns their results."""
        operation, flags = READV if how == "readv" else READ, BY_WORKER if how == "worker" else 0
        tail, mask = self._word(self.sq_tail), self._word(self.sq_mask)
        for descriptor, address, length, offset in reads:
            entry = struct.pack("<BBHiQQIIQ24x", operation, flags, 0, descriptor, offset, address, length, 0, 0)
            place = tail & mask
            self.entries[place * ENTRY_BYTES : (place + 1) * ENTRY_BYTES] = entry
            struct.pack_into("<I", self.ring, self.sq_array + 4 * place, place)
            tail += 1
        struct.pack_into("<I", self.ring, self.sq_tail, tail)
        if _libc.syscall(ENTER, self.fd, len(reads), len(reads), GET_EVENTS, None, 0) < 0:
            raise OSError(ctypes.get_errno(), "io_uring_enter")
        results, head = [], self._word(self.cq_head)
        while head != self._word(self.cq_tail):
            at = self.cqes + DONE_BYTES * (head & self._word(self.cq_mask))
            results.append(struct.unpack_from("<Qi", self.ring, at)[1])
            head += 1
        struct.pack_into("<I", self.ring, self.cq_head, head)
        return results


def main(path: str, how: str, at_once: str, pages: str, *starts: str) -> None:
    """The whole of it."""
    descriptor, length = os.open(path, os.O_RDONLY), int(pages) * PAGE
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    ring, buffers = Ring(), ctypes.create_string_buffer(int(at_once) * length)
    begin, total = ctypes.addressof(buffers), 0
    places = [begin + page * PAGE for page in range(int(at_once) * int(pages))]
    vectors = (ctypes.c_uint64 * (2 * len(places)))(*(word for place in places for word in (place, PAGE)))
    for first in range(0, len(starts), int(at_once)):
        batch = starts[first : first + int(at_once)]
        asked = []
        for number, start in enumerate(batch):
            into = (begin + number * length, length)
            if how == "readv":
                into = (ctypes.addressof(vectors) + number * int(pages) * 16, int(pages))
            asked.append((descriptor, *into, int(start) * PAGE))
        results = ring.submit(how, asked)
        assert len(results) == len(batch) and min(results) > 0, results
        total += sum(results)
    print(total, flush=True)


main(*sys.argv[1:])
