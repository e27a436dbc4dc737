"""Salt's ``host`` states: host names and addresses in the hosts file."""

from __future__ import annotations

import ipaddress

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def present(ctx: Context, name: str, ip: object, comment: str = "", clean: bool = False) -> Plan:
    """Add a host name to addresses in the hosts file.

    ip
        address, or list of addresses
    comment
        comment after the address
    clean
        True: remove the name from all other addresses. False: only warn about them.
    """
    addresses = [str(each) for each in (ip if isinstance(ip, list) else [ip])]
    if wrong := [f"Invalid IP Address for {name} ({each})" for each in addresses if not _is_address(each)]:
        return Plan.failed("\n".join(wrong))
    known = ctx.call("hosts.list_hosts")
    has = {address for address, host in known.items() if isinstance(host, dict) and name in host["aliases"]}
    add = [address for address in addresses if address not in has]
    remark = [address for address in addresses if comment and known.get(address, {}).get("comment") != comment]
    other = [address for address in known if address in has and address not in addresses]
    notes = [f"Host {name} ({address}) already present" for address in addresses if address not in {*add, *remark}]
    remove = other if clean else []
    warnings = () if clean else tuple(_warning(name, address) for address in other)
    would = [
        *(f"Host {name} ({address}) would be added" for address in add),
        *(f"Comment for {address} ({comment}) would be added" for address in remark),
        *(f"Host {name} ({address}) would be removed" for address in remove),
    ]
    changes: dict[str, object] = {
        key: {address: [value] for address in each}
        for key, each, value in (("added", add, name), ("comment_added", remark, comment), ("removed", remove, name))
        if each
    }
    if not would:
        return Plan(True, "\n".join(notes), warnings=warnings)

    def work() -> Outcome:
        lines = []
        for address in add:
            ctx.call("hosts.add_host", address, name)
            lines.append(f"Added host {name} ({address})")
        for address in remark:
            ctx.call("hosts.set_comment", address, comment)
            lines.append(f"Set comment for host {address} ({comment})")
        for address in remove:
            ctx.call("hosts.rm_host", address, name)
            lines.append(f"Removed host {name} ({address})")
        return Outcome("\n".join(lines), changes)

    steps = (Step(f"change the addresses of {name} in the hosts file", work),)
    return Plan(True, "\n".join(would), changes, steps, tuple(notes), warnings)


def absent(ctx: Context, name: str, ip: object) -> Plan:
    """Remove a host name from an address, or from a list of addresses, in the hosts file.

    Addresses without this name are left alone.
    """
    addresses = [str(each) for each in (ip if isinstance(ip, list) else [ip])]
    there = [address for address in addresses if ctx.call("hosts.has_pair", address, name)]
    notes = [f"Host {name} ({address}) already absent" for address in addresses if address not in there]
    if not there:
        return Plan.unchanged("\n".join(notes))

    def work() -> Outcome:
        for address in there:
            ctx.call("hosts.rm_host", address, name)
        return Outcome("\n".join(f"Removed host {name} ({address})" for address in there), {"host": name})

    would = "\n".join(f"Host {name} ({address}) needs to be removed" for address in there)
    return Plan.change(would, [Step(f"remove {name} from the hosts file", work)], {}, notes)


def only(ctx: Context, name: str, hostnames: str | list[str]) -> Plan:
    """Set the names of the address ``name``: exactly these names (text or list), in this order.

    Without names, the address is removed.
    """
    names = [hostnames] if isinstance(hostnames, str) else list(hostnames or ())
    old = " ".join(ctx.call("hosts.get_alias", name))
    new = " ".join(str(each).strip() for each in names)
    if old == new:
        return Plan.unchanged(f'IP address {name} already set to "{new}"')

    def work() -> Outcome:
        ctx.call("hosts.set_host", name, new)
        return Outcome(f'successfully changed {name} from "{old}" to "{new}"', {name: {"old": old, "new": new}})

    return Plan.change(f'Would change {name} from "{old}" to "{new}"', [Step(f"set the names of {name}", work)])


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def _warning(name: str, address: str) -> str:
    return (
        f"Host {name} present for IP address {address}. To get rid of this warning, either run this state with 'clean' "
        f"set to True to remove {name} from {address}, or add {address} to the 'ip' argument."
    )
