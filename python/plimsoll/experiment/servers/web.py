"""What an experiment on a web server may hold: which settings are Plimsoll's, and what such a server has not.

The fact that constrains it: what somebody asked for is refused with its name and never left out silently. What is on by
default and cannot be had (what both caches hold) is absent, and the trial says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from plimsoll.experiment.measuring import Warmup
from plimsoll.experiment.probes import Probes
from plimsoll.experiment.servers.refusals import of_databases, refuse
from plimsoll.experiment.target import Target
from plimsoll.experiment.workload import Web, Workload

# Where it listens, what it serves, and where its own files are.
OF_NGINX: Final = frozenset(
    {
        *("daemon", "error_log", "events", "http", "include", "listen", "load_module", "location", "lock_file"),
        *("master_process", "pid", "root", "server", "server_name", "user", "working_directory"),
        *(f"{what}_temp_path" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")),
    }
)
OF_APACHE: Final = frozenset(
    {
        *("coredumpdirectory", "customlog", "defaultruntimedir", "documentroot", "errorlog", "group", "include"),
        *("includeoptional", "listen", "loadmodule", "mutex", "pidfile", "proxypass", "scoreboardfile", "serverroot"),
        *("servername", "user"),
    }
)
# A value is one directive's: nothing that would end it and begin another.
_ODD: Final = re.compile(r"[;{}#<>\n\0]")
# They read PostgreSQL's processes or files.
PROBES: Final = ("profile", "syscalls", "sync", "block")
# They are told the folders of a server of ours.
OF_OUR_FOLDERS: Final = ("nfs_calls",)


def check_existing(workload: Workload, target: Target, warmup: Warmup, probes: Probes) -> None:
    """Of a web server that somebody else runs. Raises ValueError with what is allowed."""
    del warmup
    refused = {
        "target.dsn": target.dsn is not None,
        **{f"target.files.{name}": True for name in target.files.given if name != "data"},
        **{f"target.settings.{name}": True for name in target.settings},
        **{f"probes.{name}": bool(getattr(probes, name)) for name in (*PROBES, *OF_OUR_FOLDERS)},
    }
    found = [name for name, is_asked in refused.items() if is_asked]
    if found:
        raise ValueError(
            f"target.url names a web server that exists, which is not given {', '.join(found)}; allowed: none of these "
            "(target.files.data is the folder that it serves)"
        )
    if isinstance(workload, Web) and workload.has_program:
        raise ValueError(
            "target.url names a web server that exists, behind which no program of ours is started; allowed: "
            'workload.mix = "static"'
        )


def check_of(ours: frozenset[str]) -> Callable[[Workload, Target, Warmup, Probes], None]:
    """The check of a kind of server whose directives `ours` are Plimsoll's."""

    def check(workload: Workload, target: Target, warmup: Warmup, probes: Probes) -> None:
        """Raises ValueError with what is allowed."""
        del workload, warmup
        refused = {**of_databases(target), **{f"probes.{name}": bool(getattr(probes, name)) for name in PROBES}}
        refuse(target, refused, "a web server and has no")
        for name, value in target.settings.items():
            if name in ours:
                raise ValueError(f"{name} is chosen by Plimsoll; allowed: every other directive of {target.server}")
            if isinstance(value, str) and _ODD.search(value):
                raise ValueError(f"settings.{name} = {value!r}; allowed: the value of one directive, on one line")

    return check
