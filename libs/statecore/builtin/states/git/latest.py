"""``git.latest``: a clone that follows a branch, a tag or HEAD of a remote repository."""

from __future__ import annotations

from typing import Any

from statecore.builtin.states.git.checkout import (
    Remote,
    WantedCheckout,
    commit_of,
    is_at,
    remote_of,
    sentences,
    tracked,
    update_submodules,
)
from statecore.builtin.states.git.update import Update
from statecore.host.content.managed_file import remove
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def latest(
    ctx: Context,
    name: str,
    target: str,
    rev: str = "HEAD",
    branch: str | None = None,
    user: str | None = None,
    password: str | None = None,
    update_head: bool = True,
    force_checkout: bool = False,
    force_clone: bool = False,
    force_fetch: bool = False,
    force_reset: Any = False,
    submodules: bool = False,
    bare: bool = False,
    mirror: bool = False,
    remote: str = "origin",
    fetch_tags: bool = True,
    sync_tags: bool = True,
    depth: Any = None,
    identity: Any = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    refspec_branch: str = "*",
    refspec_tag: str = "*",
    output_encoding: str | None = None,
) -> Plan:
    """Clone the repository ``name`` to ``target``, and keep it at the revision ``rev``.

    rev
        branch, tag, SHA1, or HEAD of the remote repository
    branch
        local branch to check out; created if missing
    update_head
        False: fetch, but do not move HEAD
    force_checkout
        True: discard local changes when another branch is checked out
    force_reset
        True: overwrite local changes, and update even if it is not a fast-forward. ``remote-changes``: discard local
        changes only if the remote has new commits.
    force_clone
        True: remove the content of a target directory that is not a repository
    force_fetch
        True: fetch with --force
    bare, mirror
        True: clone without a working tree; it is only fetched
    submodules
        True: update submodules
    remote
        name of the remote
    fetch_tags, sync_tags
        fetch tags; remove local tags that the remote does not have
    depth
        number of commits of a shallow clone; ``rev`` must be a branch or tag
    refspec_branch, refspec_tag
        globs of the branches and tags to fetch
    user, identity, https_user, https_pass
        user that runs git; SSH key files; credentials for HTTPS
    """
    if not str(target).startswith("/"):
        return Plan.failed(f"target '{target}' is not an absolute path")
    if not rev:
        return Plan.failed(f"'{rev}' is not a valid value for the 'rev' argument")
    if force_reset not in (True, False, "remote-changes"):
        return Plan.failed("'force_reset' must be one of True, False, or 'remote-changes'")
    if rev != "HEAD" and (bare or mirror):
        return Plan.failed("'rev' is not compatible with the 'mirror' and 'bare' arguments")
    place = ctx.host.path(target)
    if place.is_file():
        return Plan.failed(f"Target '{target}' exists and is a regular file, cannot proceed")
    specs = (
        f"refs/heads/{refspec_branch}:refs/remotes/{remote}/{refspec_branch}",
        f"+refs/tags/{refspec_tag}:refs/tags/{refspec_tag}",
    )
    wish = WantedCheckout(
        *(name, str(target), str(rev), branch, user, identity, https_user, https_pass, update_head, force_checkout),
        *(
            force_clone,
            force_fetch,
            force_reset,
            submodules,
            bare or mirror,
            mirror,
            remote,
            fetch_tags,
            sync_tags,
            depth,
        ),
        specs if fetch_tags else (),
    )
    try:
        there = remote_of(ctx, wish)
        if not wish.bare and there.sha is None and rev != "HEAD":
            return Plan.failed(f"No revision matching '{rev}' exists in the remote repository")
        if depth is not None and there.kind not in ("branch", "tag"):
            return Plan.failed(
                "When 'depth' is used, 'rev' must be set to the name of a branch or tag on the remote repository"
            )
        if (place / ("refs" if wish.bare else ".git")).exists():
            return _fetched(ctx, wish) if wish.bare else Update(ctx, wish, there).plan()
        return _cloned(ctx, wish, there)
    except CommandError as error:
        return Plan.failed(str(error))


def _cloned(ctx: Context, wish: WantedCheckout, there: Remote) -> Plan:
    place = ctx.host.path(wish.target)
    filled = place.is_dir() and any(place.iterdir())
    if filled and not wish.force_clone:
        return Plan.failed(
            f"Target '{wish.target}' exists, is non-empty and is not a git repository. Set the 'force_clone' option to True "
            "to remove this directory's contents and proceed with cloning the remote repository"
        )

    def work() -> Outcome:
        changes: dict[str, Any] = {}
        if filled:
            for each in place.iterdir():
                remove(each)
            changes["forced clone"] = True
        opts = ["--mirror"] if wish.mirror else ["--bare"] if wish.bare else []
        opts += ["--origin", wish.remote] if wish.remote != "origin" else []
        opts += ["--depth", str(wish.depth), "--branch", wish.rev] if wish.depth is not None else []
        try:
            ctx.call("git.clone", wish.target, wish.name, opts=opts, **wish.auth)
        except CommandError as error:
            return Outcome(f"Clone failed: {error}", changes, ok=False)
        changes["new"] = f"{wish.name} => {wish.target}"
        kind = " as mirror" if wish.mirror else " as bare repository" if wish.bare else ""
        told = [f"{wish.name} cloned to {wish.target}{kind}"]
        if not wish.bare and there.sha:
            told += _settled(ctx, wish, there)
        if (new := commit_of(ctx, wish, "HEAD")) is not None:
            changes["revision"] = {"old": None, "new": new}
        return Outcome(sentences(told), changes)

    changes: dict[str, Any] = {"new": f"{wish.name} => {wish.target}"}
    would = f"Repository {wish.name} would be cloned to {wish.target}"
    if filled:
        changes = {"forced clone": True, **changes}
        would = (
            f"Target directory {wish.target} exists. Since force_clone=True, the contents of {wish.target} would be "
            f"deleted, and {wish.name} would be cloned into this directory."
        )
    return Plan.change(would, [Step(f"clone {wish.name}", work)], changes)


def _settled(ctx: Context, wish: WantedCheckout, there: Remote) -> list[str]:
    """Check out the wanted branch and revision in a new clone, and return lines for the comment."""
    told = []
    if wish.branch is not None and wish.branch not in ctx.call("git.list_branches", wish.target, user=wish.user):
        start = there.sha if wish.rev == "HEAD" else there.upstream or wish.rev
        ctx.call("git.checkout", wish.target, start, opts=["-b", wish.branch], user=wish.user)
        told.append(f"Branch '{wish.branch}' checked out, with {there.shown(wish.rev)} as a starting point")
    if not is_at(commit_of(ctx, wish, "HEAD"), there):
        ctx.call("git.reset", wish.target, opts=["--hard", there.sha], user=wish.user)
        told.append(f"Repository was reset to {there.shown(wish.rev)}")
    told += tracked(ctx, wish, there)
    if wish.submodules:
        update_submodules(ctx, wish)
    return told


def _fetched(ctx: Context, wish: WantedCheckout) -> Plan:
    def work() -> Outcome:
        before = commit_of(ctx, wish, "HEAD")
        opts = {"remote": wish.remote, "force": wish.force_fetch, "refspecs": wish.refspecs if not wish.mirror else ()}
        changed = ctx.call("git.fetch", wish.target, user=wish.user, identity=wish.identity, **opts)
        after = commit_of(ctx, wish, "HEAD")
        note = ", resulting in updated refs" if changed else ""
        told = f"Bare repository at {wish.target} was fetched{note}"
        if before == after and not changed:
            return Outcome(f"Repository {wish.target} is up-to-date\n\nChanges made: {told}")
        return Outcome(told, {"revision": {"old": before, "new": after}} if before != after else {})

    return Plan.change(f"Bare repository at {wish.target} would be fetched", [Step(f"fetch {wish.name}", work)])
