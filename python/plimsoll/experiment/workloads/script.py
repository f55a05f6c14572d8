"""`script`: the user's own pgbench script files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from plimsoll.experiment.strict import Fixed, FreeKeys, Seed, Strict
from plimsoll.experiment.workloads.bank import Bank, estimated_bytes
from plimsoll.experiment.workloads.base import ONE_A_RUN, SCALE_MAX, Json, Load, Mode, Weight

TEXT_MAX = 1_000_000
# What a server says of a parameter whose type it cannot find: ambiguous function or operator, indeterminate type,
# ambiguous parameter, undefined function, mismatch, no such cast.
OF_TYPES = {"42725", "42P18", "42P08", "42883", "42804", "42846"}
VARIABLES = FreeKeys(r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable", "letters, digits and _")
MADE_ONCE = Fixed("its text is read with the experiment and makes the tables that every trial finds")


class ScriptFile(Strict):
    """One of the user's script files, in pgbench's language."""

    path: str = Field(min_length=1, max_length=1000, description="relative to the experiment's folder")
    weight: Weight = 1
    text: str | None = Field(
        None, max_length=TEXT_MAX, description="the text of the file: read from it unless given here"
    )


class Script(Load):
    """The user's own pgbench script files."""

    is_checked: ClassVar[bool] = False  # nobody but the user knows what a script leaves behind
    is_users_own: ClassVar[bool] = True

    name: Annotated[Literal["script"], ONE_A_RUN]
    mode: Mode = Field(
        "simple", description="how statements are sent, as pgbench --protocol names it; simple is pgbench's own default"
    )
    files: list[ScriptFile] = Field(min_length=1, max_length=128)
    variables: Annotated[dict[str, int | float | str], VARIABLES] = Field(
        default_factory=dict, description="as pgbench -D gives them; scale is that of the data"
    )
    seed: Seed = 2001
    data: Literal["bank"] | None = Field(None, description='the tables the scripts find: "bank" makes pgbench\'s')
    scale: int | None = Field(None, ge=1, le=SCALE_MAX, description='of data = "bank"')
    setup: Annotated[str | None, MADE_ONCE] = Field(
        None,
        min_length=1,
        max_length=1000,
        description="a file of SQL run once when the data are made (after data), relative to the experiment's folder",
    )
    setup_text: Annotated[str | None, MADE_ONCE] = Field(
        None, max_length=TEXT_MAX, description="the text of setup: read from it unless given here"
    )

    @model_validator(mode="after")
    def _whole(self) -> Script:
        if not any(file.weight for file in self.files):
            raise ValueError("every weight of files is 0; allowed: at least one weight above 0")
        if (self.data is None) != (self.scale is None):
            raise ValueError('data and scale belong together; allowed: data = "bank" with a scale, or neither')
        if self.setup_text is not None and self.setup is None:
            raise ValueError("setup_text is given without setup; allowed: both, or setup alone")
        return self

    def request(self, memory_bytes: int) -> Json:
        del memory_bytes
        # As pgbench does, the scale is a variable; one that the user gives is the user's.
        scale = {} if self.scale is None else {"scale": self.scale}
        return {
            "name": self.name,
            "scripts": [{"name": one.path, "text": one.text or "", "weight": one.weight} for one in self.files],
            "variables": scale | self.variables,
            "seed": self.seed,
            "client_count": self.clients,
        }

    def data_request(self, memory_bytes: int) -> Json | None:
        return None if (bank := self._bank()) is None else bank.data_request(memory_bytes)

    def rows_from(self, memory_bytes: int) -> Json | None:
        return None if (bank := self._bank()) is None else bank.rows_from(memory_bytes)

    def _bank(self) -> Bank | None:
        """The tables of pgbench that it works on, if it does."""
        return None if self.scale is None else Bank(name="bank", scale=self.scale, seed=self.seed)

    def setup_sql(self) -> str | None:
        return self.setup_text

    def setup_path(self) -> str | None:
        return self.setup

    def pgbench_scale(self) -> int | None:
        return self.scale

    def estimated_bytes(self, memory_bytes: int, *, columnar: bool = False) -> int:
        """Without what a setup file adds, which is not known."""
        del memory_bytes, columnar
        return estimated_bytes(self.scale) if self.scale else 0

    def remedy(self, sqlstates: set[str]) -> str:
        if self.mode != "simple" and sqlstates & OF_TYPES:
            return (
                f"in mode {self.mode} a value is a parameter whose type the server has to find: set "
                'workload.mode = "simple", in which it stands in the text as with pgbench by default, '
                "or cast it in the script (:x::int)"
            )
        return "fix the script, or give it the tables that it needs (workload.data, workload.setup)"

    def subject(self) -> str:
        return "script " + " + ".join(Path(file.path).name for file in self.files)
