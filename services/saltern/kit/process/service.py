"""Start and end of every master role: options, logs, probes, signals, shutdown.

A role's module shows its loop: ``with service.open_role(...) as role: while role.running(): ...``. SIGTERM and SIGINT end the
loop. The role then has ``DRAIN_SECONDS`` to finish the requests that it holds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from saltern.kit.config.master import ConfigError, MasterOptions, key_directory, load_master
from saltern.kit.config.reading import notes_of, with_notes
from saltern.kit.config.redis_address import own_redis_url
from saltern.kit.process.health import Health
from saltern.kit.process.logs import configure
from saltern.kit.process.metrics import Metrics, new_metrics
from saltern.kit.process.own_directories import make_private
from saltern.kit.process.process import (
    Stop,
    exit_code,
    explain,
    hold,
    open_probes,
    role_arguments,
    with_log_flags,
)
from saltern.kit.process.tracing import Tracing

#: Seconds to finish requests at the end: half of the ten that container engines wait before they kill a process.
DRAIN_SECONDS = 5.0


class FaultsOfStore(Protocol):
    """The interface of ``masterstore.client.Faults`` (malformed data in Redis), for roles that must not import masterstore."""

    tell: Callable[[str, str], None]
    count: Callable[[], None]


@dataclass(frozen=True)
class Role:
    """A running master role, as its loop uses it: options, key directory, probes, metrics, log, stop flag and tracing."""

    name: str
    options: MasterOptions
    keys: Path
    health: Health
    metrics: Metrics
    log: logging.Logger
    stop: Stop
    tracing: Tracing
    #: Directory of the file ``master``; None: that of the environment. Empty: options are read once.
    config_dir: str | None = ""

    def running(self) -> bool:
        """Return False once the process was asked to end. Each call reports to ``/healthz`` that the role's loop runs."""
        self.health.record_iteration()
        return not self.stop.requested

    def watch_redis(self, trouble: Callable[[], str | None]) -> None:
        """Report the state of Redis in ``/readyz`` and in the metric ``salt_redis_up``.

        ``trouble`` returns None while Redis answers, else the reason.
        """
        self.health.check("redis", trouble)

        def is_up() -> float:
            started = time.monotonic()
            up = 0.0 if trouble() else 1.0
            self.metrics.redis_seconds.set(time.monotonic() - started)
            return up

        self.metrics.redis_up.set_function(is_up)

    def watch_faults(self, faults: FaultsOfStore) -> None:
        """Log each unreadable key in Redis once, and count in a metric how often an unreadable key was skipped."""
        faults.count = self.metrics.store_faults.inc
        faults.tell = partial(
            self.log.error, "the key %s in Redis is stepped over: %s; `saltern store check` names them all"
        )


@contextlib.contextmanager
def unusable(*kinds: type[Exception]) -> Iterator[None]:
    """Raise ConfigError with the same message in place of an exception of these kinds in the ``with`` block.

    It is for exceptions that a wrong configuration causes, so that the role reports them as such.
    """
    try:
        yield
    except kinds as error:
        raise ConfigError(str(error)) from error


@dataclass(frozen=True)
class Start:
    """The values with which a role's process starts: its options, its configuration directory, and flags of its command line."""

    options: MasterOptions
    config_dir: str | None = None
    #: The flag ``--log-level``, which replaces the option.
    log_level: str | None = None
    #: Option -> value of a flag of the command line, as it is in ``options``.
    given: Mapping[str, Any] = field(default_factory=dict)
    #: Sentences about the configuration that are logged once.
    notes: tuple[str, ...] = ()
    #: Listening socket on which probes are answered, in place of ``health_port``.
    listener: socket.socket | None = None
    #: The role, made before a fork; None: it is made in its own process.
    role: Role | None = None

    def configure_logs(self, role: str, process: str = "") -> None:
        """Configure this process's log as the options say. Raises ConfigError for an unknown level or format.

        ``process``: name of this process among several of the role.
        """
        configure(role, self.options, self.log_level, process)

    def report_notes(self, log: logging.Logger) -> None:
        """Log a warning for each remark that was made while the configuration was read (``notes``)."""
        for note in self.notes:
            log.warning("%s", note)


@dataclass(frozen=True)
class RoleProgram:
    """The program of a master role: its name, the function that prepares its loop, and its own command-line flags."""

    name: str
    #: Returns the role's loop. It may run before a fork, so it opens no socket and no connection and starts no thread.
    prepare: Callable[[Role], Callable[[], None]]
    #: Additional command-line flag -> (option that it overrides, help text).
    flags: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    #: Seconds for which one iteration of the loop may last.
    longest: Callable[[MasterOptions], float] = lambda options: options.request_deadline
    #: Runs the role with options that were read, and returns the exit code.
    run: Callable[[RoleProgram, Start], int] = lambda program, start: run_prepared(program, start)
    #: Whether the role keeps files in ``cachedir``.
    caches: bool = False


def read_arguments(program: RoleProgram, argv: Sequence[str] | None) -> Start:
    """Return the Start of a role: the options of its configuration, overridden by its command line. The log is configured.

    Raises ConfigError for an unusable configuration, after ``/readyz`` gave the reason for ``config_error_pause`` seconds.
    """
    arguments = role_arguments(program.name, argv, program.flags)
    try:
        options = load_master(arguments.config_dir)
        notes = tuple(notes_of(options))
        wanted = {option: getattr(arguments, option) for option, _ in program.flags.values()}
        given = {option: value for option, value in wanted.items() if value is not None}
        # Many processes have no such flags; replacing nothing would run a lot of code.
        options = dataclasses.replace(options, **given) if given else options
        options = with_log_flags(options, arguments)
        start = Start(options, arguments.config_dir, arguments.log_level, given, notes)
        start.configure_logs(program.name)
    except ConfigError as error:
        explain(program.name, "master", arguments.config_dir, error)
        raise
    return start


def new_role(program: RoleProgram, start: Start) -> Role:
    """Return a Role (options, probes, log, stop flag and more) whose loop does not run yet.

    Raises ConfigError if tracing is on and cannot be set up.
    """
    name, options = program.name, start.options
    metrics = new_metrics(name)
    # A worker's loop may stand still for one request up to its deadline.
    health = Health(name, metrics.registry, stall_after=2.0 * program.longest(options))
    log = logging.getLogger(f"saltern.{name}")
    keys = key_directory(options, name, start.config_dir)
    options = with_notes(
        dataclasses.replace(options, redis_url=own_redis_url(options.redis_url, keys)), notes_of(options)
    )
    return Role(
        name, options, keys, health, metrics, log, Stop(), Tracing(options.tracing, f"saltern-{name}"), start.config_dir
    )


def serve(role: Role, prepare: Callable[[Role], Callable[[], None]], listener: socket.socket | None = None) -> None:
    """Answer probes and run the loop function that ``prepare`` returns, until SIGTERM or SIGINT.

    ``listener``: listening socket on which probes are answered, in place of ``health_port``. Raises ConfigError, after
    ``/readyz`` gave the reason for ``config_error_pause`` seconds.
    """
    with open_probes(role.health, role.options, listener):
        role.stop.catch()
        # Before its loop runs, a role has not registered all its checks.
        role.health.check("start", lambda: None if role.health.begun else f"the loop of {role.name} has not begun")
        role.log.info("%s starts", role.name)
        try:
            prepare(role)()
        except ConfigError as error:
            hold(role.health, role.stop, role.log, error, role.options.config_error_pause)
            raise
        role.tracing.close()
        role.log.info("%s ends", role.name)


def run_role(program: RoleProgram, argv: Sequence[str] | None = None) -> int:
    """Run a master role until it is asked to end. Return exit code 0, or 78 when the configuration cannot be used."""
    try:
        start = read_arguments(program, argv)
    except ConfigError as error:
        return unusable_configuration(program.name, error)
    return program.run(program, start)


def run_prepared(program: RoleProgram, start: Start) -> int:
    """Run a role in this process until SIGTERM or SIGINT, with options that are read already (``start``).

    Return exit code 0; 78, or 69 for a taken port, if the role cannot use its configuration.
    """
    log = logging.getLogger(f"saltern.{program.name}")
    start.report_notes(log)
    # Other roles keep nothing on disk.
    if program.caches:
        make_private(start.options, start.options.cachedir, log)
    try:
        serve(start.role or new_role(program, start), program.prepare, start.listener)
    except ConfigError as error:
        return unusable_configuration(program.name, error)
    return 0


def unusable_configuration(name: str, error: ConfigError) -> int:
    """Print why the process ``name`` cannot use its configuration and return the exit code: 78, or 69 for a taken port."""
    print(f"saltern {name}: {error}", file=sys.stderr)  # noqa: T201 - logs may not be set up yet
    return exit_code(error)
