"""`order_entry`: an order-entry load by the rules of TPC-C 5.11.

Its size is the agent's own arithmetic over pages (`estimated_bytes` of its `describe`) as a line, so that a plan can be
made without asking it: it differs by less than a thousandth, which tests/flow/test_order_entry.py holds it to.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from plimsoll.experiment.strict import Seed
from plimsoll.experiment.workloads.base import ONE_A_RUN, SCALE_MAX, Json, Load, NotAsked, Weight, some_weight

OrderEntryTransaction = Literal["new_order", "payment", "order_status", "delivery", "stock_level"]
TIME_SCALE_MAX = 40.0
WAREHOUSE_BYTES = 103_730_000
ITEMS_BYTES = 13_750_000  # the items, of which there are as many whatever the warehouses
LIKE = "TPC-C-like, not comparable to published results; without keying and think time: a different benchmark"


class OrderEntry(Load):
    """An order-entry load by the rules of TPC-C 5.11: nine tables, five transactions, terminals bound to warehouses.

    Its results are "-like" and not comparable to published ones.
    """

    is_checked_as_loaded: ClassVar[bool] = True  # there are conditions that hold only until the first Delivery

    name: Annotated[Literal["order_entry"], ONE_A_RUN]
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
            some_weight(self.mix)
        if self.time_scale is not None and not self.keying_and_think:
            raise ValueError("time_scale multiplies keying and think times; allowed: with keying_and_think = true only")
        if self.delivery == "deferred" and not self.keying_and_think:
            raise ValueError(
                'delivery = "deferred" is performed while its user keys and thinks; allowed: with '
                'keying_and_think = true, or "in turn"'
            )
        return self

    def request(self, memory_bytes: int) -> Json:
        request = self.data_request(memory_bytes) | {
            "statements": self.statements,
            "isolation": self.isolation,
            "mix": self.mix,
            "keying_and_think": self.keying_and_think,
            "ledger": self.ledger,
        }
        given = {"time_scale": self.time_scale, "delivery": self.delivery}
        return request | {key: value for key, value in given.items() if value is not None}

    def data_request(self, memory_bytes: int) -> Json:
        """One data set serves statements and functions, with users' times and without."""
        del memory_bytes
        return {
            "name": self.name,
            "warehouses": self.warehouses,
            "seed": self.seed,
            "foreign_keys": self.foreign_keys,
        }

    def estimated_bytes(self, memory_bytes: int, *, columnar: bool = False) -> int:
        """All nine tables with their indexes."""
        del memory_bytes, columnar
        return ITEMS_BYTES + self.warehouses * WAREHOUSE_BYTES

    def caveats(self) -> list[str]:
        found = []
        if not self.keying_and_think:
            found.append("order entry without keying and think time: a different benchmark")
            if self.warehouses < self.clients:
                found.append("fewer warehouses than clients: Payments wait for each other's warehouse rows")
        if self.isolation != "read committed" and not self.retries_max:
            found.append(f"{self.isolation} without retries_max: transactions that conflict fail")
        return found

    def check_arrivals(self, *, is_open: bool) -> None:
        if self.keying_and_think and is_open:
            raise ValueError(
                "workload.keying_and_think has users who wait for each answer, but this schedule starts transactions "
                'whoever waits; allowed: schedule.kind = "closed", or keying_and_think = false'
            )

    def subject(self) -> str:
        houses = "1 warehouse" if self.warehouses == 1 else f"{self.warehouses} warehouses"
        return f"{self.name} ({LIKE}), {houses}"

    def no_load_line(self) -> NotAsked | None:
        if not self.keying_and_think:
            return None
        what = "has users who wait for each answer, but a load line needs arrivals that wait for no answer"
        return NotAsked("workload.keying_and_think", what, "workload.keying_and_think = false")
