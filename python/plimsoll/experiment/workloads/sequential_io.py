"""`sequential_io`: IOzone's passes over a file a process, in today's ways of doing the same."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, get_args

from pydantic import Field, field_validator, model_validator

from plimsoll.experiment import size
from plimsoll.experiment.strict import Seed, Size
from plimsoll.experiment.workloads.base import ONE_A_RUN, Json
from plimsoll.experiment.workloads.on_files import SECTOR_BYTES, Engine, PassesOverFiles, check_multiple, metrics_of

Pass = Literal[
    "write",
    "rewrite",
    "read",
    "reread",
    "random_read",
    "random_write",
    "mixed",
    "backward_read",
    "stride_read",
    "pwrite",
    "pread",
]
PASSES: Final[tuple[str, ...]] = get_args(Pass)
DEFAULT: Final[tuple[Pass, ...]] = ("write", "rewrite", "read", "reread")
MAKES: Final = "write"


class SequentialIo(PassesOverFiles):
    """IOzone's passes: each process has a file, all begin together."""

    own_metrics: ClassVar[tuple[str, ...]] = metrics_of(PASSES)

    name: Annotated[Literal["sequential_io"], ONE_A_RUN]
    seed: Seed = 1991
    passes: list[Pass] = Field(
        default_factory=lambda: list(DEFAULT), min_length=1, description="in the order given; the first makes the files"
    )
    processes: int = Field(1, ge=1, le=1024, description="each with a file of its own")
    file_size: Size = Field(description="of each process; rounded to whole records. The study had 700 MB")
    record: Size = Field("64 KiB", description="what an operation moves")
    engine: Literal[Engine, "mmap"] = Field(
        "sync", description='"mmap": records are copied from and to the files mapped into memory (IOzone\'s -B)'
    )
    depth: int = Field(1, ge=1, le=1024, description="io_uring: operations under way on each file, of one ring")
    direct: bool = Field(False, description="O_DIRECT (IOzone's -I)")
    o_sync: bool = Field(False, description="O_SYNC (IOzone's -o)")
    include_fsync: bool = Field(False, description="whether the time has the closing fsync in it (IOzone's -e)")
    include_close: bool = Field(False, description="whether the time has the close in it (IOzone's -c)")
    fixed_buffers: bool = Field(False, description="io_uring: buffers that are registered once")
    fixed_files: bool = Field(False, description="io_uring: files that are registered once")
    uncached: bool = Field(False, description="RWF_DONTCACHE: through the page cache, and dropped from it at once")
    advice: Literal["normal", "sequential", "random", "noreuse"] = Field("normal", description="posix_fadvise(2)")
    stop: Literal["first", "all"] = Field(
        "first", description='"first": when one process is through, all stop, as IOzone has it; "all": each to its end'
    )

    @field_validator("passes")
    @classmethod
    def _each_once(cls, value: list[Pass]) -> list[Pass]:
        for one in value:
            if value.count(one) > 1:
                raise ValueError(f"the pass {one} is given twice; allowed: each once")
        if value[0] != MAKES:
            raise ValueError(f'the first pass is {value[0]}, which needs files; allowed: "write" first')
        return value

    @model_validator(mode="after")
    def _whole(self) -> SequentialIo:
        check_multiple("record", self.record, of=SECTOR_BYTES)
        of_ring = {"depth": self.depth > 1, "fixed_buffers": self.fixed_buffers, "fixed_files": self.fixed_files}
        asked = [name for name, is_asked in of_ring.items() if is_asked]
        if asked and self.engine != "io_uring":
            raise ValueError(f'{", ".join(asked)}: only with io_uring; allowed: engine = "io_uring", or none of these')
        if self.uncached and self.direct:
            raise ValueError("uncached with direct, which bypasses the page cache; allowed: one of the two")
        of_calls = {"direct": self.direct, "o_sync": self.o_sync, "uncached": self.uncached}
        of_calls |= {f"the pass {one}": one in self.passes for one in ("pwrite", "pread")}
        asked = [name for name, is_asked in of_calls.items() if is_asked]
        if asked and self.engine == "mmap":
            raise ValueError(
                f'{", ".join(asked)}: of calls, and mmap makes none; allowed: engine = "sync", or none of these'
            )
        if self.include_close and self.engine == "io_uring":
            raise ValueError('include_close with io_uring, whose sessions share a file; allowed: engine = "sync"')
        return self

    @property
    def clients(self) -> int:
        """Sessions at once."""
        return self.processes * self.depth

    def phases_run(self) -> list[str]:
        return list(self.passes)

    def phase_clients(self, phase: str) -> int:
        del phase
        return self.clients

    def load_request(self, cpus: int) -> Json:
        """A process has a thread of either engine. Sessions are dealt out to threads in turn, and to files likewise, so
        that all of a file are on one ring, which has `depth` of its operations under way."""
        del cpus
        return {"threads": self.processes if self.engine == "io_uring" else 1}

    def phase_request(self, phase: str, memory_bytes: int) -> Json:
        return {
            "name": self.name,
            "seed": self.seed,
            "pass": phase,
            "processes": self.processes,
            "file_bytes": self._file_bytes(memory_bytes),
            "record_bytes": size.parse(self.record),
            **{key: getattr(self, key) for key in _AS_GIVEN},
        }

    def _file_bytes(self, memory_bytes: int) -> int:
        record = size.parse(self.record)
        return max(record, size.parse(self.file_size, memory_bytes) // record * record)

    def estimated_bytes(self, memory_bytes: int, *, columnar: bool = False) -> int:
        del columnar
        return self.processes * self._file_bytes(memory_bytes)

    def subject(self) -> str:
        return f"{self.name}, {self.processes} files of {self.file_size}"


_AS_GIVEN: Final = (
    *("engine", "depth", "direct", "o_sync", "include_fsync", "include_close", "fixed_buffers", "fixed_files"),
    *("uncached", "advice", "stop", "verify"),
)
