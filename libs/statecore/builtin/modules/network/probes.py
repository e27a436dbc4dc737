"""Other machines asked, and the card: ping, traceroute, dig and ethtool are the host's programs."""

from __future__ import annotations

import re
import socket
from typing import Any

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import CommandResult

#: What a machine can be called: a name, an address, a scope behind it.
_NAME = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.:%-]*|::[0-9A-Fa-f:.%]*")

#: One line of traceroute: number, then name (address), then times.
_HOP = re.compile(r"\s*(\d+)\s+(.*)")
_WHO = re.compile(r"(\S+) \(([^)]+)\)")
_TIME = re.compile(r"([\d.]+) ms|(\*)")

#: Seconds that traceroute gets.
_TRACE = 120

#: A line of ``ethtool -g``.
_RING = re.compile(r"(.+):\s+(\d+)$")
_RINGS = ("rx", "tx", "rx-mini", "rx-jumbo")


def ping(ctx: Context, host: str, timeout: float | bool = False, return_boolean: bool = False) -> Any:
    """What four pings told; with ``return_boolean`` whether one was answered. ``timeout``: seconds to wait for an answer.

    CLI Example:

        salt '*' network.ping archlinux.org return_boolean=True
    """
    waiting = ["-W", str(timeout)] if timeout else []
    done = _run(ctx, "ping", *waiting, "-c", "4", _named(host))
    return done.retcode == 0 if return_boolean else done.stdout.rstrip("\n")


def traceroute(ctx: Context, host: str) -> list[dict[str, Any]]:
    """count, hostname, ip and ms1, ms2, ms3 (None for no answer) of each hop; hostname ``*`` where nobody answered.

    CLI Example:

        salt '*' network.traceroute archlinux.org
    """
    done = _run(ctx, "traceroute", _named(host), timeout=_TRACE)
    if done.timed_out:
        return []
    if done.retcode:
        raise CommandError(f"traceroute {host} failed with exit code {done.retcode}: {done.stdout.strip()}")
    hops = (_HOP.fullmatch(line) for line in done.stdout.splitlines() if not line.startswith("traceroute"))
    return [_hop(hop) for hop in hops if hop]


def dig(ctx: Context, host: str) -> str:
    """What dig tells of a name. The module ``dig`` has its answers one by one.

    CLI Example:

        salt '*' network.dig archlinux.org
    """
    return _run(ctx, "dig", _named(host)).stdout.rstrip("\n")


def wol(ctx: Context, mac: str, bcast: str = "255.255.255.255", destport: int = 9) -> bool:
    """Wakes a machine: sends the packet for its hardware address (with or without separators) to a broadcast address.

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
            raise CommandError(f"no packet could be sent to {bcast}:{destport}: {error}") from error
    return True


def get_bufsize(ctx: Context, iface: str) -> dict[str, Any]:
    """rx, tx and so on of a card's buffers, rx-max and so on what it could have; {} where the host has no ethtool.

    CLI Example:

        salt '*' network.get_bufsize eth0
    """
    if ctx.host.which("ethtool") is None:
        return {}
    done = ctx.host.run(["ethtool", "-g", _named(iface)], env={"LC_ALL": "C"}, merge_stderr=True)
    found: dict[str, Any] = {}
    suffix = ""
    for line in done.stdout.splitlines():
        if line.endswith(("maximums:", "settings:")):
            suffix = "-max" if line.endswith("maximums:") else ""
        elif ring := _RING.fullmatch(line):
            found[ring[1].strip().lower().replace(" ", "-") + suffix] = int(ring[2])
    return {**found, "result": True} if found else {"result": False, "comment": done.stdout.strip()}


def mod_bufsize(ctx: Context, iface: str, *args: Any, **kwargs: Any) -> Any:
    """Sets buffers of a card: rx, tx, rx-mini, rx-jumbo. result and comment; False where the host has no ethtool.

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


# ------------------------------------------------------------------------------------------------------------------------ parts


def _run(ctx: Context, program: str, *words: str, timeout: float | None = None) -> CommandResult:
    if ctx.host.which(program) is None:
        raise CommandError(f"the host has no {program}")
    return ctx.host.run([program, *words], env={"LC_ALL": "C"}, merge_stderr=True, timeout=timeout)


def _named(host: str) -> str:
    """A word that no program takes for an option of its own."""
    if _NAME.fullmatch(str(host)) is None:
        raise InvocationError(f"{host!r} is neither a name nor an address")
    return str(host)


def _hop(line: re.Match[str]) -> dict[str, Any]:
    who = _WHO.search(line[2])
    if who is None:
        return {"count": int(line[1]), "hostname": "*"}
    times = [None if missed else float(ms) for ms, missed in _TIME.findall(line[2])]
    told = {f"ms{at}": ms for at, ms in enumerate(times[:3], 1)}
    return {"count": int(line[1]), "hostname": who[1], "ip": who[2], **told}
