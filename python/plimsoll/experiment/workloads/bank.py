"""`bank`: pgbench's own tables and transactions.

Sizes are arithmetic over PostgreSQL's pages, so that a plan can state them before anything is built.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from plimsoll.experiment.strict import Seed
from plimsoll.experiment.workloads.base import ONE_A_RUN, SCALE_MAX, Json, Load, Weight, some_weight
from plimsoll.experiment.workloads.keys import Keys, keys_request

BankTransaction = Literal["tpcb_like", "simple_update", "select_only"]
ACCOUNTS_PER_BRANCH = 100_000
_PAGE_BYTES = 8192
_HEAP_ROOM = _PAGE_BYTES - 24  # less the page's header
# A header of 24, three columns of 4, 84 characters with one byte of length: aligned to 128, and a line pointer.
_ACCOUNT_BYTES = 128 + 4
_INDEX_ROOM = int((_PAGE_BYTES - 24 - 16) * 0.9)  # a leaf is filled to nine tenths
_INDEX_ENTRY_BYTES = 16 + 4
_INDEX_FANOUT = 300  # entries of an inner page, about


class Bank(Load):
    """pgbench's own tables and transactions: accounts, tellers, branches and a history."""

    name: Annotated[Literal["bank"], ONE_A_RUN]
    scale: int = Field(ge=1, le=SCALE_MAX, description="branches, each with 10 tellers and 100,000 accounts: 15 MiB")
    seed: Seed = 2001
    transaction: BankTransaction | None = Field(
        None,
        description='"tpcb_like" unless a mix is given; "simple_update" leaves branches and tellers alone, '
        '"select_only" reads one balance',
    )
    mix: dict[BankTransaction, Weight] | None = Field(None, description="weights, instead of one transaction")
    keys: Keys = "uniform"
    partitions: int = Field(0, ge=0, le=10_000, description="of the accounts; 0: one table")
    partition_method: Literal["range", "hash"] = "range"
    unlogged: bool = False
    fillfactor: int = Field(100, ge=10, le=100)

    @model_validator(mode="before")
    @classmethod
    def _one_transaction(cls, value: Any) -> Any:
        if isinstance(value, dict) and value.get("mix") is None and value.get("transaction") is None:
            return {**value, "transaction": "tpcb_like"}
        return value

    @model_validator(mode="after")
    def _weights(self) -> Bank:
        some_weight(self.mix)
        if self.mix is not None and self.transaction is not None:
            raise ValueError("transaction and mix are both given; allowed: one of the two")
        return self

    def request(self, memory_bytes: int) -> Json:
        done = {"transaction": self.transaction} if self.mix is None else {"mix": self.mix}
        return self.data_request(memory_bytes) | {"keys": keys_request(self.keys)} | done

    def data_request(self, memory_bytes: int) -> Json:
        del memory_bytes
        return {
            "name": self.name,
            "scale": self.scale,
            "seed": self.seed,
            "partitions": self.partitions,
            "partition_method": self.partition_method,
            "unlogged": self.unlogged,
            "fillfactor": self.fillfactor,
        }

    def rows_from(self, memory_bytes: int) -> Json:
        """Without the seed: every balance begins at 0."""
        data = self.data_request(memory_bytes)
        return {key: value for key, value in data.items() if key != "seed"}

    def pgbench_scale(self) -> int | None:
        return self.scale

    def estimated_bytes(self, memory_bytes: int, *, columnar: bool = False) -> int:
        del memory_bytes, columnar
        return estimated_bytes(self.scale, self.fillfactor)

    def caveats(self) -> list[str]:
        weight = self.mix.get("tpcb_like") if self.mix else self.transaction == "tpcb_like"
        if self.scale >= self.clients or not weight:
            return []
        return ["fewer branches (scale) than clients: transactions wait for each other's branch rows"]

    def subject(self) -> str:
        done = self.transaction or " + ".join(f"{name} {weight}" for name, weight in (self.mix or {}).items())
        return f"{self.name} {done}, scale {self.scale}"


def estimated_bytes(scale: int, fillfactor: int = 100) -> int:
    """Accounts with their primary key, which all but nothing else adds to: some 15 MiB for each unit of the scale."""
    rows = scale * ACCOUNTS_PER_BRANCH
    kept_free = _PAGE_BYTES * (100 - fillfactor) // 100
    heap = -(-rows // max(1, (_HEAP_ROOM - kept_free) // _ACCOUNT_BYTES))
    leaves = -(-rows // (_INDEX_ROOM // _INDEX_ENTRY_BYTES))
    return (heap + leaves + -(-leaves // _INDEX_FANOUT) + 1 + scale) * _PAGE_BYTES
