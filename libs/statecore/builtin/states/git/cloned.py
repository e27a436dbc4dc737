"""``git.cloned``: a clone that is left alone."""

from __future__ import annotations

from typing import Any

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
