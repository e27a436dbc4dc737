"""Every metric of every role, in one place. Salt's names where Salt has the metric; no label holds a minion id or a jid."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

#: From one millisecond (a ping) to a minute (the request deadline).
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@dataclass(frozen=True)
class Metrics:
    """The metrics of one process, with the registry that holds them."""

    registry: CollectorRegistry
    requests: Counter
    request_seconds: Histogram
    requests_queued: Gauge
    requests_requeued: Counter
    workers: Gauge
    workers_busy: Gauge
    dropped: Counter
    jobs_published: Counter
    returns: Counter
    auth_attempts: Counter
    events: Counter
    subscribers: Gauge
    reactions: Counter
    aes_rotations: Counter
    minions: Gauge
    redis_up: Gauge


def new_metrics() -> Metrics:
    """A fresh set, with the process's own figures (memory, CPU, file descriptors)."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)

    def counter(name: str, doc: str, *labels: str) -> Counter:
        return Counter(name, doc, labels, registry=registry)

    def gauge(name: str, doc: str, *labels: str) -> Gauge:
        return Gauge(name, doc, labels, registry=registry)

    return Metrics(
        registry=registry,
        requests=counter("salt_master_requests_handled", "Requests answered, by command and outcome", "cmd", "outcome"),
        request_seconds=Histogram(
            "salt_master_request_seconds", "Time in a handler", ("cmd",), buckets=_SECONDS, registry=registry
        ),
        requests_queued=gauge("salt_requests_queued", "Requests that wait for a worker"),
        requests_requeued=counter("salt_requests_requeued", "Requests given to another worker because one died"),
        workers=gauge("salt_workers", "Workers that the reqserver knows"),
        workers_busy=gauge("salt_workers_busy", "Workers that hold a request"),
        dropped=counter("salt_messages_dropped", "Messages that could not be understood, by port", "port"),
        jobs_published=counter("salt_jobs_published", "Jobs sent to minions"),
        returns=counter("salt_job_returns", "Returns stored, by what became of them", "result"),
        auth_attempts=counter("salt_auth_attempts", "Sign-ins, by answer", "result"),
        events=counter("salt_events_fired", "Events, by first part of the tag after salt/", "prefix"),
        subscribers=gauge("salt_subscribers", "Connected subscriptions"),
        reactions=counter("salt_reactions", "Reactions carried out, by outcome", "outcome"),
        aes_rotations=counter("salt_aes_rotations", "Changes of the key of publications"),
        minions=gauge("salt_minions", "Minion keys, by state", "state"),
        redis_up=gauge("salt_redis_up", "1 while Redis answers"),
    )
