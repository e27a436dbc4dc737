"""The hosts file of the managed host, which maps addresses to names: Salt's ``hosts`` execution module.

The option ``hosts.file`` is the path of the file (default /etc/hosts). A line is ``address names... # comment``. Lines
with the same address are joined.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from statecore.host.content import managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.text_lines import lines_of


class HostsEntry(TypedDict):
    """Map with ``aliases`` (the names of an address in a hosts file) and ``comment`` (the comment of its line)."""

    aliases: list[str]
    comment: NotRequired[str]


def list_hosts(ctx: Context) -> dict[str, HostsEntry | list[str]]:
    """Return the hosts file as a map of address to ``{"aliases": [...], "comment": text}``. A comment line has the key
    ``comment-N``.

    The key ``comment`` is missing if the line has no comment.

    CLI Example:

        salt '*' hosts.list_hosts
    """
    return _parsed(_text(ctx))


def get_ip(ctx: Context, host: str) -> str:
    """Return the first address of a name in the hosts file, "" if it has none."""
    return next((address for address, names in _addresses(ctx).items() if host in names), "")


def get_alias(ctx: Context, ip: str) -> list[str]:
    """Return the names of an address in the hosts file, in the order of the file."""
    return list(_addresses(ctx).get(ip, ()))


def has_pair(ctx: Context, ip: str, alias: str | list[str]) -> bool:
    """Return whether an address has the name ``alias`` in the hosts file, or all names of a list."""
    names = _addresses(ctx).get(ip)
    if names is None:
        return False
    return set(alias) <= set(names) if isinstance(alias, list) else alias in names


def set_host(ctx: Context, ip: str, alias: str, comment: str | None = None) -> bool:
    """Replace all names of an address in the hosts file by ``alias`` (names separated by blanks). An empty ``alias``
    removes the address. Return True.

    CLI Example:

        salt '*' hosts.set_host 10.0.0.1 'db1 db1.example.com'
    """
    note = f"\t\t# {comment}" if comment else ""
    new = f"{ip}\t\t{alias}{note}\n" if alias.strip() else ""
    lines: list[str] = []
    done = False
    for line in lines_of(_text(ctx), keepends=True):
        words = line.split()
        if words and words[0] == ip:
            lines.append("" if done else new)
            done = True
        else:
            lines.append(line)
    if not done:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        lines.append(new)
    return _write(ctx, "".join(lines))


def rm_host(ctx: Context, ip: str, alias: str) -> bool:
    """Remove a name from an address in the hosts file. An address without names is removed. Return True."""
    if not has_pair(ctx, ip, alias):
        return True
    return _write(ctx, "".join(_without(line, ip, alias) for line in lines_of(_text(ctx), keepends=True)))


def add_host(ctx: Context, ip: str, alias: str) -> bool:
    """Add a name to an address in the hosts file. Return True.

    CLI Example:

        salt '*' hosts.add_host 10.0.0.1 db1
    """
    if has_pair(ctx, ip, alias):
        return True
    hosts = list_hosts(ctx)
    entry = hosts.get(ip)
    if entry is None or isinstance(entry, list):
        hosts[ip] = {"aliases": [alias]}
    else:
        entry["aliases"].append(alias)
    return _write(ctx, _rendered(hosts))


def set_comment(ctx: Context, ip: str, comment: str) -> bool:
    """Set the comment of an address in the hosts file. Return True; False if the address is not in the file."""
    hosts = list_hosts(ctx)
    entry = hosts.get(ip)
    if entry is None or isinstance(entry, list):
        return False
    if entry.get("comment") == comment:
        return True
    entry["comment"] = comment
    return _write(ctx, _rendered(hosts))


def _addresses(ctx: Context) -> dict[str, list[str]]:
    return {key: entry["aliases"] for key, entry in list_hosts(ctx).items() if not isinstance(entry, list)}


def _parsed(text: str) -> dict[str, HostsEntry | list[str]]:
    found: dict[str, HostsEntry | list[str]] = {}
    hosts: dict[str, HostsEntry] = {}
    comments = 0
    for raw in lines_of(text):
        line = raw.strip()
        if not line:
            continue
        if line.startswith("#"):
            found[f"comment-{comments}"] = [line]
            comments += 1
            continue
        entry, _, comment = line.partition("#")
        address, *names = entry.split()
        host = hosts.setdefault(address, {"aliases": []})
        found[address] = host
        host["aliases"].extend(names)
        if comment.strip():
            host["comment"] = comment.strip()
    return found


def _rendered(hosts: Mapping[str, HostsEntry | list[str]]) -> str:
    lines = []
    for address, host in hosts.items():
        if isinstance(host, list):
            lines.append("".join(host))
            continue
        note = f"\t\t# {host['comment']}" if "comment" in host else ""
        lines.append(f"{address}\t\t{' '.join(host['aliases'])}{note}".strip())
    return "".join(f"{line}\n" for line in lines)


def _without(line: str, ip: str, alias: str) -> str:
    entry, _, comment = line.strip().partition("#")
    words = entry.split()
    if not words or words[0] != ip:
        return line
    names = [name for name in words[1:] if name != alias]
    if not names:
        return ""
    note = f"# {comment.lstrip()}" if comment.strip() else ""
    return f"{ip}\t\t{''.join(f'{name} ' for name in names)}{note}\n"


def _hosts_path(ctx: Context) -> str:
    return str(ctx.call("config.option", "hosts.file") or "/etc/hosts")


def _text(ctx: Context) -> str:
    name = _hosts_path(ctx)
    try:
        data = managed_file.read(ctx.host.path(name), name)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}") from error
    return (data or b"").decode("utf-8", "surrogateescape")


def _write(ctx: Context, text: str) -> bool:
    data = text.encode("utf-8", "surrogateescape")
    managed_file.replace(ctx.host, ctx.host.path(_hosts_path(ctx)), data, Attributes())
    return True
