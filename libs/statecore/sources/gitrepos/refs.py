"""Mapping of a Git mirror's branches, tags and commits to saltenvs. The functions do no I/O: they take the fetched
refs.

Branches are below ``refs/remotes/origin/``, tags below ``refs/tags/``.

Salt: salt/utils/gitfs.py
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase

from statecore.sources.gitrepos.remotes import ANY_ENV, GitRemote, SaltenvSettings

_BRANCHES = "refs/remotes/origin/"
_TAGS = "refs/tags/"

#: A full commit id as a saltenv. Shorter texts are names of branches and tags.
COMMIT = re.compile(r"[0-9a-f]{7,40}\Z")

#: Commit id, full or short -> full id; None when there is no such commit.
Lookup = Callable[[str], str | None]


def is_served(remote: GitRemote, saltenv: str) -> bool:
    """Return True if the Git remote may serve a saltenv: the saltenv is in ``saltenv_whitelist``, if there is one, and
    not in ``saltenv_blacklist``.
    """
    if remote.saltenv_whitelist and not _listed(saltenv, remote.saltenv_whitelist):
        return False
    return not _listed(saltenv, remote.saltenv_blacklist)


def environments(remote: GitRemote, refs: Iterable[str]) -> set[str]:
    """Return the set of saltenvs that a gitfs remote serves, from the names of its fetched refs."""
    mapped = {place.ref for place in remote.saltenv.values() if place.ref is not None}
    found = {env for env, place in remote.saltenv.items() if place.ref is not None}
    if COMMIT.fullmatch(remote.base):
        found.add("base")
    kinds = {"branch": _BRANCHES, "tag": _TAGS}
    prefixes = tuple(prefix for kind, prefix in kinds.items() if kind in remote.ref_types)
    for ref in refs:
        name = next((ref.removeprefix(prefix) for prefix in prefixes if ref.startswith(prefix)), None)
        if name is None or name in mapped:
            continue
        if name == remote.base:
            found.add("base")
        elif not remote.disable_saltenv_mapping:
            found.add(name)
    return {env for env in found if is_served(remote, env)}


def commit_of(remote: GitRemote, saltenv: str, refs: Mapping[str, str], lookup: Lookup) -> str | None:
    """Return the id of the commit that a gitfs remote serves as a saltenv; None when the remote does not have that
    saltenv.
    """
    if not is_served(remote, saltenv):
        return None
    wanted = _wanted(remote, saltenv)
    found = None if wanted is None else _found(remote, wanted, refs, lookup)
    if found is None and wanted is not None and remote.fallback:
        found = _found(remote, remote.fallback, refs, lookup)
    return found


def _wanted(remote: GitRemote, saltenv: str) -> str | None:
    if remote.all_saltenvs:
        return remote.all_saltenvs
    if saltenv == "base":
        return remote.base
    ref = remote.saltenv.get(saltenv, SaltenvSettings()).ref
    return ref or (None if remote.disable_saltenv_mapping else saltenv)


def _found(remote: GitRemote, ref: str, refs: Mapping[str, str], lookup: Lookup) -> str | None:
    kinds: Mapping[str, Callable[[], str | None]] = {
        "branch": lambda: refs.get(f"{_BRANCHES}{ref}"),
        "tag": lambda: refs.get(f"{_TAGS}{ref}"),
        "sha": lambda: lookup(ref) if COMMIT.fullmatch(ref) else None,
    }
    return next((commit for kind in remote.ref_types if (commit := kinds[kind]()) is not None), None)


def pillar_environment(remote: GitRemote, asked: str | None) -> str:
    """Return the pillar environment for which a Git remote's pillar is used. ``asked``: the environment that pillar is
    compiled for; None means base.
    """
    if remote.branch == ANY_ENV and remote.all_saltenvs:
        return asked or "base"
    if remote.env:
        return asked or remote.base if remote.env == ANY_ENV else remote.env
    if remote.branch == ANY_ENV:
        return asked if asked and asked != remote.base else "base"
    return "base" if remote.branch == remote.base else remote.branch


def pillar_commit(remote: GitRemote, asked: str | None, refs: Mapping[str, str], lookup: Lookup) -> str | None:
    """Return the id of the commit of a Git remote from which pillar is compiled for the environment ``asked``; None
    when the remote has none.
    """
    wanted = remote.branch
    if wanted == ANY_ENV:
        wanted = remote.all_saltenvs or (asked if asked and asked != "base" else remote.base)
    found = _found(remote, wanted, refs, lookup)
    return _found(remote, remote.fallback, refs, lookup) if found is None and remote.fallback else found


def _listed(name: str, patterns: Iterable[str]) -> bool:
    """Return True if a saltenv's name matches one of the patterns: as a glob, or as a regular expression for the whole
    name. Salt accepts both.
    """
    return any(fnmatchcase(name, pattern) or _matches(pattern, name) for pattern in patterns)


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.fullmatch(pattern, name) is not None
    except re.error:
        return False
