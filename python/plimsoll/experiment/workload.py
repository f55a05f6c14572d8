"""Table [workload]: the data, the operations and their mix; one type a workload, told apart by `name`."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, field_validator, model_validator

from plimsoll.experiment.decision_support import DecisionSupport
from plimsoll.experiment.strict import Seed, Size, Strict

Weight = Annotated[int, Field(ge=0, le=1000)]
BankTransaction = Literal["tpcb_like", "simple_update", "select_only"]
WpiTransaction = Literal["new_order", "payment", "check_order", "delivery", "stock"]
OrderEntryTransaction = Literal["new_order", "payment", "order_status", "delivery", "stock_level"]
SCALE_MAX = 100_000
TEXT_MAX = 1_000_000
TIME_SCALE_MAX = 40.0


class Zipf(Strict):
    """Zipf-distributed keys: the share of rank r is proportional to r ** -zipf."""

    zipf: float = Field(gt=0, le=5)


class Load(Strict):
    """What every workload has: how many connections, and how they speak with the server."""

    clients: int = Field(1, ge=1, le=10_000, description="connections")
    threads: int | None = Field(
        None, ge=1, le=1024, description="threads of the load; by default one a load CPU, at most one a client"
    )
    mode: Literal["prepared", "extended", "simple"] = Field(
        "prepared", description="how statements are sent, as pgbench --protocol names it"
    )
    describe: bool = Field(
        False, description="send Describe with each execution, as pgbench does: for comparisons with equal messages"
    )
    retries_max: int = Field(
        0, ge=0, le=255, description="tries again after a serialization failure (40001) or a deadlock (40P01)"
    )
    reconnect: bool = Field(False, description="open a connection anew when it broke")


def _some_weight(mix: dict[Any, int] | None) -> None:
    if mix is not None and not any(mix.values()):
        raise ValueError("every weight of mix is 0; allowed: at least one weight above 0")


class WpiOrders(Load):
    """Study S1's order-entry load: nine tables, five transactions."""

    name: Literal["wpi_orders"]
    size: Size = Field(description="the nine tables with their indexes")
    seed: Seed = 2002
    keys: Literal["uniform"] | Zipf = "uniform"
    access: Literal["index", "scan"] = "index"
    draw: Literal["mix", "study"] = Field(
        "mix", description='"study": the original\'s 24 buckets, one of which does nothing'
    )
    mix: dict[WpiTransaction, Weight] | None = None

    @model_validator(mode="after")
    def _weights(self) -> WpiOrders:
        _some_weight(self.mix)
        if self.mix is not None and self.draw == "study":
            raise ValueError(
                'mix cannot be set with draw = "study", which is the original\'s own draw; allowed: one of the two'
            )
        return self


class Bank(Load):
    """pgbench's own tables and transactions: accounts, tellers, branches and a history."""

    name: Literal["bank"]
    scale: int = Field(ge=1, le=SCALE_MAX, description="branches, each with 10 tellers and 100,000 accounts: 15 MiB")
    seed: Seed = 2001
    transaction: BankTransaction | None = Field(
        None,
        description='"tpcb_like" unless a mix is given; "simple_update" leaves branches and tellers alone, '
        '"select_only" reads one balance',
    )
    mix: dict[BankTransaction, Weight] | None = Field(None, description="weights, instead of one transaction")
    keys: Literal["uniform"] | Zipf = "uniform"
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
        _some_weight(self.mix)
        if self.mix is not None and self.transaction is not None:
            raise ValueError("transaction and mix are both given; allowed: one of the two")
        return self


class ScriptFile(Strict):
    """One of the user's script files, in pgbench's language."""

    path: str = Field(min_length=1, max_length=1000, description="relative to the experiment's folder")
    weight: Weight = 1
    text: str | None = Field(
        None, max_length=TEXT_MAX, description="what stands in the file: read from it unless given here"
    )


class Script(Load):
    """The user's own pgbench script files."""

    name: Literal["script"]
    mode: Literal["prepared", "extended", "simple"] = Field(
        "simple", description="how statements are sent, as pgbench --protocol names it; simple is pgbench's own default"
    )
    files: list[ScriptFile] = Field(min_length=1, max_length=128)
    variables: dict[str, int | float | str] = Field(
        default_factory=dict, description="as pgbench -D gives them; scale is that of the data"
    )
    seed: Seed = 2001
    data: Literal["bank"] | None = Field(None, description='the tables the scripts find: "bank" makes pgbench\'s')
    scale: int | None = Field(None, ge=1, le=SCALE_MAX, description='of data = "bank"')
    setup: str | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="a file of SQL run once when the data are made (after data), relative to the experiment's folder",
    )
    setup_text: str | None = Field(
        None, max_length=TEXT_MAX, description="what stands in setup: read from it unless given here"
    )

    @field_validator("variables")
    @classmethod
    def _names(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name in value:
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                raise ValueError(f"{name!r} is not the name of a variable; allowed: letters, digits and _")
        return value

    @model_validator(mode="after")
    def _whole(self) -> Script:
        if not any(file.weight for file in self.files):
            raise ValueError("every weight of files is 0; allowed: at least one weight above 0")
        if (self.data is None) != (self.scale is None):
            raise ValueError('data and scale belong together; allowed: data = "bank" with a scale, or neither')
        if self.setup_text is not None and self.setup is None:
            raise ValueError("setup_text is given without setup; allowed: both, or setup alone")
        return self


class OrderEntry(Load):
    """An order-entry load by the rules of TPC-C 5.11: nine tables, five transactions, terminals bound to warehouses.

    Its results are "-like" and not comparable to published ones.
    """

    name: Literal["order_entry"]
    warehouses: int = Field(ge=1, le=SCALE_MAX, description="the scale; each some 100 MiB with its indexes")
    seed: Seed = 1992
    statements: Literal["client", "functions"] = Field(
        "client", description='where the logic is: "client" sends statements, "functions" calls one function each'
    )
    isolation: Literal["read committed", "repeatable read", "serializable"] = Field(
        "read committed", description="with the stricter ones transactions that conflict fail: set retries_max"
    )
    mix: Literal["deck"] | dict[OrderEntryTransaction, Weight] = Field(
        "deck", description='"deck": 23 cards a terminal, 10 : 10 : 1 : 1 : 1, shuffled; or weights'
    )
    keying_and_think: bool = Field(
        False, description="whether users key and think as the specification says; without, it is another benchmark"
    )
    time_scale: float | None = Field(
        None, gt=0, le=TIME_SCALE_MAX, description="multiplies keying and think times, with keying_and_think only"
    )
    delivery: Literal["in turn", "deferred"] | None = Field(
        None, description='by default "deferred" with keying_and_think (its user goes on at once), else "in turn"'
    )
    ledger: bool = Field(
        False, description="write down each acknowledged New-Order and Payment, and look for it in the database"
    )
    foreign_keys: bool = True

    @model_validator(mode="after")
    def _whole(self) -> OrderEntry:
        if isinstance(self.mix, dict):
            _some_weight(self.mix)
        if self.time_scale is not None and not self.keying_and_think:
            raise ValueError("time_scale multiplies keying and think times; allowed: with keying_and_think = true only")
        if self.delivery == "deferred" and not self.keying_and_think:
            raise ValueError(
                'delivery = "deferred" is performed while its user keys and thinks; allowed: with '
                'keying_and_think = true, or "in turn"'
            )
        return self


Workload = Annotated[WpiOrders | Bank | OrderEntry | Script | DecisionSupport, Discriminator("name")]
