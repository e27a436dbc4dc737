"""Metrics: names as in the table, and no label that grows with the fleet."""

from __future__ import annotations

import dataclasses

from prometheus_client import CollectorRegistry, generate_latest

from services.kit.metrics import SERVED_BY, Metrics, new_metrics

ROLES = ("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance", "minion")

#: Labels whose values are a few words each.
_SMALL = {"cmd", "outcome", "port", "result", "prefix", "state", "le", "generation"}


def _touch_all(metrics: Metrics) -> None:
    for item in dataclasses.fields(metrics):
        metric = getattr(metrics, item.name)
        if not isinstance(metric, CollectorRegistry):
            one = metric.labels(*["x"] * len(metric._labelnames)) if metric._labelnames else metric
            (one.observe if hasattr(one, "observe") else one.inc)(1)


def test_every_metric_is_served_under_its_name() -> None:
    served = ""
    for role in ROLES:
        metrics = new_metrics(role)
        _touch_all(metrics)
        served += generate_latest(metrics.registry).decode()
        labels = {name for family in metrics.registry.collect() for sample in family.samples for name in sample.labels}
        assert labels <= _SMALL, "a label with a minion's id or a jid grows without end"
    for wanted in (
        'salt_master_requests_handled_total{cmd="x",outcome="x"} 1.0',
        'salt_master_request_seconds_bucket{cmd="x",le="1.0"} 1.0',
        "salt_requests_queued 1.0",
        'salt_messages_dropped_total{port="x"} 1.0',
        'salt_minions{state="x"} 1.0',
        "process_resident_memory_bytes",
    ):
        assert wanted in served, wanted


def test_every_metric_has_a_role_and_every_role_serves_its_own_only() -> None:
    fields = {item.name for item in dataclasses.fields(Metrics)} - {"registry"}
    assert set(SERVED_BY) == fields
    assert all(roles and roles <= set(ROLES) for roles in SERVED_BY.values())
    reqserver = generate_latest(new_metrics("reqserver").registry).decode()
    assert "salt_workers 0.0" in reqserver
    assert "salt_redis_up" not in reqserver
    assert "\nsalt_" not in generate_latest(new_metrics("minion").registry).decode()


def test_processes_of_one_test_do_not_share_them() -> None:
    one, other = new_metrics("publisher"), new_metrics("publisher")
    one.jobs_published.inc()
    assert other.registry.get_sample_value("salt_jobs_published_total") == 0.0
