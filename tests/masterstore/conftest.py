"""A store over a Redis of the test run's own, and a look past it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from masterstore.store import Store


@pytest.fixture
def store(redis_url: str) -> Store:
    return Store.open(redis_url, timeout=5.0, client_name="test")


@pytest.fixture
def second(redis_url: str) -> Store:
    """Another client of the same Redis."""
    return Store.open(redis_url, timeout=5.0, client_name="second")


@pytest.fixture
def raw(redis_url: str) -> Iterator[redis.Redis]:
    """Redis itself: what a tool sees, or breaks."""
    with redis.Redis.from_url(redis_url, socket_timeout=5.0) as client:
        yield client
