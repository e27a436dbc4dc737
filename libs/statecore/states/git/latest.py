"""``git.latest``: a clone that follows a branch, a tag or HEAD of a repository elsewhere."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from statecore.context import Context
from statecore.errors import CommandError, StateFailure
from statecore.managed_file import remove
from statecore.types import Outcome, Plan, Step

#: Characters of a SHA1 that are shown.
_SHORT = 7


@dataclass(frozen=True, slots=True)
class _Wish:
    """The arguments."""

    name: str
    target: str
    rev: str
    branch: str | None
    user: str | None
    identity: Any
    https_user: str | None
    https_pass: str | None
    update_head: bool
    force_checkout: bool
    force_clone: bool
    force_fetch: bool
    force_reset: Any
    submodules: bool
    bare: bool
    mirror: bool
    remote: str
    fetch_tags: bool
    sync_tags: bool
    depth: Any
    refspecs: tuple[str, ...]

    @property
    def auth(self) -> dict[str, Any]:
        """What a function that asks the remote repository is given."""
        return {
            "user": self.user,
            "identity": self.identity,
            "https_user": self.https_user,
            "https_pass": self.https_pass,
        }


@dataclass(frozen=True, slots=True)
class _Remote:
    """The revision that is wanted, as the remote repository has it."""

    sha: str | None
    kind: str | None
    #: ``origin/main`` for a branch.
    upstream: str | None
    tags: frozenset[str]

    def shown(self, rev: str) -> str:
        short = (self.sha or "")[:_SHORT]
        if self.kind == "sha1":
            return f"remote HEAD ({short})" if rev == "HEAD" else short
        return f"{self.upstream or rev} ({short})"


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
    """A clone of ``name`` at ``target`` that is at ``rev``: a branch, a tag, a SHA1, or HEAD of the remote repository.

    branch
        the local branch; made if need be
    force_reset
        True: what is not a fast-forward, and local changes, are overwritten; ``remote-changes``: local changes only where the
        remote has new ones
    force_clone
        a directory that is no repository is emptied
    bare, mirror
        a repository without a working tree, that is fetched
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
    wish = _Wish(
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
        there = _remote(ctx, wish)
        if not wish.bare and there.sha is None and rev != "HEAD":
            return Plan.failed(f"No revision matching '{rev}' exists in the remote repository")
        if depth is not None and there.kind not in ("branch", "tag"):
            return Plan.failed(
                "When 'depth' is used, 'rev' must be set to the name of a branch or tag on the remote repository"
            )
        if (place / ("refs" if wish.bare else ".git")).exists():
            return _fetched(ctx, wish) if wish.bare else _Update(ctx, wish, there).plan()
        return _cloned(ctx, wish, there)
    except CommandError as error:
        return Plan.failed(str(error))


def _remote(ctx: Context, wish: _Wish) -> _Remote:
    try:
        refs = ctx.call("git.remote_refs", wish.name, **wish.auth)
    except CommandError as error:
        raise CommandError(f"Failed to check remote refs: {error}") from error
    tags = frozenset(ref.removeprefix("refs/tags/") for ref in refs if ref.startswith("refs/tags/") and "^" not in ref)
    rev = wish.rev
    if rev == "HEAD" or wish.bare:
        return _Remote(refs.get("HEAD"), "sha1" if "HEAD" in refs else None, None, tags)
    if f"refs/heads/{rev}" in refs:
        return _Remote(refs[f"refs/heads/{rev}"], "branch", f"{wish.remote}/{rev}", tags)
    for ref in (f"refs/tags/{rev}^{{}}", f"refs/tags/{rev}"):
        if ref in refs:
            return _Remote(refs[ref], "tag", None, tags)
    if len(rev) <= 40 and all(sign in string.hexdigits for sign in rev):
        return _Remote(rev.lower(), "sha1", None, tags)
    return _Remote(None, None, None, tags)


def _cloned(ctx: Context, wish: _Wish, there: _Remote) -> Plan:
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
        if (new := _commit(ctx, wish, "HEAD")) is not None:
            changes["revision"] = {"old": None, "new": new}
        return Outcome(_sentences(told), changes)

    changes: dict[str, Any] = {"new": f"{wish.name} => {wish.target}"}
    would = f"Repository {wish.name} would be cloned to {wish.target}"
    if filled:
        changes = {"forced clone": True, **changes}
        would = (
            f"Target directory {wish.target} exists. Since force_clone=True, the contents of {wish.target} would be "
            f"deleted, and {wish.name} would be cloned into this directory."
        )
    return Plan.change(would, [Step(f"clone {wish.name}", work)], changes)


def _settled(ctx: Context, wish: _Wish, there: _Remote) -> list[str]:
    """Brings a new clone to the branch and revision that are wanted."""
    told = []
    if wish.branch is not None and wish.branch not in ctx.call("git.list_branches", wish.target, user=wish.user):
        start = there.sha if wish.rev == "HEAD" else there.upstream or wish.rev
        ctx.call("git.checkout", wish.target, start, opts=["-b", wish.branch], user=wish.user)
        told.append(f"Branch '{wish.branch}' checked out, with {there.shown(wish.rev)} as a starting point")
    if not _same(_commit(ctx, wish, "HEAD"), there):
        ctx.call("git.reset", wish.target, opts=["--hard", there.sha], user=wish.user)
        told.append(f"Repository was reset to {there.shown(wish.rev)}")
    told += _tracked(ctx, wish, there)
    if wish.submodules:
        _submodules(ctx, wish)
    return told


def _fetched(ctx: Context, wish: _Wish) -> Plan:
    def work() -> Outcome:
        before = _commit(ctx, wish, "HEAD")
        opts = {"remote": wish.remote, "force": wish.force_fetch, "refspecs": wish.refspecs if not wish.mirror else ()}
        changed = ctx.call("git.fetch", wish.target, user=wish.user, identity=wish.identity, **opts)
        after = _commit(ctx, wish, "HEAD")
        note = ", resulting in updated refs" if changed else ""
        told = f"Bare repository at {wish.target} was fetched{note}"
        if before == after and not changed:
            return Outcome(f"Repository {wish.target} is up-to-date\n\nChanges made: {told}")
        return Outcome(told, {"revision": {"old": before, "new": after}} if before != after else {})

    return Plan.change(f"Bare repository at {wish.target} would be fetched", [Step(f"fetch {wish.name}", work)])


@dataclass(slots=True)
class _Update:
    """A clone that is there, brought to what is wanted."""

    ctx: Context
    wish: _Wish
    there: _Remote

    def plan(self) -> Plan:
        ctx, wish, there = self.ctx, self.wish, self.there
        who = {"user": wish.user}
        now, local_branch = _commit(ctx, wish, "HEAD"), ctx.call("git.current_branch", wish.target, **who)
        if there.sha is None:
            if now is not None:
                return Plan.failed("Remote repository is empty, cannot update from a non-empty to an empty repository")
            return Plan.unchanged(f"Repository {wish.target} is up-to-date")
        switch = wish.branch is not None and wish.branch != local_branch
        branches = ctx.call("git.list_branches", wish.target, **who)
        base = now if not switch else _commit(ctx, wish, str(wish.branch)) if wish.branch in branches else there.sha
        match, dirty = _same(now, there), ctx.call("git.has_changes", wish.target, **who)
        if dirty and match and not switch and wish.force_reset is not True:
            return Plan.unchanged(
                f"Repository {wish.target} is up-to-date, but with uncommitted changes. Set 'force_reset' to True to purge "
                "uncommitted changes."
            )
        known = _commit(ctx, wish, there.sha) is not None
        forward = base is None or (known and ctx.call("git.is_ancestor", wish.target, base, there.sha, **who))
        if known and not forward and not wish.force_reset and (wish.update_head or switch):
            return Plan.failed(self._no_forward(base, "this is not a fast-forward merge"))
        if dirty and not match and not wish.force_reset:
            return Plan.failed(self._no_forward(base, "there are uncommitted changes"))
        url = ctx.call("git.remotes", wish.target, redact_auth=False, **who).get(wish.remote, {}).get("fetch")
        actions = self._actions(
            url, now, local_branch, branches, known=known, forward=forward, switch=switch, match=match
        )
        if dirty and match and not switch:
            actions.append("Uncommitted changes would be discarded")
        if not actions:
            return Plan.unchanged(f"Repository {wish.target} is up-to-date")
        changes = {} if match or not (wish.update_head or switch) else {"revision": {"old": now, "new": there.sha}}
        step = Step(f"update {wish.target} from {wish.name}", lambda: self._run(now, url, switch=switch, dirty=dirty))
        return Plan.change(_sentences(actions), [step], changes)

    def _actions(
        self,
        url: str | None,
        now: str | None,
        local_branch: str,
        branches: Sequence[str],
        *,
        known: bool,
        forward: bool,
        switch: bool,
        match: bool,
    ) -> list[str]:
        ctx, wish, there = self.ctx, self.wish, self.there
        actions = []
        if url != self._url():
            actions.append(f"Remote '{wish.remote}' would be changed from {_shown(url)} to {_shown(self._url())}")
        upstream = _upstream(ctx, wish)
        tags = set(ctx.call("git.list_tags", wish.target, user=wish.user))
        if not known or (wish.fetch_tags and there.tags - tags) or self._behind():
            actions.append(f"Remote '{wish.remote}' would be fetched")
        if wish.sync_tags and (gone := sorted(tags - there.tags)):
            actions.append(f"The following tags would be removed from the local checkout: {', '.join(gone)}")
        short, new = (now or "")[:_SHORT], str(there.sha)[:_SHORT]
        if switch and wish.branch not in branches:
            actions.append(
                f"New branch '{wish.branch}' would be checked out, with {there.shown(wish.rev)} as a starting point"
            )
        elif switch:
            how = "fast-forwarded" if forward else "hard-reset" if wish.force_reset else "updated"
            actions.append(f"Branch '{wish.branch}' would be checked out and {how} to {new}")
        elif not match and wish.update_head:
            how = "fast-forwarded" if forward and known else "hard-reset" if wish.force_reset and known else "updated"
            actions.append(f"Repository would be {how} from {short} to {new}")
        if upstream and wish.rev != "HEAD" and not there.upstream:
            actions.append("Tracking branch would be unset")
        if there.upstream and upstream != there.upstream and local_branch:
            actions.append(f"Tracking branch would be {'updated' if upstream else 'set'} to {there.upstream}")
        return actions

    def _run(self, before: str | None, url: str | None, *, switch: bool, dirty: bool) -> Outcome:
        ctx, wish, there = self.ctx, self.wish, self.there
        who: dict[str, Any] = {"user": wish.user}
        told: list[str] = []
        changes: dict[str, Any] = {}
        if url != self._url():
            auth = {"https_user": wish.https_user, "https_pass": wish.https_pass}
            ctx.call("git.remote_set", wish.target, url=wish.name, remote=wish.remote, **who, **auth)
            shown = _shown(self._url())
            told.append(
                f"Remote '{wish.remote}' changed from {_shown(url)} to {shown}"
                if url
                else f"Remote '{wish.remote}' set to {shown}"
            )
        self._sync_tags(told, changes)
        fetched = ctx.call(
            "git.fetch",
            wish.target,
            remote=wish.remote,
            force=wish.force_fetch,
            refspecs=wish.refspecs,
            identity=wish.identity,
            **who,
        )
        if fetched:
            told.append(f"{wish.name} was fetched, resulting in updated refs")
        if _commit(ctx, wish, str(there.sha)) is None:
            raise StateFailure(f"Fetch did not successfully retrieve rev '{wish.rev}' from {wish.name}")
        if not wish.update_head and not switch:
            short = (before or "")[:_SHORT]
            told = [
                f"{there.shown(wish.rev)} is already present and local HEAD ({short}) does not match, but update_head=False. "
                "HEAD has not been updated locally"
            ]
            return Outcome(f"{told[0]}.", changes)
        if switch:
            told.append(self._switch(dirty=dirty))
        if dirty and wish.force_reset:
            ctx.call("git.reset", wish.target, opts=["--hard", "HEAD"], **who)
            told.append("Uncommitted changes were discarded")
        base = _commit(ctx, wish, "HEAD")
        if base is not None and not ctx.call("git.is_ancestor", wish.target, base, there.sha, **who):
            if not wish.force_reset:
                raise StateFailure(self._no_forward(base, "this is not a fast-forward merge"), changes)
            ctx.call("git.reset", wish.target, opts=["--hard", there.sha], **who)
            changes["forced update"] = True
            told.append(f"Repository was hard-reset to {there.shown(wish.rev)}")
        elif not _same(base, there):
            on_branch = bool(ctx.call("git.current_branch", wish.target, **who))
            if on_branch and (there.upstream or wish.rev == "HEAD"):
                told += _tracked(ctx, wish, there)
                ctx.call("git.merge", wish.target, there.sha, opts=["--ff-only"], **who)
                told.append(f"Repository was fast-forwarded to {there.shown(wish.rev)}")
            else:
                ctx.call("git.reset", wish.target, opts=["--hard", there.sha], **who)
                told.append(f"Repository was reset to {wish.rev} (fast-forward)")
        told += _tracked(ctx, wish, there)
        if wish.submodules:
            _submodules(ctx, wish)
        after = _commit(ctx, wish, "HEAD")
        if not _same(after, there):
            raise StateFailure("Failed to update repository", changes)
        if before != after:
            changes["revision"] = {"old": before, "new": after}
            return Outcome(_sentences(told), changes)
        made = f"\n\nChanges made: {_sentences(told)}" if told else ""
        return Outcome(f"Repository {wish.target} is up-to-date{made}", changes)

    def _switch(self, *, dirty: bool) -> str:
        ctx, wish, there = self.ctx, self.wish, self.there
        if dirty and not wish.force_checkout:
            raise StateFailure(
                "The checkout has uncommitted changes. Set 'force_checkout' to True to discard them and proceed."
            )
        if wish.branch in ctx.call("git.list_branches", wish.target, user=wish.user):
            ctx.call("git.checkout", wish.target, wish.branch, force=wish.force_checkout, user=wish.user)
            return f"'{wish.branch}' was checked out"
        start = there.sha if wish.rev == "HEAD" else there.upstream or wish.rev
        opts = ["-b", wish.branch]
        ctx.call("git.checkout", wish.target, start, force=wish.force_checkout, opts=opts, user=wish.user)
        return f"New branch '{wish.branch}' was checked out, with {there.shown(wish.rev)} as a starting point"

    def _sync_tags(self, told: list[str], changes: dict[str, Any]) -> None:
        ctx, wish = self.ctx, self.wish
        tags = set(ctx.call("git.list_tags", wish.target, user=wish.user))
        if wish.fetch_tags and (new := sorted(self.there.tags - tags)):
            changes["new_tags"] = new
        gone = sorted(tags - self.there.tags) if wish.sync_tags else []
        if gone:
            ctx.call("git.tag_delete", wish.target, gone, user=wish.user)
            changes["deleted_tags"] = gone
            told.append(f"The following tags were removed from the local checkout: {', '.join(gone)}")

    def _behind(self) -> bool:
        """Whether the remote's branch is known at another revision."""
        upstream = self.there.upstream
        return upstream is not None and _commit(self.ctx, self.wish, f"refs/remotes/{upstream}") != self.there.sha

    def _url(self) -> str:
        told: str = self.ctx.call("git.address", self.wish.name, self.wish.https_user, self.wish.https_pass)
        return told

    def _no_forward(self, base: str | None, why: str) -> str:
        local = why != "this is not a fast-forward merge"
        start, end = (base or "")[:_SHORT], str(self.there.sha)[:_SHORT]
        moved = f"from {start} to {end}" if local and start != end else f"to {end}"
        also, drop = (" (or 'remote-changes')", " and discard these changes") if local else ("", "")
        return f"Repository would be updated {moved}, but {why}. Set 'force_reset' to True{also} to force this update{drop}."


def _tracked(ctx: Context, wish: _Wish, there: _Remote) -> list[str]:
    """Has the branch that is checked out follow the remote's."""
    upstream = _upstream(ctx, wish)
    if upstream and wish.rev != "HEAD" and not there.upstream:
        ctx.call("git.branch", wish.target, opts=["--unset-upstream"], user=wish.user)
        return ["Tracking branch was unset"]
    if (
        not there.upstream
        or upstream == there.upstream
        or not ctx.call("git.current_branch", wish.target, user=wish.user)
    ):
        return []
    ctx.call("git.branch", wish.target, opts=["--set-upstream-to", there.upstream], user=wish.user)
    return [f"Tracking branch was {'updated' if upstream else 'set'} to {there.upstream}"]


def _upstream(ctx: Context, wish: _Wish) -> str | None:
    try:
        found: str = ctx.call("git.rev_parse", wish.target, "@{upstream}", opts="--abbrev-ref", user=wish.user)
    except CommandError:
        return None
    return found


def _commit(ctx: Context, wish: _Wish, rev: str) -> str | None:
    try:
        found: str = ctx.call("git.rev_parse", wish.target, f"{rev}^{{commit}}", user=wish.user)
    except CommandError:
        return None
    return found


def _submodules(ctx: Context, wish: _Wish) -> None:
    opts = ["--init", "--recursive"]
    try:
        ctx.call("git.submodule", wish.target, "update", opts=opts, user=wish.user, identity=wish.identity)
    except CommandError as error:
        raise StateFailure(f"Failed to update submodules: {error}") from error


def _same(sha: str | None, there: _Remote) -> bool:
    return sha is not None and there.sha is not None and sha.startswith(there.sha)


def _shown(url: str | None) -> str:
    """An address without who asks."""
    scheme, sign, rest = (url or "None").partition("://")
    return f"{scheme}{sign}{'<redacted>@' + rest.split('@', 1)[1] if '@' in rest.split('/', 1)[0] else rest}"


def _sentences(told: Sequence[str]) -> str:
    return ". ".join(told) + ("." if len(told) > 1 else "")
