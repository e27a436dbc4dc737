"""Names of Redis keys in a Redis Cluster, with their hash tags, and the slot of a command. No I/O.

A Redis Cluster spreads keys over 16384 slots. A script may touch keys of one slot only, and keys with the same hash tag
(the part in braces) are in one slot. What the store changes in one step is therefore under the tag ``{salt}``. Values
that are large and belong to no such step have a tag of their own: the large returns of a job have its JID, the cached
pillars of a minion have its id.

The rest of the store uses the names of ``masterstore.keys``. ``cluster.ClusterRedis`` changes them when it sends a command.

Source: docs/operations/outages.md#redis-cluster
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from masterstore import keys
from masterstore.redis_parts import key_slot

#: Hash tag of all keys that scripts change together.
SHARED = "{salt}"

#: Prefix of the store's own keys, and its word.
_OWN, _OWN_WORD = "salt:", "salt"

#: A key that never exists. It is one more key of each script on keys under ``{salt}``. While the slot of these keys moves to
#: another node, Redis refuses a script that has a key which is not there (``TRYAGAIN``, ``ASK``), before the script begins. Without
#: it a script could find some of its keys gone when it is half done, for most scripts write names of further keys themselves.
ABSENT_KEY = f"{SHARED}:absent"

_DROP_ABSENT = f"if KEYS[#KEYS] == '{ABSENT_KEY}' then table.remove(KEYS) end\n"

#: Prefixes of keys whose rest, a JID or a minion id, is their hash tag.
_SPREAD = (keys.LARGE, keys.PILLAR_CACHE)

#: A key's name, or its beginning, as a script writes it. Salt's returner has names of three kinds that a script may contain.
_WRITTEN = re.compile(rf"(?<=')(?:{_OWN}|{keys.LOAD}|{keys.RET}|{keys.MINIONS}(?='))")

#: A Redis command as its name and arguments.
Command: TypeAlias = tuple[object, ...]


def cluster_name(name: str) -> str:
    """Return the name that a key of ``masterstore.keys`` has in a Redis Cluster."""
    for prefix in _SPREAD:
        if name.startswith(prefix):
            return f"{prefix}{{{name.removeprefix(prefix)}}}"
    return SHARED + (name.removeprefix(_OWN_WORD) if name.startswith(_OWN) else name)


def plain_name(name: str) -> str:
    """Return the name of ``masterstore.keys`` for a name in a Redis Cluster; a name without a hash tag stays."""
    if name.startswith(SHARED):
        rest = name.removeprefix(SHARED)
        return _OWN_WORD + rest if rest.startswith(":") else rest
    for prefix in _SPREAD:
        if name.startswith(f"{prefix}{{") and name.endswith("}"):
            return prefix + name.removeprefix(prefix)[1:-1]
    return name


def cluster_script(source: str) -> str:
    """Return a Lua script for a Redis Cluster: names of keys that it writes itself have their hash tag, ``{salt}``; and it
    takes the key ABSENT_KEY from its keys, if it has it.
    """
    return _DROP_ABSENT + _WRITTEN.sub(lambda found: cluster_name(found[0]), source)


def _first(arguments: Sequence[object]) -> range:
    return range(1, min(2, len(arguments)))


def _all(arguments: Sequence[object]) -> range:
    return range(1, len(arguments))


def _none(arguments: Sequence[object]) -> range:
    return range(0)


def _of_script(arguments: Sequence[object]) -> range:
    return range(3, 3 + int(str(arguments[2])))


def _of_streams(arguments: Sequence[object]) -> range:
    names = [str(each, "utf-8") if isinstance(each, bytes) else str(each) for each in arguments]
    first = names.index("STREAMS") + 1
    return range(first, first + (len(arguments) - first) // 2)


#: Command -> the indexes of its keys among its arguments. A command that is not named here has one key, right after its name.
_KEYS: Mapping[str, Callable[[Sequence[object]], range]] = {
    **dict.fromkeys(("DEL", "EXISTS", "MGET", "UNLINK"), _all),
    **dict.fromkeys(("EVAL", "EVALSHA"), _of_script),
    **dict.fromkeys(("XREAD", "XREADGROUP"), _of_streams),
    **dict.fromkeys(("ACL", "CLIENT", "CLUSTER", "COMMAND", "CONFIG", "DBSIZE", "INFO", "PING", "TIME"), _none),
    **dict.fromkeys(("SCAN", "SCRIPT", "WAIT", "WAITAOF"), _none),
}

#: Commands that run a script.
_SCRIPTS = ("EVAL", "EVALSHA")


def key_indexes(arguments: Sequence[object]) -> range:
    """Return the indexes of the keys among the arguments of a Redis command, whose first one is its name."""
    return _KEYS.get(str(arguments[0]).partition(" ")[0].upper(), _first)(arguments)


def cluster_command(arguments: Sequence[object]) -> tuple[Command, int | None]:
    """Return a Redis command with the names that its keys have in a Redis Cluster, and their slot; None without a key.

    A script on keys under ``{salt}``, or without keys, also gets the key ABSENT_KEY. Raises ValueError for keys of several
    slots: a command of the store that a Redis Cluster refuses.
    """
    indexes = key_indexes(arguments)
    made = list(arguments)
    for at in indexes:
        made[at] = cluster_name(_text(made[at]))
    # Most keys have the same tag.
    tags = {SHARED if name.startswith(SHARED) else name for name in (str(made[at]) for at in indexes)}
    slots = set(map(slot_of, tags))
    if len(slots) > 1:
        raise ValueError(f"{arguments[0]}: its keys are in several slots of a Redis Cluster: {_named(made, indexes)}")
    if arguments[0] in _SCRIPTS and (not slots or slots == {_SHARED_SLOT}):
        made.insert(indexes.stop, ABSENT_KEY)
        made[2] = len(indexes) + 1
        slots = {_SHARED_SLOT}
    return tuple(made), slots.pop() if slots else None


def slot_of(name: str) -> int:
    """Return the slot, 0 to 16383, of a key's name in a Redis Cluster."""
    return key_slot(name.encode("utf-8", "surrogateescape"))


def _text(name: object) -> str:
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else str(name)


def _named(made: Sequence[object], indexes: range) -> str:
    return ", ".join(str(made[at]) for at in indexes[:3])


_SHARED_SLOT = slot_of(SHARED)
