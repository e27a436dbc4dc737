"""All Prometheus metrics of all roles. A metric that Salt has keeps Salt's name. No label holds a minion's id or a JID."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from saltern.kit.process.exposition import Counter, Gauge, Histogram, Registry, collector_rows, process_rows

#: From one millisecond (a ping) to a minute (the request deadline).
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

#: From a ping to an hour: a highstate of a fleet takes minutes.
_JOB_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)


class Metrics(NamedTuple):
    """The Prometheus metrics of one process, one attribute for each, and the registry that serves them."""

    registry: Registry
    requests: Counter
    request_seconds: Histogram
    requests_queued: Gauge
    requests_requeued: Counter
    requests_refused: Counter
    requests_handed_back: Counter
    quota_refusals: Counter
    request_wait_seconds: Histogram
    workers: Gauge
    workers_busy: Gauge
    dropped: Counter
    addresses_limited: Counter
    jobs_published: Counter
    returns: Counter
    auth_attempts: Counter
    events: Counter
    subscribers: Gauge
    reactions: Counter
    reactor_backlog: Gauge
    reactor_dead: Gauge
    events_missed: Gauge
    events_refused: Counter
    aes_rotations: Counter
    minions: Gauge
    redis_up: Gauge
    redis_seconds: Gauge
    job_seconds: Histogram
    events_dropped: Counter
    minions_present: Gauge
    worker_cache_bytes: Gauge
    jobs_bytes: Gauge
    jobs_evicted: Counter
    lives_ended: Counter
    store_faults: Counter
    api_requests: Counter
    api_request_seconds: Histogram
    api_listeners: Gauge
    api_connections: Gauge
    api_listeners_dropped: Counter
    api_connections_refused: Counter


#: Metric -> roles that serve it. A role does not serve metrics of other roles, because their 0 would be wrong.
SERVED_BY: Mapping[str, frozenset[str]] = {
    "requests": frozenset({"mworker"}),
    "request_seconds": frozenset({"mworker"}),
    "requests_queued": frozenset({"reqserver"}),
    "requests_requeued": frozenset({"reqserver"}),
    "requests_refused": frozenset({"reqserver"}),
    "requests_handed_back": frozenset({"reqserver"}),
    "quota_refusals": frozenset({"mworker"}),
    "request_wait_seconds": frozenset({"reqserver"}),
    "workers": frozenset({"reqserver"}),
    "workers_busy": frozenset({"reqserver"}),
    "dropped": frozenset({"reqserver", "eventpublisher"}),
    "addresses_limited": frozenset({"reqserver"}),
    "jobs_published": frozenset({"publisher"}),
    "returns": frozenset({"mworker"}),
    "auth_attempts": frozenset({"mworker"}),
    "events": frozenset({"eventpublisher"}),
    "subscribers": frozenset({"publisher", "eventpublisher"}),
    "reactions": frozenset({"reactor"}),
    "reactor_backlog": frozenset({"reactor"}),
    "reactor_dead": frozenset({"reactor"}),
    "events_missed": frozenset({"reactor"}),
    "events_refused": frozenset({"reactor"}),
    "aes_rotations": frozenset({"mworker", "maintenance"}),
    "minions": frozenset({"maintenance"}),
    "jobs_bytes": frozenset({"maintenance"}),
    "jobs_evicted": frozenset({"maintenance"}),
    "lives_ended": frozenset({"maintenance"}),
    "store_faults": frozenset({"mworker", "publisher", "maintenance"}),
    "redis_up": frozenset({"mworker", "publisher", "maintenance", "reactor"}),
    "redis_seconds": frozenset({"mworker", "publisher", "maintenance", "reactor"}),
    "job_seconds": frozenset({"mworker"}),
    "events_dropped": frozenset({"eventpublisher"}),
    "minions_present": frozenset({"maintenance"}),
    "worker_cache_bytes": frozenset({"mworker"}),
    **dict.fromkeys(
        (
            *("api_requests", "api_request_seconds", "api_listeners", "api_connections"),
            *("api_listeners_dropped", "api_connections_refused"),
        ),
        frozenset({"api"}),
    ),
}


def new_metrics(role: str) -> Metrics:
    """Return the metrics of a new process with a registry.

    The registry serves the metrics of ``role``, and the process's memory, CPU time and file descriptors.
    """
    registry = Registry()
    registry.add(process_rows)
    registry.add(collector_rows)

    def served(field: str) -> Registry | None:
        return registry if role in SERVED_BY[field] else None

    def counter(field: str, name: str, doc: str, *labels: str) -> Counter:
        return Counter(name, doc, labels, served(field))

    def gauge(field: str, name: str, doc: str, *labels: str) -> Gauge:
        return Gauge(name, doc, labels, served(field))

    return Metrics(
        registry=registry,
        requests=counter(
            "requests", "salt_master_requests_handled", "Requests answered, by command and outcome", "cmd", "outcome"
        ),
        request_seconds=Histogram(
            "salt_master_request_seconds",
            "Time in a handler",
            ("cmd",),
            bounds=_SECONDS,
            registry=served("request_seconds"),
        ),
        requests_queued=gauge(
            "requests_queued", "salt_requests_queued", "Requests that wait for a worker, by pool", "pool"
        ),
        requests_requeued=counter(
            "requests_requeued", "salt_requests_requeued", "Requests given to another worker because one died"
        ),
        requests_refused=counter(
            "requests_refused", "salt_requests_refused", "Requests that no worker answered, by reason", "reason"
        ),
        requests_handed_back=counter(
            "requests_handed_back", "salt_requests_handed_back", "Requests that were opened in another pool than theirs"
        ),
        quota_refusals=counter(
            "quota_refusals", "salt_quota_refusals", "What a minion was not allowed to store or fire, by limit", "quota"
        ),
        request_wait_seconds=Histogram(
            "salt_request_wait_seconds",
            "Time until a worker has a request, by pool",
            ("pool",),
            bounds=_SECONDS,
            registry=served("request_wait_seconds"),
        ),
        workers=gauge("workers", "salt_workers", "Workers that the reqserver knows, by pool", "pool"),
        workers_busy=gauge("workers_busy", "salt_workers_busy", "Workers that hold a request, by pool", "pool"),
        dropped=counter("dropped", "salt_messages_dropped", "Messages that could not be understood, by port", "port"),
        addresses_limited=counter(
            "addresses_limited",
            "salt_addresses_limited",
            "Connections to 4506 that were refused (connections) or read later (requests) because of their address's rate",
            "limit",
        ),
        jobs_published=counter("jobs_published", "salt_jobs_published", "Jobs sent to minions"),
        returns=counter("returns", "salt_job_returns", "Returns stored, by what became of them", "result"),
        auth_attempts=counter("auth_attempts", "salt_auth_attempts", "Sign-ins, by answer", "result"),
        events=counter("events", "salt_events_fired", "Events, by first part of the tag after salt/", "prefix"),
        subscribers=gauge("subscribers", "salt_subscribers", "Connected subscriptions"),
        reactions=counter("reactions", "salt_reactions", "Reactions carried out, by outcome", "outcome"),
        reactor_backlog=gauge(
            "reactor_backlog", "salt_reactor_backlog", "Events that no reactor is done with, of all reactors together"
        ),
        reactor_dead=gauge("reactor_dead", "salt_reactor_dead", "Events that were given up (salt-run reactor.dead)"),
        events_missed=gauge(
            "events_missed", "salt_reactor_events_missed", "Events that left the stream before a reactor had them"
        ),
        events_refused=counter(
            "events_refused", "salt_events_refused", "Events in Redis that reactors did not obey, by reason", "reason"
        ),
        aes_rotations=counter("aes_rotations", "salt_aes_rotations", "Changes of the key of publications"),
        minions=gauge("minions", "salt_minions", "Minion keys, by state", "state"),
        jobs_bytes=gauge("jobs_bytes", "salt_jobs_bytes", "Bytes of loads and returns in the job cache"),
        jobs_evicted=counter("jobs_evicted", "salt_jobs_evicted", "Jobs dropped because of job_cache_bytes"),
        lives_ended=counter(
            "lives_ended", "salt_job_minions_given_up", "Minions that a job no longer waits for, by why", "state"
        ),
        store_faults=counter(
            "store_faults", "salt_store_faults", "Keys in Redis that could not be read and were stepped over"
        ),
        redis_up=gauge("redis_up", "salt_redis_up", "1 while Redis answers"),
        redis_seconds=gauge("redis_seconds", "salt_redis_seconds", "Round trip to Redis, measured when this is read"),
        job_seconds=Histogram(
            "salt_job_seconds",
            "Time from the publication of a job to its last return",
            (),
            bounds=_JOB_SECONDS,
            registry=served("job_seconds"),
        ),
        events_dropped=counter("events_dropped", "salt_events_dropped", "Events that a slow listener did not get"),
        minions_present=gauge(
            "minions_present", "salt_minions_present", "Minions that were heard of within presence_window"
        ),
        worker_cache_bytes=gauge(
            "worker_cache_bytes",
            "salt_worker_cache_bytes",
            "Memory of the session keys and tokens of minions that a worker keeps (worker_cache_bytes)",
        ),
        api_requests=counter(
            "api_requests",
            "salt_api_requests",
            "Requests to the API, by first part of the path and status",
            "path",
            "status",
        ),
        api_request_seconds=Histogram(
            "salt_api_request_seconds",
            "Time of a request to the API, by first part of the path",
            ("path",),
            bounds=_SECONDS,
            registry=served("api_request_seconds"),
        ),
        api_listeners=gauge("api_listeners", "salt_api_listeners", "Open event streams of the API"),
        api_connections=gauge("api_connections", "salt_api_connections", "Open connections to the API"),
        api_listeners_dropped=counter(
            "api_listeners_dropped", "salt_api_listeners_dropped", "Event streams that ended because nobody read them"
        ),
        api_connections_refused=counter(
            "api_connections_refused", "salt_api_connections_refused", "Connections to the API above a limit", "limit"
        ),
    )
