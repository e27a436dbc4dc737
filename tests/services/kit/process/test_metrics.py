"""Metrics: names as in the table, and no label that grows with the fleet."""

from __future__ import annotations

import threading
import time

import pytest
from prometheus_client.parser import text_string_to_metric_families

from saltern.kit.process.exposition import Counter, Gauge, Histogram, Registry
from saltern.kit.process.metrics import SERVED_BY, Metrics, new_metrics

ROLES = ("publisher", "reqserver", "mworker", "eventpublisher", "reactor", "maintenance", "minion", "api")

#: Labels whose values are a few words each.
_SMALL = {"cmd", "outcome", "port", "result", "prefix", "state", "le", "generation", "pool", "limit", "reason", "quota"}
_SMALL |= {"path", "status", "reqserver"}


def _touch_all(metrics: Metrics) -> None:
    for name in metrics._fields:
        metric = getattr(metrics, name)
        if not isinstance(metric, Registry):
            one = metric.labels(*["x"] * len(metric.label_names)) if metric.label_names else metric
            (one.observe if hasattr(one, "observe") else one.inc)(1)


def test_every_metric_is_served_under_its_name() -> None:
    served = ""
    for role in ROLES:
        metrics = new_metrics(role)
        _touch_all(metrics)
        served += metrics.registry.text()
        labels = {name for *_, samples in metrics.registry.rows() for _, has, _ in samples for name in has}
        assert labels <= _SMALL, "a label with a minion's id or a jid grows without end"
    for wanted in (
        'salt_master_requests_handled_total{cmd="x",outcome="x"} 1.0',
        'salt_master_request_seconds_bucket{cmd="x",le="1.0"} 1.0',
        'salt_requests_queued{pool="x"} 1.0',
        'salt_messages_dropped_total{port="x"} 1.0',
        'salt_minions{state="x"} 1.0',
        "process_resident_memory_bytes",
    ):
        assert wanted in served, wanted


def test_every_metric_has_a_role_and_every_role_serves_its_own_only() -> None:
    fields = {*Metrics._fields} - {"registry"}
    assert set(SERVED_BY) == fields
    assert all(roles and roles <= set(ROLES) for roles in SERVED_BY.values())
    reqserver = new_metrics("reqserver").registry.text()
    assert "salt_requests_requeued_total 0.0" in reqserver
    assert "salt_redis_up" not in reqserver
    assert "\nsalt_" not in new_metrics("minion").registry.text()


def test_processes_of_one_test_do_not_share_them() -> None:
    one, other = new_metrics("publisher"), new_metrics("publisher")
    one.jobs_published.inc()
    assert other.registry.value("salt_jobs_published_total") == 0.0


def test_prometheus_reads_it() -> None:
    """The reader of Prometheus' own client, on labels and documentation of every kind."""
    registry = Registry()
    counter = Counter("a", "What \\ it\nsays", ("x", "y"), registry)
    counter.labels('quote " back \\ line\n', "").inc(2)
    counter.labels('quote " back \\ line\n', "").inc()
    Gauge("b", "", (), registry).set(-2.5)
    histogram = Histogram("c", "Times", ("cmd",), (0.1, 1), registry)
    for value in (0.05, 0.1, 0.5, 7):
        histogram.labels("ping").observe(value)
    read = {family.name: family for family in text_string_to_metric_families(registry.text())}
    assert [(one.labels, one.value) for one in read["a"].samples] == [({"x": 'quote " back \\ line\n', "y": ""}, 3.0)]
    assert [(one.labels, one.value) for one in read["b"].samples] == [({}, -2.5)]
    assert [(one.name, one.labels.get("le"), one.value) for one in read["c"].samples] == [
        ("c_bucket", "0.1", 2.0),
        ("c_bucket", "1.0", 3.0),
        ("c_bucket", "+Inf", 4.0),
        ("c_count", None, 4.0),
        ("c_sum", None, 7.65),
    ]
    assert (read["a"].type, read["a"].documentation) == ("counter", "What \\ it\nsays")


def test_what_is_not_a_label_is_refused() -> None:
    counter = Counter("a", "", ("x",))
    for wrong in (lambda: counter.labels(), lambda: counter.labels("1", "2"), lambda: counter.inc()):
        with pytest.raises(ValueError, match="a_total has the labels"):
            wrong()
    with pytest.raises(TypeError, match="a_total only counts"):
        counter.labels("1").set(3)


def test_threads_lose_no_count() -> None:
    registry = Registry()
    counter = Counter("a", "", (), registry)
    threads = [threading.Thread(target=lambda: [counter.inc() for _ in range(2000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert registry.value("a_total") == 8000


def test_a_process_tells_its_own_figures() -> None:
    registry = new_metrics("minion").registry
    started = registry.value("process_start_time_seconds")
    assert started is not None
    assert time.time() - 86400 < started <= time.time() + 1
    assert (registry.value("process_cpu_seconds_total") or 0) > 0
    assert (registry.value("process_resident_memory_bytes") or 0) > 5_000_000
    assert (registry.value("process_open_fds") or 0) >= 3
    assert registry.value("python_gc_collections_total", {"generation": "0"}) is not None
