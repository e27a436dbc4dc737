"""``git.cloned`` and ``git.detached``: clones that are not updated, or that have one revision checked out."""

from __future__ import annotations

import string
from dataclasses import dataclass
from pathlib import Path

from statecore.builtin.states.git.checkout import branch_of, sentences
from statecore.host.content.managed_file import remove
from statecore.model.context import Context
from statecore.model.errors import CommandError
from statecore.model.types import Outcome, Plan, Step


def cloned(
    ctx: Context,
    name: str,
    target: str,
    branch: str | None = None,
    user: str | None = None,
    password: str | None = None,
    identity: object = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    output_encoding: str | None = None,
) -> Plan:
    """Clone the repository ``name`` to ``target`` if missing, and check out ``branch``.

    An existing clone is not updated.
    """
    if not str(target).startswith("/"):
        return Plan.failed("'target' path must be absolute")
    if branch == "":
        return Plan.failed("Invalid 'branch' argument")
    if not ctx.host.path(target).exists():
        at = f" with branch '{branch}'" if branch is not None else ""

        def clone() -> Outcome:
            opts = ["--branch", str(branch)] if branch is not None else []
            try:
                ctx.call(
                    "git.clone",
                    target,
                    name,
                    opts=opts,
                    user=user,
                    identity=identity,
                    https_user=https_user,
                    https_pass=https_pass,
                )
            except CommandError as error:
                return Outcome(f"Clone failed: {error}", ok=False)
            return Outcome(f"{name} cloned to {target}{at}", {"new": f"{name} => {target}"})

        step = Step(f"clone {name}", clone)
        return Plan.change(f"{name} would be cloned to {target}{at}", [step], {"new": f"{name} => {target}"})
    try:
        ctx.call("git.status", target, user=user)
    except CommandError as error:
        return Plan.failed(str(error))
    now = branch_of(ctx, target, user)
    on = f" and is checked out to branch '{branch}'" if branch else ""
    if branch is None or now == branch:
        return Plan.unchanged(f"Repository already exists at {target}{on}")
    changes = {"branch": {"old": now, "new": branch}}

    def change() -> Outcome:
        there = branch in ctx.call("git.list_branches", target, user=user)
        try:
            ctx.call(
                "git.checkout",
                target,
                branch if there else f"origin/{branch}",
                opts=[] if there else ["-b", branch],
                user=user,
            )
        except CommandError as error:
            return Outcome(f"Failed to change branch to '{branch}': {error}", ok=False)
        return Outcome(f"Branch changed to '{branch}'", changes)

    return Plan.change(f"Branch would be changed to '{branch}'", [Step(f"check {branch} out", change)], changes)


def detached(
    ctx: Context,
    name: str,
    rev: str,
    target: str,
    remote: str = "origin",
    user: str | None = None,
    password: str | None = None,
    force_clone: bool = False,
    force_checkout: bool = False,
    fetch_remote: bool = True,
    hard_reset: bool = False,
    submodules: bool = False,
    identity: object = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    output_encoding: str | None = None,
) -> Plan:
    """Clone the repository ``name`` to ``target`` and check out the revision ``rev`` without a branch (detached HEAD).

    rev
        branch, tag or SHA1
    force_clone
        True: remove the content of a target directory that is not a repository
    force_checkout
        True: discard local changes at checkout
    fetch_remote
        False: do not fetch before the checkout
    hard_reset
        True: reset the working tree to HEAD before the checkout
    submodules
        True: update submodules
    user, identity, https_user, https_pass
        user that runs git; SSH key files; credentials for HTTPS
    """
    if not str(target).startswith("/"):
        return Plan.failed(f"Target '{target}' is not an absolute path")
    place = ctx.host.path(target)
    if place.is_file():
        return Plan.failed(f"Target '{target}' exists and is a regular file, cannot proceed")
    there = (place / ".git").exists()
    if not there and place.is_dir() and any(place.iterdir()) and not force_clone:
        return Plan.failed(
            f"Target '{target}' exists, is non-empty and is not a git repository. Set the 'force_clone' option to True to "
            "remove this directory's contents and proceed with cloning the remote repository"
        )
    auth = {"user": user, "identity": identity, "https_user": https_user, "https_pass": https_pass}
    clone = _Clone(ctx, name, str(rev), target, place, remote, auth)
    try:
        wanted = clone.remote_commit()
        now = clone.commit("HEAD") if there else None
    except CommandError as error:
        return Plan.failed(str(error))
    if now and wanted and now.startswith(wanted) and not hard_reset:
        return Plan.unchanged("Already checked out at correct revision")

    def work() -> Outcome:
        lines: list[str] = []
        changes: dict[str, object] = {}
        try:
            if not there:
                lines += clone.make(changes)
            elif fetch_remote:
                lines += clone.fetch()
            commit = clone.local_commit()
            if hard_reset:
                ctx.call("git.reset", target, opts=["--hard", "HEAD"], user=user)
                lines.append("Repository was reset to HEAD before checking out revision")
            if commit != now:
                ctx.call("git.checkout", target, commit, force=force_checkout, user=user)
                lines.append(f"Commit ID {commit} was checked out at {target}")
                changes["HEAD"] = {"old": now, "new": commit}
            if submodules:
                opts = ["--init", "--recursive"]
                ctx.call("git.submodule", target, "update", opts=opts, user=user, identity=identity)
                lines.append("Submodules were updated")
        except CommandError as error:
            return Outcome(str(error), changes, ok=False)
        if "HEAD" not in changes:
            lines.append("Already checked out at correct revision")
        return Outcome(sentences(lines), changes)

    would = (
        f"Commit ID {wanted} would be checked out at {target}"
        if there
        else f"Repository {name} would be cloned to {target}"
    )
    changes = {"HEAD": {"old": now, "new": wanted}} if there and now != wanted else {}
    return Plan.change(would, [Step(f"check {rev} of {name} out", work)], changes)


@dataclass(frozen=True, slots=True)
class _Clone:
    """The clone that ``git.cloned`` or ``git.detached`` wants. Methods that run git raise CommandError."""

    ctx: Context
    url: str
    rev: str
    target: str
    place: Path
    remote: str
    #: Arguments for the connection: ``user``, ``identity``, ``https_user``, ``https_pass``.
    auth: dict[str, object]

    def remote_commit(self) -> str:
        """Return the commit id of the wanted revision in the remote repository. Raises CommandError if the repository has no such
        revision.
        """
        refs = self.ctx.call("git.remote_refs", self.url, **self.auth)
        for ref in (f"refs/heads/{self.rev}", f"refs/tags/{self.rev}^{{}}", f"refs/tags/{self.rev}"):
            if ref in refs:
                return str(refs[ref])
        if 4 <= len(self.rev) <= 40 and all(sign in string.hexdigits for sign in self.rev):
            return self.rev.lower()
        raise self._no_such_revision()

    def commit(self, rev: str) -> str | None:
        """Return the commit id of a revision in the local clone; None if it is unknown."""
        try:
            found: str = self.ctx.call("git.rev_parse", self.target, f"{rev}^{{commit}}", user=self.auth["user"])
        except CommandError:
            return None
        return found

    def local_commit(self) -> str:
        """Return the commit id of the wanted revision in the local clone."""
        for name in (f"{self.remote}/{self.rev}", f"refs/tags/{self.rev}", self.rev):
            if found := self.commit(name):
                return found
        raise self._no_such_revision()

    def make(self, changes: dict[str, object]) -> list[str]:
        """Remove the target directory's content and clone the repository. Return the lines for the state's
        comment.
        """
        if self.place.is_dir() and any(self.place.iterdir()):
            for each in self.place.iterdir():
                remove(each)
            changes["forced clone"] = True
        opts = ["--no-checkout", *(["--origin", self.remote] if self.remote != "origin" else [])]
        self.ctx.call("git.clone", self.target, self.url, opts=opts, **self.auth)
        return [f"{self.url} cloned to {self.target}"]

    def fetch(self) -> list[str]:
        """Fetch from the remote repository. Return the lines for the state's comment; [] if no ref changed."""
        specs = [f"refs/heads/*:refs/remotes/{self.remote}/*", "+refs/tags/*:refs/tags/*"]
        who = {"user": self.auth["user"], "identity": self.auth["identity"]}
        if self.ctx.call("git.fetch", self.target, remote=self.remote, force=True, refspecs=specs, **who):
            return [f"Remote {self.remote} was fetched, resulting in updated refs"]
        return []

    def _no_such_revision(self) -> CommandError:
        return CommandError(f"Revision '{self.rev}' does not exist")
