"""Update of an existing clone to the revision that ``git.latest`` wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from statecore.builtin.states.git.checkout import (
    SHORT,
    Remote,
    WantedCheckout,
    branch_of,
    commit_of,
    has_changes,
    is_ancestor,
    is_at,
    redacted,
    sentences,
    tracked,
    update_submodules,
    upstream_of,
)
from statecore.model.context import Context
from statecore.model.errors import StateFailure
from statecore.model.types import Outcome, Plan, Step
from statecore.system.git_commands import address


@dataclass(slots=True)
class Update:
    """Update of an existing Git clone to the revision that ``git.latest`` wants: makes the plan and runs its steps."""

    ctx: Context
    checkout: WantedCheckout
    remote_ref: Remote

    def plan(self) -> Plan:
        """Return the plan that brings the existing Git clone to the wanted revision."""
        ctx, checkout, remote_ref = self.ctx, self.checkout, self.remote_ref
        who = {"user": checkout.user}
        now, local_branch = commit_of(ctx, checkout, "HEAD"), branch_of(ctx, checkout.target, checkout.user)
        if remote_ref.sha is None:
            if now is not None:
                return Plan.failed("Remote repository is empty, cannot update from a non-empty to an empty repository")
            return Plan.unchanged(f"Repository {checkout.target} is up-to-date")
        switch = checkout.branch is not None and checkout.branch != local_branch
        branches = ctx.call("git.list_branches", checkout.target, **who)
        base = (
            now
            if not switch
            else commit_of(ctx, checkout, str(checkout.branch))
            if checkout.branch in branches
            else remote_ref.sha
        )
        match, dirty = is_at(now, remote_ref), has_changes(ctx, checkout.target, checkout.user)
        if dirty and match and not switch and checkout.force_reset is not True:
            return Plan.unchanged(
                f"Repository {checkout.target} is up-to-date, but with uncommitted changes. Set 'force_reset' to True to purge "
                "uncommitted changes."
            )
        known = commit_of(ctx, checkout, remote_ref.sha) is not None
        forward = base is None or (known and is_ancestor(ctx, checkout.target, base, remote_ref.sha, checkout.user))
        if known and not forward and not checkout.force_reset and (checkout.update_head or switch):
            return Plan.failed(self._no_forward(base, "this is not a fast-forward merge"))
        if dirty and not match and not checkout.force_reset:
            return Plan.failed(self._no_forward(base, "there are uncommitted changes"))
        url = ctx.call("git.remotes", checkout.target, redact_auth=False, **who).get(checkout.remote, {}).get("fetch")
        actions = self._actions(
            url, now, local_branch, branches, known=known, forward=forward, switch=switch, match=match
        )
        if dirty and match and not switch:
            actions.append("Uncommitted changes would be discarded")
        if not actions:
            return Plan.unchanged(f"Repository {checkout.target} is up-to-date")
        changes = (
            {} if match or not (checkout.update_head or switch) else {"revision": {"old": now, "new": remote_ref.sha}}
        )
        step = Step(
            f"update {checkout.target} from {checkout.name}", lambda: self._run(now, url, switch=switch, dirty=dirty)
        )
        return Plan.change(sentences(actions), [step], changes)

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
        ctx, checkout, remote_ref = self.ctx, self.checkout, self.remote_ref
        actions = []
        if url != self._url():
            actions.append(
                f"Remote '{checkout.remote}' would be changed from {redacted(url)} to {redacted(self._url())}"
            )
        upstream = upstream_of(ctx, checkout)
        tags = set(ctx.call("git.list_tags", checkout.target, user=checkout.user))
        if not known or (checkout.fetch_tags and remote_ref.tags - tags) or self._behind():
            actions.append(f"Remote '{checkout.remote}' would be fetched")
        if checkout.sync_tags and (gone := sorted(tags - remote_ref.tags)):
            actions.append(f"The following tags would be removed from the local checkout: {', '.join(gone)}")
        short, new = (now or "")[:SHORT], str(remote_ref.sha)[:SHORT]
        if switch and checkout.branch not in branches:
            actions.append(
                f"New branch '{checkout.branch}' would be checked out, with {remote_ref.shown(checkout.rev)} as a starting point"
            )
        elif switch:
            how = "fast-forwarded" if forward else "hard-reset" if checkout.force_reset else "updated"
            actions.append(f"Branch '{checkout.branch}' would be checked out and {how} to {new}")
        elif not match and checkout.update_head:
            how = (
                "fast-forwarded" if forward and known else "hard-reset" if checkout.force_reset and known else "updated"
            )
            actions.append(f"Repository would be {how} from {short} to {new}")
        if upstream and checkout.rev != "HEAD" and not remote_ref.upstream:
            actions.append("Tracking branch would be unset")
        if remote_ref.upstream and upstream != remote_ref.upstream and local_branch:
            actions.append(f"Tracking branch would be {'updated' if upstream else 'set'} to {remote_ref.upstream}")
        return actions

    def _run(self, before: str | None, url: str | None, *, switch: bool, dirty: bool) -> Outcome:
        ctx, checkout, remote_ref = self.ctx, self.checkout, self.remote_ref
        changes: dict[str, object] = {}
        lines = [*self._set_url(url), *self._sync_tags(changes), *self._fetch()]
        if not checkout.update_head and not switch:
            short = (before or "")[:SHORT]
            return Outcome(
                f"{remote_ref.shown(checkout.rev)} is already present and local HEAD ({short}) does not match, "
                "but update_head=False. HEAD has not been updated locally.",
                changes,
            )
        if switch:
            lines.append(self._switch(dirty=dirty))
        if dirty and checkout.force_reset:
            ctx.call("git.reset", checkout.target, opts=["--hard", "HEAD"], user=checkout.user)
            lines.append("Uncommitted changes were discarded")
        lines += self._move(changes)
        lines += tracked(ctx, checkout, remote_ref)
        if checkout.submodules:
            update_submodules(ctx, checkout)
        after = commit_of(ctx, checkout, "HEAD")
        if not is_at(after, remote_ref):
            raise StateFailure("Failed to update repository", changes)
        if before != after:
            changes["revision"] = {"old": before, "new": after}
            return Outcome(sentences(lines), changes)
        made = f"\n\nChanges made: {sentences(lines)}" if lines else ""
        return Outcome(f"Repository {checkout.target} is up-to-date{made}", changes)

    def _set_url(self, url: str | None) -> list[str]:
        """Change the URL of the clone's remote if it differs. Return the lines for the state's comment; [] if
        the URL is as wanted.
        """
        checkout, wanted = self.checkout, self._url()
        if url == wanted:
            return []
        auth = {"https_user": checkout.https_user, "https_pass": checkout.https_pass}
        self.ctx.call(
            "git.remote_set", checkout.target, url=checkout.name, remote=checkout.remote, user=checkout.user, **auth
        )
        how = f"changed from {redacted(url)} to" if url else "set to"
        return [f"Remote '{checkout.remote}' {how} {redacted(wanted)}"]

    def _fetch(self) -> list[str]:
        """Fetch the wanted revision into the clone. Return the lines for the state's comment; [] if no ref
        changed.

        Raises StateFailure if the revision is still missing.
        """
        ctx, checkout = self.ctx, self.checkout
        fetched = ctx.call(
            "git.fetch",
            checkout.target,
            remote=checkout.remote,
            force=checkout.force_fetch,
            refspecs=checkout.refspecs,
            identity=checkout.identity,
            user=checkout.user,
        )
        if commit_of(ctx, checkout, str(self.remote_ref.sha)) is None:
            raise StateFailure(f"Fetch did not successfully retrieve rev '{checkout.rev}' from {checkout.name}")
        return [f"{checkout.name} was fetched, resulting in updated refs"] if fetched else []

    def _move(self, changes: dict[str, object]) -> list[str]:
        """Move the clone's HEAD to the wanted revision. Return the lines for the state's comment; [] if HEAD
        is already there.

        Raises StateFailure if this is not a fast-forward, unless ``force_reset`` is True.
        """
        ctx, checkout, remote_ref, who = self.ctx, self.checkout, self.remote_ref, {"user": self.checkout.user}
        base = commit_of(ctx, checkout, "HEAD")
        if base is not None and not is_ancestor(ctx, checkout.target, base, remote_ref.sha, checkout.user):
            if not checkout.force_reset:
                raise StateFailure(self._no_forward(base, "this is not a fast-forward merge"), changes)
            ctx.call("git.reset", checkout.target, opts=["--hard", remote_ref.sha], **who)
            changes["forced update"] = True
            return [f"Repository was hard-reset to {remote_ref.shown(checkout.rev)}"]
        if is_at(base, remote_ref):
            return []
        on_branch = bool(branch_of(ctx, checkout.target, checkout.user))
        if on_branch and (remote_ref.upstream or checkout.rev == "HEAD"):
            lines = tracked(ctx, checkout, remote_ref)
            ctx.call("git.merge", checkout.target, remote_ref.sha, opts=["--ff-only"], **who)
            return [*lines, f"Repository was fast-forwarded to {remote_ref.shown(checkout.rev)}"]
        ctx.call("git.reset", checkout.target, opts=["--hard", remote_ref.sha], **who)
        return [f"Repository was reset to {checkout.rev} (fast-forward)"]

    def _switch(self, *, dirty: bool) -> str:
        ctx, checkout, remote_ref = self.ctx, self.checkout, self.remote_ref
        if dirty and not checkout.force_checkout:
            raise StateFailure(
                "The checkout has uncommitted changes. Set 'force_checkout' to True to discard them and proceed."
            )
        if checkout.branch in ctx.call("git.list_branches", checkout.target, user=checkout.user):
            ctx.call(
                "git.checkout", checkout.target, checkout.branch, force=checkout.force_checkout, user=checkout.user
            )
            return f"'{checkout.branch}' was checked out"
        start = remote_ref.sha if checkout.rev == "HEAD" else remote_ref.upstream or checkout.rev
        opts = ["-b", checkout.branch]
        ctx.call("git.checkout", checkout.target, start, force=checkout.force_checkout, opts=opts, user=checkout.user)
        return (
            f"New branch '{checkout.branch}' was checked out, with {remote_ref.shown(checkout.rev)} as a starting point"
        )

    def _sync_tags(self, changes: dict[str, object]) -> list[str]:
        """Remove local tags that the remote repository does not have, if ``sync_tags`` is set. Return the lines
        for the state's comment; [] if no tag was removed.
        """
        ctx, checkout = self.ctx, self.checkout
        tags = set(ctx.call("git.list_tags", checkout.target, user=checkout.user))
        if checkout.fetch_tags and (new := sorted(self.remote_ref.tags - tags)):
            changes["new_tags"] = new
        gone = sorted(tags - self.remote_ref.tags) if checkout.sync_tags else []
        if not gone:
            return []
        for each in gone:
            ctx.call("git.tag", checkout.target, each, opts="-d", user=checkout.user)
        changes["deleted_tags"] = gone
        return [f"The following tags were removed from the local checkout: {', '.join(gone)}"]

    def _behind(self) -> bool:
        """Return True if the remote's branch has a newer commit than the one fetched last."""
        upstream = self.remote_ref.upstream
        return (
            upstream is not None
            and commit_of(self.ctx, self.checkout, f"refs/remotes/{upstream}") != self.remote_ref.sha
        )

    def _url(self) -> str:
        return address(self.checkout.name, self.checkout.https_user, self.checkout.https_pass)

    def _no_forward(self, base: str | None, why: str) -> str:
        local = why != "this is not a fast-forward merge"
        start, end = (base or "")[:SHORT], str(self.remote_ref.sha)[:SHORT]
        moved = f"from {start} to {end}" if local and start != end else f"to {end}"
        also, drop = (" (or 'remote-changes')", " and discard these changes") if local else ("", "")
        return f"Repository would be updated {moved}, but {why}. Set 'force_reset' to True{also} to force this update{drop}."
