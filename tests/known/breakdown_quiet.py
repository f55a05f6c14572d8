"""The fixture `quiet`, for `pytest_plugins` of a module of tests: one server for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from breakdown_server import NEEDS, Laboratory, laboratory, server_user


@pytest.fixture(scope="module")
def quiet(needs: Callable[..., None]) -> Iterator[Laboratory]:
    """A server in which nothing happens by itself."""
    needs(*NEEDS)
    with laboratory(server_user()) as made:
        yield made
