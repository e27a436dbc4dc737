"""Alerts and dashboard ask for metrics that roles serve, by labels that these have; each alert has a runbook, and the reverse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from masterstore.minion_keys import STATES
from saltwire.handshake import FULL, UNREADABLE_KEY, VERDICTS
from services.kit.exposition import Counter, Histogram, Metric
from services.kit.metrics import SERVED_BY, new_metrics
from tests.k8s.rendered import K8S, ROOT, of_kind, overlay

MONITORING = K8S / "components" / "monitoring"
RULES: list[dict[str, Any]] = yaml.safe_load((MONITORING / "alerts.yaml").read_text())["spec"]["groups"][0]["rules"]
DASHBOARD = json.loads((MONITORING / "saltern.json").read_text())
RUNBOOKS = (ROOT / "docs" / "operations" / "runbooks" / "README.md").read_text()

#: Labels that a scrape brings along (pod-monitors.yaml).
SCRAPED = frozenset({"namespace", "pod", "component", "le"})

#: Metrics of Prometheus itself, and of kube-state-metrics.
OTHERS = {"up": SCRAPED, "kube_pod_container_resource_limits": SCRAPED | {"resource"}}

#: Of each process (services/kit/exposition.py).
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
    ],
)
def test_a_wrong_query_is_found(query: str, says: str) -> None:
    assert says in faults(query)


#: (metric, label) -> the values that roles give it.
VALUES = {
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
