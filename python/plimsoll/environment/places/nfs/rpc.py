"""The two small programs beside NFS 3, answered by ourselves while somebody of this kernel asks: rpcbind and MOUNT.

The constraint: the kernel starts no server of version 3 before an rpcbind has taken its registration, and mounts
nothing by version 3 before a mountd has told the root's file handle. Both ask within one call of ours, so a thread that
lives as long as that call answers, and no daemon is installed or started. (ONC RPC: RFC 5531; MOUNT: RFC 1813, 5.)
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

Answer = Callable[[int, bytes], bytes | None]  # of a procedure's number and arguments; None: there is no such procedure
RPCBIND, RPCBIND_PORT, MOUNT = 100000, 111, 100005
_REPLY, _ACCEPTED, _LAST, _MOST = 1, 0, 1 << 31, 1 << 16
_SUCCESS, _PROGRAM_UNAVAILABLE, _PROCEDURE_UNAVAILABLE = 0, 1, 3
_AUTH_SYS: Final = 1


def rpcbind(procedure: int, arguments: bytes) -> bytes | None:
    """SET and UNSET are granted, and nothing is kept: whoever mounts is told the port."""
    del arguments
    return {0: b"", 1: struct.pack(">I", 1), 2: struct.pack(">I", 1)}.get(procedure)


def mount(handle: bytes) -> Answer:
    """MNT of any path gives this file handle; UMNT is taken note of by nobody."""
    told = struct.pack(">I", 0) + _opaque(handle) + struct.pack(">2I", 1, _AUTH_SYS)

    def answer(procedure: int, arguments: bytes) -> bytes | None:
        del arguments
        return {0: b"", 1: told, 3: b""}.get(procedure)

    return answer


def reply(call: bytes, program: int, answer: Answer) -> bytes | None:
    """The reply to one RPC message; None where that is no call."""
    try:
        xid, kind, _, asked, _, procedure = struct.unpack_from(">6I", call)
        at = 24
        for _ in range(2):  # credentials and verifier
            at += 8 + _padded(struct.unpack_from(">2I", call, at)[1])
    except struct.error:
        return None
    if kind != 0:
        return None
    status, result = _PROGRAM_UNAVAILABLE, b""
    if asked == program:
        found = answer(procedure, call[at:])
        status, result = (_PROCEDURE_UNAVAILABLE, b"") if found is None else (_SUCCESS, found)
    return struct.pack(">6I", xid, _REPLY, _ACCEPTED, 0, 0, status) + result


@contextmanager
def answering(program: int, answer: Answer, port: int = 0) -> Iterator[int]:
    """On the loopback address over TCP; the port."""
    with socket.create_server(("127.0.0.1", port)) as listening, _accepting(listening, program, answer):
        yield listening.getsockname()[1]


@contextmanager
def answering_at(path: Path, program: int, answer: Answer) -> Iterator[None]:
    """At a local socket of that path."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        with _accepting(listening, program, answer):
            yield


@contextmanager
def _accepting(listening: socket.socket, program: int, answer: Answer) -> Iterator[None]:
    thread = threading.Thread(target=_accept, args=(listening, program, answer), daemon=True)
    thread.start()
    try:
        yield
    finally:
        with suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)  # wakes the one that accepts
        thread.join()


def _accept(listening: socket.socket, program: int, answer: Answer) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        threading.Thread(target=_converse, args=(connection, program, answer), daemon=True).start()


def _converse(connection: socket.socket, program: int, answer: Answer) -> None:
    with connection, connection.makefile("rb") as heard, suppress(OSError):
        while (call := _record(heard.read)) is not None and (said := reply(call, program, answer)) is not None:
            connection.sendall(struct.pack(">I", _LAST | len(said)) + said)


def _record(read: Callable[[int], bytes]) -> bytes | None:
    """One message of a stream, from its fragments; None at the end, or where it is longer than any of these calls."""
    whole = b""
    while len(head := read(4)) == 4:
        length = struct.unpack(">I", head)[0]
        if len(whole) + (length & ~_LAST) > _MOST:
            return None
        whole += read(length & ~_LAST)
        if length & _LAST:
            return whole
    return None


def _opaque(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data + bytes(_padded(len(data)) - len(data))


def _padded(length: int) -> int:
    return -(-length // 4) * 4
