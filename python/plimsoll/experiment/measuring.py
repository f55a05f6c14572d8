"""The segments of a trial: how long the load runs before it is measured, and what is measured."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from plimsoll.experiment.strict import Strict


class Warmup(Strict):
    """How long the load runs before it is measured."""

    until: Literal["stationary", "none"] = "stationary"
    prewarm: bool = Field(False, description="first read the tables into the server's cache with pg_prewarm")
    seconds_min: float = Field(5, ge=0, le=86_400)
    seconds_max: float = Field(60, ge=0, le=86_400)

    @model_validator(mode="after")
    def _order(self) -> Warmup:
        if self.seconds_min > self.seconds_max:
            raise ValueError("seconds_min is larger than seconds_max; allowed: seconds_min <= seconds_max")
        return self


class Measure(Strict):
    """What is measured (some seconds, or some transactions), and how much of it is kept row by row.

    Of decision_support neither: its tests are measured whole.
    """

    seconds: float | None = Field(None, gt=0, le=86_400)
    transactions: int | None = Field(None, ge=1, description="of all clients together")
    transactions_per_client: int | None = Field(
        None, ge=1, description="times the clients; whichever connection is free takes the next one"
    )
    rows_max: int = Field(
        20_000_000,
        ge=0,
        le=2**32,
        description="transactions recorded one by one in a segment; beyond them a sample, and histograms of all",
    )
    sample_one_in: int = Field(100, ge=1, le=1_000_000, description="of the transactions beyond rows_max")

    @property
    def ends_given(self) -> int:
        """How many of the keys are given that say when it ends."""
        given = (self.seconds, self.transactions, self.transactions_per_client)
        return sum(one is not None for one in given)

    def transactions_of(self, clients: int) -> int | None:
        """How many transactions are asked for, all clients together; None where seconds are."""
        if self.transactions_per_client is not None:
            return self.transactions_per_client * clients
        return self.transactions
