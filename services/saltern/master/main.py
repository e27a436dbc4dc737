"""The supervisor process of ``salt-master``: forks all roles of a master on one machine, and starts a Redis if the
configuration names none.

The roles are those that containers run, joined by the same links on loopback. Minions reach 4505 and 4506, operators
on this machine 4507. A role that ends is started again. SIGTERM ends the roles and then Redis; SIGHUP reads the
configuration again and replaces the roles one after the other. Source: docs/operations/hosts.md
"""

from __future__ import annotations

import dataclasses
import logging
import math
import selectors
import socket
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from saltern.kit.config.master import (
    ConfigError,
    MasterOptions,
    config_directory,
    load_whole_master,
    redis_socket,
    redis_socket_url,
)
from saltern.kit.config.reading import notes_of
from saltern.kit.process.exposition import Registry, collector_rows, process_rows
from saltern.kit.process.logs import configure
from saltern.kit.process.notify import Notifier
from saltern.kit.process.own_directories import make_private
from saltern.kit.process.prefork import Child, Parent
from saltern.kit.process.process import explain, role_arguments, with_log_flags
from saltern.kit.process.role_children import ROLES, after_fork, before_fork, load_shared_modules, role_program
from saltern.kit.process.run_as import become
from saltern.kit.process.service import DRAIN_SECONDS, Start, unusable_configuration
from saltern.kit.process.shared_probes import SharedProbes, ask, new_listener, open_port
from saltern.master import own_keys, own_redis

_LOG = logging.getLogger("saltern.master")

#: Stages in which the master ends: the roles first, then its Redis.
_REDIS, _ROLES = 0, 1

#: Seconds between SIGTERM and SIGKILL for a role without longer requests, and for Redis, which writes its data.
_GRACE = 15.0

#: Seconds between two looks whether all roles are ready, and after which systemd is told that the master has started in any case:
#: a Redis elsewhere may be away for long.
_LOOK = 0.25
_LONGEST_START = 30.0


@dataclass
class Announcement:
    """Tells systemd when all roles of the master are ready. The supervisor's loop calls its methods
    (``prefork.Attached``).
    """

    notifier: Notifier
    listeners: Mapping[str, socket.socket]
    _began: float = math.inf
    _next: float = 0.0

    def attach(self, selector: selectors.BaseSelector) -> None:
        """Record the time of the start. No socket is registered with the selector."""
        self._began = time.monotonic()

    def next_time(self) -> float:
        """Return the monotonic time at which to ask the roles again whether they are ready; infinity once systemd was
        told.
        """
        return self._next

    def tick(self, now: float) -> None:
        """Ask each role whether it is ready. Tell systemd that the service has started when all are ready, or 30
        seconds after the start.
        """
        if now < self._next:
            return
        answers = ask(self.listeners, "/readyz")
        waiting = [name for name in self.listeners if answers.get(name, (0, ""))[0] != 200]
        if waiting and now - self._began < _LONGEST_START:
            self.notifier.status(f"waits for {', '.join(waiting)}")
            self._next = now + _LOOK
            return
        self._next = math.inf
        for name in waiting:
            _LOG.warning("%s is not ready: %s", name, answers.get(name, (0, "no answer"))[1].strip())
        said = f"; not ready at the start: {', '.join(waiting)}" if waiting else ""
        self.notifier.ready(f"{len(self.listeners)} roles run{said}")
        if not waiting:
            _LOG.info("the master is ready")

    def files(self) -> Iterable[socket.socket]:
        """Yield the sockets on which the roles answer probes. A child process closes them after its fork, except its
        own.
        """
        yield from self.listeners.values()


@dataclass(frozen=True)
class Plan:
    """The values with which the supervisor starts the roles: the configuration directory, the log level, and for each
    role the socket on which it answers probes.
    """

    config_dir: str | None
    log_level: str | None
    listeners: Mapping[str, socket.socket]

    def children(self, options: MasterOptions) -> list[Child]:
        """Return the Child objects (name and function to run) of the supervisor for these options: the roles, and
        Redis if ``redis_url`` is empty.

        Raises ConfigError.
        """
        children = []
        if not options.redis_url:
            children.append(
                Child(
                    "redis",
                    own_redis.prepared(options, config_directory(self.config_dir) / "keys"),
                    _REDIS,
                    _GRACE,
                    reloads=False,
                )
            )
            options = dataclasses.replace(options, redis_url=redis_socket_url(options))
        return [*children, *(self._role(name, options) for name in ROLES)]

    def _role(self, name: str, options: MasterOptions) -> Child:
        role = role_program(name)
        listener = self.listeners[name]
        # A role that reads the configuration itself later must not find other values than these.
        given = {option: getattr(options, option) for option in ("redis_url", "internal_interface", "worker_processes")}
        start = Start(options, self.config_dir, self.log_level, given, listener=listener)
        grace = max(_GRACE, role.longest(options) + 3 * DRAIN_SECONDS) if name == "mworker" else _GRACE
        return Child(name, after_fork(role, before_fork(role, start)), _ROLES, grace, keeps=(listener,))


def main(argv: Sequence[str] | None = None) -> int:
    """Run all roles of a master until SIGTERM. Return the exit code: 0; 78, or 69 for a taken port, if they cannot be
    started; 1 if packages are missing.
    """
    arguments = role_arguments("master", argv)
    notifier = Notifier.taken()
    try:
        try:
            options = with_log_flags(load_whole_master(arguments.config_dir), arguments)
            configure("master", options, arguments.log_level)
        except ConfigError as error:
            explain("master", "master", arguments.config_dir, error)
            raise
        for note in notes_of(options):
            _LOG.warning("%s", note)
        # First: nothing is written where the packages of a master are missing.
        for name in ROLES:
            role_program(name)
        own_keys.complete(options, arguments.config_dir)
        become(options.user)
        make_private(options, options.cachedir, _LOG)
        load_shared_modules()
        plan = Plan(arguments.config_dir, arguments.log_level, {name: new_listener() for name in ROLES})
        parent = Parent(plan.children(options), _LOG, reload=lambda: _reloaded(plan, options))
        server = open_port(options.health_host, options.health_port)
    except ConfigError as error:
        return unusable_configuration("master", error)
    except ImportError as error:
        sys.stderr.write(
            f"salt-master: {error}: the packages of a master are missing: pip install 'saltern-services[master]'\n"
        )
        return 1
    if server is not None:
        roles = {name: parent.watched[name] for name in ROLES}
        parent.attached.append(SharedProbes(server, plan.listeners, roles, _registry(), "master"))
    parent.attached.append(Announcement(notifier, plan.listeners))
    _LOG.info("%d programs start: %s", len(parent.watched), ", ".join(parent.watched))
    code = parent.run()
    if not options.redis_url:
        # While the socket exists, it is the default of redis_url.
        redis_socket(options).unlink(missing_ok=True)
    return code


def make_keys(config_dir: str | None) -> int:
    """Make the missing keys of all roles of the master. Return exit code 0; 78, with the reason on stderr, if that
    fails.
    """
    try:
        options = load_whole_master(config_dir)
        configure("master", options)
        own_keys.complete(options, config_dir)
    except ConfigError as error:
        return unusable_configuration("master", error)
    return 0


def _reloaded(plan: Plan, running: MasterOptions) -> Sequence[Child] | None:
    """Read the configuration again and return the new Child objects of the supervisor. Return None, and log the
    reason, if the configuration cannot be used.
    """
    try:
        options = load_whole_master(plan.config_dir)
        for name in ("redis_url", "redis_dir", "user"):
            if getattr(options, name) != getattr(running, name):
                raise ConfigError(f"{name} was changed, which needs a restart of the master")
        for note in notes_of(options):
            _LOG.warning("%s", note)
        return plan.children(options)
    except ConfigError as error:
        _LOG.error("the roles keep their options, because the configuration cannot be used: %s", error)
        return None


def _registry() -> Registry:
    """Return a Registry with the metrics of the supervisor process itself: memory, CPU time, garbage collector."""
    registry = Registry()
    for source in (process_rows, collector_rows):
        registry.add(source)
    return registry
