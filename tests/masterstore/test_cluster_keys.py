"""Where keys are in a Redis Cluster, and which arguments of a command are keys."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from masterstore import keys
from masterstore.client import Client
from masterstore.cluster_keys import (
    ABSENT_KEY,
    cluster_command,
    cluster_name,
    cluster_script,
    key_indexes,
    plain_name,
    slot_of,
)
from masterstore.keys import KEYS
from tests.faults.redis_cluster import RedisCluster

JID = "20260101000000000000"

#: Name in one Redis, name in a Redis Cluster.
PLACES = [
    ("salt:events", "{salt}:events"),
    (f"salt:job:{JID}:life", f"{{salt}}:job:{JID}:life"),
    ("salt:idx:tgt:{web,db}*", "{salt}:idx:tgt:{web,db}*"),
    (f"load:{JID}", f"{{salt}}load:{JID}"),
    (f"ret:{JID}", f"{{salt}}ret:{JID}"),
    ("minions", "{salt}minions"),
    ("web1:test.ping", "{salt}web1:test.ping"),
    (f"salt:large:{JID}", f"salt:large:{{{JID}}}"),
    ("salt:pillar_cache:web1", "salt:pillar_cache:{web1}"),
]


@pytest.mark.parametrize(("name", "there"), PLACES)
def test_each_key_has_a_place(name: str, there: str) -> None:
    assert cluster_name(name) == there
    assert plain_name(there) == name


def test_all_keys_but_two_are_changed_together() -> None:
    spread = [row.name for row in KEYS if slot_of(cluster_name(row.pattern)) != slot_of("{salt}")]
    assert spread == ["large", "pillar_cache"]


@given(st.sampled_from([row.pattern.partition("<")[0] for row in KEYS]), st.text(max_size=40))
def test_a_place_is_undone(prefix: str, rest: str) -> None:
    name = prefix + rest
    assert plain_name(cluster_name(name)) == name


#: Command, and which of its arguments are keys.
COMMANDS: list[tuple[Sequence[object], list[int]]] = [
    (("GET", "a"), [1]),
    (("SET", "a", "b", "EX", 5, "NX"), [1]),
    (("HSET", "a", "f", "v"), [1]),
    (("ZADD", "a", "GT", 1, "m"), [1]),
    (("ZRANGEBYSCORE", "a", "-inf", "+inf", "LIMIT", 0, 5), [1]),
    (("SETRANGE", "a", 0, ""), [1]),
    (("XADD", "a", "*", "f", "v"), [1]),
    (("XPENDING", "a", "g"), [1]),
    (("XACK", "a", "g", "1-0"), [1]),
    (("DEL", "a", "b", "c"), [1, 2, 3]),
    (("EXISTS", "a", "b"), [1, 2]),
    (("MGET", "a", "b"), [1, 2]),
    (("EVALSHA", "0" * 40, 2, "a", "b", "no key"), [3, 4]),
    (("EVAL", "return 1", 0, "no key"), []),
    (("XREAD", "COUNT", 5, "BLOCK", 10, "STREAMS", "a", "b", "0-0", "0-1"), [6, 7]),
    (("XREADGROUP", "GROUP", "g", "c", "STREAMS", "a", ">"), [5]),
    (("PING",), []),
    (("INFO", "server"), []),
    (("WAIT", 1, 100), []),
    (("SCAN", 0, "MATCH", "a*"), []),
    (("CLUSTER SLOTS",), []),
    (("CONFIG GET", "appendfsync"), []),
    (("ACL SETUSER", "default", "on"), []),
]


@pytest.mark.parametrize(("command", "places"), COMMANDS, ids=lambda value: str(value[0]) if value else "none")
def test_the_keys_of_a_command(command: Sequence[object], places: list[int]) -> None:
    assert list(key_indexes(command)) == places


@pytest.mark.redis
@pytest.mark.parametrize(("command", "places"), COMMANDS, ids=lambda value: str(value[0]) if value else "none")
def test_redis_finds_the_same_keys(redis_server: str, command: Sequence[object], places: list[int]) -> None:
    name, _, more = str(command[0]).partition(" ")
    words = [name, *([more] if more else []), *command[1:]]
    found: list[str] = []
    # For a command without keys some versions of Redis answer with an error.
    with redis.Redis.from_url(redis_server, decode_responses=True) as server, suppress(redis.ResponseError):
        found = server.execute_command("COMMAND GETKEYS", *words)  # type: ignore[no-untyped-call]
    assert found == [str(command[at]) for at in places]


def test_a_command_of_several_slots_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ValueError, match="DEL: its keys are in several slots"):
        cluster_command(("DEL", keys.ret(JID), keys.large(JID)))


def test_a_script_writes_no_key_without_a_place() -> None:
    """Each text of a script that begins as a key does is one, and gets the place that Python gives the same name."""
    sources = Path(keys.__file__).parent.glob("*.py")
    quoted = re.compile(r"'\{keys\.([A-Z_]+)\}")
    used = {name for path in sources for name in quoted.findall(path.read_text("utf-8"))}
    assert len(used) > 10
    for name in used:
        prefix = getattr(keys, name)
        *_, call = re.findall(r"'([^']*)'", cluster_script(f"redis.call('{prefix}')"))
        # What is stored apart in a Redis Cluster is not written by a script that makes its name.
        assert call == (f"{{salt}}{prefix.removeprefix('salt')}" if name == "LARGE" else cluster_name(prefix)), name


def test_other_texts_of_a_script_stay() -> None:
    script = "redis.call('XADD', KEYS[1], '*', 'load', ARGV[1], 'minions:', 'result')"
    assert cluster_script(script).endswith(script)


@pytest.mark.parametrize(
    ("command", "sent"),
    [
        (("EVALSHA", "f0", 1, "salt:seen", "m"), ("EVALSHA", "f0", 2, "{salt}:seen", ABSENT_KEY, "m")),
        (("EVAL", "return 1", 0, "m"), ("EVAL", "return 1", 1, ABSENT_KEY, "m")),
        (("EVALSHA", "f0", 1, keys.large(JID), "m"), ("EVALSHA", "f0", 1, f"salt:large:{{{JID}}}", "m")),
    ],
)
def test_scripts_on_shared_keys_get_the_absent_key(command: Sequence[object], sent: Sequence[object]) -> None:
    made, slot = cluster_command(command)
    assert made == sent
    assert slot == slot_of(str(sent[3]))


@pytest.mark.redis
def test_a_script_does_not_see_the_absent_key(cluster: RedisCluster) -> None:
    server = Client(cluster.url, timeout=5, client_name="test").redis
    script = server.register_script("return {#KEYS, KEYS[1] or '', ARGV[1]}")
    assert script(["salt:seen"], ["m"]) == [1, b"{salt}:seen", b"m"]
    assert script([], ["m"]) == [0, b"", b"m"]
    assert not server.exists("salt:absent")
