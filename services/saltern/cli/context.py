"""The surroundings of an operator's command: configuration, master, event bus, clock, environment. Tests replace them."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from saltern.cli.region_choice import Region, load_region
from saltern.kit.command.command_line import CommandError, Exit, run_command, user_name
from saltern.kit.config.master import ClientOptions, ConfigError, load_client
from saltern.kit.links.addresses import hosts_of
from saltern.kit.links.control import ControlClient, ControlError, ControlTimeout, connect_control
from saltern.kit.links.event_bus import EventSubscriber, connect_bus
from statecore.model.lazy import lazy_module

if TYPE_CHECKING:
    from saltern.kit.process import logs
else:
    # Only for a command that logs.
    logs = lazy_module("saltern.kit.process.logs")

#: Seconds to wait for the event bus to confirm a subscription. After that the job cache is used instead.
BUS_PATIENCE = 2.0

#: Environment variable: use Salt's exit codes where ours differ.
STOCK_CODES = "SALTERN_STOCK_EXIT_CODES"

#: Refusals for which Salt's commands end with 0: an unknown node group, an unknown runner.
_FORGIVEN = ("TargetError", "UnknownFunction")


@dataclass(frozen=True)
class CommandContext:
    """The functions by which an operator's command reaches its surroundings: configuration, master, event bus, clock,
    environment variables. The defaults connect to the configured master; tests replace them.
    """

    load: Callable[[str | None], ClientOptions] = load_client
    load_region: Callable[[Region], ClientOptions] = load_region
    control: Callable[..., ControlClient] = connect_control
    bus: Callable[..., EventSubscriber] = connect_bus
    clock: Callable[[], float] = time.monotonic
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    #: Draws on the terminal; None if stderr is no terminal.
    terminal: Callable[[str], object] | None = field(default_factory=lambda: _draw if sys.stderr.isatty() else None)

    def started(self, program: str, flags: argparse.Namespace) -> ClientOptions:
        """Return the options of the command ``program``, and configure its log as the command line (``flags``) says.

        By default commands log warnings and errors on stderr. The options ``log_level`` and ``log_file`` are not used:
        they are those of the master's roles.
        """
        options = self.load(flags.config_dir)
        if flags.log_level or flags.log_file:
            own = dataclasses.replace(
                options, log_file=flags.log_file or "", log_level_logfile=flags.log_file_level or flags.log_level
            )
            logs.configure(program, own, flags.log_level or "warning")
        return options

    def user(self, options: ClientOptions) -> str:
        """Return the user name that is recorded with the command's jobs."""
        return options.user or user_name(self.env, os.geteuid())

    def connect_bus(self, options: ClientOptions, config_dir: str | None, prefix: str) -> tuple[EventSubscriber, bool]:
        """Return a subscriber to tags that start with ``prefix``, and whether the event bus confirmed the subscription."""
        bus = self.bus(options, config_dir=config_dir)
        bus.subscribe(prefix)
        return bus, bus.ready(BUS_PATIENCE)


def _draw(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def no_bus(options: ClientOptions) -> str:
    """Return the message that the event bus did not confirm the subscription."""
    hosts = hosts_of(options.eventpublisher_host)
    where = " or ".join(f"{host}:{options.event_pub_port}" for host in hosts)
    return (
        f"no answer from the event bus at {where} within {BUS_PATIENCE:g} s;"
        " is the eventpublisher running, and has this key a right (control_acl, publisher_acl)?"
    )


def stock_codes() -> bool:
    """Return whether a command must end with 0 where Salt's command does so in spite of an error (SALTERN_STOCK_EXIT_CODES)."""
    return os.environ.get(STOCK_CODES, "").lower() in ("1", "true", "yes")


def failure_code(error: Exception) -> int:
    """Return the exit code for an error that ends a command: a refusal, a master that does not answer, a wrong
    configuration or command line.
    """
    if isinstance(error, ControlError):
        return Exit.OK if stock_codes() and error.name in _FORGIVEN else Exit.GENERIC
    code = (
        Exit.UNAVAILABLE
        if isinstance(error, ControlTimeout)
        else Exit.CONFIG
        if isinstance(error, ConfigError)
        else error.code
        if isinstance(error, CommandError)
        else Exit.GENERIC
    )
    return Exit.OK if code == Exit.UNAVAILABLE and stock_codes() else code


def run_guarded(body: Callable[[], int]) -> int:
    """Call ``body``, which carries out a command of an operator, and return its exit code.

    If the master refuses a request the code is 1, if the master does not answer it is 69; both print an error.
    """

    def guarded() -> int:
        try:
            return body()
        except ControlError as error:
            raise CommandError(error.message, failure_code(error)) from error
        except (ControlTimeout, CommandError) as error:
            raise CommandError(str(error), failure_code(error)) from error

    return run_command(guarded)
