"""The adapter, without podman: nothing of the overlay is dropped in silence, and what it makes is what a cluster would."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.k8s.rendered import objects, overlay
from tests.k8s_run import adapter
from tests.k8s_run.accounting import Accounts
from tests.k8s_run.adapter import File, NotPlayable
from tests.k8s_run.fields import FIELDS, LEFT_OUT, POD, By, leaves, rule_for


def test_every_field_of_the_overlay_has_a_rule() -> None:
    without = [
        f"{one['kind']} {one['metadata']['name']}: {path}"
        for one in overlay("lab")
        if one["kind"] not in LEFT_OUT
        for path in leaves(one)
        if rule_for(path, FIELDS.get(one["kind"], {})) is None
    ]
    assert without == []


def test_every_rule_is_about_a_field_that_is_there() -> None:
    used: dict[str, set[str]] = {kind: set() for kind in FIELDS}
    for one in overlay("lab"):
        for path in leaves(one):
            rule = rule_for(path, FIELDS.get(one["kind"], {}))
            if rule:
                used[one["kind"]].add(rule)
    template = "spec.template.spec."
    of_pods = {rule.removeprefix(template) for rules in used.values() for rule in rules if rule.startswith(template)}
    assert POD.keys() - of_pods == set()
    unused = {
        f"{kind}: {rule}"
        for kind, rules in FIELDS.items()
        for rule in rules.keys() - used[kind]
        if not rule.startswith(template)
    }
    assert unused == set()


def test_what_nobody_does_has_a_reason() -> None:
    rules = [rule for rules in FIELDS.values() for rule in rules.items()]
    assert [path for path, (by, why) in rules if by is not By.PODMAN and not why] == []
    assert all(LEFT_OUT.values())


def test_every_kind_is_played_or_left_out() -> None:
    assert {one["kind"] for one in overlay("lab")} <= FIELDS.keys() | LEFT_OUT.keys()
    assert not FIELDS.keys() & LEFT_OUT.keys()


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ({"a": {"b": 1}}, ["a.b"]),
        ({"a": [{"b": 1}, {"c": [2, 3]}]}, ["a[].b", "a[].c[]", "a[].c[]"]),
        ({"a": {}, "b": []}, ["a", "b"]),
    ],
)
def test_leaves(value: Any, paths: list[str]) -> None:
    assert list(leaves(value)) == paths


@pytest.mark.parametrize(
    ("path", "rule"),
    [("a", "a"), ("a.b", "a"), ("a[].b", "a"), ("a.c", "a.c"), ("a.c[].d", "a.c"), ("ab", None), ("b", None)],
)
def test_the_longest_rule_holds(path: str, rule: str | None) -> None:
    assert rule_for(path, {"a": (By.PODMAN, ""), "a.c": (By.NOBODY, "no")}) == rule


# --------------------------------------------------------------------------------------------------------------------- workloads


def lab_workload(name: str) -> adapter.Workload:
    (found,) = [one for one in adapter.workloads(overlay("lab")) if one.name == name]
    return found


def test_a_service_is_an_alias_by_all_its_names() -> None:
    names = {f"saltern-reqserver{tail}" for tail in ("", ".saltern", ".saltern.svc", ".saltern.svc.cluster.local")}
    assert names <= set(lab_workload("saltern-reqserver").aliases)
    assert lab_workload("saltern-mworker").aliases == ()


def test_a_service_that_moves_a_port_is_refused() -> None:
    found = objects("overlays/lab")
    (service,) = [one for one in found if one["kind"] == "Service" and one["metadata"]["name"] == "saltern-redis"]
    service["spec"]["ports"][0]["port"] = 6380
    with pytest.raises(NotPlayable, match="Service saltern-redis: port 6380 is 6379 of the pod"):
        adapter.workloads(found)


def test_each_pod_is_named_and_placed() -> None:
    pods = {one.name: one.pods for one in adapter.workloads(overlay("lab"))}
    assert pods["saltern-redis"] == ("saltern-redis-0",)
    assert pods["saltern-minion"] == ("saltern-minion-web1", "saltern-minion-web2")
    assert len(pods["saltern-mworker"]) == lab_workload("saltern-mworker").replicas


def test_files_of_a_volume_are_those_of_its_items() -> None:
    held = adapter.contents(overlay("lab"))
    held |= {
        ("Secret", "saltern-keys-mworker"): {"curve.secret": b"s"},
        ("Secret", "saltern-redis"): {"url": b"u", "users.acl": b"x"},
    }
    found = {volume.name: volume for volume in adapter.volumes(lab_workload("saltern-mworker"), held)}
    assert found["redis"].files == (File("url", b"u", 0o440),)
    assert found["redis"].group == 10001
    assert "base/init.sls" in {file.path for file in found["states"].files}
    assert found["tmp"].mode == 0o2777


def test_secrets_are_read_as_keygen_prints_them() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aGk="}, "stringData": {"b": "there"}}
    assert adapter.contents([{"kind": "List", "items": [secret]}]) == {("Secret", "s"): {"a": b"hi", "b": b"there"}}


def test_a_secret_that_is_not_there_is_named() -> None:
    with pytest.raises(NotPlayable, match="saltern-mworker: there is no Secret saltern-keys-mworker"):
        adapter.volumes(lab_workload("saltern-mworker"), adapter.contents(overlay("lab")))


def test_a_pod_keeps_its_cage() -> None:
    workload = lab_workload("saltern-publisher")
    (container,) = adapter.pod_object(workload, "saltern-publisher-0", "/v", "/n")["spec"]["containers"]
    assert container["securityContext"] == {
        "runAsUser": 10001,
        "runAsGroup": 10001,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def test_the_objects_stay_as_they_are() -> None:
    before = objects("overlays/lab")
    for workload in adapter.workloads(before):
        adapter.pod_object(workload, workload.pods[0], "/v", "/n")
    assert before == objects("overlays/lab")


@pytest.mark.parametrize(
    ("share", "replicas", "surge", "unavailable"),
    [
        (1, 3, 1, 1),
        (0, 3, 0, 0),
        ("25%", 3, 1, 0),
        ("25%", 10, 3, 2),
        ("50%", 1, 1, 0),
        (None, 4, 1, 1),
        ("100%", 2, 2, 2),
    ],
)
def test_shares_are_rounded_as_kubernetes_does(
    share: int | str | None, replicas: int, surge: int, unavailable: int
) -> None:
    assert adapter.counted(share, replicas, up=True) == surge
    assert adapter.counted(share, replicas, up=False) == unavailable


# --------------------------------------------------------------------------------------------------------------------- accounting


@pytest.mark.parametrize(
    ("returned", "ran", "faults"),
    [
        ({"j1": {"a": "null", "b": "null"}}, {"a": [1], "b": [1]}, []),
        ({"j1": {"a": "null"}}, {"a": [1], "b": [1]}, ["job 1 (j1): no result of b"]),
        ({}, {"a": [1], "b": [1]}, ["job 1 (j1): no result of a", "job 1 (j1): no result of b"]),
        ({"j1": {"a": "null", "b": "null"}}, {"a": [1]}, ["job 1: never ran on b, which said null"]),
        ({"j1": {"a": "null", "b": "null"}}, {"a": [1, 1], "b": [1]}, ["job 1: ran 2 times on a"]),
        ({"j1": {"a": "null", "b": "null"}}, {"a": [1, 2], "b": [1]}, []),
        ({"j1": {"a": "null", "b": "null"}}, {"a": [1, 3], "b": [1]}, ["job 3: ran on a, and nobody gave it"]),
    ],
)
def test_accounts(returned: dict[str, dict[str, str]], ran: dict[str, list[int]], faults: list[str]) -> None:
    accounts = Accounts(("a", "b"), acknowledged={1: "j1"}, refused={2: "no master"})
    assert accounts.faults(returned, ran) == faults


@pytest.mark.parametrize(
    ("said", "power_cut", "faults"),
    [
        ("JobKilled: the minion was killed", True, 0),
        ("JobKilled: the process of this job was killed", True, 0),
        ("JobKilled: the minion was killed", False, 1),
        ("JobExpired: the minion was killed", True, 1),
    ],
)
def test_a_job_that_a_power_cut_ended_says_so(said: str, power_cut: bool, faults: int) -> None:
    accounts = Accounts(("a", "b"), acknowledged={1: "j1"})
    result = json.dumps({"return": said, "retcode": 1})
    expected = [f"job 1: never ran on b, which said {result}"] * faults
    assert accounts.faults({"j1": {"a": "null", "b": result}}, {"a": [1]}, power_cut=power_cut) == expected
