"""Start and end of every master role: options, logs, probes, signals, shutdown.

A role's module shows its loop: ``with service.open_role(...) as role: while role.running(): ...``. SIGTERM and SIGINT end the
loop. The role then has ``DRAIN_SECONDS`` to finish the requests that it holds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from saltern.kit.config.master import ConfigError, MasterOptions, key_directory, load_master
from saltern.kit.config.reading import notes_of
from saltern.kit.process.health import Health
from saltern.kit.process.logs import configure
from saltern.kit.process.metrics import Metrics
from saltern.kit.process.process import EX_CONFIG, Stop, catch_signals, explain, hold, open_probes, role_arguments
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


def run_role(
    name: str,
    loop: Callable[[Role], None],
    argv: Sequence[str] | None = None,
    *,
    flags: Mapping[str, tuple[str, str]] | None = None,
    longest: Callable[[MasterOptions], float] = lambda options: options.request_deadline,
) -> int:
    """Run a master role until it is asked to end. Return exit code 0, or 78 when the configuration cannot be used.

    ``flags`` maps each additional command-line flag of the role to the option that it overrides and its help text.
    ``longest`` returns the seconds for which one iteration of the loop may last.
    """
    arguments = role_arguments(name, argv, flags)
    try:
        try:
            options = load_master(arguments.config_dir)
            notes = notes_of(options)
            given = {option: getattr(arguments, option) for option, _ in (flags or {}).values()}
            options = dataclasses.replace(options, **{option: one for option, one in given.items() if one is not None})
            configure(name, options, arguments.log_level)
        except ConfigError as error:
            explain(name, "master", arguments.config_dir, error)
            raise
        # A worker's loop may stand still for one request up to its deadline.
        stall_after = 2.0 * longest(options)
        with open_probes(name, options, stall_after=stall_after) as (health, metrics):
            log = logging.getLogger(f"saltern.{name}")
            keys = key_directory(options, name, arguments.config_dir)
            tracing = Tracing(options.tracing, f"saltern-{name}")
            role = Role(name, options, keys, health, metrics, log, catch_signals(), tracing)
            # Before its loop runs, a role has not registered all its checks.
            health.check("start", lambda: None if health.begun else f"the loop of {name} has not begun")
            for note in notes:
                log.warning("%s", note)
            log.info("%s starts", name)
            try:
                loop(role)
            except ConfigError as error:
                hold(role.health, role.stop, log, error, options.config_error_pause)
                raise
            tracing.close()
            log.info("%s ends", name)
    except ConfigError as error:
        print(f"saltern {name}: {error}", file=sys.stderr)  # noqa: T201 - logs may not be set up yet
        return EX_CONFIG
    return 0
