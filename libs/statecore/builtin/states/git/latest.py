"""``git.latest``: a clone that follows a branch, a tag or HEAD of a remote repository."""

from __future__ import annotations

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
    force_reset: object = False,
    submodules: bool = False,
    bare: bool = False,
    mirror: bool = False,
    remote: str = "origin",
    fetch_tags: bool = True,
    sync_tags: bool = True,
    depth: object = None,
    identity: object = None,
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
    checkout = WantedCheckout(
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
        remote_ref = remote_of(ctx, checkout)
        if not checkout.bare and remote_ref.sha is None and rev != "HEAD":
            return Plan.failed(f"No revision matching '{rev}' exists in the remote repository")
        if depth is not None and remote_ref.kind not in ("branch", "tag"):
            return Plan.failed(
                "When 'depth' is used, 'rev' must be set to the name of a branch or tag on the remote repository"
            )
        if (place / ("refs" if checkout.bare else ".git")).exists():
            return _fetched(ctx, checkout) if checkout.bare else Update(ctx, checkout, remote_ref).plan()
        return _cloned(ctx, checkout, remote_ref)
    except CommandError as error:
        return Plan.failed(str(error))


def _cloned(ctx: Context, checkout: WantedCheckout, remote_ref: Remote) -> Plan:
    place = ctx.host.path(checkout.target)
    filled = place.is_dir() and any(place.iterdir())
    if filled and not checkout.force_clone:
        return Plan.failed(
            f"Target '{checkout.target}' exists, is non-empty and is not a git repository. Set the 'force_clone' option to True "
            "to remove this directory's contents and proceed with cloning the remote repository"
        )

    def work() -> Outcome:
        changes: dict[str, object] = {}
        if filled:
            for each in place.iterdir():
                remove(each)
            changes["forced clone"] = True
        opts = ["--mirror"] if checkout.mirror else ["--bare"] if checkout.bare else []
        opts += ["--origin", checkout.remote] if checkout.remote != "origin" else []
        opts += ["--depth", str(checkout.depth), "--branch", checkout.rev] if checkout.depth is not None else []
        try:
            ctx.call("git.clone", checkout.target, checkout.name, opts=opts, **checkout.auth)
        except CommandError as error:
            return Outcome(f"Clone failed: {error}", changes, ok=False)
        changes["new"] = f"{checkout.name} => {checkout.target}"
        kind = " as mirror" if checkout.mirror else " as bare repository" if checkout.bare else ""
        lines = [f"{checkout.name} cloned to {checkout.target}{kind}"]
        if not checkout.bare and remote_ref.sha:
            lines += _settled(ctx, checkout, remote_ref)
        if (new := commit_of(ctx, checkout, "HEAD")) is not None:
            changes["revision"] = {"old": None, "new": new}
        return Outcome(sentences(lines), changes)

    changes: dict[str, object] = {"new": f"{checkout.name} => {checkout.target}"}
    would = f"Repository {checkout.name} would be cloned to {checkout.target}"
    if filled:
        changes = {"forced clone": True, **changes}
        would = (
            f"Target directory {checkout.target} exists. Since force_clone=True, the contents of {checkout.target} would be "
            f"deleted, and {checkout.name} would be cloned into this directory."
        )
    return Plan.change(would, [Step(f"clone {checkout.name}", work)], changes)


def _settled(ctx: Context, checkout: WantedCheckout, remote_ref: Remote) -> list[str]:
    """Check out the wanted branch and revision in a new clone, and return the list of comment lines about the changes."""
    lines = []
    if checkout.branch is not None and checkout.branch not in ctx.call(
        "git.list_branches", checkout.target, user=checkout.user
    ):
        start = remote_ref.sha if checkout.rev == "HEAD" else remote_ref.upstream or checkout.rev
        ctx.call("git.checkout", checkout.target, start, opts=["-b", checkout.branch], user=checkout.user)
        lines.append(
            f"Branch '{checkout.branch}' checked out, with {remote_ref.shown(checkout.rev)} as a starting point"
        )
    if not is_at(commit_of(ctx, checkout, "HEAD"), remote_ref):
        ctx.call("git.reset", checkout.target, opts=["--hard", remote_ref.sha], user=checkout.user)
        lines.append(f"Repository was reset to {remote_ref.shown(checkout.rev)}")
    lines += tracked(ctx, checkout, remote_ref)
    if checkout.submodules:
        update_submodules(ctx, checkout)
    return lines


def _fetched(ctx: Context, checkout: WantedCheckout) -> Plan:
    def work() -> Outcome:
        before = commit_of(ctx, checkout, "HEAD")
        opts = {
            "remote": checkout.remote,
            "force": checkout.force_fetch,
            "refspecs": checkout.refspecs if not checkout.mirror else (),
        }
        changed = ctx.call("git.fetch", checkout.target, user=checkout.user, identity=checkout.identity, **opts)
        after = commit_of(ctx, checkout, "HEAD")
        note = ", resulting in updated refs" if changed else ""
        lines = f"Bare repository at {checkout.target} was fetched{note}"
        if before == after and not changed:
            return Outcome(f"Repository {checkout.target} is up-to-date\n\nChanges made: {lines}")
        return Outcome(lines, {"revision": {"old": before, "new": after}} if before != after else {})

    return Plan.change(f"Bare repository at {checkout.target} would be fetched", [Step(f"fetch {checkout.name}", work)])
