"""Reads what ``git.latest`` compares (the wanted revision, the remote's refs, the local commit), sets the branch that is
tracked, and updates submodules.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError, StateFailure

#: Number of characters of an abbreviated SHA1 in comments.
SHORT = 7


@dataclass(frozen=True, slots=True)
class WantedCheckout:
    """The checked arguments of ``git.latest``: repository, target directory, revision, branch, user, credentials and options."""

    name: str
    target: str
    rev: str
    branch: str | None
    user: str | None
    identity: object
    https_user: str | None
    https_pass: str | None
    update_head: bool
    force_checkout: bool
    force_clone: bool
    force_fetch: bool
    force_reset: object
    submodules: bool
    bare: bool
    mirror: bool
    remote: str
    fetch_tags: bool
    sync_tags: bool
    depth: object
    refspecs: tuple[str, ...]

    @property
    def auth(self) -> dict[str, object]:
        """Map of the arguments (user, identity, options) for git functions that connect to the remote repository."""
        return {
            "user": self.user,
            "identity": self.identity,
            "https_user": self.https_user,
            "https_pass": self.https_pass,
        }


@dataclass(frozen=True, slots=True)
class Remote:
    """The revision that ``git.latest`` wants, as it is in the remote repository: its commit id, its kind, its upstream branch
    and the remote's tags.
    """

    sha: str | None
    kind: str | None
    #: Upstream such as ``origin/main`` if the revision is a branch, else None.
    upstream: str | None
    tags: frozenset[str]

    def shown(self, rev: str) -> str:
        """Return the wanted Git revision with its short commit id as text for comments, such as ``origin/main (1a2b3c4)``."""
        short = (self.sha or "")[:SHORT]
        if self.kind == "sha1":
            return f"remote HEAD ({short})" if rev == "HEAD" else short
        return f"{self.upstream or rev} ({short})"


def remote_of(ctx: Context, checkout: WantedCheckout) -> Remote:
    """Return the commit, kind and upstream that the revision wanted by ``git.latest`` has in the remote repository.

    The commit is None if the repository lacks the revision. Raises CommandError if the repository does not answer.
    """
    try:
        refs = ctx.call("git.remote_refs", checkout.name, **checkout.auth)
    except (CommandError, InvocationError) as error:
        raise CommandError(f"Failed to check remote refs: {error}") from error
    tags = frozenset(ref.removeprefix("refs/tags/") for ref in refs if ref.startswith("refs/tags/") and "^" not in ref)
    rev = checkout.rev
    if rev == "HEAD" or checkout.bare:
        return Remote(refs.get("HEAD"), "sha1" if "HEAD" in refs else None, None, tags)
    if f"refs/heads/{rev}" in refs:
        return Remote(refs[f"refs/heads/{rev}"], "branch", f"{checkout.remote}/{rev}", tags)
    for ref in (f"refs/tags/{rev}^{{}}", f"refs/tags/{rev}"):
        if ref in refs:
            return Remote(refs[ref], "tag", None, tags)
    if len(rev) <= 40 and all(sign in string.hexdigits for sign in rev):
        return Remote(rev.lower(), "sha1", None, tags)
    return Remote(None, None, None, tags)


def tracked(ctx: Context, checkout: WantedCheckout, remote_ref: Remote) -> list[str]:
    """Set or unset the upstream of the clone's current branch. Return the list of comment lines about it; [] if nothing
    changed.
    """
    upstream = upstream_of(ctx, checkout)
    if upstream and checkout.rev != "HEAD" and not remote_ref.upstream:
        ctx.call("git.branch", checkout.target, opts=["--unset-upstream"], user=checkout.user)
        return ["Tracking branch was unset"]
    if not remote_ref.upstream or upstream == remote_ref.upstream or not branch_of(ctx, checkout.target, checkout.user):
        return []
    ctx.call("git.branch", checkout.target, opts=["--set-upstream-to", remote_ref.upstream], user=checkout.user)
    return [f"Tracking branch was {'updated' if upstream else 'set'} to {remote_ref.upstream}"]


def upstream_of(ctx: Context, checkout: WantedCheckout) -> str | None:
    """Return the upstream (``origin/main``) of the clone's current branch; None if it has none."""
    try:
        found: str = ctx.call("git.rev_parse", checkout.target, "@{upstream}", opts="--abbrev-ref", user=checkout.user)
    except CommandError:
        return None
    return found


def commit_of(ctx: Context, checkout: WantedCheckout, rev: str) -> str | None:
    """Return the commit id of a revision in the local clone; None if the clone does not contain it."""
    try:
        found: str = ctx.call(
            "git.rev_parse", checkout.target, f"{rev}^{{commit}}", opts="--verify -q", user=checkout.user
        )
    except CommandError:
        return None
    return found


def branch_of(ctx: Context, target: str, user: str | None) -> str:
    """Return the branch that is checked out in a clone, also one without commits; "" if HEAD is detached."""
    try:
        found: str = ctx.call("git.symbolic_ref", target, "HEAD", opts="-q --short", user=user)
    except CommandError:
        return ""
    return found


def has_changes(ctx: Context, target: str, user: str | None) -> bool:
    """Return whether tracked files of a clone differ from HEAD; False if it has no commit."""
    try:
        return bool(ctx.call("git.diff", target, "HEAD", user=user))
    except CommandError:
        return False


def is_ancestor(ctx: Context, target: str, old: str, new: str | None, user: str | None) -> bool:
    """Return whether the revision ``old`` is an ancestor of ``new`` in a clone; False also for an unknown revision."""
    return bool(ctx.call("git.merge_base", target, refs=[old, new], is_ancestor=True, user=user))


def update_submodules(ctx: Context, checkout: WantedCheckout) -> None:
    """Update the Git submodules of the clone to the commits that the checked-out revision names. Raises StateFailure if
    git fails.
    """
    opts = ["--init", "--recursive"]
    try:
        ctx.call("git.submodule", checkout.target, "update", opts=opts, user=checkout.user, identity=checkout.identity)
    except CommandError as error:
        raise StateFailure(f"Failed to update submodules: {error}") from error


def is_at(sha: str | None, remote_ref: Remote) -> bool:
    """Return True if the commit ``sha`` is the revision that ``git.latest`` wants. The wanted SHA1 may be abbreviated."""
    return sha is not None and remote_ref.sha is not None and sha.startswith(remote_ref.sha)


def redacted(url: str | None) -> str:
    """Return the URL of a Git repository without user and password, for comments."""
    scheme, sign, rest = (url or "None").partition("://")
    return f"{scheme}{sign}{'<redacted>@' + rest.split('@', 1)[1] if '@' in rest.split('/', 1)[0] else rest}"


def sentences(lines: Sequence[str]) -> str:
    """Return lines joined to one comment. A single line gets no full stop, as in Salt."""
    return ". ".join(lines) + ("." if len(lines) > 1 else "")
