"""The zygote's backends: where its jobs get files and pillar and where their events go. One for a master, one for this host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from saltern.kit.config.minion_options import MinionOptions, extension_directory
from saltern.kit.config.reading import as_opts
from saltern.minion.master.away_flag import is_away
from saltern.minion.master.channel import Channel, Silence
from saltern.minion.master.identity import Identity
from saltern.minion.master.master_ports import RemoteFiles, RemoteMinion, manage, request_refresh
from saltern.minion.master.masters import Masters
from saltwire.handshake import Credentials
from statecore.runtime.runtime import Runtime, local_runtime
from statecore.runtime.state_runs.running_jobs import ProcDirectory


class Backend(Protocol):
    """The interface of the zygote's two backends, MasterBackend and LocalBackend."""

    def runtime(
        self,
        pillar: Mapping[str, object],
        procs: ProcDirectory,
        grains: Callable[[], Mapping[str, object]],
        known: Mapping[str, object] | None = None,
    ) -> Runtime:
        """Return a new Runtime (grains, pillar, modules and services of the minion) for the next jobs of the minion.

        ``grains``: returns the grains of the current Runtime. ``known``: grains of the new Runtime; None: gathered at
        their first use.
        """
        ...

    def pillar(self, runtime: Runtime, *, clean_cache: bool) -> dict[str, object]:
        """Return the minion's current pillar. ``clean_cache``: ignore cached pillar.

        Raise ChannelError if the master does not answer.
        """
        ...

    def prepare_job(self, runtime: Runtime, load: Mapping[str, object]) -> None:
        """Prepare the Runtime ``runtime`` for the job ``load``, for example its pillar. Called in the jobber's
        process, before the job runs.
        """
        ...

    def send(self, load: Mapping[str, object]) -> None:
        """Send a return straight to the master, because it could not be spooled. Raise ChannelError."""
        ...

    def set_credentials(self, credentials: Credentials) -> None:
        """Use these credentials of the last sign-in for new connections to the master."""
        ...


class MasterBackend:
    """The zygote's backend for a minion with a master: files, pillar and events are the master's."""

    def __init__(self, options: MinionOptions, masters: Masters, identity: Identity, credentials: Credentials) -> None:
        self._options = options
        self._masters = masters
        self._identity = identity
        self._credentials = credentials
        #: In a jobber: whether the minion started the job itself.
        self._own = False

    def runtime(
        self,
        pillar: Mapping[str, object],
        procs: ProcDirectory,
        grains: Callable[[], Mapping[str, object]],
        known: Mapping[str, object] | None = None,
    ) -> Runtime:
        """Return a Runtime (grains, pillar, modules and services of the minion) with the pillar ``pillar``, whose
        files come from the master and whose events go to the master.
        """
        options, silence = self._options, _SilenceOfJob(self._given_up)
        files = RemoteFiles(options, self._identity, lambda: self._credentials, silence)
        minion = RemoteMinion(options, self._masters, self._identity, lambda: self._credentials, grains, silence)
        return Runtime(
            as_opts(options),
            files=files,
            grains=known,
            pillar=pillar,
            minion=minion,
            events=minion,
            jobs=procs,
            extension_dir=extension_directory(options),
        )

    def pillar(self, runtime: Runtime, *, clean_cache: bool) -> dict[str, object]:
        """Return the minion's pillar as the master compiles it now. Raise ChannelError if the master does not answer."""
        options = self._options
        pillarenv = options.pillarenv or (options.saltenv if options.pillarenv_from_saltenv else None)
        with Channel(options, self._identity, self._credentials) as channel:
            return channel.pillar(runtime.grains, options.saltenv, pillarenv, None, clean_cache=clean_cache)

    def prepare_job(self, runtime: Runtime, load: Mapping[str, object]) -> None:
        """Record whether the minion started the job itself: such a job does not wait for a master that is away. The
        Runtime has its pillar already.
        """
        self._own = bool(load.get("own"))

    def _given_up(self) -> bool:
        """Return whether a job stops waiting for the master: the minion started the job itself, and the master is away.

        A published job waits for its master. A scheduled job does not, because another main process then runs the schedule.
        """
        return self._own and is_away(self._masters.state(self._options.cachedir))

    def send(self, load: Mapping[str, object]) -> None:
        """Send a return to the master over a new connection. Raise ChannelError."""
        with Channel(self._options, self._identity, self._credentials) as channel:
            channel.ask(load)

    def set_credentials(self, credentials: Credentials) -> None:
        """Use these credentials for new connections to the master, and read the minion's key pair again.

        The key pair may have changed before the sign-in.
        """
        self._identity.reread()
        self._credentials = credentials


class _SilenceOfJob(Silence):
    """Decides how long the requests of a job wait for a master that does not answer: until ``given_up`` returns True."""

    def __init__(self, given_up: Callable[[], bool]) -> None:
        self._ends = given_up

    def given_up(self) -> bool:
        return self._ends()


class LocalBackend:
    """The zygote's backend for a minion without a master (``master_type: disable``): files and pillar of this host."""

    def __init__(self, options: MinionOptions) -> None:
        self._options = options

    def runtime(
        self,
        pillar: Mapping[str, object],
        procs: ProcDirectory,
        grains: Callable[[], Mapping[str, object]],
        known: Mapping[str, object] | None = None,
    ) -> Runtime:
        """Return a Runtime (grains, pillar, modules and services of the minion) whose pillar is compiled from local
        files at its first use.
        """
        options, cachedir = self._options, Path(self._options.cachedir)
        return local_runtime(
            as_opts(options, file_client="local", extension_modules=str(extension_directory(options))),
            grains=known,
            jobs=procs,
            manage=partial(manage, cachedir),
            fetches=True,
            refreshed=partial(request_refresh, [cachedir]),
        )

    def pillar(self, runtime: Runtime, *, clean_cache: bool) -> dict[str, object]:
        """Return the pillar, compiled now from local files."""
        runtime.forget(pillar=True)
        return dict(runtime.pillar)

    def prepare_job(self, runtime: Runtime, load: Mapping[str, object]) -> None:
        """Forget the compiled pillar, so that each job sees the current local files."""
        runtime.forget(pillar=True)

    def send(self, load: Mapping[str, object]) -> None:
        """Do nothing with the return: the minion has no master."""

    def set_credentials(self, credentials: Credentials) -> None:
        """Do nothing with the credentials: the minion has no master."""
