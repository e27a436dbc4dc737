"""The parts of ``salt-call`` that need a master: files, pillar and job cache."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from saltern.kit.command.command_line import CommandError
from saltern.kit.config.minion_options import MinionOptions, extension_directory
from saltern.kit.config.reading import as_opts
from saltern.minion.master.channel import Channel, ChannelError, Silence, endpoint
from saltern.minion.master.identity import Identity
from saltern.minion.master.master_function import evaluated as evaluated
from saltern.minion.master.master_ports import RemoteFiles, RemoteMinion
from saltern.minion.master.masters import Masters, at_once, in_order
from saltwire.zmq import shown_endpoint
from statecore.runtime.runtime import Runtime
from statecore.runtime.state_runs.running_jobs import ProcDirectory

_LOG = logging.getLogger("saltern.minion")

#: Seconds without an answer after which the operator is told what is waited for.
_SAID_AFTER = 1.0

#: Seconds for which a master that did not answer is not asked again: the pillar, files and the return would each wait as long.
_AWAY_FOR = 60.0

#: Seconds between two looks above which a new request is waited for.
_GAP = 5.0


class CallSilence(Silence):
    """Decides how long the requests of ``salt-call`` wait for a master that does not answer. For a minute after a
    request without an answer, further requests do not wait. During the first wait a warning says what ``salt-call``
    waits for.
    """

    def __init__(self, options: MinionOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._where = shown_endpoint(endpoint(options))
        self._most = options.auth_timeout * options.auth_tries
        self._since = self._looked = -math.inf
        self._lost = -math.inf
        self._said = False

    def given_up(self) -> bool:
        """Return True if a request of the last minute got no answer, so that this request must not wait. Else return
        False, and after a second without an answer log a warning once.
        """
        now = self._clock()
        if now - self._lost < _AWAY_FOR:
            return True
        if now - self._looked > _GAP:
            self._since = now
        self._looked = now
        if not self._said and now - self._since >= _SAID_AFTER:
            self._said = True
            said = (
                "waiting for the master at %s: it does not answer; a sign-in waits for %g s (auth_timeout, auth_tries)"
            )
            _LOG.warning(said + "; --local needs no master", self._where, self._most)
        return False

    def lasted(self) -> None:
        """Record that a request got no answer."""
        if self._clock() - self._lost >= _AWAY_FOR:
            self._lost = self._clock()


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
                with Channel(one, identity, None, CallSilence(one)) as channel:
                    channel.sign_in()
                return dataclasses.replace(options, master=name)
            except ChannelError as error:
                why.append(str(error))
    raise CommandError("no master accepts this minion: " + "; ".join(dict.fromkeys(why)))


def silence_of(options: MinionOptions) -> Silence:
    """Return the object that decides how long requests wait for a master that does not answer; all requests of this
    ``salt-call`` use this one object.
    """
    return CallSilence(options)


def runtime_of(
    options: MinionOptions, configured: MinionOptions, procs: ProcDirectory | None, silence: Silence
) -> Runtime:
    """Return a Runtime (grains, pillar, modules and services of the minion) that takes files and pillar from the
    master.

    ``configured``: options that name all masters. ``procs``: register of running jobs on this host; None if this user
    cannot use it. ``silence``: decides how long requests wait for a master that does not answer.
    """
    identity = Identity.load(options.id, Path(options.pki_dir), options.keysize)
    masters = Masters(str(options.master), at_once(configured))
    files = RemoteFiles(options, identity, lambda: None, silence)
    held: list[Runtime] = []
    minion = RemoteMinion(options, masters, identity, lambda: None, lambda: held[0].grains, silence)
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


def report(options: MinionOptions, job: Mapping[str, object], silence: Silence) -> None:
    """Send the return of a ``salt-call`` to the master's job cache. If the master does not answer, log a warning."""
    load = {**job, "cmd": "_return", "jid": "req", "user": os.environ.get("USER", "root")}
    identity = Identity.load(options.id, Path(options.pki_dir), options.keysize)
    try:
        with Channel(options, identity, None, silence) as channel:
            channel.ask(load)
    except ChannelError as error:
        _LOG.warning("the return was not stored in the master's job cache: %s", error)
