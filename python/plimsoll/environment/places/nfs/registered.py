"""The rpcbind that the kernel's NFS server is registered with: ourselves, at a local socket that nobody else sees.

The constraint: a kernel that starts an NFS server looks for an rpcbind at the local socket /var/run/rpcbind.sock, then
at the loopback address, keeps to the one that it found, and tells it when the server stops, whichever versions it had:
nfsd's own registration, and lockd's with version 3. Where nobody is at the other end of a local socket it gives up at
once; where packets of the loopback are lost it waits three minutes for each. So it finds a local one. Which it looks
up as the one who starts the server sees the files: a thread with mounts of its own, which end with the thread.
"""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from plimsoll.environment.places.nfs import rpc

SOCKET: Final = Path("/var/run/rpcbind.sock")
_CLONE_NEWNS: Final = 0x00020000
_MS_REC, _MS_PRIVATE = 0x4000, 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def rpcbind_for(action: Callable[[], object]) -> Iterator[None]:
    """Does it in a thread of its own that finds an rpcbind: one that runs already, ourselves, or where no mounts of our
    own are to be had ourselves at the loopback address. Inside we go on answering whom the kernel has found."""
    failed: list[BaseException] = []
    with ExitStack() as answering:

        def run() -> None:
            try:
                _answer(answering)
                action()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run, name="nfs start")
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        yield


def _answer(answering: ExitStack) -> None:
    if _is_there():
        return
    if _hides():
        answering.enter_context(rpc.answering_at(SOCKET, rpc.RPCBIND, rpc.rpcbind))
        return
    with suppress(OSError):  # somebody else listens there
        answering.enter_context(rpc.answering(rpc.RPCBIND, rpc.rpcbind, rpc.RPCBIND_PORT))


def _is_there() -> bool:
    with socket.socket(socket.AF_UNIX) as asking, suppress(OSError):
        asking.connect(str(SOCKET))
        return True
    return False


def _hides() -> bool:
    """Whether the folder of the socket is an empty one now, for this thread alone."""
    folder = os.fsencode(SOCKET.parent.resolve())
    return (
        _libc.unshare(_CLONE_NEWNS) == 0
        and _libc.mount(None, b"/", None, _MS_REC | _MS_PRIVATE, None) == 0
        and _libc.mount(b"none", folder, b"tmpfs", 0, None) == 0
    )
