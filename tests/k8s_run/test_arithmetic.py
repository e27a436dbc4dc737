"""Numbers of pods, as Kubernetes computes them from the overlays: what a rollout and a drained node leave, what load asks for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.k8s.rendered import OVERLAYS, ROOT, composed, overlay
from tests.k8s_run import arithmetic
from tests.k8s_run.adapter import by_kind
from tests.k8s_run.arithmetic import Load

#: Roles of which an overlay has one -> why that is enough there: nothing that was acknowledged is in it, and clients wait for its
#: successor.
OF_SMALL = {
    "reqserver": "minions and commands ask again until the next one answers",
    "eventpublisher": "who waits for an event asks the job cache at last",
}
OF_ALL = {"cli": "where operators type"}
SINGLE = {(name, role) for name in OVERLAYS for role in (*OF_ALL, *(OF_SMALL if name != "ha" else ()))}

#: Fewest ready pods of the other roles: in a rollout, and while a node is drained. Where an overlay has one of each, a drained
#: node takes it with it until it is elsewhere; a rollout does not.
LEAST = {
    ("ha", "publisher"): (2, 1),
    ("ha", "front"): (2, 1),
    ("ha", "reqserver"): (1, 1),
    ("ha", "eventpublisher"): (1, 1),
    ("ha", "mworker"): (3, 2),
    ("ha", "maintenance"): (2, 1),
    ("ha", "reactor"): (2, 1),
    ("lab", "publisher"): (1, 0),
    ("lab", "front"): (1, 0),
    ("lab", "mworker"): (3, 0),
    ("lab", "maintenance"): (1, 0),
    ("lab", "reactor"): (1, 0),
    ("external-redis", "publisher"): (1, 0),
    ("external-redis", "front"): (1, 0),
    ("external-redis", "mworker"): (3, 2),
    ("external-redis", "maintenance"): (1, 0),
    ("external-redis", "reactor"): (1, 0),
}

Object = dict[str, Any]


def deployments(name: str) -> dict[str, Object]:
    """By role."""
    found = by_kind(overlay(name), "Deployment")
    return {one["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/component"]: one for one in found}


def least(name: str, role: str) -> tuple[int, int]:
    deployment = deployments(name)[role]
    replicas = arithmetic.replicas_of(deployment, by_kind(overlay(name), "HorizontalPodAutoscaler"))
    budget = arithmetic.budget_for(deployment, by_kind(overlay(name), "PodDisruptionBudget"))
    return arithmetic.least_in_a_rollout(deployment, replicas), arithmetic.least_in_a_drain(budget, replicas)


@pytest.mark.parametrize(("name", "role"), LEAST)
def test_what_a_rollout_and_a_drained_node_leave(name: str, role: str) -> None:
    assert least(name, role) == LEAST[name, role]


def test_every_role_of_every_overlay_is_counted() -> None:
    roles = {(name, role) for name in OVERLAYS for role in deployments(name) if (name, role) not in SINGLE}
    assert roles == LEAST.keys()


@pytest.mark.parametrize("role", ["publisher", "front", "mworker", "reqserver", "eventpublisher"])
def test_production_is_never_without(role: str) -> None:
    assert min(least("ha", role)) >= 1


@pytest.mark.parametrize("name", OVERLAYS)
def test_no_rollout_of_a_role_that_may_be_many_leaves_none(name: str) -> None:
    assert [role for role in deployments(name) if (name, role) not in SINGLE and least(name, role)[0] < 1] == []


@pytest.mark.parametrize(("name", "role"), sorted(SINGLE))
def test_one_of_a_kind_is_never_two_and_never_in_the_way_of_a_drain(name: str, role: str) -> None:
    deployment = deployments(name)[role]
    assert deployment["spec"]["replicas"] == 1
    assert least(name, role) == (0, 0)


@pytest.mark.parametrize("name", OVERLAYS)
def test_a_budget_lets_one_pod_go(name: str) -> None:
    """One that allows nothing would stop every drain for good."""
    scalers = by_kind(overlay(name), "HorizontalPodAutoscaler")
    for role, deployment in deployments(name).items():
        replicas = arithmetic.replicas_of(deployment, scalers)
        budget = arithmetic.budget_for(deployment, by_kind(overlay(name), "PodDisruptionBudget"))
        assert arithmetic.least_in_a_drain(budget, replicas) < replicas, role


# --------------------------------------------------------------------------------------------------------------------- autoscaler


def scaler() -> tuple[Object, Object]:
    """The workers' autoscaler, and their template."""
    (found,) = by_kind(overlay("ha"), "HorizontalPodAutoscaler")
    return found, deployments("ha")["mworker"]["spec"]["template"]


@pytest.mark.parametrize(
    ("now", "requests", "cores", "goal"),
    [
        (3, 0, 0.0, 3),  # idle
        (10, 0, 0.0, 3),  # idle again
        (3, 2, 0.1, 3),
        (3, 4.8, 0.4, 3),  # both workers of each pod busy in four of five moments: as wanted
        (3, 6, 0.6, 4),  # all busy: one more
        (3, 12, 0.6, 8),  # as many wait as work
        (3, 32, 0.6, 20),
        (3, 1000, 0.6, 20),  # never more than the most
        (8, 6.4, 0.2, 4),
        (3, 0, 1.2, 6),  # no metric of requests: CPU alone, twice its target
        (3, 0, 2.0, 10),
        (6, 9.6, 0.6, 6),
    ],
)
def test_what_load_asks_for(now: int, requests: float, cores: float, goal: int) -> None:
    found, template = scaler()
    assert arithmetic.wanted(found, template, now, Load(requests, cores)) == goal


def test_a_burst_is_met_within_a_minute_and_not_forgotten_at_once() -> None:
    found, _ = scaler()
    most, fewest = found["spec"]["maxReplicas"], found["spec"]["minReplicas"]
    sizes = [fewest]
    while sizes[-1] < most:
        sizes.append(arithmetic.next_step_up(found, sizes[-1], most))
    assert sizes == [3, 7, 14, 20]
    assert (len(sizes) - 1) * 15 <= 60
    assert arithmetic.seconds_to_shrink(found, most, fewest) == 300 + 16 * 60


def test_the_autoscaler_and_the_deployment_do_not_fight() -> None:
    """A number in the Deployment would be applied over the autoscaler's at each upgrade."""
    assert "replicas" not in deployments("ha")["mworker"]["spec"]


# --------------------------------------------------------------------------------------------------------------------- pools


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory) -> list[Object]:
    """overlays/ha with its workers in pools."""
    directory = tmp_path_factory.mktemp("pooled")
    return composed(directory, "worker-pools", resources=("overlays/ha",))


#: Pool -> its Deployment; fewest ready in a rollout and while a node is drained; most.
POOLS = {
    "default": ("saltern-mworker", 3, 2, 20),
    "auth": ("saltern-mworker-auth", 2, 1, 8),
    "returns": ("saltern-mworker-returns", 2, 1, 16),
    "files": ("saltern-mworker-files", 2, 1, 8),
    "pillar": ("saltern-mworker-pillar", 2, 1, 16),
    "control": ("saltern-mworker-control", 2, 1, 6),
}


@pytest.mark.parametrize("pool", POOLS)
def test_each_pool_scales_by_its_own_queue_and_is_never_without(pool: str, pooled: list[Object]) -> None:
    name, rollout, drain, most = POOLS[pool]
    (deployment,) = [one for one in by_kind(pooled, "Deployment") if one["metadata"]["name"] == name]
    scalers = by_kind(pooled, "HorizontalPodAutoscaler")
    (own,) = [one for one in scalers if one["spec"]["scaleTargetRef"]["name"] == name]
    budget = arithmetic.budget_for(deployment, by_kind(pooled, "PodDisruptionBudget"))
    replicas = arithmetic.replicas_of(deployment, scalers)
    assert arithmetic.least_in_a_rollout(deployment, replicas) == rollout
    assert arithmetic.least_in_a_drain(budget, replicas) == drain
    assert own["spec"]["metrics"][0]["external"]["metric"]["selector"]["matchLabels"] == {"pool": pool}
    template = deployment["spec"]["template"]
    # Idle; all busy and as many waiting again; more than there can be.
    assert arithmetic.wanted(own, template, replicas, Load(0, 0.0)) == rollout
    assert arithmetic.wanted(own, template, 2, Load(8, 0.4)) == 5
    assert arithmetic.wanted(own, template, 2, Load(500, 0.4)) == most


def test_all_pools_together_fit_what_the_page_says(pooled: list[Object]) -> None:
    """Requests of memory when idle, and at most: docs/operations/kubernetes.md has both."""
    sums = [0.0, 0.0]
    for one in by_kind(pooled, "HorizontalPodAutoscaler"):
        name = one["spec"]["scaleTargetRef"]["name"]
        (deployment,) = [each for each in by_kind(pooled, "Deployment") if each["metadata"]["name"] == name]
        (worker,) = [each for each in deployment["spec"]["template"]["spec"]["containers"] if each["name"] == "mworker"]
        asked = arithmetic.quantity(worker["resources"]["requests"]["memory"]) / 2**20
        sums[0] += asked * one["spec"]["minReplicas"]
        sums[1] += asked * one["spec"]["maxReplicas"]
    page = (ROOT / "docs" / "operations" / "kubernetes.md").read_text("utf-8")
    assert f"{sums[0]:.0f} MiB when idle, {sums[1]:.0f} MiB at most" in page


# --------------------------------------------------------------------------------------------------------------------- arithmetic


@pytest.mark.parametrize(
    ("text", "number"), [("800m", 0.8), ("100m", 0.1), (3, 3.0), ("2", 2.0), ("1Gi", 2.0**30), ("64Mi", 64 * 2.0**20)]
)
def test_quantities(text: str | int, number: float) -> None:
    assert arithmetic.quantity(text) == pytest.approx(number)


@pytest.mark.parametrize(
    ("budget", "replicas", "left"),
    [
        (None, 3, 0),
        ({"minAvailable": 1}, 2, 1),
        ({"minAvailable": "50%"}, 3, 2),
        ({"maxUnavailable": 1}, 3, 2),
        ({"maxUnavailable": 1}, 1, 0),
        ({"maxUnavailable": "50%"}, 3, 1),
        ({"maxUnavailable": 0}, 1, 1),
    ],
)
def test_what_a_budget_leaves(budget: Object | None, replicas: int, left: int) -> None:
    assert arithmetic.least_in_a_drain(budget and {"spec": budget}, replicas) == left


@pytest.mark.parametrize(
    ("strategy", "replicas", "left"),
    [
        ({"type": "Recreate"}, 3, 0),
        ({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, 2, 2),
        ({"rollingUpdate": {"maxUnavailable": "25%"}}, 3, 3),
        ({"rollingUpdate": {"maxUnavailable": "25%"}}, 4, 3),
        ({}, 8, 6),
    ],
)
def test_what_a_rollout_leaves(strategy: Object, replicas: int, left: int) -> None:
    assert arithmetic.least_in_a_rollout({"spec": {"strategy": strategy}}, replicas) == left


def test_two_budgets_for_one_pod_are_an_error() -> None:
    deployment = deployments("ha")["publisher"]
    budget = arithmetic.budget_for(deployment, by_kind(overlay("ha"), "PodDisruptionBudget"))
    assert budget is not None
    with pytest.raises(ValueError, match="saltern-publisher has 2 budgets"):
        arithmetic.budget_for(deployment, [budget, budget])
