"""The command ``saltern minion``: runs jobs on a managed host for one master, several masters at once, or none.

A minion consists of three kinds of processes: the main process (sockets to the master), the zygote (state engine, no sockets)
and one jobber for each job, forked from the zygote. With several masters at once there is a main process for each master.
A job's return is written to the spool before it is sent. It stays in the spool until the master acknowledges it.
Source: docs/execution.md#components
"""

from __future__ import annotations

import dataclasses
import logging
import random
import sys
import time
from collections.abc import Sequence

from saltern.kit.config.engine_rows import engine_rows
from saltern.kit.config.minion_options import MinionOptions, load_minion
from saltern.kit.config.reading import ConfigError, notes_of
from saltern.kit.process.logs import configure
from saltern.kit.process.notify import Notifier
from saltern.kit.process.own_directories import make_private
from saltern.kit.process.process import (
    catch_signals,
    exit_code,
    explain,
    hold,
    new_health,
    open_probes,
    role_arguments,
    with_log_flags,
)
from saltern.kit.process.run_as import become
from saltern.kit.process.tracing import checked
from saltern.minion.duties.leadership import Leadership
from saltern.minion.master.channel import endpoint
from saltern.minion.master.failover import Failback, Failover, MasterLost
from saltern.minion.master.master_function import evaluated
from saltern.minion.master.masters import DISABLE, FUNC, Masters, after_loss, at_once, in_order
from saltern.minion.master.sign_in import Ended, NoMaster, Rejected, Shutdown
from saltern.minion.masterless import MasterlessMinion
from saltern.minion.minion import Minion
from saltern.minion.multi_master import run_at_once

_LOG = logging.getLogger("saltern.minion")

#: Exit code of a minion whose key was rejected, as in Salt. A supervisor should not restart it.
_EX_REJECTED = 77


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command ``saltern minion``. Return the exit code: 0 ended, 77 key rejected, 78 configuration unusable."""
    arguments = role_arguments("minion", argv)
    notifier = Notifier.taken()
    try:
        try:
            options = load_minion(arguments.config_dir, keep_found_id=True)
            notes = notes_of(options)
            # Only the zygote uses them; a mistake is told before it starts.
            engine_rows(options.engines)
            become(options.user)
            options = with_log_flags(options, arguments)
            configure("minion", options, arguments.log_level)
            make_private(options, options.cachedir, _LOG, (options.pki_dir, options.extension_modules))
            several = () if options.master_type in (DISABLE, FUNC) else at_once(options)
        except ConfigError as error:
            explain("minion", "minion", arguments.config_dir, error)
            raise
        health = new_health("minion")
        with open_probes(health, options):
            health.check("master", lambda: "not signed in")
            for note in notes:
                _LOG.warning("%s", note)
            stop = catch_signals()
            shutdown = Shutdown(stop, health)
            # A minion whose master is away has started as well: it waits for the master.
            notifier.ready(f"the minion {options.id}")
            if options.random_startup_delay:
                shutdown.wait(random.randint(0, options.random_startup_delay))
            try:
                checked(options.tracing)
                if options.master_type == DISABLE:
                    _run_masterless(options, shutdown)
                    return 0
                if options.master_type == FUNC:
                    options = evaluated(options, shutdown)
                    several = at_once(options)
                if several:
                    run_at_once(options, several, shutdown)
                else:
                    _run_one_by_one(options, shutdown)
            except ConfigError as error:
                hold(health, stop, _LOG, error, options.config_error_pause)
                raise
    except Ended:
        _LOG.info("the minion has ended")
    except ConfigError as error:
        sys.stderr.write(f"saltern minion: {error}\n")
        return exit_code(error)
    except Rejected as error:
        _LOG.critical("%s", error)
        return _EX_REJECTED
    return 0


def _run_masterless(options: MinionOptions, shutdown: Shutdown) -> None:
    """Run a minion without a master until it is asked to end. Raise Ended."""
    minion = MasterlessMinion(options, shutdown)
    try:
        minion.run()
    finally:
        minion.close()


def _run_one_by_one(options: MinionOptions, shutdown: Shutdown) -> None:
    """Run a minion that has one master at a time. Raise Rejected, Ended, ConfigError."""
    order = masters = in_order(options)
    leadership = Leadership(options, shared=False)
    pause = float(options.acceptance_wait_time)
    failback = Failback(options.master_failback_interval or options.master_alive_interval)
    try:
        while not shutdown.ended():
            for master in order:
                try:
                    _run_at(
                        dataclasses.replace(options, master=master), masters, leadership, shutdown, failback.interval
                    )
                    return
                except NoMaster as error:
                    _note_loss(failback, master == masters[0])
                    _LOG.error("sign-in at the master %s failed: %s", master, error)
                except MasterLost as lost:
                    _note_loss(failback, master == masters[0], back=lost.back)
                    _LOG.warning("leaving the master %s: %s", master, lost)
                    order = masters if lost.back else after_loss(order, master)
                    break
            else:
                _LOG.error("no master accepts this minion; the next attempt is in %g seconds", pause)
                shutdown.wait(pause)
                if options.acceptance_wait_time_max:
                    pause = min(pause * 1.5, float(options.acceptance_wait_time_max))
    finally:
        leadership.close()


def _note_loss(failback: Failback, first: bool, *, back: bool = False) -> None:
    if back:
        failback.went(time.monotonic())
    elif first:
        failback.lost(time.monotonic())


def _run_at(
    options: MinionOptions, masters: Sequence[str], leadership: Leadership, shutdown: Shutdown, failback_interval: float
) -> None:
    """Run the minion at one of the masters until it must end or change to another master.

    Raise NoMaster, MasterLost, Rejected, Ended or ConfigError.
    """
    current = str(options.master)
    failover = None
    if len(masters) > 1:
        goes_back = options.master_failback and current != masters[0]
        failover = Failover(
            current,
            endpoint(options),
            options.master_alive_interval,
            endpoint(dataclasses.replace(options, master=masters[0])) if goes_back else "",
            failback_interval,
            options.auth_timeout,
        )
    minion = Minion(options, Masters(current), leadership, shutdown, failover)
    try:
        minion.run()
    finally:
        minion.close()
