"""Functions of ``schedule`` that add a job to other minions. The master's option ``peer`` must allow it.

Salt: salt/modules/schedule.py
"""

from __future__ import annotations

from collections.abc import Mapping

from statecore.builtin.modules.schedule.changes import delete
from statecore.builtin.modules.schedule.minion_schedule import is_test, jobs_of
from statecore.model.context import Context

#: Option of a job -> argument of ``schedule.add``.
_ARGUMENTS = {"args": "job_args", "kwargs": "job_kwargs"}


def copy(ctx: Context, name: str, target: str, **kwargs: object) -> dict[str, object]:
    """Add a job of this minion's schedule to the minions that match the glob ``target``. Return a map with ``result``,
    ``comment`` and ``minions``.

    CLI Example:

        salt web1 schedule.copy job1 'web*'
    """
    if is_test(kwargs):
        return {"comment": f"Job: {name} would be copied from schedule.", "result": True}
    answer = _handed(ctx, name, target)
    return answer | ({"comment": f"Copied Job {name} from schedule to minion(s)."} if answer["result"] else {})


def move(ctx: Context, name: str, target: str, **kwargs: object) -> dict[str, object]:
    """Add a job of this minion's schedule to the minions that match the glob ``target``, and delete it here when all of
    them have it. Return a map with ``result``, ``comment`` and ``minions``.

    A job of pillar cannot be moved.

    CLI Example:

        salt web1 schedule.move job1 web2
    """
    if is_test(kwargs):
        return {"comment": f"Job: {name} would be moved from schedule.", "result": True}
    if name in jobs_of(ctx, show_all=True, where="pillar"):
        return {"comment": f"Job {name} is one of pillar, and is moved there.", "result": False}
    answer = _handed(ctx, name, target)
    if not answer["result"]:
        return answer
    deleted = delete(ctx, name)
    return answer | {"result": deleted["result"], "comment": _moved(name, deleted)}


def _moved(name: str, deleted: Mapping[str, object]) -> str:
    return f"Moved Job {name} from schedule." if deleted["result"] else f"Copied, but: {deleted['comment']}"


def _handed(ctx: Context, name: str, target: str) -> dict[str, object]:
    if not name:
        return {"comment": "Job name is required.", "result": False}
    known = jobs_of(ctx, show_all=True)
    if name not in known or not isinstance(known[name], Mapping):
        return {"comment": f"Job {name} does not exist.", "result": False}
    job = {_ARGUMENTS.get(key, key): value for key, value in known[name].items()}
    answers = ctx.call("publish.publish", target, "schedule.add", [{"__kwarg__": True, **job, "name": name}])
    if not answers:
        return {"comment": "no servers answered the published schedule.add command", "result": False}
    failed = [
        minion for minion, answer in answers.items() if not (isinstance(answer, Mapping) and answer.get("result"))
    ]
    if failed:
        return {"comment": "the following minions return False", "result": False, "minions": failed}
    return {"comment": "", "result": True, "minions": list(answers)}
