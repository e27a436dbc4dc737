"""Several workers of one container or machine: a parent loads the modules, the options and the keys, and forks the workers.

Each worker then costs only the memory that it writes to. The workers are independent: each has its own connections, and the
end of one ends no other. The parent serves the probes and metrics of all of them on the one health port.
Source: docs/decisions/0017-workers-from-one-parent.md
"""

from __future__ import annotations

import dataclasses
import importlib
import logging
import socket
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from saltern.kit.config.master import ConfigError, load_master
from saltern.kit.config.reading import notes_of
from saltern.kit.process.exposition import Registry, Rows, Sample, collector_rows, process_rows
from saltern.kit.process.prefork import Child, Parent
from saltern.kit.process.process import Stop, hold, new_health, open_probes
from saltern.kit.process.service import DRAIN_SECONDS, RoleProgram, Start, new_role, serve, unusable_configuration
from saltern.kit.process.shared_probes import SharedProbes, new_listener, open_port
from saltern.kit.process.supervision import EX_RENEW, Watched

#: Modules that a worker needs for its first requests; loaded later, each worker would hold its own copy of them.
_FIRST_NEEDED = ("encodings.idna", "secrets", "stringprep", "unicodedata")

_LOG = logging.getLogger("saltern.mworker")


def run(program: RoleProgram, start: Start, renewing: tuple[type[Exception], ...]) -> int:
    """Run a parent with ``worker_processes`` workers until SIGTERM or SIGINT. Return the exit code.

    ``renewing``: exceptions that a worker's loop raises to be replaced by a new process.
    """
    names = [f"mworker-{number}" for number in range(1, start.options.worker_processes + 1)]
    listeners = {name: new_listener() for name in names}
    for module in _FIRST_NEEDED:
        importlib.import_module(module)
    try:
        children = prepared(program, start, listeners, renewing)
        server = start.listener or open_port(start.options.health_host, start.options.health_port)
    except ConfigError as error:
        return _refuse(program, start, error)

    def reload() -> Sequence[Child] | None:
        try:
            read = load_master(start.config_dir)
            notes, options = tuple(notes_of(read)), dataclasses.replace(read, **start.given)
            again = dataclasses.replace(start, options=options, notes=notes, role=None)
            again.report_notes(_LOG)
            return prepared(program, again, listeners, renewing)
        except ConfigError as error:
            _LOG.error("the workers keep their options, because the configuration cannot be used: %s", error)
            return None

    parent = Parent(children, _LOG, reload=reload)
    if server is not None:
        parent.attached.append(SharedProbes(server, listeners, parent.watched, _registry(parent), program.name))
    start.report_notes(_LOG)
    _LOG.info("%d workers start", len(children))
    return parent.run()


def prepared(
    program: RoleProgram,
    start: Start,
    listeners: Mapping[str, socket.socket],
    renewing: tuple[type[Exception], ...],
) -> list[Child]:
    """Return the Child objects (name and function) of all workers, with options, keys and modules loaded before the fork.

    Raises ConfigError.
    """
    role = start.role or new_role(program, start)
    # Runs once, in the parent; every worker runs its own copy of the loop.
    loop = program.prepare(role)
    # What a worker may take for its last request, and for the runners that it started.
    grace = program.longest(start.options) + 2 * DRAIN_SECONDS

    def worker(name: str, listener: socket.socket) -> int:
        start.configure_logs(program.name, name)
        try:
            serve(role, lambda role: loop, listener)
        except renewing:
            return EX_RENEW
        except ConfigError as error:
            return unusable_configuration(program.name, error)
        return 0

    return [
        Child(name, lambda name=name, listener=listener: worker(name, listener), grace=grace, keeps=(listener,))  # type: ignore[misc]
        for name, listener in listeners.items()
    ]


def _refuse(program: RoleProgram, start: Start, error: ConfigError) -> int:
    """Report on ``/readyz`` and in the log, for ``config_error_pause`` seconds, why no worker can start. Return the
    exit code.
    """
    health, stop = new_health(program.name), Stop()
    try:
        with open_probes(health, start.options, start.listener):
            stop.catch()
            hold(health, stop, _LOG, error, start.options.config_error_pause)
    except ConfigError as taken:
        error = taken
    return unusable_configuration(program.name, error)


def _registry(parent: Parent) -> Registry:
    """Return the metrics of the parent itself: its memory, and its workers by state."""
    registry = Registry()
    for source in (process_rows, collector_rows, lambda: worker_rows(parent.watched.values())):
        registry.add(source)
    return registry


def worker_rows(workers: Collection[Watched]) -> Iterator[Rows]:
    """Yield the metric rows of a parent: its workers by state, and how often one ended without having been asked to."""
    states = Counter(one.state for one in workers)
    name = "salt_worker_processes"
    rows = [(name, {"state": state}, float(states[state])) for state in ("running", "ending", "waiting", "failed")]
    yield "gauge", name, "Workers of one parent, by state", rows
    name = "salt_worker_failures_total"
    failures: list[Sample] = [(name, {}, float(sum(one.failures for one in workers)))]
    yield "counter", name, "Ends of workers that nobody had asked to end", failures
