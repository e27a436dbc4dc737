"""Salt's ``incron`` states: commands that run when files change. Salt had them up to 3007.

/home/user:
  incron.present:
    - user: root
    - mask: [IN_MODIFY]
    - cmd: 'echo "$$ $@"'
"""

from __future__ import annotations

from collections.abc import Sequence

from statecore.model.context import Context
from statecore.model.types import Outcome, Plan, Step


def present(ctx: Context, name: str, mask: str | Sequence[str], cmd: str, user: str = "root") -> Plan:
    """Add a job (a command that incron runs when the path ``name`` changes) to a user's table, or change its mask. The
    state fails if incrontab refuses it.

    mask
        a list of events, such as IN_MODIFY
    cmd
        the command
    user
        the user whose table it is in
    """
    events = _joined(mask)
    status = _status(ctx, user, name, events, cmd)
    if status == "present":
        return Plan.unchanged(f"Incron {name} already present")

    def work() -> Outcome:
        said = ctx.call("incron.set_job", user=user, path=name, mask=events, cmd=cmd)
        comments = {"new": f"Incron {name} added to {user}'s incrontab", "updated": f"Incron {name} updated"}
        if said in comments:
            return Outcome(comments[said], {user: name})
        return Outcome(f"Incron {name} for user {user} failed to commit with error \n{said}", ok=False)

    verb = "updated" if status == "update" else "added"
    return Plan.change(f"Incron {name} is set to be {verb}", [Step(f"set the incron job of {name}", work)])


def absent(ctx: Context, name: str, mask: str | Sequence[str], cmd: str, user: str = "root") -> Plan:
    """Remove the job of the path ``name`` with this mask and command from a user's table. Nothing happens if there is
    none.

    The arguments are those of ``incron.present``.
    """
    events = _joined(mask)
    if _status(ctx, user, name, events, cmd) != "present":
        return Plan.unchanged(f"Incron {name} already absent")

    def work() -> Outcome:
        said = ctx.call("incron.rm_job", user=user, path=name, mask=events, cmd=cmd)
        if said in ("removed", "absent"):
            return Outcome(f"Incron {name} removed from {user}'s crontab", {user: name})
        return Outcome(f"Incron {name} for user {user} failed to commit with error {said}", ok=False)

    return Plan.change(f"Incron {name} is set to be removed", [Step(f"remove the incron job of {name}", work)])


def _joined(mask: str | Sequence[str]) -> str:
    return mask if isinstance(mask, str) else ",".join(mask)


def _status(ctx: Context, user: str, path: str, mask: str, cmd: str) -> str:
    wanted = set(mask.upper().split(","))
    for job in ctx.call("incron.list_tab", user)["crons"]:
        if (job["path"], job["cmd"]) == (path, cmd):
            events = set(job["mask"].split(","))
            if events == wanted:
                return "present"
            if events & wanted:
                return "update"
    return "absent"
