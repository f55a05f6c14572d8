"""`wpi_orders`: study S1's order-entry load."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from plimsoll.experiment import size
from plimsoll.experiment.strict import Seed, Size
from plimsoll.experiment.workloads.base import ONE_A_RUN, Json, Load, Weight, some_weight
from plimsoll.experiment.workloads.keys import Keys, keys_request

WpiTransaction = Literal["new_order", "payment", "check_order", "delivery", "stock"]


class WpiOrders(Load):
    """Study S1's order-entry load: nine tables, five transactions."""

    name: Annotated[Literal["wpi_orders"], ONE_A_RUN]
    size: Size = Field(description="the nine tables with their indexes")
    seed: Seed = 2002
    keys: Keys = "uniform"
    access: Literal["index", "scan"] = "index"
    draw: Literal["mix", "study"] = Field(
        "mix", description='"study": the original\'s 24 buckets, one of which does nothing'
    )
    mix: dict[WpiTransaction, Weight] | None = None

    @model_validator(mode="after")
    def _weights(self) -> WpiOrders:
        some_weight(self.mix)
        if self.mix is not None and self.draw == "study":
            raise ValueError(
                'mix cannot be set with draw = "study", which is the original\'s own draw; allowed: one of the two'
            )
        return self

    def request(self, memory_bytes: int) -> Json:
        request: Json = {
            "name": self.name,
            "size_bytes": self.estimated_bytes(memory_bytes),
            "seed": self.seed,
            "keys": keys_request(self.keys),
            "access": self.access,
            "draw": self.draw,
        }
        return request if self.mix is None else {**request, "mix": self.mix}

    def rows_from(self, memory_bytes: int) -> Json:
        return {"name": self.name, "size_bytes": self.estimated_bytes(memory_bytes), "seed": self.seed}

    def estimated_bytes(self, memory_bytes: int, *, columnar: bool = False) -> int:
        del columnar
        return size.parse(self.size, memory_bytes)

    def subject(self) -> str:
        return f"{self.name}, {self.size}"
