"""Which keys transactions touch."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from plimsoll.experiment.strict import Strict


class Zipf(Strict):
    """Zipf-distributed keys: the share of rank r is proportional to r ** -zipf."""

    zipf: float = Field(gt=0, le=5)


Keys = Literal["uniform"] | Zipf


def keys_request(keys: Keys) -> Any:
    """The agent's `keys`."""
    return {"zipf": keys.zipf} if isinstance(keys, Zipf) else keys
