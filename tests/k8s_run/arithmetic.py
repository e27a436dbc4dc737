"""What Kubernetes computes from a Deployment, a PodDisruptionBudget and a HorizontalPodAutoscaler, as numbers of pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.k8s_run.adapter import counted

Object = dict[str, Any]

#: A metric that is this near to its target changes nothing (the controller's default).
_TOLERANCE = 0.1

_SUFFIXES: Mapping[str, float] = {"m": 1e-3, "k": 1e3, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def quantity(text: str | int) -> float:
    """A quantity of the API as a number."""
    for suffix, factor in _SUFFIXES.items():
        if str(text).endswith(suffix):
            return float(str(text).removesuffix(suffix)) * factor
    return float(text)


def replicas_of(deployment: Object, scalers: Iterable[Object] = ()) -> int:
    """The fewest that it has: what it says, else what its autoscaler starts from."""
    for scaler in scalers:
        if scaler["spec"]["scaleTargetRef"]["name"] == deployment["metadata"]["name"]:
            fewest: int = scaler["spec"].get("minReplicas", 1)
            return fewest
    said: int = deployment["spec"].get("replicas", 1)
    return said


def least_in_a_rollout(deployment: Object, replicas: int) -> int:
    """Ready pods that a rollout leaves at its worst moment."""
    strategy = deployment["spec"].get("strategy", {})
    if strategy.get("type") == "Recreate":
        return 0
    return replicas - counted(strategy.get("rollingUpdate", {}).get("maxUnavailable"), replicas, up=False)


def least_in_a_drain(budget: Object | None, replicas: int) -> int:
    """Ready pods that evictions leave, where all were ready; 0 where no budget says anything."""
    if budget is None:
        return 0
    spec = budget["spec"]
    if "minAvailable" in spec:
        # Both are rounded up: a budget of half of three keeps two.
        return counted(spec["minAvailable"], replicas, up=True)
    return max(0, replicas - counted(spec["maxUnavailable"], replicas, up=True))


def budget_for(deployment: Object, budgets: Iterable[Object]) -> Object | None:
    """The budget that holds for its pods; ValueError for two, which Kubernetes refuses to evict under."""
    metadata, labels = deployment["metadata"], deployment["spec"]["template"]["metadata"]["labels"]
    holding = [
        budget
        for budget in budgets
        if budget["metadata"]["namespace"] == metadata["namespace"]
        and budget["spec"]["selector"]["matchLabels"].items() <= labels.items()
    ]
    if len(holding) > 1:
        raise ValueError(f"{metadata['name']} has {len(holding)} budgets")
    return holding[0] if holding else None


@dataclass(frozen=True, slots=True)
class Load:
    """What an autoscaler of workers measures: requests in hand or waiting in all, CPU of each worker in cores."""

    requests: float
    cores: float


def wanted(scaler: Object, template: Object, now: int, load: Load) -> int:
    """Replicas that an autoscaler asks for, before the pace of its behaviour."""
    spec = scaler["spec"]
    asked = [_by_metric(metric, template, now, load) for metric in spec["metrics"]]
    return int(min(max(max(asked), spec.get("minReplicas", 1)), spec["maxReplicas"]))


def _by_metric(metric: Object, template: Object, now: int, load: Load) -> int:
    if metric["type"] in ("External", "Pods"):
        target = quantity(metric[metric["type"].lower()]["target"]["averageValue"])
        return _rounded(load.requests / target / now, now)
    if metric["type"] == "ContainerResource":
        asked = metric["containerResource"]
        (container,) = [one for one in template["spec"]["containers"] if one["name"] == asked["container"]]
        used = load.cores / quantity(container["resources"]["requests"][asked["name"]]) * 100
        return _rounded(used / asked["target"]["averageUtilization"], now)
    raise ValueError(f"a metric of a type that is not counted here: {metric['type']}")


def _rounded(ratio: float, now: int) -> int:
    if abs(ratio - 1) <= _TOLERANCE:
        return now
    # A product that is whole but for the machine's arithmetic is whole.
    return -int(-round(ratio * now, 9) // 1)


def next_step_up(scaler: Object, now: int, goal: int) -> int:
    """Replicas after one period of growing: the policy that allows most decides."""
    policies = scaler["spec"]["behavior"]["scaleUp"]["policies"]
    most = max(now + (one["value"] if one["type"] == "Pods" else -(-now * one["value"] // 100)) for one in policies)
    return min(goal, most)


def seconds_to_shrink(scaler: Object, now: int, goal: int) -> int:
    """Seconds from the end of a load until as few as ``goal`` are left, where only numbers of pods limit it."""
    down = scaler["spec"]["behavior"]["scaleDown"]
    (policy,) = down["policies"]
    periods: int = -(-(now - goal) // policy["value"])
    waited: int = down["stabilizationWindowSeconds"]
    seconds: int = waited + (periods - 1) * policy["periodSeconds"] if periods else 0
    return seconds
