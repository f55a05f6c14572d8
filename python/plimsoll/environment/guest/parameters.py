"""Which of the parameters that a guest was booted with its kernel does not know.

The fact that constrains it: a kernel says nothing of a parameter that it does not know, and a misspelt one would be a
level without a difference. It hands such words on to its first program: name=value in that one's environment, others in
its arguments. Words with a dot are settings of modules, which it drops where the module is not there, and tells nobody.
"""

from __future__ import annotations

from pathlib import Path

FIRST = Path("/proc/1")


def unknown(parameters: str, first: Path = FIRST) -> list[str]:
    """Those of `parameters` that the first program, whose folder of /proc is `first`, was handed."""
    handed = {
        word.decode(errors="replace")
        for name in ("environ", "cmdline")
        for word in (first / name).read_bytes().split(b"\0")
    }
    return [word for word in parameters.split() if word in handed]
