"""A private nginx: its configuration, and how it is started."""

from __future__ import annotations

import resource
from typing import ClassVar, Final

from plimsoll.target.server import Settings
from plimsoll.target.web_server import DYNAMIC, LOOPBACK, WebServer, quoted, shown, within_reach

# Where a directive belongs that is none of `http`.
MAIN: Final = frozenset(
    {
        *("debug_points", "env", "pcre_jit", "ssl_engine", "thread_pool", "timer_resolution", "worker_cpu_affinity"),
        *("worker_priority", "worker_processes", "worker_rlimit_core", "worker_rlimit_nofile"),
        *("worker_shutdown_timeout",),
    }
)
EVENTS: Final = frozenset(
    {
        *("accept_mutex", "accept_mutex_delay", "multi_accept", "use", "worker_aio_requests", "worker_connections"),
    }
)
CONNECTIONS: Final = "worker_connections"
PROCESSES: Final = "worker_processes"
CONNECTIONS_MIN: Final = 1024
SPARE: Final = 64  # of the connections of a worker: its listening ones, its channel, and those that end late
# What CGI calls what the program wants to know; headers of the request are passed on as they are.
VARIABLES: Final = {
    "REQUEST_METHOD": "$request_method",
    "SCRIPT_NAME": "$document_uri",
    "QUERY_STRING": "$query_string",
    "CONTENT_TYPE": "$content_type",
    "CONTENT_LENGTH": "$content_length",
    "SERVER_SOFTWARE": "nginx/$nginx_version",
    "SERVER_PROTOCOL": "$server_protocol",
    "REMOTE_ADDR": "$remote_addr",
}
TEMPORARY: Final = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


class NginxServer(WebServer):
    """One nginx."""

    name: ClassVar[str] = "nginx"
    configuration: ClassVar[str] = "nginx.conf"

    def defaults(self) -> Settings:
        """A worker a CPU, each with room for every client: which of them takes a connection is chance."""
        connections = max(CONNECTIONS_MIN, connections_of(self.site.clients, has_program=self.site.program is not None))
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        return {
            PROCESSES: self.site.cpus,
            CONNECTIONS: connections,
            "worker_rlimit_nofile": min(most, 2 * connections + SPARE) if most > 0 else 2 * connections + SPARE,
            "access_log": False,
            "sendfile": True,
            "keepalive_timeout": 65,
        }

    def text(self, settings: Settings) -> str:
        def lines(names: list[str], indent: str) -> list[str]:
            return [f"{indent}{name} {shown(settings[name])};" for name in sorted(names)]

        of_http = [name for name in settings if name not in MAIN | EVENTS]
        temporary = [f"    {name}_temp_path {quoted(self.own / name)};" for name in TEMPORARY]
        return "\n".join(
            [
                "daemon off;",
                f"pid {quoted(self.own / 'nginx.pid')};",
                f"lock_file {quoted(self.own / 'nginx.lock')};",
                f"working_directory {quoted(self.own)};",
                "error_log stderr;",
                *lines([name for name in settings if name in MAIN], ""),
                "events {",
                *lines([name for name in settings if name in EVENTS], "    "),
                "}",
                "http {",
                "    default_type application/octet-stream;",
                *temporary,
                *lines(of_http, "    "),
                "    server {",
                f"        listen {LOOPBACK}:{self.port};",
                f"        root {quoted(self.site.files)};",
                *self._dynamic(),
                "    }",
                "}",
                "",
            ]
        )

    def _dynamic(self) -> list[str]:
        if self.socket is None:
            return []
        passed = [f"            fastcgi_param {name} {value};" for name, value in VARIABLES.items()]
        to = "unix:" + str(self.socket)
        return [f"        location {DYNAMIC} {{", f"            fastcgi_pass {quoted(to)};", *passed, "        }"]

    def argv(self) -> list[str]:
        program = within_reach(self.install.program, self.run_dir)
        return [str(program), "-p", str(self.own), "-c", str(self.run_dir / self.configuration), "-e", "stderr"]


def connections_of(clients: int, *, has_program: bool) -> int:
    """What a worker needs to serve so many clients: a request that a program answers has a connection to that, too."""
    return clients * (2 if has_program else 1) + SPARE
