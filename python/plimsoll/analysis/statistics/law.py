"""What the Universal Scalability Law says of one line of levels, as types."""

from typing import TypedDict


class Scale(TypedDict):
    """Throughput at one, in its own unit, with its interval."""

    value: float
    low: float
    high: float


class CurvePoint(Scale):
    """The fitted curve at a level."""

    n: float


class Parameter(TypedDict):
    """Sigma or kappa; `high` is null where nothing bounds it."""

    value: float
    low: float
    high: float | None
    holds_zero: bool


class Peak(TypedDict):
    """The level at which throughput is largest; null: no such level, or no bound."""

    value: float | None
    low: float | None
    high: float | None
    beyond_measured: bool | None


# "lambda" is no name that a class could have. What is not fitted is null, and `why` says why it is not.
Fitted = TypedDict(
    "Fitted",
    {
        "status": str,  # "fitted" or "cannot tell"
        "why": str | None,
        "blocks": int,
        "levels": list[float],
        "lambda": Scale | None,
        "sigma": Parameter | None,
        "kappa": Parameter | None,
        "peak": Peak | None,
        "lack_of_fit_p": float | None,
        "curve": list[CurvePoint],
    },
)
