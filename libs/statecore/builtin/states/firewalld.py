"""Salt's ``firewalld`` states: zones and services of firewalld.

public:
  firewalld.present:
    - services: [http, ssh]
    - prune_services: True
    - ports: [8080/tcp]
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from statecore.model.context import Context
from statecore.model.errors import CommandError, nested_text
from statecore.model.types import Outcome, Plan, Step

log = logging.getLogger(__name__)


def available(ctx: Context) -> str | None:
    """Return None if the host has firewall-cmd; else return the reason as text."""
    return None if "firewalld.get_zones" in ctx.functions else "the host has no firewall-cmd: install firewalld"


class Forward(NamedTuple):
    """One port that a zone of firewalld forwards: source port, destination port, protocol, destination address ("" for
    none).
    """

    src: str
    dest: str
    proto: str
    dstaddr: str

    def shown(self) -> dict[str, str]:
        """Return the forwarded port as a map with the keys of ``firewalld.list_port_fwd`` ("Source port" ...)."""
        names = ("Source port", "Destination port", "Protocol", "Destination address")
        return dict(zip(names, self, strict=True))


class _Section(NamedTuple):
    """One list argument of ``firewalld.present``: its key in the changes, its wanted values, and the functions that
    read, add and remove a value.
    """

    key: str
    wanted: Sequence[Hashable] | None
    prune: bool
    read: Callable[[], Sequence[Hashable]]
    add: Callable[[Any], object]
    remove: Callable[[Any], object]
    shown: Callable[[Any], object] = lambda each: each


#: One change: its key and value in the changes, and the calls that make it.
_Change: TypeAlias = tuple[str, object, Sequence[Callable[[], object]]]


def present(
    ctx: Context,
    name: str,
    block_icmp: list[str] | None = None,
    prune_block_icmp: bool = False,
    default: bool | None = None,
    masquerade: bool | None = None,
    ports: list[str] | None = None,
    prune_ports: bool = False,
    port_fwd: list[str] | None = None,
    prune_port_fwd: bool = False,
    services: list[str] | None = None,
    prune_services: bool = False,
    interfaces: list[str] | None = None,
    prune_interfaces: bool = False,
    sources: list[str] | None = None,
    prune_sources: bool = False,
    rich_rules: list[str] | None = None,
    prune_rich_rules: bool = False,
) -> Plan:
    """Create the zone ``name`` of firewalld or change its settings permanently, and reload firewalld. Values that no
    argument lists stay. The state fails at the first change that firewalld refuses.

    default
        True: the zone of interfaces and connections that no zone names
    masquerade
        whether the zone masquerades
    block_icmp
        types of ICMP messages to block
    ports
        ports to let in, such as 8080/tcp
    port_fwd
        ports to forward: SOURCE:DESTINATION:PROTOCOL or SOURCE:DESTINATION:PROTOCOL:ADDRESS
    services
        services to let in
    interfaces, sources
        interfaces and source addresses of the zone
    rich_rules
        rich rules of firewalld
    prune_block_icmp, prune_ports, prune_port_fwd, prune_services, prune_interfaces, prune_sources, prune_rich_rules
        True: remove what the argument of this name does not list
    """
    try:
        zones = ctx.call("firewalld.get_zones", permanent=True)
        new = name not in zones
        changes: list[_Change] = []
        if new:
            changes.append((name, {"old": zones, "new": name}, [lambda: ctx.call("firewalld.new_zone", name)]))
        icmp = _icmp(ctx, name, block_icmp, prune=prune_block_icmp)
        changes += _list_changes(icmp, new=new) if icmp else []
        if default and (now := ctx.call("firewalld.default_zone")) != name:
            set_it = [lambda: ctx.call("firewalld.set_default_zone", name)]
            changes.append(("default", {"old": now, "new": name}, set_it))
        if masquerade is not None:
            changes += _masquerade(ctx, name, wanted=masquerade, new=new)
        forwards = None if port_fwd is None else [_forward(each) for each in port_fwd]
        for section in (
            _plain(ctx, name, "ports", "list_ports", "port", ports, prune=prune_ports),
            _forwards(ctx, name, forwards, prune=prune_port_fwd),
            _services(ctx, name, services, prune=prune_services),
            _plain(ctx, name, "interfaces", "get_interfaces", "interface", interfaces, prune=prune_interfaces),
            _plain(ctx, name, "sources", "get_sources", "source", sources, prune=prune_sources),
            _plain(ctx, name, "rich_rules", "get_rich_rules", "rich_rule", _quoted(rich_rules), prune=prune_rich_rules),
        ):
            changes += _list_changes(section, new=new)
    except CommandError as error:
        return Plan.failed(f"Error: {error}")
    if not changes:
        return Plan.unchanged(f"'{name}' is already in the desired state.")

    def work() -> Outcome:
        outcome = _made(changes, f"'{name}' was configured.")
        if outcome.changes:
            ctx.call("firewalld.reload_rules")
        return outcome

    shown = nested_text({key: value for key, value, _ in changes})
    return Plan.change(f"Configuration for '{name}' will change:\n{shown}", [Step(f"configure the zone {name}", work)])


def service(ctx: Context, name: str, ports: list[str] | None = None, protocols: list[str] | None = None) -> Plan:
    """Create the service ``name`` of firewalld, or change it, so that it has exactly these ports and protocols; others
    are removed. Then reload firewalld.

    ports
        such as 8080/tcp
    protocols
        such as esp
    """
    try:
        new = name not in ctx.call("firewalld.get_services")
        changes: list[_Change] = []
        for key, wanted in (("ports", ports), ("protocols", protocols)):
            section = _Section(
                key,
                wanted or [],
                True,
                partial(ctx.call, f"firewalld.get_service_{key}", name),
                partial(ctx.call, f"firewalld.add_service_{key[:-1]}", name),
                partial(ctx.call, f"firewalld.remove_service_{key[:-1]}", name),
            )
            changes += _list_changes(section, new=new)
    except CommandError as error:
        return Plan.failed(f"Error: {error}")
    if not changes and not new:
        return Plan.unchanged(f"'{name}' is already in the desired state.")

    def work() -> Outcome:
        if new:
            ctx.call("firewalld.new_service", name, restart=False)
        outcome = _made(
            changes, f"'{name}' was configured." if changes else f"'{name}' is already in the desired state."
        )
        if outcome.ok:
            ctx.call("firewalld.reload_rules")
        return outcome

    would = {key: value for key, value, _ in changes}
    return Plan.change(f"Configuration for '{name}' will change.", [Step(f"configure the service {name}", work)], would)


def _made(changes: Sequence[_Change], comment: str) -> Outcome:
    """Make the changes of a zone or service in order. Return an Outcome (comment, changes, success). The first failure
    ends the work; the Outcome then reports the changes made before it.
    """
    done: dict[str, object] = {}
    for key, value, calls in changes:
        try:
            for call in calls:
                call()
        except CommandError as error:
            return Outcome(f"Error: {error}", done, ok=False)
        done[key] = value
    return Outcome(comment, done)


def _list_changes(section: _Section, *, new: bool) -> list[_Change]:
    """Return a list with the one change (key, old and new values, calls that make it) that a list argument needs; [] if
    it needs none. ``new``: the zone or service does not exist yet, so its list is empty.
    """
    if not section.wanted and not section.prune:
        return []
    wanted = list(section.wanted or ())
    now = [] if new else list(section.read())
    more = [each for at, each in enumerate(wanted) if each not in now and each not in wanted[:at]]
    less = [each for each in now if each not in wanted] if section.prune else []
    if not more and not less:
        return []
    result = wanted if section.prune else [*now, *more]
    calls = [*(partial(section.add, each) for each in more), *(partial(section.remove, each) for each in less)]
    value = {"old": [section.shown(each) for each in now], "new": [section.shown(each) for each in result]}
    return [(section.key, value, calls)]


def _plain(
    ctx: Context, name: str, key: str, reader: str, what: str, wanted: Sequence[str] | None, *, prune: bool
) -> _Section:
    return _Section(
        key,
        wanted,
        prune,
        lambda: ctx.call(f"firewalld.{reader}", name, permanent=True),
        lambda each: ctx.call(f"firewalld.add_{what}", name, each, permanent=True),
        lambda each: ctx.call(f"firewalld.remove_{what}", name, each, permanent=True),
    )


def _services(ctx: Context, name: str, wanted: Sequence[str] | None, *, prune: bool) -> _Section:
    return _Section(
        "services",
        wanted,
        prune,
        lambda: ctx.call("firewalld.list_services", name, permanent=True),
        lambda each: ctx.call("firewalld.add_service", each, name, permanent=True),
        lambda each: ctx.call("firewalld.remove_service", each, name, permanent=True),
    )


def _forwards(ctx: Context, name: str, wanted: Sequence[Forward] | None, *, prune: bool) -> _Section:
    def read() -> list[Forward]:
        rows = ctx.call("firewalld.list_port_fwd", name, permanent=True)
        keys = ("Source port", "Destination port", "Protocol", "Destination address")
        return [Forward(*(row[key] for key in keys)) for row in rows]

    return _Section(
        "port_fwd",
        wanted,
        prune,
        read,
        lambda each: ctx.call("firewalld.add_port_fwd", name, *each, permanent=True),
        lambda each: ctx.call("firewalld.remove_port_fwd", name, *each, permanent=True),
        Forward.shown,
    )


def _icmp(ctx: Context, name: str, wanted: Sequence[str] | None, *, prune: bool) -> _Section | None:
    """Return the _Section for the argument ``block_icmp`` of ``firewalld.present``: the wanted types of ICMP messages,
    and the functions that read, add and remove one. Return None if nothing is wanted and nothing is to be removed.

    Types that firewalld does not know are logged and left out.
    """
    if not wanted and not prune:
        return None
    known = ctx.call("firewalld.get_icmp_types", permanent=True) if wanted else []
    for unknown in (each for each in wanted or () if each not in known):
        log.error("firewalld knows no ICMP type %s", unknown)
    return _Section(
        "icmp_types",
        [each for each in wanted or () if each in known],
        prune,
        lambda: ctx.call("firewalld.list_icmp_block", name, permanent=True),
        lambda each: ctx.call("firewalld.block_icmp", name, each, permanent=True),
        lambda each: ctx.call("firewalld.allow_icmp", name, each, permanent=True),
    )


def _masquerade(ctx: Context, name: str, *, wanted: bool, new: bool) -> list[_Change]:
    now = False if new else ctx.call("firewalld.get_masquerade", name, permanent=True)
    if bool(wanted) == now:
        return []
    function, word = ("add_masquerade", "set") if wanted else ("remove_masquerade", "disabled")
    value = {"old": now, "new": f"Masquerading successfully {word}."}
    return [("masquerade", value, [lambda: ctx.call(f"firewalld.{function}", name, permanent=True)])]


def _forward(text: str) -> Forward:
    parts = str(text).split(":", 3)
    if len(parts) < 3:
        raise CommandError(
            f"port_fwd {text!r} is not SOURCE:DESTINATION:PROTOCOL or SOURCE:DESTINATION:PROTOCOL:ADDRESS"
        )
    return Forward(parts[0], parts[1], parts[2], parts[3] if len(parts) > 3 else "")


def _quoted(rules: Sequence[str] | None) -> list[str] | None:
    """Return rich rules in the form in which firewalld lists them: each value in double quotes; None for None."""
    if rules is None:
        return None
    return [" ".join(_word(word) for word in rule.split(" ")).lstrip() for rule in rules]


def _word(word: str) -> str:
    key, sign, value = word.partition("=")
    if not sign or value.startswith('"') or value.endswith('"'):
        return word
    if value.startswith("'") and value.endswith("'"):
        value = value[1:-1]
    return f'{key}="{value}"'
