"""The external pillar ``git``: branches of git repositories as pillar trees.

It reads the mirrors that the maintenance role fetches. One compilation sees each repository in one unchanging state.

Salt: salt/pillar/git_pillar.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from statecore.model.errors import StatecoreError
from statecore.model.ports import Files
from statecore.pillar.errors import Errors
from statecore.pillar.memory import PillarMemory
from statecore.pillar.merging import Merging
from statecore.sources.gitrepos.files import PinnedFiles, View
from statecore.sources.gitrepos.mirror import mirrors_directory
from statecore.sources.gitrepos.refs import pillar_commit, pillar_environment
from statecore.sources.gitrepos.remotes import ANY_ENV, PILLAR, pillar_remotes

#: Function from (files, pillarenv) to (pillar, error messages).
Compile = Callable[[Files, str], tuple[dict[str, object], Sequence[str]]]


class NoSuchBranch(StatecoreError):
    """Error: a Git repository lacks the branch, tag or directory that its entry in the external pillar ``git`` names."""


class _Source(NamedTuple):
    """The tree of one git repository of the external pillar ``git``, and the pillarenv that it provides."""

    env: str
    view: View


def git_pillar(
    entries: Sequence[object], opts: Mapping[str, object], compiled: Compile, memory: PillarMemory
) -> dict[str, object]:
    """Return the merged pillar of all repositories of one entry of the external pillar ``git``, later over earlier.
    Errors of files are a list under ``_errors``.

    ``opts`` used: cachedir, pillarenv, saltenv, git_pillar_*, and the merge options. Raise GitConfigError for an
    invalid entry, NotFetched if a mirror was never fetched, NoSuchBranch if the entry's branch does not exist, GitFault
    if git fails.
    """
    asked = str(opts["pillarenv"]) if opts.get("pillarenv") else None
    sources = _sources(entries, opts, asked or (str(opts["saltenv"]) if opts.get("saltenv") else None), memory)
    errors = Errors(safe=True)
    merging = Merging(opts, errors)
    data: dict[str, object] = {}
    messages: list[str] = []
    for number, source in enumerate(sources):
        if (asked is not None and source.env != asked) or source.view.mountpoint:
            # A repository with a mountpoint has no top file. The other repositories' top files refer to its files.
            continue
        others = [each.view for index, each in enumerate(sources) if each.env == source.env and index != number]
        views = [source.view, *(others if opts.get("git_pillar_includes", True) else [])]
        given, wrong = compiled(PinnedFiles(source.env, views), source.env)
        data = merging.merged(data, given)
        messages += wrong
    messages += errors.messages
    return data | ({"_errors": messages} if messages else {})


def _sources(
    entries: Sequence[object], opts: Mapping[str, object], asked: str | None, memory: PillarMemory
) -> list[_Source]:
    found = []
    for remote in pillar_remotes(entries, opts):
        mirror = memory.mirror(mirrors_directory(opts, PILLAR), remote)
        commit = pillar_commit(remote, asked, mirror.refs(), mirror.lookup)
        if commit is None:
            if remote.branch == ANY_ENV and not remote.all_saltenvs:
                # With __env__ as branch, a repository need not have a branch for every pillarenv.
                continue
            raise NoSuchBranch(f"git_pillar remote '{remote.shown}' has no branch or tag '{remote.branch}'")
        tree, root = mirror.tree(commit), remote.root.strip("/")
        if root and root not in tree.dirs:
            raise NoSuchBranch(f"git_pillar remote '{remote.shown}' has no directory '{root}' in '{remote.branch}'")
        found.append(_Source(pillar_environment(remote, asked), View(mirror, tree, root, remote.mountpoint.strip("/"))))
    return found
