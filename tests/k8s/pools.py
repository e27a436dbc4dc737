"""The policy of workers in pools: configuration, Deployments and autoscalers say the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import yaml

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.config.worker_pools import read_pools, unknown_commands
from saltern.mworker.commands import CONTROL_COMMANDS, MINION_COMMANDS
from saltern.mworker.request_handler import UNLISTED
from tests.k8s.rendered import Object, Pod, of_kind, pods

#: Pool of the workers that take all commands, or those that no other pool takes.
REST_POOL = "default"

#: Commands that a pool may name.
KNOWN = frozenset({*MINION_COMMANDS, *CONTROL_COMMANDS, *UNLISTED})


def pool_of(pod: Pod) -> str:
    """What its label says."""
    return pod.labels.get("saltern/pool", "")


def pooled(found: Sequence[Object]) -> Iterator[str]:
    """Where there are pools, each has a Deployment that says it, and an autoscaler that looks at it alone."""
    files = [text for one in of_kind(found, "ConfigMap") for name, text in sorted(one.get("data", {}).items())]
    given = [options for text in files if "worker_pools:" in text for options in [yaml.safe_load(text)["worker_pools"]]]
    workers = {pod.name: pod for pod in pods(found) if pod.component == "mworker"}
    said = {name: _variable(pod.spec["containers"][0], "SALTERN_WORKER_POOL") for name, pod in workers.items()}
    if not given:
        yield from (
            f"Deployment {name}: says the pool {pool}, and no ConfigMap has pools"
            for name, pool in said.items()
            if pool
        )
        return
    try:
        pools = read_pools(MasterOptions(worker_pools=given[-1]))
    except ConfigError as error:
        yield f"ConfigMap: {error}"
        return
    yield from (f"ConfigMap: {why}" for why in unknown_commands(pools, KNOWN))
    for pool in sorted(set(pools.names) - set(said.values())):
        yield f"ConfigMap: the pool {pool} has no Deployment"
    for name, pod in workers.items():
        if said[name] not in pools.names:
            yield f"Deployment {name}: its SALTERN_WORKER_POOL '{said[name]}' is no pool"
        for spread in pod.spec["topologySpreadConstraints"]:
            if spread["labelSelector"]["matchLabels"].get("saltern/pool") != pool_of(pod):
                yield f"Deployment {name}: spreads pods of other pools"
        if pool_of(pod) != said[name]:
            yield f"Deployment {name}: its label saltern/pool is '{pool_of(pod)}', its pool '{said[name]}'"
    for scaler in of_kind(found, "HorizontalPodAutoscaler"):
        pool = said.get(scaler["spec"]["scaleTargetRef"]["name"])
        for metric in scaler["spec"]["metrics"]:
            asked = metric.get("external", {}).get("metric", {}).get("selector", {}).get("matchLabels", {}).get("pool")
            if pool and metric["type"] == "External" and asked != pool:
                yield f"HorizontalPodAutoscaler {scaler['metadata']['name']}: looks at the requests of pool {asked}, not {pool}"


def _variable(container: Object, name: str) -> str:
    return next((str(row.get("value", "")) for row in container.get("env", ()) if row["name"] == name), "")
