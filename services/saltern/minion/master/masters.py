"""The masters of a minion: their order, their addresses, and the directory for the files of each.

``master`` is one address or a list. With a list the minion is connected to all masters at once, unless ``master_type`` is
``failover`` or ``distributed``: then it has one master at a time. This module does no I/O. Salt: salt/minion.py, eval_master
and MinionManager
"""

from __future__ import annotations

import binascii
import ipaddress
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from saltern.kit.config.minion_options import MinionOptions
from saltern.kit.config.reading import ConfigError

#: Values of ``master_type`` -> whether the masters of a list are used one at a time.
_ONE_AT_A_TIME = {"str": False, "failover": True, "distributed": True}

#: Two more values: no master, and an address returned by a function (``master_function``).
DISABLE, FUNC = "disable", "func"

#: ``[2001:db8::1]:4506``, ``host:4506``.
_WITH_PORT = re.compile(r"(?P<host>\[[^\]]+\]|[^:\[\]]+):(?P<port>\d{1,5})")

Shuffle = Callable[[list[str]], None]


@dataclass(frozen=True, slots=True)
class Masters:
    """The master of this main process, and the masters of the minion's other main processes, by address."""

    current: str
    #: All masters of a minion that is connected to several at once, else empty.
    at_once: tuple[str, ...] = ()

    def state(self, cachedir: str) -> Path:
        """Return the directory of this master's spool and journal."""
        return _state(cachedir, self.current) if self.at_once else Path(cachedir)

    def other_states(self, cachedir: str) -> list[Path]:
        """Return the directories of the other masters' spools and journals."""
        return [_state(cachedir, name) for name in self.at_once if name != self.current]


def _state(cachedir: str, master: str) -> Path:
    return Path(cachedir) / "masters" / re.sub(r"[^\w.-]", "_", master)


def listed(options: MinionOptions) -> list[str]:
    """Return the addresses of the configured masters without duplicates.

    Raise ConfigError if the list is empty or ``master_type`` is unknown.
    """
    if options.master_type not in _ONE_AT_A_TIME:
        known = ", ".join((*_ONE_AT_A_TIME, FUNC, DISABLE))
        raise ConfigError(f"master_type: {options.master_type!r} is not supported; use one of {known}")
    given = [options.master] if isinstance(options.master, str) else options.master
    found = list(dict.fromkeys(name.strip() for name in given if name.strip()))
    if not found:
        raise ConfigError("master: the list of masters is empty; set master in the minion's configuration")
    for name in found:
        address(name, options.master_port)
    return found


def at_once(options: MinionOptions) -> tuple[str, ...]:
    """Return the masters that the minion is connected to at once; empty if it has one master, or one at a time."""
    found = listed(options)
    return tuple(found) if len(found) > 1 and not _ONE_AT_A_TIME[options.master_type] else ()


def in_order(options: MinionOptions, shuffle: Shuffle = random.shuffle) -> list[str]:
    """Return the addresses of the masters in the order in which a minion with one master at a time tries them.

    The order is that of the list, or random with ``random_master``. With ``master_failback`` the first master stays first.
    ``distributed`` starts with a master chosen by the minion id.
    """
    found = listed(options)
    if options.master_type == "distributed":
        first = found[binascii.crc32(options.id.encode()) % len(found)]
        found = [first, *(name for name in found if name != first)]
    if options.random_master or options.master_shuffle:
        kept = 1 if options.master_failback and _ONE_AT_A_TIME[options.master_type] else 0
        rest = found[kept:]
        shuffle(rest)
        found = [*found[:kept], *rest]
    return found


def after_loss(order: Sequence[str], lost: str) -> list[str]:
    """Return the order of masters with the lost master moved to the end."""
    return [*(name for name in order if name != lost), *([lost] if lost in order else [])]


def address(master: str, port: int) -> tuple[str, int]:
    """Return (host, port) of a master's address; ``port`` is the default. An IPv6 host has brackets, as in ZeroMQ endpoints.

    Raise ConfigError for an invalid address.
    """
    found = _WITH_PORT.fullmatch(master)
    if found is not None:
        if not 0 < int(found["port"]) < 65536:
            raise ConfigError(f"master: {master!r}: {found['port']} is no port; use 1 to 65535")
        return found["host"], int(found["port"])
    if not {":", "/", "["} & {*master}:
        # Host names need no ipaddress, which takes memory.
        return master, port
    bare = master.strip("[]")
    try:
        return (f"[{bare}]" if ipaddress.ip_address(bare).version == 6 else bare), port
    except ValueError:
        if ":" in master or "/" in master:
            raise ConfigError(f"master: {master!r} is neither a host nor host:port") from None
        return master, port
