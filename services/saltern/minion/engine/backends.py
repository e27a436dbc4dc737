"""Where the preloaded process has files and pillar from, and who hears of its jobs: a master, or nobody but this host."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from saltern.kit.config.minion_options import MinionOptions, extension_directory
from saltern.kit.config.reading import as_opts
from saltern.minion.master.away_flag import is_away
from saltern.minion.master.channel import Channel
from saltern.minion.master.identity import Identity
from saltern.minion.master.master_ports import RemoteFiles, RemoteMinion, manage, request_refresh
from saltern.minion.master.masters import Masters
from saltwire.handshake import Credentials
from statecore.runtime.runtime import Runtime, local_runtime
from statecore.runtime.state_runs.running_jobs import ProcDirectory


class Backend(Protocol):
    """What the preloaded process needs of either."""

    def runtime(
        self,
        pillar: Mapping[str, Any],
        procs: ProcDirectory,
        grains: Callable[[], Any],
        known: Mapping[str, Any] | None = None,
    ) -> Runtime:
        """A runtime for the jobs to come; ``grains`` are those of the runtime that there is.

        ``known``: its own; None: they are gathered when they are first asked for.
        """
        ...

    def pillar(self, runtime: Runtime, *, clean_cache: bool) -> dict[str, Any]:
        """The pillar as it is now. Raises ChannelError."""
        ...

    def prepare_job(self, runtime: Runtime, load: Mapping[str, Any]) -> None:
        """This job is about to run, in a process of its own."""
        ...

    def send(self, load: Mapping[str, Any]) -> None:
        """Hands over what could not be spooled. Raises ChannelError."""
        ...

    def set_credentials(self, credentials: Credentials) -> None:
        """From now on these."""
        ...


class MasterBackend:
    """Files, pillar and events are a master's."""

    def __init__(self, options: MinionOptions, masters: Masters, identity: Identity, credentials: Credentials) -> None:
        self._options = options
        self._masters = masters
        self._identity = identity
        self._credentials = credentials
        #: In a job's process: whether it is one that the minion began itself.
        self._own = False

    def runtime(
        self,
        pillar: Mapping[str, Any],
        procs: ProcDirectory,
        grains: Callable[[], Any],
        known: Mapping[str, Any] | None = None,
    ) -> Runtime:
        """With this pillar."""
        options = self._options
        files = RemoteFiles(options, self._identity, lambda: self._credentials, self._given_up)
        minion = RemoteMinion(options, self._masters, self._identity, lambda: self._credentials, grains, self._given_up)
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

    def pillar(self, runtime: Runtime, *, clean_cache: bool) -> dict[str, Any]:
        """As the master compiles it."""
        options = self._options
        pillarenv = options.pillarenv or (options.saltenv if options.pillarenv_from_saltenv else None)
        with Channel(options, self._identity, self._credentials) as channel:
            return channel.pillar(runtime.grains, options.saltenv, pillarenv, None, clean_cache=clean_cache)

    def prepare_job(self, runtime: Runtime, load: Mapping[str, Any]) -> None:
        """It has its pillar."""
        self._own = bool(load.get("own"))

    def _given_up(self) -> bool:
        """What a master asked for waits for that master; what the minion began itself does not: another process has its turn."""
        return self._own and is_away(self._masters.state(self._options.cachedir))

    def send(self, load: Mapping[str, Any]) -> None:
        """By a connection of its own."""
        with Channel(self._options, self._identity, self._credentials) as channel:
            channel.ask(load)

    def set_credentials(self, credentials: Credentials) -> None:
        """After a new sign-in, which may have been with a new pair: jobs that are forked from here begin with that."""
        self._identity.reread()
        self._credentials = credentials


class LocalBackend:
    """There is no master (``master_type: disable``): files and pillar are this host's, as of ``salt-call --local``."""

    def __init__(self, options: MinionOptions) -> None:
        self._options = options

    def runtime(
        self,
        pillar: Mapping[str, Any],
        procs: ProcDirectory,
        grains: Callable[[], Any],
        known: Mapping[str, Any] | None = None,
    ) -> Runtime:
        """Its pillar is compiled when it is first looked at."""
        options, cachedir = self._options, Path(self._options.cachedir)
        return local_runtime(
            as_opts(options, file_client="local", extension_modules=str(extension_directory(options))),
            grains=known,
            jobs=procs,
            manage=partial(manage, cachedir),
            fetches=True,
            refreshed=partial(request_refresh, [cachedir]),
        )

    def pillar(self, runtime: Runtime, *, clean_cache: bool) -> dict[str, Any]:
        """Compiled now."""
        runtime.forget(pillar=True)
        return dict(runtime.pillar)

    def prepare_job(self, runtime: Runtime, load: Mapping[str, Any]) -> None:
        """It sees the pillar as it is then: nobody tells this minion that a file was changed."""
        runtime.forget(pillar=True)

    def send(self, load: Mapping[str, Any]) -> None:
        """Nobody is told."""

    def set_credentials(self, credentials: Credentials) -> None:
        """There are none."""
