"""`web`: web serving like SPECweb99's: a set of files by load, a mix of requests for it, clients that hold a line
speed.

The fact that constrains it: of the original only parts are public. Whatever is not is a key here, and a result is
"-like".
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, model_validator

from plimsoll.experiment.schedule import Closed, Schedule
from plimsoll.experiment.strict import Seed, Strict
from plimsoll.experiment.workloads.base import ONE_A_RUN, PAGES, AnyWorkload, Json

LIKE: Final = "SPECweb99-like, not comparable to published results"
Share = Annotated[float, Field(ge=0, le=1)]
Weight = Annotated[float, Field(ge=0, le=1_000_000)]
Nine = tuple[Weight, Weight, Weight, Weight, Weight, Weight, Weight, Weight, Weight]

DIRECTORY_BYTES = 5_119_484  # of 36 files
DIRECTORIES_MAX = 100_000
# What the original serves a connection by: bits a second that its line holds, and bits that an operation moves.
LINE_BITS_PER_S = 400_000
OPERATION_BITS = 122_000
# The program's own files: a line a user, 360 advertisements.
USER_BYTES, ADS_BYTES = 15, 360 * 39
SPECIFIED: Final = {"static": 70.0, "dynamic": 12.45, "cgi": 0.15, "custom_ad": 12.6, "post": 4.8}


class Shares(Strict):
    """Weights of the kinds of request; one that is left out is not asked for."""

    static: Weight = Field(0, description="GET of a file")
    dynamic: Weight = Field(0, description="GET of a page that a program makes around a file")
    cgi: Weight = Field(0, description="the same by a program that is started for it")
    custom_ad: Weight = Field(0, description="GET of a page with advertisements that suit the user, told by a cookie")
    post: Weight = Field(0, description="POST, which the program writes into its log")

    @model_validator(mode="after")
    def _some(self) -> Shares:
        if not any(self.of_kinds().values()):
            raise ValueError("every weight of mix is 0; allowed: at least one weight above 0")
        return self

    def of_kinds(self) -> dict[str, float]:
        """Every kind with its weight."""
        return {kind: getattr(self, kind) for kind in SPECIFIED}


class Web(AnyWorkload):
    """Requests for the pages of a web server."""

    on: ClassVar[str] = PAGES
    unit: ClassVar[str] = "requests"
    own_metrics: ClassVar[tuple[str, ...]] = ("conforming_connections", "connection_bits_per_second")

    name: Annotated[Literal["web"], ONE_A_RUN]
    clients: int = Field(1, ge=1, le=10_000, description="connections at once, as many as are asked to conform")
    threads: int | None = Field(
        None, ge=1, le=1024, description="threads of the load; by default one a load CPU, at most one a client"
    )
    seed: Seed = 1999
    load: int | None = Field(
        None, ge=1, le=1_000_000, description="connections that the set of files is made for; by default the clients"
    )
    directories: int | None = Field(
        None,
        ge=1,
        le=DIRECTORIES_MAX,
        description="of the set of files, 36 in each (5.1 MB); by default those of SPECweb99 for the load: "
        "25 + 400000 / 122000 x load / 5",
    )
    ad_every_bytes: int = Field(
        1024, ge=64, le=65_536, multiple_of=64, description="of files of classes 1 and 2: an advertisement in each"
    )
    mix: Literal["whole", "static"] | Shares = Field(
        "whole", description='"whole": 70 % static, 12.45 dynamic, 0.15 cgi, 12.6 custom_ad, 4.8 post; or weights'
    )
    classes: tuple[Weight, Weight, Weight, Weight] = Field(
        (35, 50, 14, 1), description="shares of the files below 1, 10, 100 KiB and 1 MiB"
    )
    class_files: Nine | None = Field(
        None, description="shares of the nine files of a class; by default Zipf's law in the order 4 3 5 2 6 1 7 8 0"
    )
    zipf: float = Field(1.0, ge=0, le=100, description="exponent of the choice of directory; 0: all alike")
    users: int = Field(2000, ge=1, le=1_000_000, description="to whom advertisements are shown")
    persistent: Share = Field(0.7, description="share of the requests on connections that carry several")
    requests_a_connection: tuple[
        Annotated[int, Field(ge=1, le=2**30)],
        Annotated[int, Field(ge=1, le=2**30)],
    ] = Field((5, 15), description="how many those carry: least, most")
    http_1_0: Share = Field(0.5, description="share of the connections that speak HTTP/1.0; the others speak 1.1")
    line_bits_per_s: int | None = Field(
        None,
        ge=1000,
        le=10**12,
        description=f"a connection's line speed, held by reading no faster; {LINE_BITS_PER_S:,} in the original; by "
        "default as fast as it comes",
    )
    read_bytes: int = Field(1460, ge=1, le=65_536, description="with a line speed: of a read, as a TCP segment has")
    receive_buffer_bytes: int = Field(16_384, ge=1024, le=2**30, description="with a line speed: of the socket")
    conforming_bits_per_s: int = Field(320_000, ge=1, le=10**12, description="the least that conforms")
    deadline_ms: int = Field(30_000, ge=1, le=3_600_000, description="a request that is not answered by then is lost")
    verify: Literal["whole", "marks"] = Field(
        "whole", description='what of an answer is compared: every byte, or "marks": length, first line, advertisements'
    )

    @model_validator(mode="after")
    def _whole(self) -> Web:
        if self.load is not None and self.directories is not None:
            raise ValueError("load and directories are both given; allowed: one of the two")
        least, most = self.requests_a_connection
        if least > most:
            raise ValueError("requests_a_connection: the first is larger than the second; allowed: [least, most]")
        if not any(self.classes) or (self.class_files is not None and not any(self.class_files)):
            raise ValueError("every share of classes or of class_files is 0; allowed: at least one share above 0")
        if self.line_bits_per_s is not None and self.line_bits_per_s < self.conforming_bits_per_s:
            raise ValueError(
                f"line_bits_per_s = {self.line_bits_per_s} is below conforming_bits_per_s = "
                f"{self.conforming_bits_per_s}, so that no connection can conform; allowed: at least as much"
            )
        return self

    @property
    def shares(self) -> dict[str, float]:
        """The weight of every kind of request."""
        if isinstance(self.mix, Shares):
            return self.mix.of_kinds()
        return SPECIFIED if self.mix == "whole" else dict.fromkeys(SPECIFIED, 0.0) | {"static": 1.0}

    @property
    def has_program(self) -> bool:
        """Whether any request is answered by a program."""
        return any(weight for kind, weight in self.shares.items() if kind != "static")

    def directories_made(self) -> int:
        """Of the set of files."""
        if self.directories is not None:
            return self.directories
        return 25 + LINE_BITS_PER_S * (self.load or self.clients) // (5 * OPERATION_BITS)

    def request(self, memory_bytes: int) -> Json:
        asked: Json = self.data_request(memory_bytes) | {"mix": self.shares, "classes": list(self.classes)}
        keys = ("zipf", "persistent", "http_1_0", "read_bytes", "receive_buffer_bytes")
        asked |= {key: getattr(self, key) for key in (*keys, "conforming_bits_per_s", "deadline_ms", "verify")}
        asked["requests_a_connection"] = list(self.requests_a_connection)
        files = None if self.class_files is None else list(self.class_files)
        given: dict[str, Any] = {"line_bits_per_s": self.line_bits_per_s, "files": files}
        return asked | {key: value for key, value in given.items() if value is not None}

    def data_request(self, memory_bytes: int) -> Json:
        del memory_bytes
        return {
            "name": self.name,
            "seed": self.seed,
            "directories": self.directories_made(),
            "ad_every_bytes": self.ad_every_bytes,
            "users": self.users,
        }

    def rows_from(self, memory_bytes: int) -> Json:
        """Of the files alone, which no seed changes: users and advertisements are made for each trial."""
        data = self.data_request(memory_bytes)
        return {key: data[key] for key in ("name", "directories", "ad_every_bytes")}

    def load_request(self, cpus: int) -> Json:
        return {"clients": self.clients, "threads": min(self.threads or cpus, self.clients)}

    def estimated_bytes(self, memory_bytes: int, *, columnar: bool = False) -> int:
        del memory_bytes, columnar
        return self.directories_made() * DIRECTORY_BYTES + self.users * USER_BYTES + ADS_BYTES

    def written_bytes(self) -> int | None:
        """Nothing but the log of POSTs."""
        return None if self.shares["post"] else 0

    def caveats(self) -> list[str]:
        said = [f"web serving ({LIKE})"]
        if self.verify != "whole":
            said.append('of an answer only length, first line and advertisements are compared (verify = "marks")')
        return said

    def subject(self) -> str:
        done = self.mix if isinstance(self.mix, str) else " + ".join(f"{k} {w:g}" for k, w in self.shares.items() if w)
        speed = "" if self.line_bits_per_s is None else f", lines of {self.line_bits_per_s:,} bit/s"
        return f"{self.name} ({done}), {self.directories_made():,} directories of files{speed}"

    def line_speed(self) -> int | None:
        return self.line_bits_per_s

    def with_connections(self, clients: int, *, has_lines: bool) -> Json:
        table = self.model_dump(mode="json", exclude_none=True)
        same = {"clients": clients, "directories": self.directories_made()}
        return {
            key: value
            for key, value in table.items()
            if key not in ("load", *same) and (has_lines or key != "line_bits_per_s")
        } | same

    def judged(self, schedule: Schedule) -> str:
        """With line speeds what the original counts."""
        if self.line_bits_per_s is not None and isinstance(schedule, Closed):
            return "conforming_connections"
        return schedule.judged

    def check_warmup(self, until: str, *, prewarm: bool) -> None:
        del until
        if prewarm:
            raise ValueError(
                "prewarm reads tables into a server's cache, and a web server has none; allowed: prewarm = false, "
                'with environment.page_cache = "warm"'
            )
