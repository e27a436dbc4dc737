"""All Prometheus metrics of all roles. A metric that Salt has keeps Salt's name. No label holds a minion's id or a JID."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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
    workers_away: Gauge
    requests_unread: Counter
    worker_links: Gauge
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
    events_replayed: Counter
    minions_present: Gauge
    worker_cache_bytes: Gauge
    worker_copies_bytes: Gauge
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


class _Row(NamedTuple):
    """One metric: its kind, its name and text in ``/metrics``, and the roles that serve it. A role does not serve metrics of
    other roles, because their 0 would be wrong.
    """

    kind: type[Counter | Histogram]
    name: str
    doc: str
    roles: tuple[str, ...]
    labels: tuple[str, ...] = ()
    #: Upper bounds of a histogram's buckets.
    bounds: tuple[float, ...] = ()


#: Metric -> its row. The names are those of the attributes of Metrics.
_TABLE: Mapping[str, _Row] = {
    "requests": _Row(
        Counter,
        "salt_master_requests_handled",
        "Requests answered, by command and outcome",
        ("mworker",),
        ("cmd", "outcome"),
    ),
    "request_seconds": _Row(
        Histogram, "salt_master_request_seconds", "Time in a handler", ("mworker",), ("cmd",), _SECONDS
    ),
    "requests_queued": _Row(
        Gauge, "salt_requests_queued", "Requests that wait for a worker, by pool", ("reqserver",), ("pool",)
    ),
    "requests_requeued": _Row(
        Counter, "salt_requests_requeued", "Requests given to another worker because one died", ("reqserver",)
    ),
    "requests_refused": _Row(
        Counter, "salt_requests_refused", "Requests that no worker answered, by reason", ("reqserver",), ("reason",)
    ),
    "requests_handed_back": _Row(
        Counter, "salt_requests_handed_back", "Requests that were opened in another pool than theirs", ("reqserver",)
    ),
    "quota_refusals": _Row(
        Counter,
        "salt_quota_refusals",
        "What a minion was not allowed to store or fire, by limit",
        ("mworker",),
        ("quota",),
    ),
    "request_wait_seconds": _Row(
        Histogram,
        "salt_request_wait_seconds",
        "Time until a worker has a request, by pool",
        ("reqserver",),
        ("pool",),
        _SECONDS,
    ),
    "workers": _Row(Gauge, "salt_workers", "Workers that the reqserver knows, by pool", ("reqserver",), ("pool",)),
    "workers_busy": _Row(Gauge, "salt_workers_busy", "Workers that hold a request, by pool", ("reqserver",), ("pool",)),
    "workers_away": _Row(
        Gauge, "salt_workers_away", "Workers that are idle for another reqserver, by pool", ("reqserver",), ("pool",)
    ),
    "requests_unread": _Row(
        Counter,
        "salt_requests_unread",
        "Requests given to another worker because the first one had gone to another reqserver",
        ("reqserver",),
    ),
    "worker_links": _Row(
        Gauge,
        "salt_worker_links",
        "Connections of a worker to reqservers: 1 while one stands, 0 while not",
        ("mworker",),
        ("reqserver",),
    ),
    "dropped": _Row(
        Counter,
        "salt_messages_dropped",
        "Messages that could not be understood, by port",
        ("eventpublisher", "reqserver"),
        ("port",),
    ),
    "addresses_limited": _Row(
        Counter,
        "salt_addresses_limited",
        "Connections to 4506 that were refused (connections) or read later (requests) because of their address's rate",
        ("reqserver",),
        ("limit",),
    ),
    "jobs_published": _Row(Counter, "salt_jobs_published", "Jobs sent to minions", ("publisher",)),
    "returns": _Row(Counter, "salt_job_returns", "Returns stored, by what became of them", ("mworker",), ("result",)),
    "auth_attempts": _Row(Counter, "salt_auth_attempts", "Sign-ins, by answer", ("mworker",), ("result",)),
    "events": _Row(
        Counter, "salt_events_fired", "Events, by first part of the tag after salt/", ("eventpublisher",), ("prefix",)
    ),
    "subscribers": _Row(
        Gauge,
        "salt_subscribers",
        "Connected subscriptions",
        ("eventpublisher", "publisher"),
    ),
    "reactions": _Row(Counter, "salt_reactions", "Reactions carried out, by outcome", ("reactor",), ("outcome",)),
    "reactor_backlog": _Row(
        Gauge, "salt_reactor_backlog", "Events that no reactor is done with, of all reactors together", ("reactor",)
    ),
    "reactor_dead": _Row(Gauge, "salt_reactor_dead", "Events that were given up (salt-run reactor.dead)", ("reactor",)),
    "events_missed": _Row(
        Gauge, "salt_reactor_events_missed", "Events that left the stream before a reactor had them", ("reactor",)
    ),
    "events_refused": _Row(
        Counter,
        "salt_events_refused",
        "Events in Redis that reactors did not obey, by reason",
        ("reactor",),
        ("reason",),
    ),
    "aes_rotations": _Row(
        Counter,
        "salt_aes_rotations",
        "Changes of the key of publications",
        ("maintenance", "mworker"),
    ),
    "minions": _Row(Gauge, "salt_minions", "Minion keys, by state", ("maintenance",), ("state",)),
    "jobs_bytes": _Row(Gauge, "salt_jobs_bytes", "Bytes of loads and returns in the job cache", ("maintenance",)),
    "jobs_evicted": _Row(Counter, "salt_jobs_evicted", "Jobs dropped because of job_cache_bytes", ("maintenance",)),
    "lives_ended": _Row(
        Counter,
        "salt_job_minions_given_up",
        "Minions that a job no longer waits for, by why",
        ("maintenance",),
        ("state",),
    ),
    "store_faults": _Row(
        Counter,
        "salt_store_faults",
        "Keys in Redis that could not be read and were stepped over",
        ("maintenance", "mworker", "publisher"),
    ),
    "redis_up": _Row(
        Gauge,
        "salt_redis_up",
        "1 while Redis answers",
        ("maintenance", "mworker", "publisher", "reactor"),
    ),
    "redis_seconds": _Row(
        Gauge,
        "salt_redis_seconds",
        "Round trip to Redis, measured when this is read",
        ("maintenance", "mworker", "publisher", "reactor"),
    ),
    "job_seconds": _Row(
        Histogram,
        "salt_job_seconds",
        "Time from the publication of a job to its last return",
        ("mworker",),
        (),
        _JOB_SECONDS,
    ),
    "events_dropped": _Row(
        Counter, "salt_events_dropped", "Events that a slow listener did not get", ("eventpublisher",)
    ),
    "events_replayed": _Row(
        Counter,
        "salt_events_replayed",
        "Events sent once more to listeners that had lost another event publisher",
        ("eventpublisher",),
    ),
    "minions_present": _Row(
        Gauge, "salt_minions_present", "Minions that were heard of within presence_window", ("maintenance",)
    ),
    "worker_cache_bytes": _Row(
        Gauge,
        "salt_worker_cache_bytes",
        "Memory of the session keys and tokens of minions that a worker keeps (worker_cache_bytes)",
        ("mworker",),
    ),
    "worker_copies_bytes": _Row(
        Gauge,
        "salt_worker_copies_bytes",
        "Bytes in Redis of the grains and pillars that a worker has copied for targets; dropped after five minutes without use",
        ("mworker",),
    ),
    "api_requests": _Row(
        Counter,
        "salt_api_requests",
        "Requests to the API, by first part of the path and status",
        ("api",),
        ("path", "status"),
    ),
    "api_request_seconds": _Row(
        Histogram,
        "salt_api_request_seconds",
        "Time of a request to the API, by first part of the path",
        ("api",),
        ("path",),
        _SECONDS,
    ),
    "api_listeners": _Row(Gauge, "salt_api_listeners", "Open event streams of the API", ("api",)),
    "api_connections": _Row(Gauge, "salt_api_connections", "Open connections to the API", ("api",)),
    "api_listeners_dropped": _Row(
        Counter, "salt_api_listeners_dropped", "Event streams that ended because nobody read them", ("api",)
    ),
    "api_connections_refused": _Row(
        Counter, "salt_api_connections_refused", "Connections to the API above a limit", ("api",), ("limit",)
    ),
}

#: Metric -> roles that serve it.
SERVED_BY: Mapping[str, frozenset[str]] = {field: frozenset(row.roles) for field, row in _TABLE.items()}


def new_metrics(role: str) -> Metrics:
    """Return the metrics of a new process with a registry.

    The registry serves the metrics of ``role``, and the process's memory, CPU time and file descriptors.
    """
    registry = Registry()
    registry.add(process_rows)
    registry.add(collector_rows)
    made = {field: _made(row, registry if role in row.roles else None) for field, row in _TABLE.items()}
    return Metrics(registry, **made)


def _made(row: _Row, registry: Registry | None) -> Any:
    if issubclass(row.kind, Histogram):
        return row.kind(row.name, row.doc, row.labels, row.bounds, registry)
    return row.kind(row.name, row.doc, row.labels, registry)
