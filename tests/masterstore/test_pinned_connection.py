"""The kept connection: one thread's at a time, never another command's answer, and gone with what went wrong on it."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest
import redis

from masterstore.client import Client
from masterstore.errors import StoreError
from masterstore.pinned_connection import PinnedRedis, packed

pytestmark = pytest.mark.redis

#: Seconds that anything here may take.
DEADLINE = 60


@pytest.fixture
def redis_url(redis_server: str) -> str:
    """One server: a Redis Cluster has such a connection to each node."""
    return redis_server


@pytest.fixture
def client(redis_url: str) -> Client:
    return Client(redis_url, timeout=30, client_name="kept")


def connections(raw: redis.Redis) -> list[str]:
    return [row["id"] for row in raw.client_list() if row["name"] == "kept"]


def test_commands_go_over_one_connection(client: Client, raw: redis.Redis) -> None:
    client.call("set", "a", 1)
    first = connections(raw)
    for number in range(20):
        client.call("set", "a", number)
        assert client.call("get", "a") == b"%d" % number
    assert connections(raw) == first
    assert len(first) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("PING",),
        ("SET", "a", "text"),
        ("SET", "a", ""),
        ("SET", "ümläut", b"\x00\xff\r\n$3"),
        ("SET", "a", "no UTF-8: \udcff"),
        ("ZADD", "a", "GT", -17, "b"),
        ("EVALSHA", "0" * 40, 2, "a", "b", 2**70),
        ("SET", "a", "x" * 6000),
    ],
)
def test_commands_are_packed_as_redis_py_packs_them(arguments: tuple[Any, ...]) -> None:
    unconnected = redis.Connection(encoding_errors="surrogateescape")
    assert packed(arguments) == b"".join(unconnected.pack_command(*arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        ("CLIENT LIST",),
        (b"PING",),
        ("SET", "a", 1.5),
        ("SET", "a", True),
        ("SET", "a", memoryview(b"x")),
        ("SET", "a", "x" * 6001),
    ],
)
def test_what_is_not_plain_is_left_to_redis_py(arguments: tuple[Any, ...]) -> None:
    assert packed(arguments) is None


def test_a_script_is_known_again_after_redis_forgot_it(client: Client, raw: redis.Redis) -> None:
    script = client.redis.register_script("return {KEYS[1], ARGV[1], ARGV[2]}")
    assert script.sha == raw.script_load(script.script)
    for _ in range(2):
        raw.script_flush()
        assert script(keys=["a"], args=["b", 3]) == [b"a", b"b", b"3"]
        assert script(keys=["a"], args=["b", 3]) == [b"a", b"b", b"3"]
    calls = raw.info("commandstats")
    assert calls["cmdstat_evalsha"]["calls"] - calls.get("cmdstat_eval", {"calls": 0})["calls"] >= 2


def test_what_a_script_is_given_is_read_once(client: Client, raw: redis.Redis) -> None:
    raw.script_flush()
    script = client.redis.register_script("return ARGV")
    assert script(args=iter(["a", "b"])) == [b"a", b"b"]


def test_what_is_no_value_is_refused_as_ever(client: Client) -> None:
    with pytest.raises(StoreError, match="Invalid input of type"):
        client.call("set", "a", True)
    client.call("set", "a", 1.5)
    assert client.call("get", "a") == b"1.5"


def test_who_comes_while_it_is_in_use_has_another(client: Client, raw: redis.Redis) -> None:
    client.call("set", "a", "seen")
    taken: list[Any] = []
    # Waits in Redis, on the kept connection, until something is pushed.
    waiter = threading.Thread(target=lambda: taken.append(client.call("blpop", ["list"], 20)))
    waiter.start()
    while not any(row["cmd"] == "blpop" for row in raw.client_list()):
        assert waiter.is_alive()
    assert client.call("get", "a") == b"seen"
    client.call("rpush", "list", "x")
    waiter.join(DEADLINE)
    assert taken == [(b"list", b"x")]
    assert len(connections(raw)) == 2


def test_threads_get_their_own_answers(client: Client) -> None:
    wrong: list[tuple[str, Any]] = []

    def work(name: str) -> None:
        for number in range(200):
            said = client.call("echo", f"{name}{number}")
            if said != f"{name}{number}".encode():
                wrong.append((name, said))

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for one in threads:
        one.start()
    for one in threads:
        one.join(DEADLINE)
    assert not wrong


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_an_answer_that_nobody_waited_for_is_not_the_next_ones(
    client: Client, monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    client.call("set", "a", "mine")

    def interrupted(*arguments: Any, **options: Any) -> Any:
        raise interruption

    with monkeypatch.context() as patched:
        patched.setattr(PinnedRedis, "parse_response", interrupted)
        with pytest.raises(interruption):
            client.call("echo", "of another")
    assert client.call("get", "a") == b"mine"


def test_a_refusal_costs_no_connection(client: Client, raw: redis.Redis) -> None:
    client.call("set", "a", "text")
    first = connections(raw)
    with pytest.raises(StoreError, match="WRONGTYPE"):
        client.call("lpush", "a", 1)
    assert client.call("get", "a") == b"text"
    assert connections(raw) == first


def test_who_is_refused_by_a_replica_connects_anew(client: Client, raw: redis.Redis) -> None:
    """As a script says it too, which is no error of a kind of its own before Redis 7."""
    client.call("set", "a", 1)
    first = connections(raw)
    # Of a master that is not there: a replica all the same.
    raw.execute_command("REPLICAOF", "127.0.0.1", "1")
    try:
        with pytest.raises(StoreError, match="cannot serve now"):
            client.call("eval", "return redis.call('SET', 'a', 2)", 0)
    finally:
        raw.execute_command("REPLICAOF", "NO", "ONE")
    client.call("set", "a", 3)
    assert not set(first) & set(connections(raw))


def test_a_child_of_a_process_whose_thread_uses_it_has_its_own(client: Client, raw: redis.Redis) -> None:
    client.call("set", "a", "seen")
    waiter = threading.Thread(target=lambda: client.call("blpop", ["list"], 20))
    waiter.start()
    while not any(row["cmd"] == "blpop" for row in raw.client_list()):
        assert waiter.is_alive()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = int(client.call("get", "a") != b"seen")
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    raw.rpush("list", "x")
    waiter.join(DEADLINE)
    assert client.call("get", "a") == b"seen"
