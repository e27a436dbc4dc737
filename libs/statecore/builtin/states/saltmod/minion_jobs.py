"""The orchestration states ``salt.state`` and ``salt.function``: run a job on minions and judge its returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecore.builtin.states.saltmod.results import (
    OrchestrationReturn,
    changed,
    detail,
    entry,
    joined,
    master_of,
    names,
    succeeded,
)
from statecore.model.context import Context
from statecore.model.errors import CommandError, StateFailure
from statecore.model.ports import MinionJob

_NO_LIST = "'fail_minions' needs to be a list or a comma separated string. Ignored."


def state(
    ctx: Context,
    name: str,
    tgt: str | Sequence[str],
    ssh: bool = False,
    tgt_type: str = "glob",
    ret: str | Sequence[str] = "",
    ret_config: str | None = None,
    ret_kwargs: Mapping[str, object] | None = None,
    highstate: bool | None = None,
    sls: str | Sequence[str] | None = None,
    top: str | None = None,
    saltenv: str | None = None,
    test: bool | None = None,
    pillar: Mapping[str, object] | None = None,
    pillarenv: str | None = None,
    expect_minions: bool = True,
    exclude: object = None,
    fail_minions: str | Sequence[str] | None = None,
    allow_fail: int | str = 0,
    concurrent: bool = False,
    timeout: float | None = None,
    batch: int | str | None = None,
    queue: bool | int = False,
    subset: int | None = None,
    failhard: bool | None = None,
    roster: str | None = None,
) -> OrchestrationReturn:
    """Run states on minions: the SLS files ``sls``, the ``highstate``, or the top file ``top``.

    tgt, tgt_type
        target and target type of the minions
    fail_minions
        list of minions, or text with commas, whose failure is ignored
    allow_fail
        number of other minions that may fail
    expect_minions
        False: minions that do not return are no failure
    batch
        number or percentage (``25%``) of minions that run at the same time
    subset
        run on this number of minions only, chosen at random
    timeout
        seconds to wait for returns
    pillar, saltenv, pillarenv, test, queue, concurrent, exclude
        as in ``state.apply``

    ``ssh`` and ``roster`` are not supported. Salt: salt/states/saltmod.py, state.
    """
    _refuse_ssh(ssh, roster)
    try:
        allowed = int(allow_fail)
    except ValueError:
        return entry(name, False, "Passed invalid value for 'allow_fail', must be an int")
    called = _call_of(highstate, top, sls)
    if called is None:
        return entry(name, False, "No highstate or sls specified, no execution made")
    if not isinstance(concurrent, bool):
        return entry(name, False, "Must pass in boolean for value of 'concurrent'")
    testing = ctx.test if test is None else bool(test)
    wanted = {
        "test": testing if test is not None or ctx.test else None,
        "pillar": pillar or None,
        "pillarenv": pillarenv,
        "saltenv": saltenv,
        "exclude": exclude,
    }
    job = MinionJob(
        tgt=tgt,
        tgt_type=tgt_type,
        fun=called[0],
        arg=called[1:],
        kwarg={key: value for key, value in wanted.items() if value is not None}
        | {"queue": queue, "concurrent": concurrent},
        ret=_returners(ret),
        passed_on=_passed_on(ret_config, ret_kwargs),
        timeout=timeout,
        batch=None if batch is None else str(batch),
        subset=subset,
        failhard=bool(failhard or ctx.opts.get("failhard")),
        expected=expect_minions,
    )
    ignored = names(fail_minions)
    answers = master_of(ctx).ask(job, {"type": "state", "tgt": tgt, "name": name})
    result = _result_of_runs(name, answers, ignored or [], allowed, expect_minions)
    if testing and result["changes"] and result["result"] is True:
        result["result"] = None
    return _with_job(result, answers, warn=ignored is None)


def _call_of(highstate: object, top: object, sls: object) -> tuple[str, ...] | None:
    """Return (state function, argument) of the job that ``salt.state`` sends; None if no argument names states."""
    if highstate:
        return ("state.highstate",)
    if top:
        return ("state.top", str(top))
    if sls:
        return ("state.sls", ",".join(map(str, sls)) if isinstance(sls, list) else str(sls))
    return None


def _result_of_runs(
    name: str, answers: Mapping[str, Mapping[str, object]], ignored: Sequence[str], allowed: int, expected: bool
) -> OrchestrationReturn:
    if not answers and expected:
        return entry(name, False, "No minions returned")
    changes: dict[str, object] = {}
    failed: dict[str, str] = {}
    unchanged: list[str] = []
    for minion, answer in answers.items():
        ret = answer.get("ret", False)
        if answer.get("failed") or not succeeded(ret):
            if minion not in ignored:
                failed[minion] = detail(minion, answer)
            changes[minion] = ret
        elif changed(ret):
            changes[minion] = ret
        else:
            unchanged.append(minion)
    shown = {"out": "highstate", "ret": changes} if changes else {}
    if len(failed) > allowed:
        details = [failed[minion] for minion in sorted(failed) if failed[minion]]
        return entry(name, False, "\n".join([f"Run failed on minions: {joined(failed)}", *details]), shown)
    comment = "States ran successfully."
    comment += f" Updating {joined(changes)}." if changes else ""
    comment += f" No changes made to {joined(unchanged)}." if unchanged else ""
    return entry(name, True, comment, shown)


def function(
    ctx: Context,
    name: str,
    tgt: str | Sequence[str],
    ssh: bool = False,
    tgt_type: str = "glob",
    ret: str | Sequence[str] = "",
    ret_config: str | None = None,
    ret_kwargs: Mapping[str, object] | None = None,
    expect_minions: bool = False,
    fail_minions: str | Sequence[str] | None = None,
    fail_function: str | None = None,
    arg: str | list[object] | None = None,
    kwarg: Mapping[str, object] | None = None,
    timeout: float | None = None,
    batch: int | str | None = None,
    subset: int | None = None,
    failhard: bool | None = None,
    roster: str | None = None,
) -> OrchestrationReturn:
    """Run the execution function ``name`` on minions, with ``arg`` (a list) and ``kwarg`` (a map).

    A minion fails if its return code is not 0, it returns False, or ``fail_function`` rejects its return.

    fail_function
        execution function of the master that gets each return and returns True for success
    expect_minions
        True: a minion that does not return is a failure

    All other arguments are as in ``salt.state``. Salt: salt/states/saltmod.py, function.
    """
    _refuse_ssh(ssh, roster)
    if ctx.test:
        return entry(name, None, f"Function {name} would be executed on target {tgt}")
    job = MinionJob(
        tgt=tgt,
        tgt_type=tgt_type,
        fun=name,
        arg=tuple(arg.split() if isinstance(arg, str) else arg or ()),
        kwarg=dict(kwarg or {}),
        ret=_returners(ret),
        passed_on=_passed_on(ret_config, ret_kwargs),
        timeout=timeout,
        batch=None if batch is None else str(batch),
        subset=subset,
        failhard=bool(failhard or ctx.opts.get("failhard")),
        expected=expect_minions,
    )
    ignored = names(fail_minions)
    try:
        answers = master_of(ctx).ask(job, {"type": "function", "tgt": tgt, "name": name})
    except CommandError as error:
        return entry(name, False, str(error))
    result = _result_of_function(ctx, name, answers, ignored or [], fail_function)
    if isinstance(arg, str):
        result["warnings"] = ["Please specify 'arg' as a list of arguments."]
    return _with_job(result, answers, warn=ignored is None)


def _result_of_function(
    ctx: Context, name: str, answers: Mapping[str, Mapping[str, object]], ignored: Sequence[str], judge: str | None
) -> OrchestrationReturn:
    if not answers:
        return entry(name, False, "No minions responded")
    changes: dict[str, object] = {}
    failed: list[str] = []
    for minion, answer in answers.items():
        ret = changes[minion] = answer.get("ret", False)
        good = not answer.get("failed") and ret is not False and (judge is None or bool(ctx.call(judge, ret)))
        # As in Salt: a return code other than 0 is a failure even for minions in fail_minions.
        if answer.get("retcode") or (not good and minion not in ignored):
            failed.append(minion)
    outcome = f"Running function {name} failed on minions: {joined(failed)}" if failed else "Function ran successfully."
    return entry(name, not failed, f"{outcome} Function {name} ran on {joined(changes)}.", {"ret": changes})


def _refuse_ssh(ssh: bool, roster: str | None) -> None:
    for argument, value in (("ssh", ssh), ("roster", roster)):
        if value:
            raise StateFailure(f"not supported: {argument}. Saltern has no salt-ssh; the master sends jobs to minions")


def _returners(ret: str | Sequence[str]) -> str:
    return ret if isinstance(ret, str) else ",".join(map(str, ret))


def _passed_on(ret_config: str | None, ret_kwargs: Mapping[str, object] | None) -> dict[str, object]:
    return {key: value for key, value in (("ret_config", ret_config), ("ret_kwargs", ret_kwargs)) if value}


def _with_job(
    result: OrchestrationReturn, answers: Mapping[str, Mapping[str, object]], *, warn: bool
) -> OrchestrationReturn:
    jid = next((answer["jid"] for answer in answers.values() if answer.get("jid")), "")
    if jid:
        result["__jid__"] = jid
    if warn:
        result["warnings"] = [*result.get("warnings", ()), _NO_LIST]
    return result
