"""NetworkPolicies as rules: what a packet meets."""

from __future__ import annotations

import pytest

from tests.cluster.policy import Object, ruleset, selects


def pod(name: str, address: str, namespace: str = "a", **labels: str) -> Object:
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {},
        "status": {"podIP": address, "phase": "Running"},
    }


PODS = [
    pod("web", "10.66.1.2", role="web"),
    pod("store", "10.66.1.3", role="store"),
    pod("other", "10.66.2.2", "b", role="web"),
]
SPACES: list[Object] = [{"metadata": {"name": name, "labels": {"name": name}}} for name in ("a", "b")]


def policy(**spec: object) -> Object:
    return {"metadata": {"name": "p", "namespace": "a"}, "spec": spec}


def chain(text: str, name: str) -> list[str]:
    """The rules of a chain."""
    after = text.partition(f"chain {name} {{\n")[2]
    return [line.strip() for line in after.partition("  }\n")[0].splitlines()]


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        (None, {"a": "1"}, False),
        ({}, {}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "2"]}]}, {"a": "2"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
    ],
)
def test_selectors(selector: Object | None, labels: dict[str, str], selected: bool) -> None:
    assert selects(selector, labels) is selected


def test_an_operator_that_is_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="operator 'Near'"):
        selects({"matchExpressions": [{"key": "a", "operator": "Near"}]}, {})


@pytest.mark.parametrize(
    ("rule", "match"),
    [
        ({}, [""]),
        ({"ports": [{"port": 80}]}, ["tcp dport 80"]),
        ({"ports": [{"protocol": "UDP", "port": 53}, {"port": 53}]}, ["udp dport 53", "tcp dport 53"]),
        ({"ports": [{"port": 80, "endPort": 90}]}, ["tcp dport 80-90"]),
        ({"ports": [{"protocol": "UDP"}]}, ["meta l4proto udp"]),
        ({"from": [{"podSelector": {"matchLabels": {"role": "web"}}}]}, ["ip saddr { 10.66.1.2 }"]),
        ({"from": [{"podSelector": {"matchLabels": {"role": "nobody"}}}]}, []),
        ({"from": [{"namespaceSelector": {}}]}, ["ip saddr { 10.66.1.2, 10.66.1.3, 10.66.2.2 }"]),
        (
            {
                "from": [{"namespaceSelector": {"matchLabels": {"name": "b"}}, "podSelector": {}}],
                "ports": [{"port": 1}],
            },
            ["ip saddr { 10.66.2.2 } tcp dport 1"],
        ),
        (
            {"from": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}]},
            ["ip saddr 0.0.0.0/0 ip saddr != { 10.0.0.0/8 }"],
        ),
        ({"from": [{"ipBlock": {"cidr": "::/0"}}]}, []),
    ],
)
def test_what_a_rule_allows(rule: Object, match: list[str]) -> None:
    made = policy(podSelector={"matchLabels": {"role": "store"}}, policyTypes=["Ingress"], ingress=[rule])
    text = ruleset([made], PODS, SPACES, "10.66.0.0/16")
    allowed = [
        "ip daddr { 10.66.1.3 } return" if one == "" else f"ip daddr {{ 10.66.1.3 }} {one} return" for one in match
    ]
    assert chain(text, "ingress") == [*allowed, "ip daddr { 10.66.1.3 } counter drop"]
    assert chain(text, "egress") == []


def test_a_policy_for_all_of_a_namespace_leaves_another_alone() -> None:
    text = ruleset([policy(podSelector={}, policyTypes=["Ingress", "Egress"])], PODS, SPACES, "10.66.0.0/16")
    assert chain(text, "ingress") == ["ip daddr { 10.66.1.2, 10.66.1.3 } counter drop"]
    assert chain(text, "egress") == ["ip saddr { 10.66.1.2, 10.66.1.3 } counter drop"]


def test_a_pod_that_is_not_known_yet_is_cut_off() -> None:
    strangers = [line for line in chain(ruleset([], PODS, SPACES, "10.66.0.0/16"), "forward") if "drop" in line]
    known = "{ 10.66.1.2, 10.66.1.3, 10.66.2.2 }"
    assert strangers == [f"ip {side} 10.66.0.0/16 ip {side} != {known} counter drop" for side in ("saddr", "daddr")]
    ended = [{**PODS[0], "status": {"podIP": "10.66.1.2", "phase": "Succeeded"}}]
    assert "ip saddr 10.66.0.0/16 counter drop" in chain(ruleset([], ended, SPACES, "10.66.0.0/16"), "forward")


def test_a_port_by_name_is_an_error() -> None:
    with pytest.raises(ValueError, match="NetworkPolicy a/p: port 'http' by name"):
        ruleset([policy(podSelector={}, ingress=[{"ports": [{"port": "http"}]}])], PODS, SPACES, "10.66.0.0/16")
