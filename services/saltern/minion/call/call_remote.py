"""The parts of ``salt-call`` that need a master: files, pillar and job cache."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path

from saltern.kit.command.command_line import CommandError
from saltern.kit.config.minion_options import MinionOptions, extension_directory
from saltern.kit.config.reading import as_opts
from saltern.minion.master.channel import Channel, ChannelError
from saltern.minion.master.identity import Identity
from saltern.minion.master.master_function import evaluated as evaluated
from saltern.minion.master.master_ports import RemoteFiles, RemoteMinion
from saltern.minion.master.masters import Masters, at_once, in_order
from statecore.runtime.runtime import Runtime
from statecore.runtime.state_runs.running_jobs import ProcDirectory


def with_master(options: MinionOptions) -> MinionOptions:
    """Return the minion's options with one master: of several configured masters the first that accepts the sign-in.

    Raise CommandError if no master accepts it, and ConfigError.
    """
    order = in_order(options)
    if len(order) == 1:
        return dataclasses.replace(options, master=order[0])
    identity = Identity.load(options.id, Path(options.pki_dir), options.keysize)
    tries = itertools.count(1) if options.master_tries < 0 else range(1, max(1, options.master_tries) + 1)
    why: list[str] = []
    for attempt in tries:
        if attempt > 1:
            time.sleep(options.acceptance_wait_time)
        for name in order:
            one = dataclasses.replace(options, master=name, auth_tries=1)
            try:
                with Channel(one, identity, None) as channel:
                    channel.sign_in()
                return dataclasses.replace(options, master=name)
            except ChannelError as error:
                why.append(str(error))
    raise CommandError("no master accepts this minion: " + "; ".join(dict.fromkeys(why)))


def runtime_of(options: MinionOptions, configured: MinionOptions, procs: ProcDirectory | None) -> Runtime:
    """Return a Runtime (grains, pillar, modules and services of the minion) that takes files and pillar from the
    master.

    ``configured``: options that name all masters. ``procs``: register of running jobs on this host; None if this user
    cannot use it.
    """
    identity = Identity.load(options.id, Path(options.pki_dir), options.keysize)
    masters = Masters(str(options.master), at_once(configured))
    files = RemoteFiles(options, identity, lambda: None)
    held: list[Runtime] = []
    minion = RemoteMinion(options, masters, identity, lambda: None, lambda: held[0].grains)
    runtime = Runtime(
        as_opts(options),
        files=files,
        minion=minion,
        events=minion,
        jobs=procs,
        extension_dir=extension_directory(options),
    )
    held.append(runtime)
    return runtime


def report(options: MinionOptions, job: Mapping[str, object]) -> None:
    """Send the return of a ``salt-call`` to the master's job cache. If the master does not answer, log a warning."""
    load = {**job, "cmd": "_return", "jid": "req", "user": os.environ.get("USER", "root")}
    identity = Identity.load(options.id, Path(options.pki_dir), options.keysize)
    try:
        with Channel(options, identity, None) as channel:
            channel.ask(load)
    except ChannelError as error:
        logging.getLogger("saltern.minion").warning("the return was not stored in the master's job cache: %s", error)
