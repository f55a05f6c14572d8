"""Instructions and system calls of one call of the agent, counted by Valgrind's callgrind, by thread and by function.

The constraint: a count is the same whatever else the machine does, where CPU time on a shared one scatters by more than
what is looked for. It is of user space alone; what the kernel does is in none of it, hence the number of system calls
beside it. And Valgrind has to know each of those: the copy of the agent that is counted calls epoll_wait without a
timeout in the place of epoll_pwait2, which a closed loop that ends with a number of transactions has no use for.
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plimsoll.environment import Fault

# mov eax, 441 (epoll_pwait2); xor r8d, r8d; syscall
_WAITS = bytes.fromhex("b8b90100004531c00f05")
# xor eax, eax; mov al, 232 (epoll_wait); or r10, -1; syscall
_WAITS_WITHOUT_TIMEOUT = bytes.fromhex("31c0b0e84983caff0f05")
_PRCTL, _PR_GET_AUXV, _EINVAL = 157, 0x41555856, 22
_PR_SET_SECCOMP, _FILTER, _PR_SET_NO_NEW_PRIVS = 22, 2, 38
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER_AT, _FIRST_ARGUMENT_AT = 0, 16


@dataclass(frozen=True)
class Count:
    """Of one thread, from its start to its end."""

    instructions: int = 0
    system_calls: int = 0
    by_function: Counter[str] = field(default_factory=Counter, repr=False)  # instructions in the function itself

    def __add__(self, other: Count) -> Count:
        functions = self.by_function + other.by_function
        return Count(self.instructions + other.instructions, self.system_calls + other.system_calls, functions)


def copy_to_count(program: Path, to: Path) -> Path:
    """The copy of a program that Valgrind can run. Raises Fault where it waits in a way that is not known here."""
    text = program.read_bytes()
    if _WAITS not in text:
        raise Fault(f"{program}: the call of epoll_pwait2 is not found in it", remedy="x86-64 alone; or count by hand")
    to.write_bytes(text.replace(_WAITS, _WAITS_WITHOUT_TIMEOUT))
    to.chmod(0o755)
    return to


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def _hide_auxv() -> None:
    """Has prctl(PR_GET_AUXV) fail from here on, so that /proc/self/auxv is read, which Valgrind answers itself.

    What the kernel would answer names a vDSO that Valgrind does not map.
    """
    filtered = (_Instruction * 6)(
        (_LOAD, 0, 0, _NUMBER_AT),
        (_IF_EQUAL, 0, 3, _PRCTL),
        (_LOAD, 0, 0, _FIRST_ARGUMENT_AT),
        (_IF_EQUAL, 0, 1, _PR_GET_AUXV),
        (_RETURN, 0, 0, _ERRNO | _EINVAL),
        (_RETURN, 0, 0, _ALLOW),
    )
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(_Program(len(filtered), filtered))):
        raise OSError(ctypes.get_errno(), "seccomp")


def count(program: Path, verb: str, request: dict[str, Any], folder: Path) -> tuple[list[Count], dict[str, Any]]:
    """Runs `program verb` to its end: a count for each thread, and the last line that it printed.

    `folder` is for callgrind's files. Raises Fault where there is no Valgrind, or the program fails.
    """
    if shutil.which("valgrind") is None:
        raise Fault("there is no valgrind", remedy="install the package valgrind")
    for left in folder.glob("callgrind.out*"):
        left.unlink()
    out = f"--callgrind-out-file={folder}/callgrind.out"
    options = ["-q", "--tool=callgrind", "--collect-systime=msec", "--separate-threads=yes", out]
    process = subprocess.Popen(
        ["valgrind", *options, str(program), verb],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=_hide_auxv,
    )
    assert process.stdin is not None and process.stdout is not None
    last = ""
    try:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        for line in process.stdout:
            last = line
    except BaseException:
        process.kill()
        raise
    finally:
        code = process.wait()
        process.stdin.close()
    if code:
        raise Fault(f"{program} {verb} under valgrind: exit code {code}: {last.strip()}", remedy="run it without")
    files = sorted(folder.glob("callgrind.out-*"))
    return [_of_thread(file.read_text().splitlines()) for file in files], json.loads(last)


def _of_thread(lines: Iterable[str]) -> Count:
    """A file of callgrind's with the events Ir, sysCount and sysTime; a line may lack the last of them."""
    names: dict[str, str] = {}
    by_function: Counter[str] = Counter()
    total, function, is_call = [0, 0], "", False
    for line in lines:
        if found := re.match(r"fn=(\(\d+\))(?: (.*))?", line):
            function = names.setdefault(found[1], _plain(found[2] or ""))
        elif found := re.match(r"cfn=(\(\d+\)) (.*)", line):
            names[found[1]] = _plain(found[2])
        elif line.startswith("calls="):
            is_call = True  # the next line is what was called, and is counted there
        elif line[:1] in tuple("+-*0123456789"):
            costs = [] if is_call else [int(number) for number in line.split()[1:3]]
            is_call = False
            if costs:
                by_function[function] += costs[0]
                total = [one + more for one, more in zip(total, [*costs, 0][:2], strict=True)]
    return Count(total[0], total[1], by_function)


def _plain(name: str) -> str:
    """Without the hash of a build and what recursion adds, so that it is the same in another one."""
    return re.sub(r"(::h[0-9a-f]{16})?('\d+)?$", "", name)
