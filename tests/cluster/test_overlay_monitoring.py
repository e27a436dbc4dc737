"""components/monitoring and autoscale-queue in overlays/ha, beside the Prometheus operator, a Prometheus, the metrics server."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
import yaml

from tests.cluster.cluster import PATIENCE, Cluster
from tests.cluster.ha import Ha, tls_secret
from tests.cluster.lab import ROLES
from tests.cluster.places import SOURCES, ClusterError, until
from tests.k8s.rendered import K8S, ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(7200)]

DASHBOARD = json.loads((K8S / "components/monitoring/saltern.json").read_text("utf-8"))
RULES = yaml.safe_load((K8S / "components/monitoring/alerts.yaml").read_text("utf-8"))["spec"]["groups"][0]["rules"]

#: What Grafana puts in the place of its variables.
_VARIABLES = {"$namespace": "saltern", "$__rate_interval": "1m"}

#: Metrics of a program that this cluster has not: kube-state-metrics.
_ABSENT = "kube_pod_container_resource_limits"


class Monitoring:
    """The Prometheus of the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def install(self) -> None:
        """The metrics server, the operator, Prometheus, the adapter: as a company has them before the master comes."""
        self.cluster.import_stand_ins("git-sync")
        for part in ("metrics", "operator", "prometheus"):
            self.cluster.import_programs(part)
        around = SOURCES / "around"
        self.cluster.kubectl("apply", "-k", str(around / "metrics"))
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}}
        rules = yaml.safe_load((K8S / "components/autoscale-queue/prometheus-adapter.yaml").read_text("utf-8"))
        given = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "adapter-rules", "namespace": "monitoring"},
            "data": {"rules.json": json.dumps(rules["rules"]["external"])},
        }
        self.cluster.apply(space, given)
        tls_secret(self.cluster, "monitoring", "adapter-tls", "adapter.monitoring.svc")
        self.cluster.kubectl("apply", "-k", str(around / "monitoring"))
        until(lambda: len(self.cluster.pods("monitoring")) == 3, PATIENCE, "the operator has made Prometheus", pause=2)
        until(
            lambda: not self.cluster.unready("kube-system", "monitoring"),
            PATIENCE,
            "all of monitoring is ready",
            pause=2,
        )

    def api(self, path: str) -> Any:
        """The data of an answer of Prometheus' API, through the API server."""
        where = "/api/v1/namespaces/monitoring/services/prometheus-operated:web/proxy/api/v1"
        answer = json.loads(self.cluster.kubectl("get", "--raw", f"{where}/{path}"))
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression: str) -> list[Any]:
        """The samples of an instant query."""
        found: list[Any] = self.api(f"query?query={quote(expression, safe='')}")["result"]
        return found

    def alerts(self, state: str = "firing") -> set[str]:
        """Names of the alerts in a state."""
        return {one["labels"]["alertname"] for one in self.api("alerts")["alerts"] if one["state"] == state}


@pytest.fixture(scope="module")
def monitoring(ha: Ha) -> Monitoring:
    """Prometheus that has scraped every role at least once."""
    made = Monitoring(ha.cluster)
    made.install()
    until(
        lambda: {one["metric"].get("component") for one in made.query("up == 1")} >= set(ROLES), 300, "all are scraped"
    )
    return made


@pytest.fixture
def busy(ha: Ha) -> Iterator[None]:
    """Jobs, so that there is something to see."""
    words = ha.command("sh", "-c", "while :; do salt '*' test.ping >/dev/null; salt-run jobs.active >/dev/null; done")
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    yield
    process.kill()
    process.wait()
    ha.cluster.kubectl("-n", "saltern", "rollout", "restart", "deploy/saltern-cli")
    ha.await_rolled("deploy/saltern-cli")


def test_every_pod_of_a_role_is_scraped_once(ha: Ha, monitoring: Monitoring) -> None:
    """By the PodMonitor, through the NetworkPolicy, with the label that every query uses."""
    wanted = {(role, pod["metadata"]["name"]) for role in ROLES for pod in ha.cluster.pods("saltern", component=role)}

    def scraped() -> bool:
        up = [
            (one["metric"]["component"], one["metric"]["pod"])
            for one in monitoring.query('up{namespace="saltern"} == 1')
        ]
        return sorted(up) == sorted(wanted)

    until(scraped, 300, f"{wanted} are scraped")


def test_the_rules_are_loaded_as_they_are_written(monitoring: Monitoring) -> None:
    until(lambda: monitoring.api("rules")["groups"], 300, "rules are loaded")
    (group,) = monitoring.api("rules")["groups"]
    assert [one["name"] for one in group["rules"]] == [one["alert"] for one in RULES]
    until(
        lambda: all(one["health"] == "ok" for one in monitoring.api("rules")["groups"][0]["rules"]),
        120,
        "all are evaluated",
    )


def _queries() -> list[tuple[str, str]]:
    found = []
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"]
            for variable, value in _VARIABLES.items():
                text = text.replace(variable, value)
            found.append((panel["title"], text))
    return found


#: In queries without a sample on a master that is well: a counter gets its label when there is something to count, and overlays/ha
#: has no reactor until somebody says which.
_TROUBLE = (
    'outcome!="ok"',
    "salt_requests_refused_total",
    "salt_messages_dropped_total",
    "salt_job_minions_given_up_total",
    "salt_reactions_total",
)


def test_each_query_of_the_dashboard_is_answered(ha: Ha, busy: None, monitoring: Monitoring) -> None:
    """With samples; what happens only in trouble has none until then, and is a query that Prometheus understands."""
    # Sign-ins: minions that start.
    ha.cluster.kubectl("-n", "saltern-minions", "rollout", "restart", "daemonset/saltern-minion")

    def empty() -> set[str]:
        return {
            query
            for _, query in _queries()
            if not monitoring.query(query) and not any(word in query for word in _TROUBLE)
        }

    with contextlib.suppress(ClusterError):
        until(lambda: not empty(), 300, "every panel shows something", pause=5)
    assert empty() == set()


def _fires_and_clears(monitoring: Monitoring, name: str, trouble: Callable[[], None], mend: Callable[[], None]) -> str:
    assert name not in monitoring.alerts()
    started = time.monotonic()
    try:
        trouble()
        until(lambda: name in monitoring.alerts(), 400, f"{name} fires", pause=2)
        fired = time.monotonic() - started
    finally:
        mend()
    started = time.monotonic()
    until(lambda: name not in monitoring.alerts() | monitoring.alerts("pending"), 600, f"{name} clears", pause=2)
    return f"| {name} | {fired:.0f} | {time.monotonic() - started:.0f} |"


def test_alerts_fire_and_clear(ha: Ha, monitoring: Monitoring, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = ha.cluster

    def redis(signal: str) -> None:
        for name in ("redis-0", "redis-1"):
            ha.signal(signal, cluster.get("pod", name, namespace="outside"), "redis")

    def redis_back() -> None:
        redis("CONT")
        until(lambda: not cluster.unready("outside"), PATIENCE, "Redis is ready", pause=2)
        ha.await_rolled()

    def workers(count: int) -> None:
        cluster.kubectl("-n", "saltern", "scale", "deployment/saltern-mworker", f"--replicas={count}")

    def workers_back() -> None:
        workers(3)
        ha.await_rolled()

    rows = [
        # Both hang: what is ended would have lost all, for its disk is memory.
        _fires_and_clears(monitoring, "SalternRedisAway", lambda: redis("STOP"), redis_back),
        _fires_and_clears(monitoring, "SalternNoWorkers", lambda: workers(0), workers_back),
    ]
    with capsys.disabled():
        sys.stdout.write("\n".join(["", "| Alert | Fires after, s | Clears after, s |", "|---|---|---|", *rows, ""]))


def _replicas(ha: Ha) -> int:
    found: int = ha.cluster.get("deployment", "saltern-mworker", namespace="saltern")["spec"]["replicas"]
    return found


def _ready(ha: Ha) -> int:
    status = ha.cluster.get("deployment", "saltern-mworker", namespace="saltern")["status"]
    found: int = status.get("readyReplicas", 0)
    return found


def _conditions(ha: Ha) -> dict[str, str]:
    status = ha.cluster.get("horizontalpodautoscaler", "saltern-mworker", namespace="saltern")["status"]
    return {one["type"]: f"{one['status']} {one['message']}" for one in status.get("conditions", ())}


_ASK = "salt -t 60 --async '*' pillar.items"

#: A pillar that keeps a worker busy for half a minute.
_SLOW = "{% do salt['cmd.run']('sleep 30') %}\nslow: true\n"


def test_workers_are_added_for_requests_in_hand(
    ha: Ha, monitoring: Monitoring, capsys: pytest.CaptureFixture[str]
) -> None:
    """The autoscaler of components/autoscale-queue, by the rule of prometheus-adapter.yaml."""

    def measured() -> bool:
        status = ha.cluster.get("horizontalpodautoscaler", "saltern-mworker", namespace="saltern")["status"]
        found = {one["type"]: one for one in status.get("currentMetrics") or ()}
        return {"External", "ContainerResource"} <= found.keys()

    until(measured, 300, "the autoscaler has both metrics", pause=3)
    had = _replicas(ha)
    top = (ROOT / "examples/srv/pillar/top.sls").read_text("utf-8")
    ha.commit({"pillar/slow.sls": _SLOW, "pillar/top.sls": top.replace("'*':\n", "'*':\n    - slow\n")})
    try:
        # A worker has the commit: one minion's pillar takes as long as it should.
        until(
            lambda: ha.cluster.salt("-t", "200", "web1", "pillar.items").get("web1", {}).get("slow"), 300, "it is slow"
        )
        started = time.monotonic()
        # All at once: a command that comes when every worker is busy is given up after its own time.
        ha.cluster.cli("sh", "-c", f"for i in 1 2 3 4 5 6 7 8; do {_ASK} & done; wait")
        until(lambda: _replicas(ha) > had, 200, f"workers are added: {_conditions(ha)}", pause=1)
        took = time.monotonic() - started
        # Not all that the autoscaler asks for: it may ask for more than two small nodes have room for.
        until(lambda: _ready(ha) > had, PATIENCE, "an added worker is ready", pause=1)
        ready = time.monotonic() - started
    finally:
        ha.commit()
    with capsys.disabled():
        sys.stdout.write(
            f"\n{had} pods of workers became {_replicas(ha)}: asked for after {took:.0f} s, one was ready after {ready:.0f} s\n"
        )


#: Runs in the toolbox: asks for results without end, which is work for workers and nobody else.
_READERS = """
import contextlib, threading, zmq
from saltern.kit.config.master import load_client
from saltern.kit.links.control import ControlError, ControlTimeout, connect_control

def read():
    control = connect_control(load_client(None), context=zmq.Context())
    while True:
        with contextlib.suppress(ControlError, ControlTimeout):
            control.call("job_returns", jid="20260101000000000000")

for _ in range(8):
    threading.Thread(target=read).start()
"""


def test_workers_are_added_for_cpu(ha: Ha, monitoring: Monitoring, capsys: pytest.CaptureFixture[str]) -> None:
    """The same autoscaler while its own metric does not answer: CPU alone, at a number that this machine's two cores can reach."""
    name = "horizontalpodautoscaler/saltern-mworker"
    found = ha.cluster.get(name, namespace="saltern")
    before, few = found["spec"]["metrics"], found["spec"]["minReplicas"]
    lower = json.loads(json.dumps(before))
    for one in lower:
        if one["type"] == "ContainerResource":
            one["containerResource"]["target"]["averageUtilization"] = 20
    ha.cluster.kubectl("-n", "monitoring", "scale", "deployment/adapter", "--replicas=0")
    # Made anew: an autoscaler remembers for minutes how many pods it wanted before.
    ha.cluster.kubectl("-n", "saltern", "delete", name)
    ha.cluster.kubectl("-n", "saltern", "scale", "deployment/saltern-mworker", f"--replicas={few}")
    until(lambda: _ready(ha) == few, PATIENCE, "the workers that the test before added are gone", pause=1)
    started = time.monotonic()
    words = ha.command("python3", "-c", _READERS)
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        named = {
            key: found["metadata"][key]
            for key in ("name", "namespace", "labels", "annotations")
            if key in found["metadata"]
        }
        ha.cluster.apply({**found, "metadata": named, "spec": {**found["spec"], "metrics": lower}, "status": {}})
        until(lambda: _replicas(ha) > few, 300, "workers are added by CPU alone", pause=1)
        took = time.monotonic() - started
        # Said by the autoscaler a little later than it scales.
        until(lambda: "FailedGetExternalMetric" in json.dumps(_reasons(ha)), 60, "its own metric is missed", pause=1)
    finally:
        process.kill()
        process.wait()
        ha.cluster.kubectl(
            "-n", "saltern", "patch", name, "--type=merge", "-p", json.dumps({"spec": {"metrics": before}})
        )
        ha.cluster.kubectl("-n", "monitoring", "scale", "deployment/adapter", "--replicas=1")
        ha.cluster.kubectl("-n", "saltern", "rollout", "restart", "deploy/saltern-cli")
    with capsys.disabled():
        sys.stdout.write(f"\nby CPU alone {few} pods of workers became {_replicas(ha)} after {took:.0f} s\n")


def test_workers_go_when_nobody_asks(ha: Ha, monitoring: Monitoring) -> None:
    """One a minute, after five minutes without need."""
    most = _replicas(ha)
    if most == 3:
        pytest.skip("no workers were added: the test before did not run")
    until(lambda: _replicas(ha) < most, 900, "the first worker is taken away", pause=5)


def _reasons(ha: Ha) -> list[str]:
    status = ha.cluster.get("horizontalpodautoscaler", "saltern-mworker", namespace="saltern")["status"]
    return [one["reason"] for one in status["conditions"]] + [
        one["reason"]
        for one in ha.cluster.get("events", namespace="saltern")["items"]
        if one["involvedObject"]["kind"] == "HorizontalPodAutoscaler"
    ]
