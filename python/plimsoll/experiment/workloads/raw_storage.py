"""`raw_storage`: Bonnie's six phases over one file, as study S2 ran them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, get_args

from pydantic import Field, field_validator

from plimsoll.experiment import size
from plimsoll.experiment.strict import Seed, Size
from plimsoll.experiment.workloads.base import ONE_A_RUN, Json
from plimsoll.experiment.workloads.on_files import PassesOverFiles, in_order, metrics_of

Phase = Literal["putc", "rewrite", "write", "getc", "read", "seeks"]
ORDER: Final[tuple[Phase, ...]] = get_args(Phase)
MAKES: Final = ("putc", "write")  # those that make the file


class RawStorage(PassesOverFiles):
    """Bonnie's phases: a file written by character, rewritten, written by block, read by character and by block, and
    sought in."""

    own_metrics: ClassVar[tuple[str, ...]] = metrics_of(ORDER)

    name: Annotated[Literal["raw_storage"], ONE_A_RUN]
    size: Size = Field(description="of the file, rounded to whole chunks; the study had 100 to 1000 MB")
    seed: Seed = 1990
    phases: list[Phase] = Field(
        default_factory=lambda: list(ORDER), min_length=1, description="some of the six, always in the original's order"
    )
    chunk: Literal[8192, 16384] = Field(8192, description="bytes of a block")
    seeks: int = Field(4000, ge=1, le=10_000_000, description="of all processes together")
    seekers: int = Field(3, ge=1, le=1000, description="processes that seek at once")
    update_every: int = Field(10, ge=1, le=1_000_000, description="of so many seeks one rewrites what it has read")
    fsync: bool = Field(
        False, description="whether the time of a phase that writes ends with an fsync; the original's ends with close"
    )

    @field_validator("phases")
    @classmethod
    def _in_order(cls, value: list[Phase]) -> list[Phase]:
        in_order(list(value), ORDER, "phases are")
        if value[0] not in MAKES:
            raise ValueError(f'the first phase is {value[0]}, which needs a file; allowed: "putc" or "write" first')
        return value

    @property
    def clients(self) -> int:
        """Sessions at once, at most."""
        return self.seekers if "seeks" in self.phases else 1

    def phases_run(self) -> list[str]:
        return list(self.phases)

    def phase_clients(self, phase: str) -> int:
        return self.seekers if phase == "seeks" else 1

    def phase_request(self, phase: str, memory_bytes: int) -> Json:
        return {
            "name": self.name,
            "seed": self.seed,
            "phase": phase,
            "file_bytes": self.estimated_bytes(memory_bytes),
            "chunk_bytes": self.chunk,
            "seeks": self.seeks,
            "seekers": self.seekers,
            "update_every": self.update_every,
            "fsync": self.fsync,
            "verify": self.verify,
        }

    def estimated_bytes(self, memory_bytes: int, *, columnar: bool = False) -> int:
        del columnar
        return max(self.chunk, size.parse(self.size, memory_bytes) // self.chunk * self.chunk)

    def caveats(self) -> list[str]:
        said = super().caveats()
        if not self.fsync:
            said.append(
                "the time of a phase ends with close, as Bonnie's does: what stays in the page cache is not waited for"
            )
        return said

    def subject(self) -> str:
        return f"{self.name}, a file of {self.size}"
