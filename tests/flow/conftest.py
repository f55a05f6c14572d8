"""The laboratory that the tests of a module work in; NEEDS of the module names what of the machine it has to have."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from laboratory import Laboratory

SERVER = ("root", "postgresql", "server user")


@pytest.fixture(scope="module")
def laboratory(request: pytest.FixtureRequest, needs: Callable[..., None]) -> Iterator[Laboratory]:
    wanted = getattr(request.module, "NEEDS", SERVER)
    needs(*wanted)
    made = Laboratory("sysctl" in wanted)
    yield made
    made.close()
