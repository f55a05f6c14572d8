"""A private Apache HTTP server: its configuration, and how it is started.

The fact that constrains it: its directives may be written in any case; an experiment writes them in lower case, as
all of its keys.
"""

from __future__ import annotations

from typing import ClassVar, Final

from plimsoll.environment.folders.own_folder import read_theirs
from plimsoll.target.server import LOG_TAIL_BYTES, Settings
from plimsoll.target.web_server import DYNAMIC, LOOPBACK, WebServer, quoted, shown, within_reach

MPM: Final = "mpm"  # which multi-processing module; no directive
MPMS: Final = ("event", "worker", "prefork")
WORKERS: Final = "maxrequestworkers"
THREADS: Final = "threadsperchild"
SERVERS: Final = "serverlimit"
ERRORS: Final = "error.log"
_THREADS: Final = 25
_WORKERS_MIN: Final = 400


class ApacheServer(WebServer):
    """One Apache HTTP server."""

    name: ClassVar[str] = "Apache"
    configuration: ClassVar[str] = "httpd.conf"

    def defaults(self) -> Settings:
        """A worker for each connection, so that none waits for another to be closed."""
        workers = max(_WORKERS_MIN, -(-self.site.clients // _THREADS) * _THREADS)
        return {
            MPM: "event",
            WORKERS: workers,
            "keepalive": True,
            "keepalivetimeout": 65,
            "maxkeepaliverequests": 1000,
            "enablesendfile": True,
            "enablemmap": True,
        }

    def sized(self, settings: Settings) -> Settings:
        """The same, with as many processes as the workers need: other numbers make it start fewer of them."""
        if SERVERS in settings or not str(settings.get(WORKERS, "")).isdigit():
            return settings
        workers = int(settings[WORKERS])
        if settings[MPM] == "prefork":
            return settings | {SERVERS: workers}
        threads = int(settings.get(THREADS, _THREADS))
        return settings | {THREADS: threads, SERVERS: -(-workers // threads)}

    def text(self, settings: Settings) -> str:
        modules = [f"mpm_{settings[MPM]}", "authz_core"] + (["proxy", "proxy_fcgi"] if self.socket is not None else [])
        given = {name: value for name, value in settings.items() if name != MPM}
        # A limit on processes comes before what it limits.
        first = [name for name in (SERVERS, "threadlimit", THREADS) if name in given]
        ordered = [*first, *sorted(name for name in given if name not in first)]
        folder = self.install.modules
        return "\n".join(
            [
                f"ServerRoot {quoted(self.own)}",
                f"DefaultRuntimeDir {quoted(self.own)}",
                f"PidFile {quoted(self.own / 'httpd.pid')}",
                "Mutex pthread",
                f"ErrorLog {quoted(self.own / ERRORS)}",
                f"ServerName {LOOPBACK}",
                f"Listen {LOOPBACK}:{self.port}",
                *(f"LoadModule {name}_module {quoted(f'{folder}/mod_{name}.so')}" for name in modules),
                *(f"{name} {shown(given[name])}" for name in ordered),
                f"DocumentRoot {quoted(self.site.files)}",
                "<Directory />",
                "    AllowOverride None",
                "    Require all denied",
                "</Directory>",
                f"<Directory {quoted(self.site.files)}>",
                "    Options FollowSymLinks",
                "    Require all granted",
                "</Directory>",
                *self._dynamic(),
                "",
            ]
        )

    def _dynamic(self) -> list[str]:
        if self.socket is None:
            return []
        to = f"unix:{self.socket}|fcgi://{LOOPBACK}{DYNAMIC}"
        return [
            f"<Location {DYNAMIC}>",
            "    Require all granted",
            "</Location>",
            f"ProxyPass {DYNAMIC} {quoted(to)}",
        ]

    def argv(self) -> list[str]:
        program = within_reach(self.install.program, self.run_dir)
        return [str(program), "-DFOREGROUND", "-f", str(self.run_dir / self.configuration)]

    def log_tail(self, size_max: int = LOG_TAIL_BYTES) -> str:
        """What it said before it had a log of its own, and the end of that."""
        said = super().log_tail(size_max)
        if not (self.own / ERRORS).is_file():
            return said
        own = read_theirs(self.own, ERRORS, self.own.stat().st_uid)[-size_max:]
        return "\n".join(filter(None, (said, own.strip())))
