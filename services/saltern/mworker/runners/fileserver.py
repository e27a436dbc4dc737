"""Runner ``fileserver``: lists the state tree as minions see it, and updates the fileserver's backends."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from saltern.kit.config.master import ConfigError, MasterOptions
from saltern.kit.trees.served_files import file_server
from saltern.kit.trees.updates import fetched, mirrors, roots_changes
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from saltwire import tags
from statecore.model.lazy import lazy_module
from statecore.sources.fileserver import FileServer, UnknownBackend
from statecore.sources.fileserver.users import BackendError, UserFiles
from statecore.sources.gitrepos.mirror import Mirror
from statecore.sources.gitrepos.remotes import GITFS, PILLAR

if TYPE_CHECKING:
    import shutil
else:
    shutil = lazy_module("shutil")


def envs(tools: RunnerTools, backend: object = None, sources: bool = False) -> list[str] | dict[str, list[str]]:
    """Return the saltenvs; with ``sources`` {backend: saltenvs}.

    ``backend``: only these backends, as a list or separated by commas; a name with a leading minus is left out.
    """
    server = _server(tools, backend)
    return {name: each.envs() for name, each in server.backends.items()} if sources else server.envs()


def file_list(tools: RunnerTools, saltenv: str = "base", backend: object = None) -> list[str]:
    """Return the paths of all files in a saltenv."""
    return _server(tools, backend).paths(str(saltenv))


def dir_list(tools: RunnerTools, saltenv: str = "base", backend: object = None) -> list[str]:
    """Return the paths of all directories in a saltenv."""
    return _server(tools, backend).dirs(str(saltenv))


def empty_dir_list(tools: RunnerTools, saltenv: str = "base", backend: object = None) -> list[str]:
    """Return the paths of all empty directories in a saltenv."""
    return _server(tools, backend).empty_dirs(str(saltenv))


def symlink_list(tools: RunnerTools, saltenv: str = "base", backend: object = None) -> dict[str, str]:
    """Return {path of a symbolic link: its target} of a saltenv."""
    return _server(tools, backend).symlinks(str(saltenv))


def update(tools: RunnerTools, backend: object = None, remotes: object = None) -> bool:
    """Update the fileserver's backends now: fetch the Git remotes. Return True; fail if a remote cannot be fetched.

    ``remotes``: only these, by name or URL, as a list or separated by commas.
    """
    server = _server(tools, backend)
    names = server.backends
    events = tools.options.fileserver_events
    if "roots" in names and events:
        tools.sender.fire(tags.fileserver_update("roots"), roots_changes(tools.options))
    if "gitfs" in names:
        wanted = _words(remotes)
        chosen = [each for each in _mirrors(tools.options, GITFS) if not wanted or _named(each, wanted)]
        if wanted and not chosen:
            raise RunnerFault(f"no remote of gitfs_remotes is {' or '.join(wanted)}")
        done = fetched(chosen)
        if events:
            changed = any(each.changed for each in done)
            tools.sender.fire(tags.fileserver_update("gitfs"), {"changed": changed, "backend": "gitfs"})
        if errors := [each.error for each in done if each.error]:
            raise RunnerFault("\n".join(errors))
    for each in server.users:
        with _faults():
            each.update()
    return True


def clear_cache(tools: RunnerTools, backend: object = None) -> dict[str, list[str]] | str:
    """Delete the mirrors of Git remotes; the remotes serve no files until they are fetched again. Users' backends clear their
    own caches.

    Return {"cleared": lines, "errors": lines}, or the text "No cache was cleared".
    """
    server = _server(tools, backend)
    outcome = _of_users(server.users, UserFiles.clear_cache, "cleared")
    if "gitfs" in server.backends:
        _add(outcome, _cleared(tools))
    return outcome or "No cache was cleared"


def _cleared(tools: RunnerTools) -> dict[str, list[str]]:
    home = Path(tools.options.cachedir) / GITFS
    try:
        if home.exists():
            shutil.rmtree(home)
    except OSError as error:
        return {"errors": [f"Unable to delete {error.filename}: {error.strerror}"]}
    return {"cleared": ["The gitfs fileserver cache was successfully cleared"]}


def clear_file_list_cache(tools: RunnerTools, saltenv: object = None, backend: object = None) -> dict[str, list[str]]:
    """Return {}: Saltern compares each file list with the directories, so there is no cache to clear."""
    _server(tools, backend)
    return {}


def lock(tools: RunnerTools, backend: object = None, remote: str | None = None) -> dict[str, list[str]] | str:
    """Stop updates of Git remotes until ``clear_lock`` is called. ``remote``: a glob of remote URLs; default: all.

    Return {"locked": lines, "errors": lines}, or the text "No locks were set".
    """
    server = _server(tools, backend)
    outcome = _of_users(server.users, lambda each: each.lock(remote), "locked")
    if "gitfs" in server.backends:
        chosen = _matching(_mirrors(tools.options, GITFS), remote)
        _add(outcome, _told(chosen, Mirror.lock, "Set update lock for", "locked"))
    return outcome or "No locks were set"


def clear_lock(tools: RunnerTools, backend: object = None, remote: str | None = None) -> dict[str, list[str]] | str:
    """Remove the update locks of Git remotes, so that they are fetched again. ``remote``: a glob of remote URLs; default: all.

    Return a map of the removed locks, or the text "No locks were removed".
    """
    server = _server(tools, backend)
    outcome = _of_users(server.users, lambda each: each.clear_lock(remote), "cleared")
    if "gitfs" in server.backends:
        _add(outcome, _unlocked(tools.options, GITFS, remote))
    return outcome or "No locks were removed"


def unlocked(options: MasterOptions, role: str, remote: str | None) -> dict[str, list[str]] | str:
    """Remove the update locks of the Git remotes of ``role`` (gitfs or git_pillar). Return a map of the removed locks,
    or the text "No locks were removed".
    """
    return _unlocked(options, role, remote) or "No locks were removed"


def _unlocked(options: MasterOptions, role: str, remote: str | None) -> dict[str, list[str]]:
    chosen = _matching(_mirrors(options, role), remote)
    return _told(chosen, Mirror.unlock, "Removed update lock for", "cleared")


def _of_users(
    backends: Iterable[UserFiles], work: Callable[[UserFiles], tuple[list[str], list[str]]], key: str
) -> dict[str, list[str]]:
    """Call ``work`` with each of the users' fileserver backends; ``work`` returns (lines about successes, lines about
    failures).

    Return a map of two lists for all backends: lines about successes under the name ``key``, lines about failures
    under "errors". Raises RunnerFault if a backend fails.
    """
    outcome: dict[str, list[str]] = {}
    for backend in backends:
        with _faults():
            good, bad = work(backend)
            _add(outcome, {key: good, "errors": bad})
    return outcome


def _add(outcome: dict[str, list[str]], more: Mapping[str, list[str]]) -> None:
    for key, lines in more.items():
        if lines:
            outcome[key] = [*outcome.get(key, []), *lines]


@contextmanager
def _faults() -> Iterator[None]:
    """Context manager: raise RunnerFault with the same message in place of an error of a user's fileserver backend."""
    try:
        yield
    except BackendError as error:
        raise RunnerFault(str(error)) from error


def pillar_update(tools: RunnerTools, branch: str | None = None, repo: str | None = None) -> dict[str, bool | None]:
    """Fetch the remotes of external Git pillars: {remote: True if it had changes, None if not, False if the fetch failed}.

    branch, repo
        only remotes of this branch, and of this URL or name
    """
    chosen = [
        each
        for each in _mirrors(tools.options, PILLAR)
        if branch in (None, each.remote.branch) and repo in (None, each.remote.url, each.remote.name)
    ]
    if not chosen and (branch is not None or repo is not None):
        raise RunnerFault("Specified git branch/repo not found in ext_pillar config")
    if not chosen:
        raise RunnerFault("No git_pillar remotes are configured")
    found: dict[str, bool | None] = {}
    for each in fetched(chosen):
        found[each.mirror.remote.shown] = False if each.error else each.changed or None
        if each.error:
            tools.sender.fire(f"{tags.run(tools.jid)}/progress", {"data": each.error})
    return found


def _server(tools: RunnerTools, backend: object) -> FileServer:
    try:
        return file_server(tools.options).only(_words(backend))
    except (ConfigError, UnknownBackend) as error:
        raise RunnerFault(str(error)) from error


def _mirrors(options: MasterOptions, role: str) -> list[Mirror]:
    try:
        return [each for each in mirrors(options) if each.remote.role == role]
    except ConfigError as error:
        raise RunnerFault(str(error)) from error


def _words(given: object) -> list[str]:
    listed = given if isinstance(given, list | tuple) else str(given).split(",") if given else []
    return [str(each).strip() for each in listed if str(each).strip()]


def _named(mirror: Mirror, wanted: Iterable[str]) -> bool:
    return any(name in (mirror.remote.name, mirror.remote.id, mirror.remote.url) for name in wanted)


def _matching(found: Iterable[Mirror], remote: str | None) -> list[Mirror]:
    return [each for each in found if not remote or fnmatch.fnmatchcase(each.remote.url, str(remote))]


def _told(chosen: Iterable[Mirror], work: Callable[[Mirror], bool], what: str, key: str) -> dict[str, list[str]]:
    outcome: dict[str, list[str]] = {}
    for mirror in chosen:
        try:
            if work(mirror):
                outcome.setdefault(key, []).append(f"{what} {mirror.remote.role} remote '{mirror.remote.shown}'")
        except OSError as error:
            outcome.setdefault("errors", []).append(f"{mirror.remote.shown}: {error.filename}: {error.strerror}")
    return outcome
