"""Network interfaces in netplan's YAML (Salt's ``ip`` module, provider ``netplan_ip``).

Serves hosts of the family Debian that have the program ``netplan`` and /etc/netplan. Each interface has a file of its own,
``90-salt-NAME.yaml``, which counts before the installer's; its routes have another.
"""

from __future__ import annotations

from typing import Any

from statecore.model.context import Context
from statecore.system.hostfiles import interface_options as options
from statecore.system.hostfiles import netplan, network_files

VIRTUAL = "ip"

_DIRECTORY = "/etc/netplan"

#: Netplan warns of files that others may read: they may hold passwords.
_MODE = 0o600


def available(ctx: Context) -> str | None:
    """None on Debian and its kin, where netplan is there."""
    if ctx.grains.get("os_family") != "Debian":
        return "the host is not of the family Debian"
    return None if netplan_active(ctx) else "the host has no netplan, or no /etc/netplan"


def netplan_active(ctx: Context) -> bool:
    """Whether the host's network is netplan's."""
    return ctx.host.which("netplan") is not None and ctx.host.path(_DIRECTORY).is_dir()


def get_interface(ctx: Context, iface: str) -> list[str]:
    """The lines of an interface's file, [] when there is none.

    CLI Example:

        salt '*' ip.get_interface eth0
    """
    return network_files.text(ctx.host, _file(iface)).splitlines(keepends=True)


def build_interface(ctx: Context, iface: str, iface_type: str, enabled: bool, **settings: Any) -> list[str]:
    """Writes an interface's file, unless ``test``: its lines. ``settings`` are those of ``network.managed``.

    iface_type
        eth, bond, bridge, slave or vlan
    enabled
        has no word in netplan: an interface that is named is brought up
    """
    text = netplan.document(iface, iface_type.lower(), settings, netplan.renderer_of(_texts(ctx)))
    if not settings.get("test") and not ctx.test:
        network_files.write(ctx.host, _file(iface), text, _MODE)
    return text.splitlines(keepends=True)


def get_routes(ctx: Context, iface: str) -> list[str]:
    """The lines of the file of an interface's routes."""
    return network_files.text(ctx.host, _file(f"{iface}-routes")).splitlines(keepends=True)


def build_routes(ctx: Context, iface: str, **settings: Any) -> list[str]:
    """Writes the file of an interface's routes, unless ``test``: its lines.

    routes
        a list of maps: ipaddr, netmask, gateway and metric
    """
    text = netplan.routes_document(iface, netplan.section_of(iface, _texts(ctx)), options.routes(iface, settings))
    if not settings.get("test") and not ctx.test:
        network_files.write(ctx.host, _file(f"{iface}-routes"), text, _MODE)
    return text.splitlines(keepends=True)


def up(ctx: Context, iface: str, iface_type: str = "eth") -> bool:
    """Applies what the files say, which brings interfaces up."""
    return apply_network_settings(ctx)


def down(ctx: Context, iface: str, iface_type: str = "eth") -> str:
    """Takes an interface down until it is brought up again."""
    return network_files.run(ctx.host, ["ip", "link", "set", "dev", iface, "down"])


def get_network_settings(ctx: Context) -> list[str]:
    """Nothing: what netplan knows is said of each interface."""
    return []


def build_network_settings(ctx: Context, **settings: Any) -> list[str]:
    """Nothing: what netplan knows is said of each interface."""
    return []


def apply_network_settings(ctx: Context, **settings: Any) -> bool:
    """Checks all files, then applies them. Raises CommandError with what netplan complained of."""
    network_files.run(ctx.host, ["netplan", "generate"])
    network_files.run(ctx.host, ["netplan", "apply"])
    return True


def _file(name: str) -> str:
    return f"{_DIRECTORY}/90-salt-{name}.yaml"


def _texts(ctx: Context) -> list[str]:
    found = sorted(path.name for path in ctx.host.path(_DIRECTORY).iterdir())
    return [network_files.text(ctx.host, f"{_DIRECTORY}/{name}") for name in found if name.endswith((".yaml", ".yml"))]
