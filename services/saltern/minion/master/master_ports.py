"""Implements the interfaces of ``statecore.model.ports`` for a minion with a master. Jobs and salt-call fetch files
(through a cache on disk) and pillar from the master, and fire their events to it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from saltern.kit.config.minion_options import MinionOptions
from saltern.kit.config.reading import as_opts
from saltern.minion.ipc.control import MinionNotRunning, ask
from saltern.minion.master.channel import Channel, ChannelError, Silence
from saltern.minion.master.identity import Identity
from saltern.minion.master.masters import Masters, address
from saltern.minion.master.other_masters import OtherMasters
from saltwire.errors import PeerFault
from saltwire.file_transfer import Download, MissingFile, is_inside
from saltwire.handshake import Credentials
from statecore.host.content import private_files
from statecore.model.errors import CommandError
from statecore.model.ports import FileHash

_LOG = logging.getLogger("saltern.minion")

#: Commands that are sent to all masters of the minion.
_FOR_ALL = frozenset({"_mine", "_mine_delete", "_mine_flush", "revoke_auth"})

#: Bytes read at a time for a digest.
_BLOCK = 1024 * 1024

#: Tags of a state run's events: their loads carry the JID.
_OF_JOB = re.compile(r"salt/(?:job|state_result)/(?P<jid>[^/]+)/(?!ret/)")

GetCredentials = Callable[[], Credentials | None]


class _Master:
    """A connection to the master's port 4506. It is opened at the first request, and belongs to the process that
    opened it.
    """

    def __init__(
        self,
        options: MinionOptions,
        identity: Identity,
        credentials: GetCredentials,
        silence: Silence | None = None,
    ) -> None:
        self._options, self._identity, self._credentials, self._silence = options, identity, credentials, silence
        self._channel: Channel | None = None
        self._owner = 0

    def channel(self) -> Channel:
        """Return this process's connection to the master. A forked child opens a connection of its own and does not
        touch that of its parent.
        """
        if self._channel is None or self._owner != os.getpid():
            self._channel = Channel(self._options, self._identity, self._credentials(), self._silence)
            self._owner = os.getpid()
        return self._channel

    def ask(self, load: Mapping[str, object], *, raw: bool = False, once: bool = False) -> object:
        """Send a request to the master and return the value of the reply. Raise CommandError, which fails the calling
        state or function, if no valid reply arrives.
        """
        try:
            return self.channel().ask(load, raw=raw, once=once)
        except ChannelError as error:
            raise CommandError(str(error)) from error

    @contextmanager
    def failing_clearly(self) -> Iterator[None]:
        """Turn ChannelError in the ``with`` block into CommandError, which fails the calling state or function."""
        try:
            yield
        except ChannelError as error:
            raise CommandError(str(error)) from error


#: Downloads of a file that changes on the master meanwhile, before an error is raised.
_FETCH_TRIES = 3


class RemoteFiles(_Master):
    """Implements the interface ``Files`` of ``statecore.model.ports`` for a minion with a master. A file is downloaded
    if its digest differs from the cached file's.
    """

    def __init__(
        self,
        options: MinionOptions,
        identity: Identity,
        credentials: GetCredentials,
        silence: Silence | None = None,
    ) -> None:
        super().__init__(options, identity, credentials, silence)
        self._cache = Path(options.cachedir) / "files"
        #: Answers cached in this process: a state run asks for the same lists and digests many times.
        self._known: dict[tuple[object, ...], object] = {}
        self._known_by = 0

    def envs(self) -> list[str]:
        """Return the names of the master's saltenvs."""
        return [str(name) for name in self._list("_file_envs", "", "")]

    def paths(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Return the file paths in the master's state tree that start with ``prefix``, in the master's order."""
        return [path for path in self._list("_file_list", saltenv, "") if path.startswith(prefix)]

    def dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Return the directories in the master's state tree that start with ``prefix``."""
        return [path for path in self._list("_dir_list", saltenv, "") if path.startswith(prefix)]

    def empty_dirs(self, saltenv: str = "base", prefix: str = "") -> list[str]:
        """Return the empty directories in the master's state tree that start with ``prefix``."""
        return [path for path in self._list("_file_list_emptydirs", saltenv, "") if path.startswith(prefix)]

    def symlinks(self, saltenv: str = "base", prefix: str = "") -> dict[str, str]:
        """Return the map of symbolic link to target for the master's state tree, for links that start with ``prefix``."""
        answer = self._once(("_symlink_list", saltenv), {"cmd": "_symlink_list", "saltenv": saltenv, "prefix": prefix})
        return {str(path): str(target) for path, target in answer.items()} if isinstance(answer, dict) else {}

    def hash(self, path: str, saltenv: str = "base") -> FileHash | None:
        """Return the FileHash (hash type, hex digest) of a file in the master's state tree; None if there is no such file."""
        answer = self._once(("_file_hash", saltenv, path), {"cmd": "_file_hash", "path": path, "saltenv": saltenv})
        if not isinstance(answer, dict) or "hsum" not in answer:
            return None
        return FileHash(str(answer["hash_type"]), str(answer["hsum"]))

    def mode(self, path: str, saltenv: str = "base") -> int | None:
        """Return the permission bits of a file in the master's state tree; None if unknown."""
        load = {"cmd": "_file_hash_and_stat", "path": path, "saltenv": saltenv}
        answer = self._once(("_file_hash_and_stat", saltenv, path), load)
        stat = answer[1] if isinstance(answer, list) and len(answer) == 2 else None
        return int(stat[0]) & 0o7777 if isinstance(stat, list) and stat else None

    def fetch(self, path: str, saltenv: str = "base") -> Path | None:
        """Return the path of the cached copy of a master's file, downloaded if needed; None if the master has no such file.

        Raise CommandError if the master does not answer.
        """
        if not is_inside(path):
            return None
        cached = self._cache / saltenv.replace("/", "_") / path
        for _ in range(_FETCH_TRIES):
            wanted = self.hash(path, saltenv)
            if wanted is None:
                _LOG.debug("The master has no file salt://%s (saltenv %s)", path, saltenv)
                return None
            if cached.is_file() and _digest(cached, wanted.hash_type) == wanted.hsum:
                _LOG.debug("The cached file of salt://%s (saltenv %s) is up to date: %s", path, saltenv, cached)
                return cached
            self._download(path, saltenv, cached)
            _LOG.info("Fetched salt://%s (saltenv %s) to %s", path, saltenv, cached)
            if _digest(cached, wanted.hash_type) == wanted.hsum:
                return cached
            # The file was changed on the master between digest and download.
            self._known.pop(("_file_hash", saltenv, path), None)
        raise CommandError(
            f"salt://{path} changes on the master while it is fetched; gave up after {_FETCH_TRIES} attempts"
        )

    def shown(self, fetched: Path) -> str:
        """Return the ``salt://`` URL of a cached file, for messages, because users edit the state tree and not the cache."""
        if not fetched.is_relative_to(self._cache):
            return str(fetched)
        saltenv, *path = fetched.relative_to(self._cache).parts
        return f"salt://{'/'.join(path)}" + (f"?saltenv={saltenv}" if saltenv != "base" else "")

    def _download(self, path: str, saltenv: str, cached: Path) -> None:
        download = Download(path, saltenv)
        try:
            with private_files.writer(cached) as file:
                while not download.done:
                    file.write(download.feed(self.ask(download.request(), raw=True)))
        except MissingFile as error:
            raise CommandError(f"salt://{path} was removed on the master while it was fetched") from error
        except PeerFault as error:
            raise CommandError(f"salt://{path}: {error}") from error
        except OSError as error:
            where = error.filename or cached
            raise CommandError(f"salt://{path} cannot be written to cachedir: {where}: {error.strerror}") from error

    def _list(self, cmd: str, saltenv: str, prefix: str) -> list[str]:
        load = {"cmd": cmd} if not saltenv else {"cmd": cmd, "saltenv": saltenv, "prefix": prefix}
        answer = self._once((cmd, saltenv), load)
        return [str(path) for path in answer] if isinstance(answer, list) else []

    def _once(self, key: tuple[object, ...], load: Mapping[str, object]) -> object:
        if self._known_by != os.getpid():
            self._known, self._known_by = {}, os.getpid()
        if key not in self._known:
            self._known[key] = self.ask(load)
        return self._known[key]


class RemoteMinion(_Master):
    """Implements the interfaces MinionControl and Events of ``statecore.model.ports`` for a minion with a master. A
    refresh of pillar, modules or grains is requested from the zygote by an empty file.
    """

    def __init__(
        self,
        options: MinionOptions,
        masters: Masters,
        identity: Identity,
        credentials: GetCredentials,
        grains: Callable[[], Mapping[str, object]],
        silence: Silence | None = None,
    ) -> None:
        super().__init__(options, identity, credentials, silence)
        self._masters = masters
        self._grains = grains

    def refresh_pillar(self) -> bool:
        """Request that the zygote fetches the pillar from the master before the next job. Return True."""
        return self._request_refresh("pillar")

    def refresh_modules(self) -> bool:
        """Request that the zygote loads modules from disk again before the next job. Return True."""
        return self._request_refresh("modules")

    def refresh_grains(self) -> bool:
        """Request that the zygote gathers grains again before the next job. Return True."""
        return self._request_refresh("grains")

    def compile_pillar(
        self,
        saltenv: str | None,
        pillarenv: str | None,
        override: Mapping[str, object] | None,
        on_demand: Mapping[str, object] | None = None,
    ) -> dict[str, object]:
        """Return the pillar that the master compiles for this request. Raise CommandError if the master does not answer."""
        with self.failing_clearly():
            return self.channel().pillar(self._grains(), saltenv, pillarenv, override, on_demand)

    def master_tops(self) -> dict[str, list[str]]:
        """Return {saltenv: SLS names} that the master's tops modules assign to this minion; {} for any other answer."""
        load = {
            "cmd": "_master_tops",
            "id": self._identity.id,
            # Tops modules may read any option.
            "opts": as_opts(self._options, id=self._identity.id, grains=dict(self._grains())),
        }
        answer = self.ask(load)
        if not isinstance(answer, dict):
            return {}
        return {str(env): [str(sls) for sls in refs] for env, refs in answer.items() if isinstance(refs, list)}

    def ask_master(
        self, cmd: str, fields: Mapping[str, object], *, once: bool = False, master: str | None = None
    ) -> object:
        """Send the command ``cmd`` to the current master, or to ``master`` if given, and return the answer.

        A command that concerns every master (mine, revoke_auth) is also put into the spools of the other masters.
        """
        load = {"cmd": cmd, "id": self._identity.id, **fields}
        if master is not None and master != self._masters.current:
            return self._ask_other(master, load, once=once)
        answer = self.ask(load, once=once)
        if cmd in _FOR_ALL:
            OtherMasters(self._masters, self._options).send(load)
        return answer

    def _ask_other(self, name: str, load: Mapping[str, object], *, once: bool) -> object:
        """Send a request to another master of this minion, given by its address with or without port, and return the
        master's answer.

        Raise CommandError if the address is not in the minion's list of masters.
        """
        found = [one for one in self._masters.at_once if name in (one, address(one, 0)[0])]
        if not found:
            known = ", ".join(self._masters.at_once) or self._masters.current
            raise CommandError(f"{name} is no master of this minion; its masters are {known}")
        with self.failing_clearly(), Channel(replace(self._options, master=found[0]), self._identity, None) as channel:
            return channel.ask(load, once=once)

    def manage(self, area: str, request: Mapping[str, object]) -> dict[str, object]:
        """Send a request about schedule or beacons (``area``) to the minion on this host and return the map that it answers.

        Raise CommandError.
        """
        return manage(Path(self._options.cachedir), area, request)

    def fire(self, tag: str, data: Mapping[str, object]) -> bool:
        """Fire an event on the master's bus and return True. The event carries this minion's id beside ``data``."""
        load = {
            "cmd": "_minion_event",
            "tag": tag,
            "data": data if not isinstance(data, Mapping) else dict(data),
            "pretag": None,
        }
        if about := _OF_JOB.match(tag):
            # As Salt's minions do.
            load["jid"] = about["jid"]
        self.ask(load)
        OtherMasters(self._masters, self._options).send(load)
        return True

    def _request_refresh(self, what: str) -> bool:
        cachedir = self._options.cachedir
        return request_refresh([self._masters.state(cachedir), *self._masters.other_states(cachedir)], what)


def request_refresh(states: Sequence[Path], what: str) -> bool:
    """Ask the zygotes that own the directories ``states`` to refresh ``what``: "pillar", "modules" or "grains".

    Return True. Raise CommandError if the request file cannot be written.
    """
    try:
        for directory in states:
            private_files.touch(private_files.directory(directory) / f"refresh-{what}")
    except OSError as error:
        raise CommandError(f"the refresh cannot be requested: {error.filename}: {error.strerror}") from error
    return True


def manage(cachedir: Path, area: str, request: Mapping[str, object]) -> dict[str, object]:
    """Send a control request to the minion with this cache directory and return the map that it answers. Raise CommandError."""
    try:
        answer = ask(cachedir, {**request, "area": area})
    except MinionNotRunning as error:
        raise CommandError(str(error)) from error
    if "error" in answer:
        raise CommandError(str(answer["error"]))
    return answer


def _digest(path: Path, hash_type: str) -> str:
    digest = hashlib.new(hash_type)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
