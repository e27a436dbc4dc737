"""What every role's ``main`` does first and last: options, logs, probes, signals; then drain, and end.

A role is a loop in sight: ``with service.open_role(...) as role: while role.running(): ...``. SIGTERM and SIGINT end the
loop; what the role holds is drained by the role itself within ``DRAIN_SECONDS``.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import faulthandler
import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Protocol

from services.kit.config import ConfigError, MasterOptions, StateOptions, key_directory, load_master
from services.kit.health import Health
from services.kit.logs import configure
from services.kit.metrics import Metrics, new_metrics
from services.kit.spared_options import spared_options
from services.kit.tracing import Tracing

#: Half of the ten seconds that container engines give: long enough for a request in hand, short enough to never be killed.
DRAIN_SECONDS = 5.0

#: Seconds between two looks for a signal while nothing else is done.
_HELD_TURN = 0.2

#: sysexits' EX_CONFIG: the configuration cannot be used.
EX_CONFIG = 78


@dataclass
class Stop:
    """Set once, by a signal; read by the loop."""

    requested: bool = False

    def request(self, number: int, frame: FrameType | None) -> None:
        """A signal handler."""
        self.requested = True


class FaultsOfStore(Protocol):
    """What ``masterstore.faults.Faults`` tells: roles that have no store import none."""

    tell: Callable[[str, str], None]
    count: Callable[[], None]


@dataclass(frozen=True)
class Role:
    """What a role's loop stands on."""

    name: str
    options: MasterOptions
    keys: Path
    health: Health
    metrics: Metrics
    log: logging.Logger
    stop: Stop
    tracing: Tracing

    def running(self) -> bool:
        """False once the process was asked to end. Counts as a turn of the loop."""
        self.health.turn()
        return not self.stop.requested

    def watch_redis(self, trouble: Callable[[], str | None]) -> None:
        """Makes ``/readyz`` and ``salt_redis_up`` ask: None while Redis answers, else why not."""
        self.health.check("redis", trouble)

        def asked() -> float:
            started = time.monotonic()
            up = 0.0 if trouble() else 1.0
            self.metrics.redis_seconds.set(time.monotonic() - started)
            return up

        self.metrics.redis_up.set_function(asked)

    def watch_faults(self, faults: FaultsOfStore) -> None:
        """Logs each key in Redis that cannot be read, once, and counts how often one was stepped over."""
        faults.count = self.metrics.store_faults.inc
        faults.tell = partial(
            self.log.error, "the key %s in Redis is stepped over: %s; `saltern store check` names them all"
        )


def catch_signals() -> Stop:
    """SIGTERM and SIGINT set the returned flag from now on."""
    # A crash below Python (libzmq, libyaml) is no silent death: it leaves the stacks in the log.
    faulthandler.enable()
    stop = Stop()
    signal.signal(signal.SIGTERM, stop.request)
    signal.signal(signal.SIGINT, stop.request)
    return stop


@contextlib.contextmanager
def open_probes(name: str, options: StateOptions, *, stall_after: float = 30.0) -> Iterator[tuple[Health, Metrics]]:
    """Serves a process's probes while the block runs. Raises ConfigError when the port is taken."""
    metrics = new_metrics(name)
    health = Health(name, metrics.registry, stall_after=stall_after)
    try:
        stop = health.serve(options.health_host, options.health_port)
    except (OSError, OverflowError) as error:
        # OverflowError: no port has that number.
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"health_port {options.health_host}:{options.health_port}: {why}") from error
    try:
        yield health, metrics
    finally:
        stop()


@contextlib.contextmanager
def unusable(*kinds: type[Exception]) -> Iterator[None]:
    """What fails so while the block runs is a fault of the configuration: raises ConfigError in its place."""
    try:
        yield
    except kinds as error:
        raise ConfigError(str(error)) from error


def hold(health: Health, stop: Stop, log: logging.Logger, error: ConfigError, seconds: float) -> None:
    """Lets ``/readyz`` say for so long why a process cannot start: who ends at once has nobody to ask. Ends at a signal."""
    if seconds <= 0:
        return
    log.error("cannot start: %s; ends in %g s", error, seconds)
    health.check("configuration", lambda: str(error))
    deadline = time.monotonic() + seconds
    while not stop.requested and time.monotonic() < deadline:
        health.turn()
        time.sleep(_HELD_TURN)


def explain(name: str, file_name: str, config_dir: str | None, error: ConfigError) -> None:
    """As ``hold``, for a process whose options cannot be read: where it answers is what can still be made out of them."""
    options = spared_options(file_name, config_dir)
    configure(name, options.log_level, options.log_format)
    # A port that is taken answers for another: what is wrong stands in the log then.
    with contextlib.suppress(ConfigError), open_probes(name, options) as (health, _):
        hold(health, catch_signals(), logging.getLogger(f"saltern.{name}"), error, options.config_error_pause)


def role_arguments(
    name: str, argv: Sequence[str] | None = None, flags: Mapping[str, tuple[str, str]] | None = None
) -> argparse.Namespace:
    """The few options that every role takes on its command line; ``flags`` as of ``run_role``."""
    parser = argparse.ArgumentParser(prog=f"saltern {name}", description=f"Runs the {name}.")
    parser.add_argument("-c", "--config-dir", default=None, help="directory of the configuration (default: /etc/salt)")
    parser.add_argument("-l", "--log-level", default=None, help="overrides log_level")
    for flag, (option, meaning) in (flags or {}).items():
        parser.add_argument(flag, dest=option, metavar="NAME", default=None, help=meaning)
    return parser.parse_args(argv)


def run_role(
    name: str,
    loop: Callable[[Role], None],
    argv: Sequence[str] | None = None,
    *,
    flags: Mapping[str, tuple[str, str]] | None = None,
    longest: Callable[[MasterOptions], float] = lambda options: options.request_deadline,
) -> int:
    """Runs a master role until it is asked to end. Returns the exit code: 0 ended, 78 configuration unusable.

    ``flags``: what this role takes on its command line besides, each with the option that it overrides and what it means.
    ``longest``: seconds that the loop may be busy with one thing.
    """
    arguments = role_arguments(name, argv, flags)
    try:
        try:
            options = load_master(arguments.config_dir)
            given = {option: getattr(arguments, option) for option, _ in (flags or {}).values()}
            options = dataclasses.replace(options, **{option: one for option, one in given.items() if one is not None})
            configure(name, arguments.log_level or options.log_level, options.log_format)
        except ConfigError as error:
            explain(name, "master", arguments.config_dir, error)
            raise
        # A worker may hold one request up to its deadline without turning.
        stall_after = 2.0 * longest(options)
        with open_probes(name, options, stall_after=stall_after) as (health, metrics):
            log = logging.getLogger(f"saltern.{name}")
            keys = key_directory(options, name, arguments.config_dir)
            tracing = Tracing(options.tracing, f"saltern-{name}")
            role = Role(name, options, keys, health, metrics, log, catch_signals(), tracing)
            # Until its loop turns it has not said what else it needs.
            health.check("start", lambda: None if health.begun else f"the loop of {name} has not begun")
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
