"""Update of an existing clone to the revision that ``git.latest`` wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from statecore.builtin.states.git.checkout import (
    SHORT,
    Remote,
    WantedCheckout,
    commit_of,
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


@dataclass(slots=True)
class Update:
    """An existing clone, and the revision that it is to have."""

    ctx: Context
    wish: WantedCheckout
    there: Remote

    def plan(self) -> Plan:
        """Return a plan that brings the clone to the wanted revision."""
        ctx, wish, there = self.ctx, self.wish, self.there
        who = {"user": wish.user}
        now, local_branch = commit_of(ctx, wish, "HEAD"), ctx.call("git.current_branch", wish.target, **who)
        if there.sha is None:
            if now is not None:
                return Plan.failed("Remote repository is empty, cannot update from a non-empty to an empty repository")
            return Plan.unchanged(f"Repository {wish.target} is up-to-date")
        switch = wish.branch is not None and wish.branch != local_branch
        branches = ctx.call("git.list_branches", wish.target, **who)
        base = now if not switch else commit_of(ctx, wish, str(wish.branch)) if wish.branch in branches else there.sha
        match, dirty = is_at(now, there), ctx.call("git.has_changes", wish.target, **who)
        if dirty and match and not switch and wish.force_reset is not True:
            return Plan.unchanged(
                f"Repository {wish.target} is up-to-date, but with uncommitted changes. Set 'force_reset' to True to purge "
                "uncommitted changes."
            )
        known = commit_of(ctx, wish, there.sha) is not None
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
        ctx, wish, there = self.ctx, self.wish, self.there
        actions = []
        if url != self._url():
            actions.append(f"Remote '{wish.remote}' would be changed from {redacted(url)} to {redacted(self._url())}")
        upstream = upstream_of(ctx, wish)
        tags = set(ctx.call("git.list_tags", wish.target, user=wish.user))
        if not known or (wish.fetch_tags and there.tags - tags) or self._behind():
            actions.append(f"Remote '{wish.remote}' would be fetched")
        if wish.sync_tags and (gone := sorted(tags - there.tags)):
            actions.append(f"The following tags would be removed from the local checkout: {', '.join(gone)}")
        short, new = (now or "")[:SHORT], str(there.sha)[:SHORT]
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
        changes: dict[str, Any] = {}
        told = [*self._set_url(url), *self._sync_tags(changes), *self._fetch()]
        if not wish.update_head and not switch:
            short = (before or "")[:SHORT]
            return Outcome(
                f"{there.shown(wish.rev)} is already present and local HEAD ({short}) does not match, but update_head=False. "
                "HEAD has not been updated locally.",
                changes,
            )
        if switch:
            told.append(self._switch(dirty=dirty))
        if dirty and wish.force_reset:
            ctx.call("git.reset", wish.target, opts=["--hard", "HEAD"], user=wish.user)
            told.append("Uncommitted changes were discarded")
        told += self._move(changes)
        told += tracked(ctx, wish, there)
        if wish.submodules:
            update_submodules(ctx, wish)
        after = commit_of(ctx, wish, "HEAD")
        if not is_at(after, there):
            raise StateFailure("Failed to update repository", changes)
        if before != after:
            changes["revision"] = {"old": before, "new": after}
            return Outcome(sentences(told), changes)
        made = f"\n\nChanges made: {sentences(told)}" if told else ""
        return Outcome(f"Repository {wish.target} is up-to-date{made}", changes)

    def _set_url(self, url: str | None) -> list[str]:
        """Change the remote's URL if it differs, and return lines for the comment."""
        wish, wanted = self.wish, self._url()
        if url == wanted:
            return []
        auth = {"https_user": wish.https_user, "https_pass": wish.https_pass}
        self.ctx.call("git.remote_set", wish.target, url=wish.name, remote=wish.remote, user=wish.user, **auth)
        how = f"changed from {redacted(url)} to" if url else "set to"
        return [f"Remote '{wish.remote}' {how} {redacted(wanted)}"]

    def _fetch(self) -> list[str]:
        """Fetch the wanted revision and return lines for the comment.

        Raises StateFailure if the revision is still missing.
        """
        ctx, wish = self.ctx, self.wish
        fetched = ctx.call(
            "git.fetch",
            wish.target,
            remote=wish.remote,
            force=wish.force_fetch,
            refspecs=wish.refspecs,
            identity=wish.identity,
            user=wish.user,
        )
        if commit_of(ctx, wish, str(self.there.sha)) is None:
            raise StateFailure(f"Fetch did not successfully retrieve rev '{wish.rev}' from {wish.name}")
        return [f"{wish.name} was fetched, resulting in updated refs"] if fetched else []

    def _move(self, changes: dict[str, Any]) -> list[str]:
        """Move HEAD to the wanted revision, and return lines for the comment.

        Not a fast-forward: only with ``force_reset``.
        """
        ctx, wish, there, who = self.ctx, self.wish, self.there, {"user": self.wish.user}
        base = commit_of(ctx, wish, "HEAD")
        if base is not None and not ctx.call("git.is_ancestor", wish.target, base, there.sha, **who):
            if not wish.force_reset:
                raise StateFailure(self._no_forward(base, "this is not a fast-forward merge"), changes)
            ctx.call("git.reset", wish.target, opts=["--hard", there.sha], **who)
            changes["forced update"] = True
            return [f"Repository was hard-reset to {there.shown(wish.rev)}"]
        if is_at(base, there):
            return []
        on_branch = bool(ctx.call("git.current_branch", wish.target, **who))
        if on_branch and (there.upstream or wish.rev == "HEAD"):
            told = tracked(ctx, wish, there)
            ctx.call("git.merge", wish.target, there.sha, opts=["--ff-only"], **who)
            return [*told, f"Repository was fast-forwarded to {there.shown(wish.rev)}"]
        ctx.call("git.reset", wish.target, opts=["--hard", there.sha], **who)
        return [f"Repository was reset to {wish.rev} (fast-forward)"]

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

    def _sync_tags(self, changes: dict[str, Any]) -> list[str]:
        """Remove local tags that the remote does not have, if ``sync_tags`` is set, and return lines for the comment."""
        ctx, wish = self.ctx, self.wish
        tags = set(ctx.call("git.list_tags", wish.target, user=wish.user))
        if wish.fetch_tags and (new := sorted(self.there.tags - tags)):
            changes["new_tags"] = new
        gone = sorted(tags - self.there.tags) if wish.sync_tags else []
        if not gone:
            return []
        ctx.call("git.tag_delete", wish.target, gone, user=wish.user)
        changes["deleted_tags"] = gone
        return [f"The following tags were removed from the local checkout: {', '.join(gone)}"]

    def _behind(self) -> bool:
        """Whether the last fetched commit of the remote's branch is outdated."""
        upstream = self.there.upstream
        return upstream is not None and commit_of(self.ctx, self.wish, f"refs/remotes/{upstream}") != self.there.sha

    def _url(self) -> str:
        told: str = self.ctx.call("git.address", self.wish.name, self.wish.https_user, self.wish.https_pass)
        return told

    def _no_forward(self, base: str | None, why: str) -> str:
        local = why != "this is not a fast-forward merge"
        start, end = (base or "")[:SHORT], str(self.there.sha)[:SHORT]
        moved = f"from {start} to {end}" if local and start != end else f"to {end}"
        also, drop = (" (or 'remote-changes')", " and discard these changes") if local else ("", "")
        return f"Repository would be updated {moved}, but {why}. Set 'force_reset' to True{also} to force this update{drop}."
