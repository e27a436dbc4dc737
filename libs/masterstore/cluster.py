"""A client of a Redis Cluster with the interface of ``PinnedRedis``.

It sends each command to the node that serves the slot of its keys, over that node's pinned connection. The map of slots
comes from ``CLUSTER SLOTS`` of any node that answers. A node that does not answer, or that does not serve a slot any more,
makes the map invalid: the next command reads it again, and finds the replica that was promoted. Only a command that was
refused because its slot is elsewhere (``MOVED``) is sent again here; about all others the caller decides, as with one Redis.

While a slot moves to another node, commands whose keys are not at the old node are refused (``ASK``, ``TRYAGAIN``) until the
slot has moved. They are not sent to the new node, where a script would find a part of its keys.

redis-py has a client for clusters, too. Why it is not used: docs/decisions/0023-redis-cluster.md
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from masterstore import redis_parts as redis
from masterstore.cluster_keys import (
    SHARED,
    Command,
    cluster_command,
    cluster_name,
    cluster_script,
    key_indexes,
    plain_name,
    slot_of,
)
from masterstore.pinned_connection import PinnedRedis, PinnedScript

#: Host and port of a node.
Address: TypeAlias = tuple[str, int]

#: Times that one command is sent again because a slot is elsewhere; then the nodes do not agree about it.
_SENT_AGAIN = 5

#: Seconds after a timeout in which commands to the same node fail at once: it hangs, and each would wait for as long again.
HANGS_FOR = 1.5

#: Redis command and redis-py's options for its answer.
_Queued: TypeAlias = tuple[Command, dict[str, Any]]

#: The slot of a command's keys (None: it has none), the command, and commands without keys that are sent on the same connection.
_Unit: TypeAlias = tuple[int | None, list[_Queued]]


class _Hangs(redis.TimeoutError):
    """Raised in place of a command to a node that hangs: nothing was sent."""


@dataclass(frozen=True, slots=True)
class SlotRange:
    """Slots ``first`` to ``last`` of a Redis Cluster, the address of the node that serves them, and those of its replicas."""

    first: int
    last: int
    master: Address
    replicas: tuple[Address, ...] = ()


def slot_ranges(answer: Sequence[Any], asked: Address) -> tuple[SlotRange, ...]:
    """Return the SlotRanges in an answer of ``CLUSTER SLOTS``.

    ``asked``: address of the node that answered. An empty host in the answer means the host that was asked.
    """
    found = []
    for first, last, *nodes in answer:
        master, *replicas = (_address(node, asked) for node in nodes)
        found.append(SlotRange(int(first), int(last), master, tuple(replicas)))
    return tuple(found)


def _address(node: Sequence[Any], asked: Address) -> Address:
    host = node[0].decode() if isinstance(node[0], bytes) else str(node[0] or "")
    return (host or asked[0], int(node[1]))


class ClusterRedis(PinnedRedis):
    """Client of a Redis Cluster. It takes the key names of ``masterstore.keys``."""

    def __init__(
        self, seeds: Sequence[Address], node: Callable[[Address], PinnedRedis], ask: Callable[[Address], redis.Redis]
    ) -> None:
        """Prepare the client; nothing is sent yet.

        ``seeds``: nodes to ask first. ``node``: makes the client of one node. ``ask``: the same for questions about
        the slots, with a short timeout.
        """
        super().__init__()
        self._seeds, self._make, self._ask = tuple(seeds), node, ask
        self._nodes: dict[Address, PinnedRedis] = {}
        self._asked: dict[Address, redis.Redis] = {}
        self._ranges: tuple[SlotRange, ...] = ()
        #: False: the ranges have to be read again before the next command.
        self._current = False
        #: The node that is asked first for the ranges, and the one that is asked last: it told the ranges that were wrong.
        self._first: Address | None = None
        self._last: Address | None = None
        #: Node -> monotonic time until which it counts as hanging.
        self._hangs: dict[Address, float] = {}
        self._home = slot_of(SHARED)

    def execute_command(self, *arguments: Any, **options: Any) -> Any:
        """Send a Redis command to the node of its keys and return its answer. Raises redis-py's errors.

        A command without keys goes to the node of the keys that are changed in one step.
        """
        slot, queued = _placed(arguments, options)
        for _ in range(_SENT_AGAIN):
            address = self._serving(slot)
            try:
                return self._of(address).execute_command(*queued[0], **options)
            except redis.RedisError as error:
                self._look_again(address, error)
                if not isinstance(error, redis.MovedError):
                    raise
        raise redis.ConnectionError("the nodes of the Redis Cluster do not agree who serves a slot")

    def register_script(self, script: str) -> PinnedScript:  # type: ignore[override]
        """Return a callable for a Lua script; nothing is sent to Redis yet."""
        return PinnedScript(self, cluster_script(script))

    def pipeline(self, transaction: bool = True, shard_hint: object = None) -> ClusterPipeline:
        """Return a pipeline. With ``transaction`` all its keys must be on one node."""
        return ClusterPipeline(self, transaction)

    def names(self, match: str | None, count: int) -> Iterator[str]:
        """Yield the names, as in ``masterstore.keys``, of the keys on all nodes. ``match``: a pattern of them; None: all.

        ``count``: keys that a node looks at in one step.
        """
        pattern = None if match is None else cluster_name(match)
        for address in self.masters():
            yield from map(plain_name, self._of(address).names(pattern, count))

    def masters(self) -> list[Address]:
        """Return the addresses of the nodes that serve slots, in the order of their slots. Raises redis-py's errors."""
        return list(dict.fromkeys(each.master for each in self._read_ranges()))

    def peer_certificate(self) -> bytes:
        """Return the certificate (DER) of the node of the keys that are changed in one step; b"" without TLS."""
        return self._of(self._serving(None)).peer_certificate()

    def disconnect_idle(self) -> None:
        """Close the connections that are not in use, and read the map of slots again before the next command."""
        self._current = False
        for node in list(self._nodes.values()):
            node.disconnect_idle()

    def run(self, queued: Sequence[_Queued], *, transaction: bool) -> list[Any]:
        """Send commands, in one round trip for each node, and return the answers in their order; an error is one of them.

        Commands without keys go where the command before them goes, on the same connection. A command that its node
        refuses because the slot is elsewhere is sent again, together with those.
        """
        units: list[_Unit] = []
        for command, options in queued:
            if units and not key_indexes(command):
                units[-1][1].append((command, options))
            else:
                slot, made = _placed(command, options)
                units.append((slot, [made]))
        answers: list[list[Any] | None] = [None] * len(units)
        for _ in range(_SENT_AGAIN):
            left: dict[Address, list[int]] = {}
            for at, (slot, _commands) in enumerate(units):
                if answers[at] is None:
                    left.setdefault(self._serving(slot), []).append(at)
            if not left:
                return [answer for unit in answers for answer in unit or ()]
            if transaction and len(left) > 1:
                raise ValueError("the commands of a transaction have keys on several nodes of a Redis Cluster")
            for address, chosen in left.items():
                found = self._run_at(address, [units[at] for at in chosen], transaction=transaction)
                for at, part in zip(chosen, found, strict=True):
                    answers[at] = part
        raise redis.ConnectionError("the nodes of the Redis Cluster do not agree who serves a slot")

    def _run_at(self, address: Address, units: Sequence[_Unit], *, transaction: bool) -> list[list[Any] | None]:
        """Send units to one node and return the answers of each; None where the slot is elsewhere, so nothing was done."""
        pipe = self._of(address).pipeline(transaction=transaction)
        for _, commands in units:
            for command, options in commands:
                pipe.execute_command(*command, **options)  # type: ignore[no-untyped-call]
        try:
            answers = iter(pipe.execute(raise_on_error=False))
        except redis.RedisError as error:
            self._look_again(address, error)
            # A transaction is refused as a whole.
            if isinstance(error, redis.MovedError):
                return [None] * len(units)
            raise
        parts: list[list[Any] | None] = []
        for _, commands in units:
            part = [next(answers) for _ in commands]
            if isinstance(part[0], redis.RedisError):
                self._look_again(address, part[0])
            parts.append(None if isinstance(part[0], redis.MovedError) else part)
        return parts

    def _look_again(self, address: Address, error: redis.RedisError) -> None:
        """Let the map of slots be read again before the next command if an error of the node at ``address`` shows that it
        may be wrong.
        """
        if isinstance(error, redis.MovedError):
            self._first = (error.host or address[0], error.port)
        elif not isinstance(error, redis.ConnectionError | redis.TimeoutError | redis.ClusterDownError):
            return
        if isinstance(error, redis.TimeoutError) and not isinstance(error, _Hangs):
            self._hangs[address] = time.monotonic() + HANGS_FOR
        self._current = False

    def _serving(self, slot: int | None) -> Address:
        """Return the address of the node that serves a slot; None: the slot of the keys that are changed in one step."""
        wanted = self._home if slot is None else slot
        for each in self._read_ranges():
            if each.first <= wanted <= each.last:
                return each.master
        self._current = False
        raise redis.ConnectionError(f"no node of the Redis Cluster serves slot {wanted}")

    def _read_ranges(self) -> tuple[SlotRange, ...]:
        if self._current:
            return self._ranges
        known = [address for each in self._ranges for address in (each.master, *each.replicas)]
        # A node that is cut off from the others goes on telling what it knew, so another one is asked each time.
        order = [one for one in dict.fromkeys([*known, *self._seeds]) if one not in (self._first, self._last)]
        asked = dict.fromkeys(one for one in (self._first, *order, self._last) if one is not None)
        faults = []
        for address in sorted(asked, key=self._is_hanging):
            try:
                answer = self._question(address).execute_command("CLUSTER SLOTS")  # type: ignore[no-untyped-call]
            except (redis.RedisError, OSError) as error:
                if "cluster support disabled" in str(error):
                    raise redis.ResponseError(
                        f"{address[0]}:{address[1]} is no node of a Redis Cluster: write redis:// in place of redis+cluster://"
                    ) from error
                faults.append(f"{address[0]}:{address[1]}: {error}")
                continue
            self._ranges, self._current = slot_ranges(answer, address), True
            self._first, self._last = None, address
            return self._ranges
        self._first = None
        raise redis.ConnectionError(f"no node of the Redis Cluster answers ({'; '.join(faults)})")

    def _of(self, address: Address) -> PinnedRedis:
        """Return the client of a node. Raises _Hangs while the node hangs."""
        if self._is_hanging(address):
            raise _Hangs(f"{address[0]}:{address[1]} hangs")
        if address not in self._nodes:
            self._nodes[address] = self._make(address)
        return self._nodes[address]

    def _is_hanging(self, address: Address) -> bool:
        return time.monotonic() < self._hangs.get(address, 0.0)

    def _question(self, address: Address) -> redis.Redis:
        if address not in self._asked:
            self._asked[address] = self._ask(address)
        return self._asked[address]


def _placed(command: Command, options: dict[str, Any]) -> tuple[int | None, _Queued]:
    """Return the slot of a command's keys, and the command as it is sent to a node of a Redis Cluster."""
    made, slot = cluster_command(command)
    return slot, (made, options)


class ClusterPipeline(redis.Pipeline):
    """A pipeline whose commands go to the nodes of their keys. A command without keys goes where the one before it goes."""

    def __init__(self, cluster: ClusterRedis, transaction: bool) -> None:
        super().__init__(cluster.connection_pool, cluster.response_callbacks, transaction, None)
        self._cluster, self._at_once = cluster, transaction

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Send the queued commands and return their answers, in order. Raises redis-py's errors; with ``raise_on_error``
        also the first error among the answers.
        """
        queued, self.command_stack = self.command_stack, []
        answers = self._cluster.run(queued, transaction=self._at_once)
        for answer in answers if raise_on_error else ():
            if isinstance(answer, Exception):
                raise answer
        return answers
