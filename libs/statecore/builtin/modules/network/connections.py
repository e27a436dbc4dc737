"""``network.netstat`` and ``network.active_tcp``: list the sockets of the host.

The kernel's tables are read from the mounted host's /proc if it is mounted, else from the minion's own.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from statecore.model.context import Context
from statecore.model.text_lines import lines_of
from statecore.system.hostfiles import processes

#: State number in the kernel's tables -> state's name in netstat(8).
_STATES: Mapping[int, str] = {
    1: "ESTABLISHED",
    2: "SYN_SENT",
    3: "SYN_RECV",
    4: "FIN_WAIT1",
    5: "FIN_WAIT2",
    6: "TIME_WAIT",
    7: "CLOSE",
    8: "CLOSE_WAIT",
    9: "LAST_ACK",
    10: "LISTEN",
    11: "CLOSING",
    12: "SYN_RECV",
}
_ESTABLISHED = 1

_TABLES = ("tcp", "tcp6", "udp", "udp6")


def netstat(ctx: Context) -> list[dict[str, str]]:
    """Return a list of maps, one for each TCP and UDP socket of the host.

    Keys: proto, recv-q, send-q, local-address, remote-address, user (id), inode, program (``pid/name``, or ``-`` if the
    process cannot be inspected), and for TCP state.

    CLI Example:

        salt '*' network.netstat
    """
    owners = _owners(ctx)
    found = []
    for proto in _TABLES:
        for row in _rows(ctx, proto):
            local, remote = (_netstat_address(each) for each in row[1:3])
            sending, _, receiving = row[4].partition(":")
            one = {
                "proto": proto,
                "recv-q": str(int(receiving, 16)),
                "send-q": str(int(sending, 16)),
                "local-address": local,
                "remote-address": remote,
                "user": row[7],
                "inode": row[9],
                "program": owners.get(row[9], "-"),
            }
            if proto.startswith("tcp"):
                one["state"] = _STATES.get(int(row[3], 16), row[3])
            found.append(one)
    return found


def active_tcp(ctx: Context) -> dict[int, dict[str, object]]:
    """Return the established TCP connections of the host: a map of running number to local_addr, local_port,
    remote_addr, remote_port.

    CLI Example:

        salt '*' network.active_tcp
    """
    found: dict[int, dict[str, object]] = {}
    for proto in ("tcp", "tcp6"):
        for row in _rows(ctx, proto):
            if int(row[3], 16) == _ESTABLISHED:
                (local, local_port), (remote, remote_port) = (_address(each) for each in row[1:3])
                found[len(found)] = {
                    "local_addr": _unmapped(local),
                    "local_port": local_port,
                    "remote_addr": _unmapped(remote),
                    "remote_port": remote_port,
                }
    return found


# --------------------------------------------------------------------------------------------- helpers


def _rows(ctx: Context, name: str) -> Iterator[list[str]]:
    table = processes.text(ctx.host, f"{processes.network(ctx.host)}/{name}")
    return (row for row in (line.split() for line in lines_of(table)[1:]) if len(row) > 9)


def _address(text: str) -> tuple[str, int]:
    """Return (address, port) of a field such as ``0100007F:0016`` in a kernel table, which writes addresses in this
    machine's byte order.
    """
    digits, _, port = text.partition(":")
    words = (int(digits[at : at + 8], 16).to_bytes(4, sys.byteorder) for at in range(0, len(digits), 8))
    family = socket.AF_INET6 if len(digits) > 8 else socket.AF_INET
    return socket.inet_ntop(family, b"".join(words)), int(port, 16)


def _netstat_address(text: str) -> str:
    address, port = _address(text)
    return f"{address}:{port or '*'}"


def _unmapped(address: str) -> str:
    """Convert an IPv4 address in IPv6 form (``::ffff:10.0.0.1``) to plain IPv4. Return other addresses unchanged."""
    whole = ipaddress.ip_address(address)
    return str(getattr(whole, "ipv4_mapped", None) or whole)


def _owners(ctx: Context) -> dict[str, str]:
    """Return a map of socket inode to ``pid/name`` of a process that has the socket open. Sockets of processes that
    cannot be inspected are missing.
    """
    top = processes.directory(ctx.host)
    found: dict[str, str] = {}
    for process in processes.all_of(ctx.host):
        for link in _open_files(top / str(process.pid) / "fd"):
            if "socket:[" in link:
                found.setdefault(link.rpartition("[")[2].rstrip("]"), f"{process.pid}/{process.name}")
    return found


def _open_files(directory: Path) -> Iterator[str]:
    """Yield the targets of the links in a process's directory of open files (/proc/PID/fd). Yield nothing if the
    process has ended or cannot be inspected.
    """
    with contextlib.suppress(OSError):
        for each in directory.iterdir():
            # Descriptors may be closed meanwhile, such as the one of this directory listing.
            with contextlib.suppress(OSError):
                yield str(each.readlink())
