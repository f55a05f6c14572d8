"""`files`: a mix of one's own of operations on files, by shares, sizes and a distribution of keys."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, model_validator

from plimsoll.experiment.strict import Seed, Size, Strict
from plimsoll.experiment.workloads.base import ONE_A_RUN, Json, Weight
from plimsoll.experiment.workloads.keys import Zipf, keys_request
from plimsoll.experiment.workloads.on_files import (
    BLOCK_BYTES,
    SECTOR_BYTES,
    Clients,
    Engine,
    OnFiles,
    bytes_of,
    check_multiple,
    mean_of,
)

Operation = Literal["read", "write", "append", "fsync", "create", "stat", "rename", "unlink", "readdir"]
Sizes = Size | tuple[Size, Size]
# What moves bytes, what may have a range of sizes, what may be followed by a sync, what an io_uring performs.
MOVES: Final = ("read", "write", "append", "create")
UNITS: Final = {"read": SECTOR_BYTES, "write": BLOCK_BYTES}
SYNCS: Final = ("write", "append")
BY_RING: Final = ("read", "write", "append", "fsync")
OF_NAMES: Final = ("create", "rename", "unlink")


class Sequential(Strict):
    """Operations go on from one another, from the first byte of the first file to the last of the last, and again."""

    sequential: int = Field(ge=1, le=65_536, description="streams; sessions are dealt out to them in turn")


FileKeys = Literal["uniform"] | Zipf | Sequential


class MixedOperation(Strict):
    """An operation of the mix."""

    operation: Operation
    weight: Weight = 1
    bytes: Sizes | None = Field(
        None,
        description="of read (a multiple of 512), write (of 4 KiB), create, and append, also [least, most]",
    )
    sync: Literal["none", "fsync", "fdatasync", "o_dsync"] | None = Field(
        None, description='of write and append: what makes it durable; by default "none"'
    )

    @model_validator(mode="after")
    def _whole(self) -> MixedOperation:
        name = self.operation
        if (self.bytes is not None) != (name in MOVES):
            allowed = "with bytes" if name in MOVES else "without bytes"
            raise ValueError(f"{name} {'moves' if name in MOVES else 'does not move'} bytes; allowed: {allowed}")
        if self.sync is not None and name not in SYNCS:
            raise ValueError(f"{name} has no sync; allowed: for {' and '.join(SYNCS)}")
        if isinstance(self.bytes, tuple) and name != "append":
            raise ValueError(f"{name} has a range of bytes; allowed: one size (a range only for append)")
        if self.bytes is not None and name in UNITS:
            check_multiple("bytes", self.bytes, of=UNITS[name])
        return self

    def request(self) -> Json:
        """As the agent takes it."""
        found: Json = {"operation": self.operation, "weight": self.weight}
        if self.bytes is not None:
            found["bytes"] = bytes_of(self.bytes)
        if self.operation in SYNCS:
            found["sync"] = self.sync or "none"
        return found


class FileMix(OnFiles):
    """A mix of operations on the files of a tree."""

    own_metrics: ClassVar[tuple[str, ...]] = ("bytes_per_second", "cpu_ns_per_mb")

    name: Annotated[Literal["files"], ONE_A_RUN]
    clients: Clients = Field(1, description="sessions; with the engine io_uring operations under way at once")
    threads: int | None = Field(
        None, ge=1, le=1024, description="of the engine io_uring; by default one a CPU. sync has a thread a session"
    )
    seed: Seed = 2004
    engine: Engine = Field("sync", description="io_uring: read, write, append and fsync alone")
    count: int = Field(ge=1, le=100_000_000, description="files in the tree, as laid out")
    file_size: Sizes = Field(
        description="a multiple of 4 KiB, or relative to memory; [least, most]: sizes uniform in the logarithm"
    )
    fanout: int = Field(100, ge=1, le=1_000_000, description="files a directory")
    direct: bool = Field(False, description="O_DIRECT")
    verify: bool = Field(True, description="whether what is read is compared with what was written")
    keys: FileKeys = Field("uniform", description="which file, and which block: drawn, or a stream's next")
    mix: list[MixedOperation] = Field(min_length=1, max_length=64)

    @model_validator(mode="after")
    def _whole(self) -> FileMix:
        check_multiple("file_size", self.file_size)
        if not any(one.weight for one in self.mix):
            raise ValueError("every weight of mix is 0; allowed: at least one weight above 0")
        of_names = [one.operation for one in self.mix if one.operation in OF_NAMES]
        if isinstance(self.keys, Sequential) and of_names:
            raise ValueError(
                f"keys are sequential, and {of_names[0]} changes which files there are; allowed: other keys, "
                f"or a mix without {', '.join(OF_NAMES)}"
            )
        if self.engine == "io_uring":
            other = [one.operation for one in self.mix if one.operation not in BY_RING]
            if other:
                raise ValueError(
                    f'engine is "io_uring", which does not perform {", ".join(dict.fromkeys(other))}; allowed: '
                    f'{", ".join(BY_RING)}, or engine = "sync"'
                )
        elif self.threads is not None:
            raise ValueError('threads are given, but engine "sync" has one thread a session; allowed: no threads')
        return self

    def request(self, memory_bytes: int) -> Json:
        return {
            "name": self.name,
            "seed": self.seed,
            "engine": self.engine,
            "count": self.count,
            "file_bytes": self._file_bytes(memory_bytes),
            "fanout": self.fanout,
            "direct": self.direct,
            "verify": self.verify,
            "keys": self.keys.model_dump() if isinstance(self.keys, Sequential) else keys_request(self.keys),
            "mix": [one.request() for one in self.mix],
        }

    def _file_bytes(self, memory_bytes: int) -> int | list[int]:
        found = bytes_of(self.file_size, memory_bytes)
        if isinstance(found, list):
            return [_in_blocks(one) for one in found]
        return _in_blocks(found)

    def load_request(self, cpus: int) -> Json:
        threads = min(self.threads or cpus, self.clients) if self.engine == "io_uring" else 1
        return {"clients": self.clients, "threads": threads}

    def estimated_bytes(self, memory_bytes: int, *, columnar: bool = False) -> int:
        del columnar
        return round(self.count * mean_of(self._file_bytes(memory_bytes)))

    def written_bytes(self) -> int | None:
        """A mix that neither appends nor creates writes into the files that are there."""
        return None if any(one.operation in ("append", "create") and one.weight for one in self.mix) else 0

    def caveats(self) -> list[str]:
        return [] if self.verify else ["what is read is not compared with what was written (verify = false)"]

    def subject(self) -> str:
        done = " + ".join(f"{one.operation} {one.weight}" for one in self.mix if one.weight)
        shown = self.file_size if not isinstance(self.file_size, tuple) else " to ".join(map(str, self.file_size))
        way = f"{self.engine}{', direct' if self.direct else ''}"
        return f"{self.name} ({done}), {self.count:,} files of {shown}, {way}"


def _in_blocks(count: int) -> int:
    """Whole blocks, one at least: sizes relative to memory are rounded down."""
    return max(BLOCK_BYTES, count // BLOCK_BYTES * BLOCK_BYTES)
