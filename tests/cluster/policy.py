"""NetworkPolicies as rules of nftables: a pure function from the objects of the API to one table of a node.

The engine is ours: none that others keep could be had as a Go module where this was written (docs/operations/cluster-tests.md).
It knows what version 1 of the API says of pods by label, of namespaces by label, of blocks of addresses with exceptions, and of
ports by number with ranges. A port by name is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Object: TypeAlias = Mapping[str, Any]

#: Name of the table.
TABLE = "saltern-policies"

#: Direction -> the chain, the address of the pod that a policy selects, the address of its peers, the field with the peers.
_DIRECTIONS = {"Egress": ("egress", "saddr", "daddr", "to"), "Ingress": ("ingress", "daddr", "saddr", "from")}


def selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Whether a LabelSelector selects what has these labels. An empty selector selects all, none selects nothing."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(one, labels) for one in selector.get("matchExpressions") or ())


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    key, operator, values = expression["key"], expression["operator"], expression.get("values") or ()
    if operator == "In":
        return labels.get(key) in values
    if operator == "NotIn":
        return labels.get(key) not in values
    if operator in ("Exists", "DoesNotExist"):
        return (key in labels) is (operator == "Exists")
    raise ValueError(f"operator {operator!r} of a LabelSelector is unknown")


def addressed(pods: Iterable[Object]) -> list[Object]:
    """The pods that have an IPv4 address of their own and have not ended."""
    return [
        pod
        for pod in pods
        if "." in pod.get("status", {}).get("podIP", "")
        and not pod["spec"].get("hostNetwork")
        and pod["status"].get("phase") in ("Pending", "Running")
    ]


def ruleset(policies: Sequence[Object], pods: Sequence[Object], namespaces: Sequence[Object], pod_range: str) -> str:
    """The table, as a script of nft that replaces the one before it.

    A pod that some policy selects for a direction takes only what one of these policies allows; others take all. Packets of
    connections that stand pass. An address of ``pod_range`` that no known pod has is dropped: a pod is cut off until its rules are
    there. What a node itself sends to its pods is not looked at, as the API wants it for probes.
    """
    labels = {one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in namespaces}
    known = addressed(pods)
    lines = [f"table ip {TABLE} {{}}", f"delete table ip {TABLE}", f"table ip {TABLE} {{"]
    lines += [
        "  chain forward {",
        "    type filter hook forward priority filter; policy accept;",
        "    ct state established,related accept",
    ]
    for side in ("saddr", "daddr"):
        stranger = f" ip {side} != {_set(known)}" if known else ""
        lines.append(f"    ip {side} {pod_range}{stranger} counter drop")
    lines += ["    jump egress", "    jump ingress", "  }"]
    for direction, (chain, own, _, _) in _DIRECTIONS.items():
        lines.append(f"  chain {chain} {{")
        isolated: dict[str, Object] = {}
        for policy in policies:
            if direction not in _directions(policy):
                continue
            space = policy["metadata"]["namespace"]
            selected = [pod for pod in known if _in(pod, {space}, policy["spec"].get("podSelector") or {})]
            isolated |= {pod["status"]["podIP"]: pod for pod in selected}
            if selected:
                for match in _matches(policy, direction, known, labels):
                    allowed = f"ip {own} {_set(selected)} {match}".rstrip()
                    lines.append(f"    {allowed} return")
        if isolated:
            lines.append(f"    ip {own} {_set(isolated.values())} counter drop")
        lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _directions(policy: Object) -> Sequence[str]:
    given = policy["spec"].get("policyTypes")
    return given or ["Ingress", *(["Egress"] if policy["spec"].get("egress") else [])]


def _in(pod: Object, namespaces: Iterable[str], selector: Object) -> bool:
    metadata = pod["metadata"]
    return metadata["namespace"] in namespaces and selects(selector, metadata.get("labels") or {})


def _matches(policy: Object, direction: str, pods: Sequence[Object], labels: Mapping[str, Any]) -> Iterator[str]:
    """What of a packet must hold, one text for each pair of peer and port of the policy's rules."""
    _, _, side, field = _DIRECTIONS[direction]
    for rule in policy["spec"].get(direction.lower()) or ():
        peers = [""]
        if rule.get(field):
            peers = [text for peer in rule[field] if (text := _peer(peer, side, policy, pods, labels))]
        ports = [_port(port, policy) for port in rule["ports"]] if rule.get("ports") else [""]
        for peer in peers:
            for port in ports:
                yield " ".join(part for part in (peer, port) if part)


def _peer(peer: Object, side: str, policy: Object, pods: Sequence[Object], labels: Mapping[str, Any]) -> str:
    """Empty where the peer is nobody of IPv4."""
    if block := peer.get("ipBlock"):
        if ":" in block["cidr"]:
            return ""
        but = f" ip {side} != {{ {', '.join(block['except'])} }}" if block.get("except") else ""
        return f"ip {side} {block['cidr']}{but}"
    spaces = {policy["metadata"]["namespace"]}
    if "namespaceSelector" in peer:
        spaces = {name for name, given in labels.items() if selects(peer["namespaceSelector"], given)}
    found = [pod for pod in pods if _in(pod, spaces, peer.get("podSelector") or {})]
    return f"ip {side} {_set(found)}" if found else ""


def _port(port: Object, policy: Object) -> str:
    protocol = port.get("protocol", "TCP").lower()
    number = port.get("port")
    if number is None:
        return f"meta l4proto {protocol}"
    if not isinstance(number, int):
        metadata = policy["metadata"]
        raise ValueError(f"NetworkPolicy {metadata['namespace']}/{metadata['name']}: port {number!r} by name")
    return f"{protocol} dport {number}" + (f"-{port['endPort']}" if port.get("endPort") else "")


def _set(pods: Iterable[Object]) -> str:
    return "{ " + ", ".join(sorted({pod["status"]["podIP"] for pod in pods})) + " }"
