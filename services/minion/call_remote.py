"""``salt-call`` with a master: its files, its pillar, its job cache."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from services.kit.commandline import CommandError
from services.kit.config import MinionOptions, as_opts, extension_directory
from services.minion.channel import Channel, ChannelError
from services.minion.identity import Identity
from services.minion.remote import RemoteFiles, RemoteMinion
from statecore.running_jobs import ProcDirectory
from statecore.runtime import Runtime


def runtime_of(options: MinionOptions, procs: ProcDirectory | None) -> Runtime:
    """A minion that asks its master for files and pillar; ``procs`` are the jobs of this host. Raises CommandError."""
    if procs is None:
        raise CommandError(f"cachedir: {options.cachedir} is not for this user to write to")
    identity = Identity.load(options.id, Path(options.pki_dir), options.keysize)
    files = RemoteFiles(options, identity, lambda: None)
    held: list[Runtime] = []
    minion = RemoteMinion(options, identity, lambda: None, lambda: held[0].grains)
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


def report(options: MinionOptions, job: Mapping[str, Any]) -> None:
    """Puts a result into the master's job cache, as a job that the minion started itself. Without an answer it is logged."""
    load = {**job, "cmd": "_return", "jid": "req", "user": os.environ.get("USER", "root")}
    identity = Identity.load(options.id, Path(options.pki_dir), options.keysize)
    try:
        with Channel(options, identity, None) as channel:
            channel.ask(load)
    except ChannelError as error:
        logging.getLogger("saltern.minion").warning("the result is not in the master's job cache: %s", error)
