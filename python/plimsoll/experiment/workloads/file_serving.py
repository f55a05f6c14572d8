"""`file_serving`: the operations of a file server, by dbench's load file or by a synthetic profile of the same mix."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from plimsoll.experiment.schedule import Closed, Schedule
from plimsoll.experiment.strict import Fixed, Seed
from plimsoll.experiment.workloads.base import ONE_A_RUN, Json, NotAsked
from plimsoll.experiment.workloads.on_files import Clients, OnFiles

# About what a client of the load file has at once: it writes a GB in a pass, and most of it is deleted again.
CLIENT_BYTES = 32 * 2**20


class FileServing(OnFiles):
    """What dbench does: each client goes through a script of a file server's operations, in a directory of its own."""

    own_metrics: ClassVar[tuple[str, ...]] = ("bytes_per_second", "cpu_ns_per_mb")

    name: Annotated[Literal["file_serving"], ONE_A_RUN]
    clients: Clients = Field(1, description="each with a directory of its own")
    seed: Seed = 2003
    loadfile: Annotated[str | None, Fixed("operations are compared with the same operations")] = Field(
        None,
        description="a load file of dbench's, such as Debian's /usr/share/dbench/client.txt; by default a synthetic "
        "profile of the same mix, sizes and errors",
    )
    generation: Literal["4.0", "2.1"] = Field(
        "4.0", description='whose semantics the operations have; "2.1": one pass, errors are not compared'
    )
    resolve: bool = Field(True, description="whether a name that is not found is looked for without regard to case")
    o_sync: bool = Field(False, description="files are opened with O_SYNC")
    sync_directories: bool = Field(False, description="directories are synced after each change")
    sync_writes: bool = Field(False, description="each write is followed by an fsync")
    descriptor_tables: Literal["shared", "own"] = Field(
        "shared",
        description='"shared": clients are threads with one table of file descriptors; "own": each has its own, as '
        "dbench's processes have",
    )
    passes: int = Field(0, ge=0, le=1_000_000, description="through the script; 0: until the load's own end")

    @field_validator("loadfile")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith("/"):
            raise ValueError(f"{value!r} is not an absolute path; allowed: one such as /usr/share/dbench/client.txt")
        return value

    @model_validator(mode="after")
    def _one_pass_of_old(self) -> FileServing:
        if self.generation == "2.1" and not self.passes:
            raise ValueError('generation "2.1" runs its script once; allowed: with passes = 1')
        return self

    def request(self, memory_bytes: int) -> Json:
        del memory_bytes
        script: Json = {"synthetic": {}} if self.loadfile is None else {"loadfile": self.loadfile}
        return {
            "name": self.name,
            "seed": self.seed,
            "script": script,
            **{key: getattr(self, key) for key in ("generation", "resolve", "o_sync")},
            **{key: getattr(self, key) for key in ("sync_directories", "sync_writes", "passes")},
            "descriptor_tables": self.descriptor_tables,
        }

    def load_request(self, cpus: int) -> Json:
        del cpus
        return {"clients": self.clients, "threads": 1}

    def estimated_bytes(self, memory_bytes: int, *, columnar: bool = False) -> int:
        """What its clients have at once, about: a load makes and deletes its files."""
        del memory_bytes, columnar
        return self.clients * CLIENT_BYTES

    def caveats(self) -> list[str]:
        said = "file serving (dbench-like, not comparable to published results)"
        profile = "" if self.loadfile is not None else ": a synthetic profile, not dbench's load file"
        return [f"{said}{profile}"]

    def subject(self) -> str:
        script = "the synthetic profile" if self.loadfile is None else f"the load file {self.loadfile}"
        tables = ", clients with tables of descriptors of their own" if self.descriptor_tables == "own" else ""
        return f"{self.name}, {script}, as {self.generation}{tables}"

    def judged(self, schedule: Schedule) -> str:
        """In a closed loop what dbench prints."""
        return "bytes_per_second" if isinstance(schedule, Closed) else schedule.judged

    def check_warmup(self, until: str, *, prewarm: bool) -> None:
        del prewarm
        if self.passes and until != "none":
            raise ValueError(
                'passes end the load themselves, so there is no warm-up; allowed: warmup.until = "none", or passes = 0'
            )

    def no_load_line(self) -> NotAsked | None:
        if not self.passes:
            return None
        return NotAsked(
            "workload.passes",
            "a fixed number of passes ends the load, but a load line needs one that goes on",
            "passes = 0",
        )
