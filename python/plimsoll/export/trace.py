"""A writer of traces in Perfetto's protobuf form: tracks, slices with arguments, arrows, counters.

Field numbers are those of the published schema (perfetto_trace.proto), against which the tests read every trace back.
Written by hand because a message object an event takes many times as long, and a minute holds hundreds of thousands.
Names are written once and then meant by their number. Times are CLOCK_MONOTONIC, whose distance from the wall clock is
in the trace.
"""

import struct
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import BinaryIO

_FLUSH_PARTS = 50_000
_SEQUENCE = b"\x50\x01"  # trusted_packet_sequence_id = 1
_REALTIME, _MONOTONIC = 1, 3
_NEEDS_STATE = b"\x68\x02"  # sequence_flags: it means names by their numbers
_SMALL = 1 << 14
_PLACE = _SEQUENCE + _NEEDS_STATE + b"\x5a"  # 11: track_event
_FIXED = struct.Struct("<Q").pack
BYTES, COUNT = 3, 2  # units of a counter

Argument = tuple[bytes, int]  # name, as argument_name() gives it, and value


def varint(value: int) -> bytes:
    """An unsigned number, seven bits a byte, the lowest first; two bytes at a time from tables."""
    more = b""
    while value >= _SMALL:
        more += _MORE[value & _SMALL - 1]
        value >>= 14
    return more + _LAST[value]


_LAST = [bytes((low,)) for low in range(0x80)] + [bytes((n & 0x7F | 0x80, n >> 7)) for n in range(0x80, _SMALL)]
_MORE = [bytes((n & 0x7F | 0x80, n >> 7 | 0x80)) for n in range(_SMALL)]


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, *parts: bytes) -> bytes:
    """A field of bytes: a message, or a text."""
    body = b"".join(parts)
    return varint(field << 3 | 2) + varint(len(body)) + body


def text(field: int, value: str) -> bytes:
    return message(field, value.encode("utf-8", "replace"))


class Trace:
    """One trace under way; leave its context, and all of it is written."""

    def __init__(self, out: BinaryIO, at_ns: int, epoch_minus_monotonic_ns: int) -> None:
        self._out, self._parts, self._names, self._tracks = out, list[bytes](), dict[str, int](), 0
        clocks = ((_MONOTONIC, at_ns), (_REALTIME, at_ns + epoch_minus_monotonic_ns))
        read = [message(1, number(1, clock), number(2, value)) for clock, value in clocks]
        self._packet(message(6, *read, number(2, _MONOTONIC)) + _SEQUENCE)
        # 41: from here on names are numbered anew; 59: times without a clock are monotonic.
        self._packet(number(41, 1) + message(59, number(58, _MONOTONIC)) + number(13, 1) + _SEQUENCE)

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._flush()

    def _packet(self, body: bytes) -> None:
        self._parts.append(b"\x0a" + varint(len(body)) + body)
        if len(self._parts) >= _FLUSH_PARTS:
            self._flush()

    def _flush(self) -> None:
        self._out.write(b"".join(self._parts))
        self._parts.clear()

    def _numbered(self, word: str, field: int) -> int:
        key = f"{field} {word}"
        if key not in self._names:
            found = self._names[key] = len(self._names) + 1
            self._packet(message(12, message(field, number(1, found), text(2, word))) + _SEQUENCE + _NEEDS_STATE)
        return self._names[key]

    def slice_name(self, word: str) -> bytes:
        """A slice's name as it stands in its event."""
        return number(10, self._numbered(word, 2))

    def argument_name(self, word: str) -> bytes:
        """An argument's name as it stands before its value."""
        return number(1, self._numbered(word, 3)) + b"\x18"

    def track(self, name: str, parent: int | None = None, unit: int | None = None) -> int:
        """A track below another; with a unit it is a counter's."""
        self._tracks += 1
        above = b"" if parent is None else number(5, parent)
        counter = b"" if unit is None else message(8, number(3, unit))
        self._packet(message(60, number(1, self._tracks), text(2, name), above, counter) + _SEQUENCE)
        return self._tracks

    def slice(
        self,
        track: int,
        span: tuple[int, int],
        name: bytes,
        arguments: Iterable[Argument] = (),
        out_of: Sequence[int] = (),
        into: Sequence[int] = (),
    ) -> None:
        """A slice from begin to end; `out_of` and `into` are the arrows that leave it and that end in it."""
        uuid = b"\x58" + varint(track)
        event = b"\x48\x01" + uuid + name
        for key, value in arguments:
            body = key + varint(value)
            event += b"\x22" + _LAST[len(body)] + body
        for arrow in out_of:
            event += b"\xf9\x02" + _FIXED(arrow)
        self._event(span[0], event)
        event = b"\x48\x02" + uuid
        # Arrows end at the end: whoever woke it began before that, but maybe not before its begin.
        for arrow in into:
            event += b"\x81\x03" + _FIXED(arrow)
        self._event(span[1], event)

    def counter(self, track: int, at_ns: int, value: float) -> None:
        """What a counter is from a moment on."""
        self._event(at_ns, b"\x48\x04\x58" + varint(track) + b"\xe1\x02" + struct.pack("<d", value))

    def _event(self, at_ns: int, event: bytes) -> None:
        body = b"\x40" + varint(at_ns) + _PLACE + varint(len(event)) + event
        self._parts.append(b"\x0a" + varint(len(body)) + body)
        if len(self._parts) >= _FLUSH_PARTS:
            self._flush()
