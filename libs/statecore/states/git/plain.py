"""``git.cloned`` and ``git.detached``: a clone that is left alone, and one at a revision without a branch."""

from __future__ import annotations

import string
from typing import Any

from statecore.context import Context
from statecore.errors import CommandError
from statecore.managed_file import remove
from statecore.types import Outcome, Plan, Step


def cloned(
    ctx: Context,
    name: str,
    target: str,
    branch: str | None = None,
    user: str | None = None,
    password: str | None = None,
    identity: Any = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    output_encoding: str | None = None,
) -> Plan:
    """A clone of ``name`` at ``target``, with this branch; it is not updated."""
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
    now = ctx.call("git.current_branch", target, user=user)
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
    identity: Any = None,
    https_user: str | None = None,
    https_pass: str | None = None,
    output_encoding: str | None = None,
) -> Plan:
    """A clone of ``name`` at ``target`` with this revision (branch, tag or SHA1) checked out, and no branch."""
    if not str(target).startswith("/"):
        return Plan.failed(f"Target '{target}' is not an absolute path")
    place = ctx.host.path(target)
    if place.is_file():
        return Plan.failed(f"Target '{target}' exists and is a regular file, cannot proceed")
    rev = str(rev)
    who: dict[str, Any] = {"user": user}
    auth: dict[str, Any] = {**who, "identity": identity, "https_user": https_user, "https_pass": https_pass}
    is_hash = 4 <= len(rev) <= 40 and all(sign in string.hexdigits for sign in rev)
    there = (place / ".git").exists()
    if not there and place.is_dir() and any(place.iterdir()) and not force_clone:
        return Plan.failed(
            f"Target '{target}' exists, is non-empty and is not a git repository. Set the 'force_clone' option to True to "
            "remove this directory's contents and proceed with cloning the remote repository"
        )
    try:
        wanted = _remote_commit(ctx, name, rev, auth, is_hash=is_hash)
        now = _commit(ctx, target, "HEAD", who) if there else None
    except CommandError as error:
        return Plan.failed(str(error))
    if now and wanted and now.startswith(wanted) and not hard_reset:
        return Plan.unchanged("Already checked out at correct revision")

    def work() -> Outcome:
        told: list[str] = []
        changes: dict[str, Any] = {}
        try:
            if not there:
                if place.is_dir() and any(place.iterdir()):
                    for each in place.iterdir():
                        remove(each)
                    changes["forced clone"] = True
                opts = ["--no-checkout", *(["--origin", remote] if remote != "origin" else [])]
                ctx.call("git.clone", target, name, opts=opts, **auth)
                told.append(f"{name} cloned to {target}")
            elif fetch_remote:
                specs = [f"refs/heads/*:refs/remotes/{remote}/*", "+refs/tags/*:refs/tags/*"]
                if ctx.call(
                    "git.fetch", target, remote=remote, force=True, refspecs=specs, user=user, identity=identity
                ):
                    told.append(f"Remote {remote} was fetched, resulting in updated refs")
            commit = next(
                (
                    found
                    for each in (f"{remote}/{rev}", f"refs/tags/{rev}", rev)
                    if (found := _commit(ctx, target, each, who))
                ),
                None,
            )
            if commit is None:
                return Outcome(f"Revision '{rev}' does not exist", changes, ok=False)
            if hard_reset:
                ctx.call("git.reset", target, opts=["--hard", "HEAD"], **who)
                told.append("Repository was reset to HEAD before checking out revision")
            if commit != now:
                ctx.call("git.checkout", target, commit, force=force_checkout, **who)
                told.append(f"Commit ID {commit} was checked out at {target}")
                changes["HEAD"] = {"old": now, "new": commit}
            if submodules:
                ctx.call(
                    "git.submodule", target, "update", opts=["--init", "--recursive"], user=user, identity=identity
                )
                told.append("Submodules were updated")
        except CommandError as error:
            return Outcome(str(error), changes, ok=False)
        if "HEAD" not in changes:
            told.append("Already checked out at correct revision")
        return Outcome(". ".join(told) + ("." if len(told) > 1 else ""), changes)

    would = (
        f"Commit ID {wanted} would be checked out at {target}"
        if there
        else f"Repository {name} would be cloned to {target}"
    )
    changes = {"HEAD": {"old": now, "new": wanted}} if there and now != wanted else {}
    return Plan.change(would, [Step(f"check {rev} of {name} out", work)], changes)


def _commit(ctx: Context, target: str, rev: str, who: dict[str, Any]) -> str | None:
    try:
        found: str = ctx.call("git.rev_parse", target, f"{rev}^{{commit}}", **who)
    except CommandError:
        return None
    return found


def _remote_commit(ctx: Context, url: str, rev: str, auth: dict[str, Any], *, is_hash: bool) -> str:
    refs = ctx.call("git.remote_refs", url, **auth)
    for ref in (f"refs/heads/{rev}", f"refs/tags/{rev}^{{}}", f"refs/tags/{rev}"):
        if ref in refs:
            return str(refs[ref])
    if is_hash:
        return rev.lower()
    raise CommandError(f"Revision '{rev}' does not exist")
