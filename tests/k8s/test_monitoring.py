"""Alerts and dashboard ask for metrics that roles serve, by labels that these have; each alert has a runbook, and the reverse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from masterstore.minion_keys import STATES
from saltern.kit.config.worker_pools import ONLY
from saltern.kit.process.exposition import Counter, Histogram, Metric
from saltern.kit.process.metrics import SERVED_BY, new_metrics
from saltern.reqserver.main import UNOPENED
from saltwire.handshake import FULL, UNREADABLE_KEY, VERDICTS
from tests.k8s.rendered import K8S, ROOT, of_kind, overlay

MONITORING = K8S / "components" / "monitoring"
RULES: list[dict[str, Any]] = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["spec"]["groups"][0]["rules"]
DASHBOARD = json.loads((MONITORING / "saltern.json").read_text())
RUNBOOKS = (ROOT / "docs" / "operations" / "runbooks" / "README.md").read_text()

#: Labels that a scrape brings along (pod-monitors.yaml).
SCRAPED = frozenset({"namespace", "pod", "container", "component", "le"})

#: Metrics of Prometheus itself, and of kube-state-metrics.
OTHERS = {"up": SCRAPED, "kube_pod_container_resource_limits": SCRAPED | {"resource"}}

#: Of each process (services/saltern/kit/process/exposition.py).
PROCESS = ("process_resident_memory_bytes", "process_cpu_seconds_total")

_METRIC = re.compile(r"\b(?:salt|process|python|kube)_[a-z_]+\b|\bup\b")
_MATCHERS = re.compile(r"\b((?:salt|process|kube)_[a-z_]+|up)\{([^}]*)\}")
_BY = re.compile(r"\bby \(([^)]*)\)")


def known() -> dict[str, frozenset[str]]:
    """Name of each sample -> its labels."""
    found = dict(OTHERS) | dict.fromkeys(PROCESS, SCRAPED)
    for role in {role for roles in SERVED_BY.values() for role in roles}:
        metrics = new_metrics(role)
        for field, roles in SERVED_BY.items():
            metric: Metric = getattr(metrics, field)
            if role not in roles:
                continue
            names = [metric.name]
            if isinstance(metric, Histogram):
                names = [f"{metric.name}_{end}" for end in ("bucket", "count", "sum")]
            assert isinstance(metric, Counter | Histogram)
            found |= dict.fromkeys(names, frozenset(metric.label_names) | SCRAPED)
    return found


KNOWN = known()


_AGGREGATE = re.compile(r"\b(?:sum|max|min|avg|count|scalar|histogram_quantile)\s*(?:by \(([^)]*)\))?\s*\(")


def operands(query: str) -> list[frozenset[str]]:
    """Labels of each vector that is compared or reckoned with another; an ``or`` parts what is looked at alone."""
    found = []
    rest = query
    while hit := _AGGREGATE.search(rest):
        depth, end = 1, hit.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(rest[end], 0)
            end += 1
        if not hit[0].startswith("scalar"):
            found.append(frozenset(re.split(r",\s*", hit[1])) if hit[1] else frozenset[str]())
        rest = rest[: hit.start()] + "1" + rest[end:]
    plain = re.sub(r"\{[^}]*\}|by \([^)]*\)", "", rest)
    return found + [KNOWN[name] for name in _METRIC.findall(plain) if name in KNOWN]


def queries() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    adapter = yaml.safe_load((K8S / "components" / "autoscale-queue" / "prometheus-adapter.yaml").read_text())
    for rule in adapter["rules"]["external"]:
        yield rule["name"]["as"], rule["seriesQuery"]
        yield rule["name"]["as"], rule["metricsQuery"].replace("<<.LabelMatchers>>", "")


def faults(query: str) -> list[str]:
    """What a query asks for that there is not."""
    # Names within matchers' values and labels are none of metrics.
    names = set(_METRIC.findall(re.sub(r'"[^"]*"', "", re.sub(r"by \([^)]*\)", "", query))))
    wrong = [f"no metric {name}" for name in sorted(names - set(KNOWN))]
    labels = frozenset().union(*(KNOWN.get(name, frozenset()) for name in names))
    for name, matchers in _MATCHERS.findall(query):
        for matcher in filter(None, matchers.split(",")):
            label = re.split(r"[!=~]", matcher.strip())[0]
            if name in KNOWN and label not in KNOWN[name]:
                wrong.append(f"{name} has no label {label}")
    for part in re.split(r"\sor\s", query):
        if len(compared := set(operands(part))) > 1:
            wrong.append(f"never matches: the labels of its sides are {sorted(map(sorted, compared))}")
    for group in _BY.findall(query):
        wrong += [f"nothing has the label {label}" for label in re.split(r",\s*", group) if label not in labels]
    return wrong


@pytest.mark.parametrize(("where", "query"), list(queries()))
def test_what_is_asked_for_is_served(where: str, query: str) -> None:
    assert faults(query) == []


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("sum(salt_request_queue)", "no metric salt_request_queue"),
        ('salt_minions{status="accepted"}', "salt_minions has no label status"),
        ("sum by (minion) (salt_job_returns_total)", "nothing has the label minion"),
        ("rate(salt_job_seconds[5m])", "no metric salt_job_seconds"),
        ('salt_minions_present < 0.9 * salt_minions{state="accepted"}', "never matches"),
        ("sum by (pod) (salt_requests_queued) > sum by (pool) (salt_workers)", "never matches"),
        ("max(salt_requests_queued) > salt_workers", "never matches"),
    ],
)
def test_a_wrong_query_is_found(query: str, says: str) -> None:
    assert any(fault.startswith(says) for fault in faults(query))


#: (metric, label) -> the values that roles give it.
VALUES = {
    ("salt_requests_queued", "pool"): {ONLY, UNOPENED},
    ("salt_auth_attempts_total", "result"): {row[-1].act for row in VERDICTS} | {FULL.act, UNREADABLE_KEY.act},
    ("salt_minions", "state"): set(STATES),
    ("salt_job_returns_total", "result"): {"first", "late", "duplicate", "external", "unkept"},
    ("salt_master_requests_handled_total", "outcome"): {"ok", "refused", "unavailable", "error"},
}


@pytest.mark.parametrize(("where", "query"), list(queries()))
def test_values_of_labels_are_such_as_roles_give(where: str, query: str) -> None:
    for name, matchers in _MATCHERS.findall(query):
        for label, values in re.findall(r'(\w+)[!=~]+"([^"]*)"', matchers):
            if label not in SCRAPED | {"resource"}:
                assert set(values.split("|")) <= VALUES[name, label], f"{name}: {label}"


def test_there_are_as_many_as_operators_need() -> None:
    assert len(RULES) >= 15
    assert sum("targets" in panel for panel in DASHBOARD["panels"]) >= 15
    shown = " ".join(target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ()))
    # The list: queue, busy, latency by command, auth, publications, returns, drops, minions, Redis, job latency.
    for name in (
        *(
            "salt_requests_queued",
            "salt_workers_busy",
            "salt_master_request_seconds_bucket",
            "salt_auth_attempts_total",
        ),
        *("salt_jobs_published_total", "salt_job_returns_total", "salt_events_dropped_total", "salt_minions"),
        *("salt_minions_present", "salt_redis_seconds", "salt_job_seconds_bucket"),
    ):
        assert name in shown, name


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    titles = re.findall(r"^## (\S+)$", RUNBOOKS, re.MULTILINE)
    assert titles == [rule["alert"] for rule in RULES]
    for rule in RULES:
        assert rule["annotations"]["runbook_url"] == f"docs/operations/runbooks/README.md#{rule['alert'].lower()}"
        assert rule["annotations"]["summary"]
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    parts = re.split(r"^## \S+$", RUNBOOKS, flags=re.MULTILINE)[1:]
    assert all("\nSee:\n" in part and "\nDo:\n" in part for part in parts)


def test_scrapes_reach_every_role_that_serves_metrics() -> None:
    (monitor,) = of_kind(overlay("ha"), "PodMonitor")
    roles = set(monitor["spec"]["selector"]["matchExpressions"][0]["values"])
    assert roles == {role for served in SERVED_BY.values() for role in served}
    (policy,) = [one for one in of_kind(overlay("ha"), "NetworkPolicy") if one["metadata"]["name"] == "metrics"]
    assert set(policy["spec"]["podSelector"]["matchExpressions"][0]["values"]) == roles
