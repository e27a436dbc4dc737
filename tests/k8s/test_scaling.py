"""The arithmetic of the autoscaler and of the budgets, with the numbers that the manifests have.

As Kubernetes computes it (its pages "Horizontal Pod Autoscaling" and "Disruptions"); that a cluster does so is not shown here.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.k8s.rendered import of_kind, overlay

HA = overlay("ha")
(SCALER,) = of_kind(HA, "HorizontalPodAutoscaler")
SPEC: dict[str, Any] = SCALER["spec"]

#: Within a tenth of the target nothing is changed.
_TOLERANCE = 0.1


def wanted(workers: int, in_hand: float | None, cpu: float | None) -> int:
    """Workers that the metrics ask for: the largest counts; None: a metric that does not answer forbids to go down."""
    queue, processor = SPEC["metrics"]
    target = int(queue["external"]["target"]["averageValue"].removesuffix("m")) / 1000
    share = processor["containerResource"]["target"]["averageUtilization"] / 100
    asked = []
    for usage, value in ((in_hand, target), (cpu, share)):
        if usage is not None:
            ratio = usage / workers / value
            asked.append(workers if abs(ratio - 1) <= _TOLERANCE else math.ceil(usage / value))
    most = max(asked, default=workers)
    most = max(most, workers) if None in (in_hand, cpu) else most
    return min(max(most, SPEC["minReplicas"]), SPEC["maxReplicas"])


def step_up(workers: int, target: int) -> int:
    """After one period of scaleUp: the policy that allows more counts."""
    rows = SPEC["behavior"]["scaleUp"]["policies"]
    more = max(row["value"] if row["type"] == "Pods" else math.ceil(workers * row["value"] / 100) for row in rows)
    return min(target, workers + more)


@pytest.mark.parametrize(
    ("workers", "in_hand", "cpu", "want"),
    [
        (3, 0.0, 0.1, 3),
        (8, 12.0, 0.5, 15),
        (3, 2.4, 0.1, 3),
        # Cores: each worker is asked for 0.3.
        (3, 1.0, 2.4, 8),
        (10, 1000.0, 1.0, 20),
        (10, 1.0, 0.3, 3),
        # Prometheus is away: up by CPU, and not down.
        (3, None, 2.4, 8),
        (10, None, 0.3, 10),
        (10, None, None, 10),
    ],
)
def test_how_many_workers_are_wanted(workers: int, in_hand: float | None, cpu: float | None, want: int) -> None:
    # CPU is in units of what is requested: a tenth of a core.
    assert wanted(workers, in_hand, None if cpu is None else cpu / 0.1) == want


def test_a_queue_has_its_workers_within_a_minute() -> None:
    workers, periods = SPEC["minReplicas"], 0
    while workers < SPEC["maxReplicas"]:
        workers, periods = step_up(workers, SPEC["maxReplicas"]), periods + 1
    assert periods * 15 <= 60
    assert SPEC["behavior"]["scaleUp"]["stabilizationWindowSeconds"] == 0


def test_workers_go_one_by_one() -> None:
    down = SPEC["behavior"]["scaleDown"]
    assert down["stabilizationWindowSeconds"] >= 300
    assert [row["value"] for row in down["policies"]] == [1]


def test_a_drain_may_take_one_pod_of_each_role_and_leaves_one_where_there_are_two() -> None:
    replicas = {
        one["metadata"]["name"]: one["spec"].get("replicas", SPEC["minReplicas"]) for one in of_kind(HA, "Deployment")
    }
    for budget in of_kind(HA, "PodDisruptionBudget"):
        running = replicas[budget["metadata"]["name"]]
        allowed = running - max(0, running - budget["spec"]["maxUnavailable"])
        assert allowed == 1
        assert running - allowed >= (1 if running > 1 else 0)
    assert {name for name, count in replicas.items() if count > 1} == {
        *("saltern-publisher", "saltern-front", "saltern-maintenance", "saltern-mworker")
    }
