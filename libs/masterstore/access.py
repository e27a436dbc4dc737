"""Redis' ACL users of the master: one for each role that uses Redis, with the commands and keys that the role needs.

The keys come from ``masterstore.keys``: a role may write the rows of KEYS that name it as a writer, and read those that name it
as a reader. The commands are the tables below. Runners run in workers and have the workers' user. ``saltern store``, ``saltern
audit`` and ``saltern rotate`` use the user ``operator``, who may do everything.

Redis 7 knows keys that a user may only read. In Redis 6.2 such a key can be written, too, by the commands of the role.

Source: docs/operations/redis-users.md
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from masterstore import keys
from masterstore.cluster_keys import ABSENT_KEY, cluster_name
from masterstore.keys import KEYS, KeySpec

#: User of operators' tools and of ``redis-cli``, who may do everything.
OPERATOR = "operator"

#: User without a password, who may only ping: for health checks.
PROBE = "probe"

#: Redis' user for connections without a name.
DEFAULT = "default"

#: First version of Redis with keys that a user may only read (``%R~``).
READ_ONLY_SINCE = (7, 0)

#: Commands of every role: about its connection, about the server, and those that carry others.
_EVERY = (
    *("ping", "client|setname", "info", "cluster|slots", "time"),
    *("multi", "exec", "discard", "eval", "evalsha"),
)

#: Commands that read. None of them names keys: SCAN, KEYS and RANDOMKEY show the keys of all roles.
_READ = (
    *("exists", "get", "mget", "ttl"),
    *("hexists", "hget", "hgetall", "hkeys", "hlen", "hmget", "hstrlen"),
    *("scard", "sismember", "smembers", "smismember", "sscan"),
    *("zcard", "zcount", "zmscore", "zrange", "zrangebyscore", "zrevrangebyscore", "zscore"),
    *("xlen", "xpending", "xrange", "xread", "xrevrange"),
)

#: Commands that write: jobs, keys of minions, caches.
_WRITE = (
    *("del", "expire", "incr", "incrby", "pexpire", "set", "setrange"),
    *("hdel", "hincrby", "hset", "hsetnx"),
    *("sadd", "srem"),
    *("zadd", "zrem", "zremrangebyrank", "zremrangebyscore"),
    *("xadd", "xtrim"),
)

#: Commands of readers of a consumer group of events.
_GROUPS = ("xack", "xclaim", "xdel", "xgroup|create", "xgroup|delconsumer", "xreadgroup")


@dataclass(frozen=True, slots=True)
class RoleAccess:
    """The commands of a role in Redis beside those of every role, and the names by which KEYS calls the role."""

    #: Names in the columns ``writers`` and ``readers`` of KEYS.
    names: frozenset[str]
    commands: tuple[str, ...]


#: Role -> its access. A role without a row has no user of Redis, and no way to Redis.
ROLES: Mapping[str, RoleAccess] = {
    "publisher": RoleAccess(frozenset({"publisher"}), (*_READ, "hset", "hsetnx", "hdel", "setrange")),
    "mworker": RoleAccess(
        frozenset({"mworker", "runners"}),
        (*_READ, *_WRITE, "xdel", "client|list", "dbsize", "wait", "waitaof"),
    ),
    "reactor": RoleAccess(
        frozenset({"reactor"}),
        (*_READ, *_GROUPS, *("del", "hset", "hincrby", "incr", "pexpire", "set", "setrange", "xadd", "zadd", "zrem")),
    ),
    "maintenance": RoleAccess(frozenset({"maintenance"}), (*_READ, *_WRITE)),
}

#: Commands that Redis knows only from a version on.
_SINCE: Mapping[str, tuple[int, int]] = {"waitaof": (7, 2)}

#: Part of a pattern of KEYS -> all that it can be. Every other part is free.
_FIXED: Mapping[str, tuple[str, ...]] = {
    "state": ("accepted", "pending", "rejected", "denied"),
    "cache": ("grains", "pillar"),
}

#: A pattern of a row of KEYS as Redis' ACL has it. ``<minion>:<fun>`` would be nearly every key: a function has a dot.
_ROWS: Mapping[str, str] = {"last_jid": "*:*.*"}

_PART = re.compile(r"<(\w+)>")


def patterns_of(spec: KeySpec) -> tuple[str, ...]:
    """Return the patterns of Redis keys that a row of KEYS means, as Redis' ACL has them."""
    if spec.name in _ROWS:
        return (_ROWS[spec.name],)
    found = [spec.pattern]
    for part, values in _FIXED.items():
        found = (
            [one.replace(f"<{part}>", value) for one in found for value in values]
            if f"<{part}>" in spec.pattern
            else found
        )
    return tuple(_PART.sub("*", one) for one in found)


def keys_of(role: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the patterns of the keys that a role may write, and of those that it may only read."""
    names = ROLES[role].names
    written = [spec for spec in KEYS if names & set(spec.writers.split(", "))]
    read = [spec for spec in KEYS if spec not in written and {*names, "all"} & set(spec.readers.split(", "))]
    return (
        tuple(dict.fromkeys((keys.WRITE_PROBE, *_patterns(written)))),
        tuple(dict.fromkeys(_patterns(read))),
    )


def _patterns(rows: Iterable[KeySpec]) -> Iterator[str]:
    for spec in rows:
        yield from patterns_of(spec)


def commands_of(role: str, version: tuple[int, int]) -> tuple[str, ...]:
    """Return the commands and subcommands of a role for a version of Redis (major, minor)."""
    named = dict.fromkeys((*_EVERY, *ROLES[role].commands))
    return tuple(name for name in named if version >= _SINCE.get(name, (0, 0)))


def rules_of(role: str, version: tuple[int, int], *, in_cluster: bool = False) -> tuple[str, ...]:
    """Return the rules of a role's user, without passwords, as ``ACL SETUSER`` takes them.

    ``version``: of Redis (major, minor). ``in_cluster``: with the names that keys have in a Redis Cluster.
    """
    written, read = keys_of(role)
    if in_cluster:
        written, read = (*map(cluster_name, written), ABSENT_KEY), tuple(map(cluster_name, read))
    only = "%R~" if version >= READ_ONLY_SINCE else "~"
    return (
        *("on", "resetkeys", "resetchannels", "-@all"),
        *(f"~{pattern}" for pattern in written),
        *(f"{only}{pattern}" for pattern in read),
        *(f"+{command}" for command in commands_of(role, version)),
    )


#: Rules of the users that are no roles.
_OTHER_RULES: Mapping[str, tuple[str, ...]] = {
    OPERATOR: ("on", "~*", "&*", "+@all"),
    # Off, and without a password: no one can sign in as it. It must have all rights all the same. A server that reads its
    # append-only file at its start runs transactions as this user, and would lose those that the user may not run.
    DEFAULT: ("off", "resetpass", "~*", "&*", "+@all"),
    PROBE: ("on", "nopass", "resetkeys", "resetchannels", "-@all", "+ping"),
}

#: Users with a password, in the order of the file.
USERS = (OPERATOR, *ROLES)


def user_rules(user: str, version: tuple[int, int], *, in_cluster: bool = False) -> tuple[str, ...]:
    """Return the rules of one of USERS, without passwords, as ``ACL SETUSER`` takes them."""
    return _OTHER_RULES.get(user) or rules_of(user, version, in_cluster=in_cluster)


def digest(password: str) -> str:
    """Return a password as the rules of Redis' ACL contain it: by its SHA-256 hash."""
    return f"#{hashlib.sha256(password.encode()).hexdigest()}"


def acl_file(passwords: Mapping[str, Sequence[str]], version: tuple[int, int], *, in_cluster: bool = False) -> bytes:
    """Return the content of Redis' file of users (directive ``aclfile``), with hashes of the passwords.

    ``passwords``: user -> its passwords; there are two while one is replaced. With the user ``default`` among them, there is one
    user for all roles. ``probe`` has no password and may only ping.
    """
    if DEFAULT in passwords:
        lines = [_line(DEFAULT, passwords[DEFAULT], ("on", "~*", "&*", "+@all"))]
    else:
        lines = [_line(DEFAULT, (), _OTHER_RULES[DEFAULT])]
    lines += [_line(PROBE, (), _OTHER_RULES[PROBE])]
    for user in USERS:
        if user in passwords:
            lines.append(_line(user, passwords[user], user_rules(user, version, in_cluster=in_cluster)))
    return "".join(lines).encode()


def _line(user: str, passwords: Sequence[str], rules: Sequence[str]) -> str:
    return " ".join(("user", user, *rules[:1], *map(digest, passwords), *rules[1:])) + "\n"
