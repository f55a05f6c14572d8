"""Table [schedule]: when transactions are due. The agent turns it into times (schema/agent.md); here it is checked.

The fact that constrains it: in an open loop a transaction is due whether or not a connection is free, and its latency
counts from then; in a closed loop a slow server is simply asked less often, so its latencies flatter it.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Discriminator, Field, model_validator

from plimsoll.experiment.strict import Seed, Strict

RATE_MAX = 10_000_000.0
MILLISECONDS_MAX = 86_400_000.0

Rate = Annotated[float, Field(gt=0, le=RATE_MAX, description="transactions per second, all connections together")]
Milliseconds = Annotated[float, Field(ge=0, le=MILLISECONDS_MAX)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Arrivals = Literal["poisson", "constant"]


class Exponential(Strict):
    """A time drawn from an exponential distribution."""

    exponential: float = Field(gt=0, le=MILLISECONDS_MAX, description="the mean, in milliseconds")
    max: float | None = Field(None, gt=0, le=MILLISECONDS_MAX, description="longer draws are cut to this, milliseconds")


class Uniform(Strict):
    """A time drawn from a uniform distribution."""

    uniform: tuple[Milliseconds, Milliseconds] = Field(description="shortest and longest, in milliseconds")

    @model_validator(mode="after")
    def _order(self) -> Uniform:
        if self.uniform[0] > self.uniform[1]:
            raise ValueError("the first is larger than the second; allowed: [shortest, longest]")
        return self


Wait = Milliseconds | Exponential | Uniform


class Closed(Strict):
    """Each connection starts its next transaction when its last one has ended, after keying and thinking."""

    judged: ClassVar[str] = "throughput_per_second"

    kind: Literal["closed"] = "closed"
    think_ms: Wait = Field(0, description="after each transaction")
    keying_ms: Wait = Field(0, description="before each transaction")
    seed: Seed = 1


class Open(Strict):
    """What open loops share: transactions are due by the plan, whether or not a connection is free."""

    judged: ClassVar[str] = "latency_ns_p99"

    seed: Seed = Field(1, description="of the arrivals; block n of the design uses seed + n - 1")
    late_limit_ms: float | None = Field(
        None,
        gt=0,
        le=MILLISECONDS_MAX,
        description="a transaction that would start later than this after its plan is skipped and counted",
    )


class Constant(Open):
    """Equal distances."""

    kind: Literal["constant"]
    rate: Rate


class Poisson(Open):
    """Independent arrivals: exponential distances."""

    kind: Literal["poisson"]
    rate: Rate


class Step(Strict):
    """A rate and how long it holds."""

    rate: Rate
    seconds: Seconds


class Steps(Open):
    """One rate after the other; the last one goes on."""

    kind: Literal["steps"]
    arrivals: Arrivals = "poisson"
    steps: list[Step] = Field(min_length=1, max_length=1000)


class Ramp(Open):
    """A rate that grows or falls evenly, and then stays."""

    kind: Literal["ramp"]
    arrivals: Arrivals = "poisson"
    first: Rate = Field(alias="from")
    last: Rate = Field(alias="to")
    seconds: Seconds


# Each says what levels are `judged` by, unless their workload or the experiment says otherwise.
Schedule = Annotated[Closed | Constant | Poisson | Steps | Ramp, Discriminator("kind")]
