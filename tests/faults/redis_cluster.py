"""A Redis Cluster as real processes on loopback: nodes that serve slots, each with a replica."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import redis

from masterstore.cluster_keys import SHARED, cluster_name, slot_of
from tests.faults.redis_pair import Guard, RedisServers, until
from tests.ports import kept_ports

#: Milliseconds of silence after which the nodes hold one of them for down.
NODE_TIMEOUT = 1500

#: Slots of a Redis Cluster.
_SLOTS = 16384

#: What lies between a node's port and its port for other nodes.
_BUS = 10_000

#: Nodes that serve slots; fewer cannot agree on a failover.
_MASTERS = 3


class RedisCluster(RedisServers):
    """``nodes`` are the ports of all nodes. At first the first three serve slots, and each of the next follows one of them."""

    def __init__(
        self,
        root: Path,
        *,
        replicas: bool = True,
        words: tuple[str, ...] = (),
        program: str = "",
        guard: Guard | None = None,
    ) -> None:
        """Start everything below a directory, and wait until it is one cluster. ``words``: more arguments of all nodes.

        ``program``: the server, if it is not that of all tests; it must know TLS for a ``guard``.
        """
        own = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT)]
        if guard is not None:
            own += ["--tls-cluster", "yes"]
            own += ["--tls-client-cert-file", str(guard.client), "--tls-client-key-file", str(guard.client)]
        super().__init__(root, program, guard, [*own, *words])
        self.nodes = _free_nodes(_MASTERS * (2 if replicas else 1))
        try:
            for port in self.nodes:
                self.start(port)
            self._join()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        """For the option redis_url: two of the nodes."""
        return f"redis+cluster://{','.join(f'127.0.0.1:{port}' for port in self.nodes[:2])}"

    def serving(self, name: str = SHARED) -> int:
        """Port of the node that serves a key's slot, as most nodes that answer know it."""
        return self.serving_slot(slot_of(name))

    def serving_slot(self, slot: int) -> int:
        """Port of the node that serves a slot, as most nodes that answer know it."""
        said = []
        for port in self.nodes:
            # A node that was stopped must not hold up the question for long.
            once = self.client(port, seconds=1)
            try:
                ranges = once.execute_command("CLUSTER SLOTS")  # type: ignore[no-untyped-call]
            except (redis.ConnectionError, redis.TimeoutError):
                continue
            said += [int(master[1]) for first, last, master, *_ in ranges if first <= slot <= last]
        return max(set(said), key=said.count)

    def master(self) -> int:
        """Return the port of the node that serves the keys that the store changes in one step."""
        return self.serving()

    def rejoin(self, port: int) -> None:
        """Start a killed node again. It becomes a replica by itself if another node serves its slots by now."""
        self.start(port)

    def placed(self, name: str) -> str:
        """Return the name that a key of ``masterstore.keys`` has in a Redis Cluster."""
        return cluster_name(name)

    def await_failover(self, before: int) -> int:
        """Wait until another node serves the slot of ``{salt}``; its port."""
        until(lambda: self.serving() != before, "the failover")
        return self.serving()

    def await_blocked(self, port: int) -> None:
        """Wait until a client of a node waits for data."""
        until(lambda: self.client(port).info("clients")["blocked_clients"] > 0, "a client waits")

    def await_whole(self) -> None:
        """Wait until every slot is served and every node is linked to those that it follows."""
        until(lambda: all(self._whole(port) for port in self.nodes), "the cluster is whole")

    def masters(self) -> list[int]:
        """Ports of the nodes that serve slots, in the order of ``nodes``."""
        return [port for port in self.nodes if self.client(port).info("replication")["role"] == "master"]

    def replica_of(self, master: int) -> int:
        """Port of the node that follows another one."""
        known = {port: self.client(port).info("replication") for port in self.nodes}
        return next(port for port, said in known.items() if said["role"] == "slave" and said["master_port"] == master)

    def move_slot(self, slot: int, to: int) -> None:
        """Let another node serve a slot, with its keys, as ``redis-cli --cluster reshard`` does."""
        with self.moving(slot, to):
            pass

    @contextlib.contextmanager
    def moving(self, slot: int, to: int) -> Iterator[Callable[[str], None]]:
        """Let another node serve a slot after the block. In the block the slot is half moved: the function that is given
        moves one key.
        """
        before = next(port for port in self.masters() if self._serves(port, slot))
        ids = {port: self._tell(port, "CLUSTER MYID") for port in (before, to)}
        self._tell(to, "CLUSTER SETSLOT", slot, "IMPORTING", ids[before])
        self._tell(before, "CLUSTER SETSLOT", slot, "MIGRATING", ids[to])

        def move(*names: str) -> None:
            self._tell(before, "MIGRATE", "127.0.0.1", to, "", 0, 5000, "KEYS", *names)

        yield move
        while names := self._tell(before, "CLUSTER GETKEYSINSLOT", slot, 100):
            move(*names)
        # The new owner first: else a client could be sent back and forth.
        for port in (to, before, *(port for port in self.masters() if port not in (to, before))):
            self._tell(port, "CLUSTER SETSLOT", slot, "NODE", ids[to])
        until(lambda: self.serving_slot(slot) == to, "the nodes know who serves the slot")

    def _join(self) -> None:
        masters, replicas = self.nodes[:_MASTERS], self.nodes[_MASTERS:]
        for at, port in enumerate(masters):
            first, last = at * _SLOTS // _MASTERS, (at + 1) * _SLOTS // _MASTERS
            self._tell(port, "CLUSTER ADDSLOTS", *range(first, last))
        for port in self.nodes[1:]:
            self._tell(port, "CLUSTER MEET", "127.0.0.1", self.nodes[0])
        until(lambda: all(self._knows(port) for port in self.nodes), "the nodes know each other")
        for port, master in zip(replicas, masters, strict=False):
            self._tell(port, "CLUSTER REPLICATE", self._tell(master, "CLUSTER MYID"))
        self.await_whole()

    def _knows(self, port: int) -> bool:
        return int(self._tell(port, "CLUSTER INFO")["cluster_known_nodes"]) == len(self.nodes)

    def _whole(self, port: int) -> bool:
        follows = self.client(port).info("replication")
        linked = follows["role"] == "master" or follows["master_link_status"] == "up"
        return bool(linked and self._tell(port, "CLUSTER INFO")["cluster_state"] == "ok")

    def _tell(self, port: int, *words: Any) -> Any:
        """Send a command to one node and return its answer."""
        return self.client(port).execute_command(*words)  # type: ignore[no-untyped-call]

    def _serves(self, port: int, slot: int) -> bool:
        own = self._tell(port, "CLUSTER SLOTS")
        return any(first <= slot <= last and master[1] == port for first, last, master, *_ in own)


def _free_nodes(count: int) -> list[int]:
    """Ports that nobody else takes, whose port for other nodes is free, too."""
    found: list[int] = []
    while len(found) < count:
        (port,) = kept_ports(1)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port + _BUS)) != 0 and port not in found:
                found.append(port)
    return found
