"""Salt's ``network`` states: network interfaces, routes, and settings for all interfaces.

They write the files that the host uses: /etc/network/interfaces, netplan, or RedHat's ifcfg. See the ``ip`` module.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from statecore.model.context import Context
from statecore.model.errors import InvocationError, StatecoreError
from statecore.model.types import Outcome, Plan, Step
from statecore.system.hostfiles import interface_options as options
from statecore.system.hostfiles import network_files

_SYSTEM = (
    "enabled hostname apply_hostname require_reboot retain_settings search gateway gatewaydev nisdomain nozeroconf"
    " networking_ipv6 networkdelay devtimeout enable_ipv6 ipv6gateway test"
)

#: Function -> arguments that its ``**kwargs`` takes.
OPTIONS: Mapping[str, frozenset[str]] = {
    "managed": options.known() | {"addr", "noifupdown", "test"},
    "routes": frozenset({"require_reboot", "apply_hostname", "hostname", "test"}),
    "system": frozenset(_SYSTEM.split()),
}


def managed(ctx: Context, name: str, enabled: bool = True, type: str = "eth", **kwargs: object) -> Plan:
    """Configure a network interface, and bring it up (``enabled: True``) or down.

    type
        eth, bond, bridge, slave, vlan; on Debian also source; on RedHat also team, teamport, alias, ipip, ib
    noifupdown
        True: write the files only
    addr
        old name of ``hwaddr``

    All other arguments are options of the interface: proto, ipaddr, netmask, gateway, dns, mtu, ipv6proto, slaves,
    ports, mode and so on. Options that the host's file format does not have are ignored.
    """
    settings, warnings = _settings(kwargs)
    quiet = bool(settings.pop("noifupdown", False))
    try:
        if wrong := _name_fault(name):
            return Plan.failed(wrong)
        pieces = [_piece(ctx, "interface", name, (type, bool(enabled)), settings)]
        if type == "bond" and "ip.get_bond" in ctx.functions:
            pieces.append(_piece(ctx, "bond", name, (), settings))
        actions = (
            []
            if quiet or type == "source"
            else _actions(ctx, name, type, bool(enabled), written=any(map(_differs, pieces)))
        )
    except InvocationError as error:
        return Plan.failed(str(error))
    enslave = _missing_slaves(ctx, name, settings) if type == "bond" and not quiet else []
    changed = [piece for piece in pieces if _differs(piece)]
    if not changed and not actions and not enslave:
        return Plan(True, f"Interface {name} is up to date.", warnings=warnings)
    would = changed[-1].would(name) if changed else _would_act(name, actions, enslave)

    def work() -> Outcome:
        comment, changes = f"Interface {name} is up to date.", dict[str, object]()
        try:
            for piece in changed:
                ctx.call(f"ip.build_{piece.kind}", name, *piece.how, **settings)
                comment, changes[piece.kind] = piece.done(name), piece.change(name)
            for verb in actions:
                if verb == "restart":
                    ctx.call("service.restart", "network")
                    return Outcome("network restarted for change of ranged interfaces", changes)
                ctx.call(f"ip.{verb}", name, type)
            if actions:
                changes["status"] = f"Interface {name} {_STATUS[tuple(actions)]}"
            if enslave:
                _enslave(ctx, name, enslave)
                changes["enslave"] = f"Added slaves '{' '.join(enslave)}' to master '{name}'"
        except StatecoreError as error:
            return Outcome(str(error), changes, ok=False)
        ctx.call("saltutil.refresh_grains")
        return Outcome(comment, changes)

    return Plan(True, would, steps=(Step(f"configure the interface {name}", work),), warnings=warnings)


def routes(ctx: Context, name: str, routes: Sequence[Mapping[str, object]] = (), **kwargs: object) -> Plan:
    """Configure the routes of a network interface: a list of maps with ipaddr, netmask, gateway, metric and name.

    require_reboot
        True: do not restart networking
    """
    if wrong := _name_fault(name):
        return Plan.failed(wrong)
    try:
        piece = _piece(ctx, "routes", name, (), {"routes": routes})
    except InvocationError as error:
        return Plan.failed(str(error))
    if not _differs(piece):
        return Plan.unchanged(f"Interface {name} routes are up to date.")

    def work() -> Outcome:
        changes = {"network_routes": piece.change(name)}
        try:
            ctx.call("ip.build_routes", name, routes=routes)
            applied = ctx.call("ip.apply_network_settings", **kwargs)
        except StatecoreError as error:
            return Outcome(str(error), ok=False)
        return Outcome(piece.done(name) if applied else f"{piece.done(name)} {_NOT_APPLIED}", changes, ok=bool(applied))

    return Plan.change(piece.would(name), [Step(f"write the routes of {name}", work)])


def system(ctx: Context, name: str, **kwargs: object) -> Plan:
    """Configure the network settings that apply to all interfaces.

    enabled
        whether interfaces are configured at boot
    hostname, apply_hostname
        the host's name; True: also set it now
    require_reboot
        True: do not restart networking
    search
        search domains (Debian)
    gateway, gatewaydev, nisdomain, nozeroconf, networking_ipv6, networkdelay, devtimeout, enable_ipv6, ipv6gateway
        values of /etc/sysconfig/network (RedHat)
    retain_settings
        True: keep values of this file that are not named
    """
    try:
        piece = _Piece("system", (), ctx.call("ip.get_network_settings"), _built(ctx, "network_settings", (), kwargs))
    except InvocationError as error:
        return Plan.failed(str(error))
    if not _differs(piece):
        return Plan.unchanged("Global network settings are up to date.")

    def work() -> Outcome:
        changes = {"network_settings": piece.change(name)}
        try:
            ctx.call("ip.build_network_settings", **kwargs)
            applied = ctx.call("ip.apply_network_settings", **kwargs)
        except StatecoreError as error:
            return Outcome(str(error), ok=False)
        text = "Global network settings are up to date."
        return Outcome(
            text if applied else f"Global network settings were written. {_NOT_APPLIED}", changes, ok=bool(applied)
        )

    return Plan.change(piece.would(name), [Step("write the global network settings", work)])


# ----------------------------------------------------------------------------------------------------------------------------

_NOT_APPLIED = "Networking could not be started again."

#: Actions on an interface -> text of its change.
_STATUS = {("down", "up"): "restart to validate", ("up",): "is up", ("down",): "down"}

#: Kind of configuration -> its name in comments. ``_NEW``: the change of a new one.
_CALLED = {
    "interface": "Interface {}",
    "bond": "Bond interface {}",
    "routes": "Interface {} routes",
    "system": "Global network settings",
}
_NEW = {
    "interface": "Added network interface.",
    "bond": "Added bond {}.",
    "routes": "Added interface {} routes.",
    "system": "Added global network settings.",
}


class _Piece:
    """One configuration text that a ``network`` state writes (an interface, routes, or the system's): its current and wanted
    lines.
    """

    def __init__(self, kind: str, how: tuple[object, ...], old: Sequence[str], new: Sequence[str]) -> None:
        self.kind, self.how, self.old, self.new = kind, how, list(old), list(new)

    def would(self, name: str) -> str:
        """Return the comment of the ``network`` state for this configuration text in test mode, such as "Interface eth0
        is set to be added.".
        """
        verb = "are" if self.kind in ("routes", "system") else "is"
        text = f"{_CALLED[self.kind].format(name)} {verb} set to be "
        return text + (f"updated:\n{self._diff()}" if self.old else "added.")

    def done(self, name: str) -> str:
        """Return the comment of the ``network`` state after this configuration text was written, such as "Interface
        eth0 updated.".
        """
        return f"{_CALLED[self.kind].format(name)} {'updated' if self.old else 'added'}."

    def change(self, name: str) -> str:
        """Return the text that the ``network`` state reports as change: a diff of the old and new configuration text,
        or Salt's sentence if there was no old text.
        """
        return self._diff() if self.old else _NEW[self.kind].format(name)

    def _diff(self) -> str:
        return "\n".join(difflib.unified_diff(self.old, self.new, lineterm=""))


def _piece(ctx: Context, kind: str, name: str, how: tuple[object, ...], settings: Mapping[str, object]) -> _Piece:
    return _Piece(kind, how, ctx.call(f"ip.get_{kind}", name), _built(ctx, kind, (name, *how), settings))


def _built(ctx: Context, kind: str, how: tuple[object, ...], settings: Mapping[str, object]) -> list[str]:
    return list(ctx.call(f"ip.build_{kind}", *how, **settings, test=True))


def _differs(piece: _Piece) -> bool:
    return piece.old != piece.new


def _settings(kwargs: Mapping[str, object]) -> tuple[dict[str, object], tuple[str, ...]]:
    settings = {key: value for key, value in kwargs.items() if key != "test"}
    if "addr" not in settings:
        return settings, ()
    address = settings.pop("addr")
    text = "it has been ignored in favor of 'hwaddr'."
    if "hwaddr" not in settings:
        settings["hwaddr"] = address
        text = "its value has been assigned to 'hwaddr' instead."
    warning = f"'addr' is not a valid argument name, {text} Update your SLS file to get rid of this warning."
    return settings, (warning,)


def _name_fault(name: str) -> str | None:
    fits = re.fullmatch(r"[^\s/]+", name) is not None and name not in (".", "..")
    return None if fits else f"{name!r} is not a valid interface name"


def _actions(ctx: Context, name: str, type_: str, enabled: bool, *, written: bool) -> list[str]:
    """List of the actions to run for the network interface; [] if nothing is to be done.

    Actions are "up", "down", or "restart" for the whole networking service. ["down", "up"] restarts the interface.
    """
    if "range" in name:
        return ["restart"] if written else []
    if type_ == "slave" or type_ == "teamport":
        # The master interface brings it up.
        return []
    is_up = _is_up(ctx, name)
    if enabled:
        return (["down", "up"] if written else []) if is_up else ["up"]
    return ["down"] if is_up else []


def _is_up(ctx: Context, name: str) -> bool:
    found = ctx.call("network.interfaces")
    if name in found:
        return bool(found[name].get("up"))
    labels = (each.get("label") for entry in found.values() for each in entry.get("inet", []))
    return name in labels


def _would_act(name: str, actions: Sequence[str], enslave: Sequence[str]) -> str:
    if actions:
        return f"Interface {name} is set to be brought {'up' if actions[-1] == 'up' else 'down'}."
    return f"Slaves {' '.join(enslave)} are set to be added to {name}."


def _missing_slaves(ctx: Context, name: str, settings: Mapping[str, object]) -> list[str]:
    place = ctx.host.path(f"/sys/class/net/{name}/bonding/slaves")
    if ctx.grains.get("os_family") == "Suse" or not place.is_file():
        return []
    present = place.read_text("utf-8").split()
    return [each for each in options.words(settings.get("slaves") or []) if each not in present]


def _enslave(ctx: Context, name: str, slaves: Sequence[str]) -> None:
    if ctx.host.which("ifenslave"):
        network_files.run(ctx.host, ["ifenslave", name, *slaves])
        return
    for each in slaves:
        network_files.run(ctx.host, ["ip", "link", "set", "dev", each, "master", name])
