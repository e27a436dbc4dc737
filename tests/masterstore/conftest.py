"""A store over a Redis of the test run's own, and a look past it. Each test runs on one Redis and on a Redis Cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from masterstore.client import Client
from masterstore.cluster import ClusterRedis
from masterstore.store import Store
from tests.faults.redis_cluster import RedisCluster


@pytest.fixture(scope="session")
def started_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisCluster]:
    """A Redis Cluster of three nodes that belongs to this test run."""
    made = RedisCluster(tmp_path_factory.mktemp("cluster"), replicas=False)
    yield made
    made.close()


@pytest.fixture
def cluster(started_cluster: RedisCluster) -> RedisCluster:
    """The Redis Cluster of this test run, empty."""
    for port in started_cluster.nodes:
        started_cluster.client(port).flushall()
    return started_cluster


@pytest.fixture(params=["one", "cluster"])
def redis_url(request: pytest.FixtureRequest) -> str:
    """URL of an empty Redis, which is one server or a Redis Cluster."""
    if request.param == "cluster":
        cluster: RedisCluster = request.getfixturevalue("cluster")
        return cluster.url
    url: str = request.getfixturevalue("redis_server")
    with redis.Redis.from_url(url) as client:
        client.flushall()
    return url


@pytest.fixture
def store(redis_url: str) -> Store:
    return Store.open(redis_url, timeout=5.0, client_name="test")


@pytest.fixture
def second(redis_url: str) -> Store:
    """Another client of the same Redis."""
    return Store.open(redis_url, timeout=5.0, client_name="second")


class RawCluster:
    """A Redis Cluster as one Redis: commands by the names that keys have there, and what concerns all keys of all nodes."""

    def __init__(self, cluster: ClusterRedis) -> None:
        self._cluster = cluster

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._cluster, verb)

    def scan_iter(self, match: str, _type: str | None = None) -> Iterator[bytes]:
        """Yield the names of all keys, or of those of one type."""
        assert match == "*"
        for name in self._cluster.names(None, 500):
            if _type is None or self._cluster.type(name) == _type.encode():
                yield name.encode("utf-8", "surrogateescape")

    def keys(self, match: str) -> list[bytes]:
        """Return the names of all keys."""
        return list(self.scan_iter(match))

    def flushall(self) -> None:
        """Empty all nodes."""
        for host, port in self._cluster.masters():
            redis.Redis(host, port).flushall()


def raw_client(url: str) -> Any:
    """Return Redis itself, by the names that keys have in one Redis: what a tool sees, or breaks."""
    client = Client(url, timeout=5.0, client_name="raw").redis
    return RawCluster(client) if isinstance(client, ClusterRedis) else client


@pytest.fixture
def raw(redis_url: str) -> Any:
    return raw_client(redis_url)
