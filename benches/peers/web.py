"""A private nginx with one file of 10 KiB, and one run of each client of it.

The constraint: the server has one CPU and the client another, so that neither is measured in the other's place; on
fewer CPUs this cannot be measured.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from plimsoll.environment import Fault
from plimsoll.record.npy import read_table
from plimsoll.run import agent
from plimsoll.run.host import HERE

FILE: Final = "/file_set/dir00000/class2_0"  # of 10,240 bytes
SERVER_CPU: Final = 0
CLIENT_CPU: Final = 1
REQUESTS_PER_S_MAX: Final = 200_000
CONFIGURATION: Final = """\
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
worker_processes 1;
worker_rlimit_nofile 65536;
events {{ worker_connections 32768; }}
http {{
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 600;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{ listen 127.0.0.1:{port} backlog=4096; root {root}; }}
}}
"""


@dataclass(frozen=True)
class Task:
    """What both clients of a pair do."""

    connections: int
    seconds: int
    keeps: bool = True  # connections are kept; else each carries one request
    rate: int | None = None  # requests a second, without waiting for answers; None: as fast as it goes
    seed: int = 1


@dataclass(frozen=True)
class Run:
    """What came of it, from the start of the client's process to its end."""

    requests: int
    seconds: float
    cpu_s: float
    load_s: float  # of the CPU time, that of the load itself, where the client tells it; else all
    quantiles_us: dict[str, float] = field(default_factory=dict)

    @property
    def requests_per_s(self) -> float:
        """Throughput."""
        return self.requests / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU time of the client a request."""
        return 1e6 * self.cpu_s / self.requests

    @property
    def load_us(self) -> float:
        """The same without what is paid once."""
        return 1e6 * self.load_s / self.requests


@dataclass
class Site:
    """A server that answers at `port`."""

    folder: Path
    port: int

    @property
    def url(self) -> str:
        """Of the file."""
        return f"http://127.0.0.1:{self.port}{FILE}"


@contextmanager
def site(nginx: str) -> Iterator[Site]:
    """nginx on a file set of one directory, as the user of private servers."""
    with tempfile.TemporaryDirectory(prefix="against-web-clients-") as name:
        folder, user = Path(name), HERE.server_user()
        folder.chmod(0o755)
        for below in ("root", "nginx"):
            (folder / below).mkdir(mode=0o755)
        os.chown(folder / "nginx", *HERE.account(user))
        _populate(folder / "root")
        found = Site(folder, _free_port())
        text = CONFIGURATION.format(folder=folder / "nginx", root=folder / "root", port=found.port)
        (folder / "nginx.conf").write_text(text)
        server = HERE.start_as(
            [nginx, "-p", str(folder / "nginx"), "-c", str(folder / "nginx.conf"), "-e", "stderr"],
            user=user,
            preexec_fn=lambda: os.sched_setaffinity(0, {SERVER_CPU}),
            stderr=subprocess.PIPE,
        )
        try:
            _await(server, found.port)
            yield found
        finally:
            server.terminate()
            server.wait()


def _populate(root: Path) -> None:
    workload = {"name": "web", "seed": 1, "directories": 1}
    running = agent.Agent("populate", {"target": {"kind": "web", "folder": str(root)}, "workload": workload})
    list(running.lines())
    running.finish()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await(server: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    server.kill()
    assert server.stderr is not None
    said = server.stderr.read().decode(errors="replace").strip()[-500:]
    raise Fault(f"nginx does not answer: {said}", remedy="run it by hand with the same configuration")


class Client(ABC):
    """A load generator."""

    name: str

    @abstractmethod
    def run(self, site: Site, task: Task) -> Run:
        """One run."""


def ended(argv: list[str], told: str = "") -> tuple[str, float]:
    """What a client said, and the CPU time of its process."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {CLIENT_CPU}),
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(told)
        process.stdin.flush()
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        process.stdin.close()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Fault(f"{argv[0]}: {output.strip()[-500:]}", remedy="run it by hand with the same arguments")
    return output, usage.ru_utime + usage.ru_stime


class Plimsoll(Client):
    """The agent: every answer compared byte by byte, every request recorded."""

    name = "plimsoll"

    def run(self, site: Site, task: Task) -> Run:
        parameters: dict[str, Any] = {
            "mix": {"static": 1},
            "classes": [0, 0, 1, 0],
            "files": [1, 0, 0, 0, 0, 0, 0, 0, 0],
            "persistent": 1 if task.keeps else 0,
            "requests_a_connection": [1 << 30, 1 << 30],
            "http_1_0": 0,
        }
        closed, constant = {"kind": "closed"}, {"kind": "constant", "rate": task.rate}
        with tempfile.TemporaryDirectory() as out:
            request = {
                "target": {"kind": "web", "url": f"http://127.0.0.1:{site.port}"},
                "workload": {"name": "web", "seed": task.seed, "directories": 1, **parameters},
                "clients": task.connections,
                "schedule": closed if task.rate is None else constant,
                "stop": {"seconds": task.seconds},
                "out": out,
            }
            output, cpu_s = ended([str(agent.PROGRAM), "load"], json.dumps(request) + "\n")
            summary = json.loads(output.splitlines()[-1])
            quantiles = _quantiles(Path(out)) if task.rate else {}
        identity, health = summary["identity"], summary["health"]
        if identity["done"] != identity["planned"] or summary["verification"]["wrong"]:
            raise Fault(f"plimsoll: {identity}, {summary['errors']}", remedy="see the first error")
        load_s = (health["load_cpu_user_ns"] + health["load_cpu_system_ns"]) / 1e9
        lasted_s = (summary["ended_ns"] - summary["started_ns"]) / 1e9
        return Run(identity["done"], lasted_s, cpu_s, load_s, quantiles)


def _quantiles(out: Path) -> dict[str, float]:
    """From the plan, by the histogram; the upper end of the bin."""
    table = read_table(out / "latency.npy")
    order = table["low_ns"].argsort(kind="stable")
    counts = table["count"][order].cumsum()
    places = {name: counts.searchsorted(share * counts[-1]) for name, share in (("p50", 0.5), ("p99", 0.99))}
    return {name: float(table["high_ns"][order][place]) / 1e3 for name, place in places.items()}


class Wrk(Client):
    """wrk: the answers are parsed and not looked at."""

    name = "wrk"

    def run(self, site: Site, task: Task) -> Run:
        argv = ["wrk", "-t", "1", "-c", str(task.connections), "-d", f"{task.seconds}s"]
        argv += [] if task.keeps else ["-H", "Connection: close"]
        output, cpu_s = ended([*argv, site.url])
        done = re.search(r"(\d+) requests in ([\d.]+)s", output)
        if done is None or "Non-2xx" in output or "Socket errors" in output:
            raise Fault(f"wrk: {output.strip()[-500:]}", remedy="run it by hand")
        return Run(int(done[1]), float(done[2]), cpu_s, cpu_s)


class H2load(Client):
    """h2load with HTTP/1.1."""

    name = "h2load"

    def run(self, site: Site, task: Task) -> Run:
        argv = ["h2load", "--h1", "-t", "1", "-c", str(task.connections), "-D", str(task.seconds), site.url]
        output, cpu_s = ended(argv)
        done = re.search(r"finished in [\d.]+s, ([\d.]+) req/s", output)
        counts = re.search(r"requests: \d+ total, \d+ started, (\d+) done, \d+ succeeded, (\d+) failed", output)
        if done is None or counts is None or int(counts[2]):
            raise Fault(f"h2load: {output.strip()[-500:]}", remedy="run it by hand")
        return Run(int(counts[1]), int(counts[1]) / float(done[1]), cpu_s, cpu_s)


class Ab(Client):
    """ab: HTTP/1.0."""

    name = "ab"

    def run(self, site: Site, task: Task) -> Run:
        # It keeps memory for as many as it may send.
        most = str(REQUESTS_PER_S_MAX * task.seconds)
        argv = ["ab", "-q", "-r", "-t", str(task.seconds), "-n", most, "-c", str(task.connections)]
        output, cpu_s = ended([*argv, *(["-k"] if task.keeps else []), site.url])
        done = re.search(r"Complete requests: +(\d+)", output)
        lasted = re.search(r"Time taken for tests: +([\d.]+)", output)
        if done is None or lasted is None or not re.search(r"Failed requests: +0\b", output):
            raise Fault(f"ab: {output.strip()[-500:]}", remedy="run it by hand")
        return Run(int(done[1]), float(lasted[1]), cpu_s, cpu_s)


class Oha(Client):
    """oha, where cargo has it: an open loop, whose latency counts from when a request was due."""

    name = "oha"

    def run(self, site: Site, task: Task) -> Run:
        argv = ["oha", "--no-tui", "--output-format", "json", "-z", f"{task.seconds}s", "-c", str(task.connections)]
        argv += [] if task.keeps else ["--disable-keepalive"]
        argv += [] if task.rate is None else ["-q", str(task.rate), "--latency-correction"]
        output, cpu_s = ended([*argv, site.url])
        said = json.loads(output[output.index("{") :])
        requests = sum(said["statusCodeDistribution"].values())
        lasted_s = float(said["summary"]["total"])
        quantiles = {name: 1e6 * float(said["latencyPercentiles"][name]) for name in ("p50", "p99")}
        return Run(requests, lasted_s, cpu_s, cpu_s, quantiles)


PEERS: Final[dict[str, Client]] = {client.name: client for client in (Wrk(), H2load(), Ab(), Oha())}


_PACKAGES: Final = {"wrk": "wrk", "h2load": "nghttp2-client", "ab": "apache2-utils"}


def had_by(name: str) -> str:
    """How a client is had that is not there."""
    return f"the package {_PACKAGES[name]} has it" if name in _PACKAGES else f"cargo install --locked {name} builds it"


def there(name: str) -> bool:
    """Whether this machine has the program."""
    return shutil.which(name) is not None
