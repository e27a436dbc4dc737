"""Functions of the ``network`` module that contact other machines, or use the host's ping, traceroute, dig and
ethtool.
"""

from __future__ import annotations

import re
import socket

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import CommandResult
from statecore.model.text_lines import lines_of

#: A host name or an address, with an optional IPv6 scope.
_NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.:%-]*|::[0-9A-Fa-f:.%]*")

#: One line of traceroute: number, then name (address), then times.
_HOP = re.compile(r"\s*(\d+)\s+(.*)")
_WHO = re.compile(r"(\S+) \(([^)]+)\)")
_TIME = re.compile(r"([\d.]+) ms|(\*)")

#: Seconds after which traceroute is stopped.
_TRACE = 120

#: A line of ``ethtool -g``.
_RING = re.compile(r"(.+):\s+(\d+)$")
_RINGS = ("rx", "tx", "rx-mini", "rx-jumbo")


def ping(ctx: Context, host: str, timeout: float | bool = False, return_boolean: bool = False) -> object:
    """Ping a machine four times. Return the output of ``ping``, or with ``return_boolean`` whether a reply came.

    timeout
        seconds to wait for each reply

    CLI Example:

        salt '*' network.ping archlinux.org return_boolean=True
    """
    waiting = ["-W", str(timeout)] if timeout else []
    done = _run(ctx, "ping", *waiting, "-c", "4", _named(host))
    return done.retcode == 0 if return_boolean else done.stdout.rstrip("\n")


def traceroute(ctx: Context, host: str) -> list[dict[str, object]]:
    """Return a list of maps, one for each hop: count, hostname, ip, and ms1, ms2, ms3 (milliseconds, None without a
    reply).

    A hop without any reply has the hostname ``*``. Return [] if traceroute takes longer than 120 seconds.

    CLI Example:

        salt '*' network.traceroute archlinux.org
    """
    done = _run(ctx, "traceroute", _named(host), timeout=_TRACE)
    if done.timed_out:
        return []
    if done.retcode:
        raise CommandError(f"traceroute {host} failed with exit code {done.retcode}: {done.stdout.strip()}")
    hops = (_HOP.fullmatch(line) for line in lines_of(done.stdout) if not line.startswith("traceroute"))
    return [_hop(hop) for hop in hops if hop]


def dig(ctx: Context, host: str) -> str:
    """Return the output of the host's ``dig`` for a name. The module ``dig`` returns the records as lists.

    CLI Example:

        salt '*' network.dig archlinux.org
    """
    return _run(ctx, "dig", _named(host)).stdout.rstrip("\n")


def wol(ctx: Context, mac: str, bcast: str = "255.255.255.255", destport: int = 9) -> bool:
    """Send a wake-on-LAN packet, which wakes a machine up. Return True. Raise InvocationError for an invalid hardware
    address, CommandError if the packet cannot be sent.

    mac
        hardware address of the machine to wake, with or without separators
    bcast, destport
        broadcast address and UDP port that the packet is sent to

    CLI Example:

        salt '*' network.wol 08:00:27:13:69:77
    """
    digits = re.sub(r"[:.-]", "", str(mac))
    if re.fullmatch(r"[0-9A-Fa-f]{12}", digits) is None:
        raise InvocationError(f"Invalid MAC address {mac!r}: it has six bytes, as 08:00:27:13:69:77")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        try:
            sender.sendto(b"\xff" * 6 + bytes.fromhex(digits) * 16, (bcast, int(destport)))
        except (OSError, OverflowError, ValueError) as error:
            raise CommandError(f"the packet cannot be sent to {bcast}:{destport}: {error}") from error
    return True


def get_bufsize(ctx: Context, iface: str) -> dict[str, object]:
    """Return the buffer sizes of a network card (rx, tx, ...) and their maximums (rx-max, tx-max, ...). Return {} if
    the host has no ethtool.

    CLI Example:

        salt '*' network.get_bufsize eth0
    """
    if ctx.host.which("ethtool") is None:
        return {}
    done = ctx.host.run(["ethtool", "-g", _named(iface)], env={"LC_ALL": "C"}, merge_stderr=True)
    found: dict[str, object] = {}
    suffix = ""
    for line in lines_of(done.stdout):
        if line.endswith(("maximums:", "settings:")):
            suffix = "-max" if line.endswith("maximums:") else ""
        elif ring := _RING.fullmatch(line):
            found[ring[1].strip().lower().replace(" ", "-") + suffix] = int(ring[2])
    return {**found, "result": True} if found else {"result": False, "comment": done.stdout.strip()}


def mod_bufsize(ctx: Context, iface: str, *args: object, **kwargs: object) -> object:
    """Set buffer sizes of a network card: rx, tx, rx-mini, rx-jumbo. Return a map with ``result`` and ``comment``;
    False if the host has no ethtool.

    CLI Example:

        salt '*' network.mod_bufsize eth0 tx=2048 rx=2048
    """
    if ctx.host.which("ethtool") is None:
        return False
    given = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    if unknown := [*map(str, args), *(f"{key}={given[key]}" for key in sorted(given.keys() - set(_RINGS)))]:
        return {"result": False, "comment": f"Unknown arguments: {' '.join(unknown)}"}
    words = [word for name in _RINGS if given.get(name) is not None for word in (name, str(given[name]))]
    if not words:
        return {"result": False, "comment": f"Requires {'=<val>, '.join(_RINGS)}=<val>"}
    done = ctx.host.run(["ethtool", "-G", _named(iface), *words], env={"LC_ALL": "C"}, merge_stderr=True)
    if done.retcode or done.stdout.strip():
        return {"result": False, "comment": done.stdout.strip() or f"ethtool failed with exit code {done.retcode}"}
    return {"result": True, "comment": " ".join(words)}


# --------------------------------------------------------------------------------------------- helpers


def _run(ctx: Context, program: str, *words: str, timeout: float | None = None) -> CommandResult:
    if ctx.host.which(program) is None:
        raise CommandError(f"the host has no {program}")
    return ctx.host.run([program, *words], env={"LC_ALL": "C"}, merge_stderr=True, timeout=timeout)


def _named(host: str) -> str:
    """Return a host name or address unchanged. Raise InvocationError for text that a program could take for an
    option.
    """
    if _NAME.fullmatch(str(host)) is None:
        raise InvocationError(f"{host!r} is neither a host name nor an address")
    return str(host)


def _hop(line: re.Match[str]) -> dict[str, object]:
    machine = _WHO.search(line[2])
    if machine is None:
        return {"count": int(line[1]), "hostname": "*"}
    times = [None if missed else float(ms) for ms, missed in _TIME.findall(line[2])]
    delays = {f"ms{at}": ms for at, ms in enumerate(times[:3], 1)}
    return {"count": int(line[1]), "hostname": machine[1], "ip": machine[2], **delays}
