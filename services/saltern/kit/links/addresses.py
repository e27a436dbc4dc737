"""The addresses of a role that may run several times: the hosts of an option, and names that resolve to several addresses.

A host is used as it is written, unless it is a name that resolves to more than one address (Docker's DNS, a headless Service of
Kubernetes). From then on each address counts. Names are looked up by a thread, because a lookup may hang for seconds.
Source: docs/execution.md#several-of-a-role
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    import socket
else:
    # Only names need it.
    socket = lazy_module("socket")

#: Seconds between two lookups of the names.
LOOKUP_SECONDS = 2.0

#: Seconds that a new connection waits for the first lookup.
FIRST_SECONDS = 1.0

#: Seconds that a fork waits for a lookup in another thread: the child would find the C library's locks held for ever.
_FORK_SECONDS = 0.5

#: Returns the IPv4 addresses of a name; an empty list if it has none now.
Lookup = Callable[[str], Sequence[str]]


def hosts_of(option: str | Sequence[str]) -> tuple[str, ...]:
    """Return the hosts of an option such as ``reqserver_host``: a list, or a text with commas. Duplicates are left out."""
    given = option.split(",") if isinstance(option, str) else option
    return tuple(dict.fromkeys(host.strip() for host in given if host.strip()))


def other_than(current: str, hosts: Sequence[str]) -> str:
    """Return one of the hosts at random, but not ``current`` if there is another one."""
    others = [host for host in hosts if host != current]
    return random.choice(others) if others else current


class Addresses:
    """The addresses of one role now. ``current`` may be read by any thread."""

    def __init__(self, hosts: Sequence[str], lookup: Lookup | None = None, *, follow: bool = True) -> None:
        """Look up the names among ``hosts``; wait at most FIRST_SECONDS for it. Addresses need no lookup and no thread.

        ``follow``: False: use the hosts as they are.
        """
        self._hosts = tuple(hosts)
        self._lookup = lookup or _lookup
        self._names = tuple(host for host in self._hosts if not is_address(host))
        #: Name -> its addresses; only names that had several at once.
        self._found: dict[str, tuple[str, ...]] = {}
        self.current: tuple[str, ...] = self._hosts
        self._ended = threading.Event()
        if self._names and follow:
            self._first = threading.Event()
            threading.Thread(target=self._follow, name="addresses", daemon=True).start()
            self._first.wait(FIRST_SECONDS)

    def close(self) -> None:
        """Stop the lookups."""
        self._ended.set()

    def _follow(self) -> None:
        while True:
            self.look_up()
            self._first.set()
            if self._ended.wait(LOOKUP_SECONDS):
                return

    def look_up(self) -> None:
        """Look up the names now. A name that cannot be looked up keeps its addresses."""
        for name in self._names:
            found = tuple(sorted(self._lookup(name)))
            # A name with one address stays a name: libzmq looks it up at each attempt to connect.
            if found and (len(found) > 1 or name in self._found):
                self._found[name] = found
        listed = (address for host in self._hosts for address in self._found.get(host, (host,)))
        self.current = tuple(dict.fromkeys(listed))


def is_address(host: str) -> bool:
    """Return whether a host is written as an IP address and not as a name."""
    return ":" in host or host.replace(".", "").isdigit()


class _Guard:
    """Keeps forks and lookups apart."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        os.register_at_fork(before=self._before, after_in_parent=self._after, after_in_child=self._in_child)
        self._held = False

    def _before(self) -> None:
        self._held = self.lock.acquire(timeout=_FORK_SECONDS)

    def _after(self) -> None:
        if self._held:
            self.lock.release()

    def _in_child(self) -> None:
        self.lock = threading.Lock()


_GUARD = _Guard()


def _lookup(name: str) -> Sequence[str]:
    try:
        # As bytes: for a text, Python imports the codec of international names.
        with _GUARD.lock:
            rows = socket.getaddrinfo(name.encode(), None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeEncodeError):
        return ()
    return sorted({str(row[4][0]) for row in rows})
