"""Commands of the mine: values of functions that minions offer to each other."""

from __future__ import annotations

from collections.abc import Mapping

from masterstore.errors import TooLarge
from saltern.kit.links.rights import matches
from saltern.kit.process.cpu_limit import CpuLimit, cpu_limit
from saltern.mworker.authorise import is_offered, offering
from saltern.mworker.quotas import Quota
from saltern.mworker.worker_context import WorkerContext
from statecore.model.errors import TargetError

#: Most functions in one request; the worker queries Redis once for each.
_MOST_FUNCTIONS = 1000

#: Seconds of CPU time to compare a request with the expressions of the option mine_get.
_RULES_SECONDS = 1.0

#: Keys of a mine value with ``allow_tgt``, and of the value inside it. Salt: salt/utils/mine.py
_GUARD, _VALUE = "__saltmine_acl__", "__data__"


def store(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> bool:
    """Store the sender's mine data ({function: value}) and return whether it was stored; ``clear`` deletes its earlier
    data first. A mine above ``mine_max_bytes`` is not stored, and the earlier one stays.
    """
    data = load.get("data")
    if not isinstance(data, Mapping):
        return False
    if len(data) > _MOST_FUNCTIONS:
        said = "a mine of %d functions is not kept; a request may bring %d"
        context.log.warning(said, len(data), _MOST_FUNCTIONS, extra={"minion": minion_id})
        return False
    most, clear = context.options.mine_max_bytes, bool(load.get("clear"))
    functions = _MOST_FUNCTIONS if most else 0
    try:
        context.store.cache.mine_set(minion_id, data, most=most, most_functions=functions, clear=clear)
    except TooLarge as error:
        why = f"{error}: not stored; offer less, or delete the minion's mine (mine.flush)"
        context.quotas.refused(Quota.MINE, minion_id, why)
        return False
    return True


def get(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> dict[str, object]:
    """Return the mine values of one function as {minion id: value}, or of several functions as {function: {minion id: value}}.

    Functions without values are left out.
    """
    fun = load.get("fun", "")
    given = fun.split(",") if isinstance(fun, str) else fun if isinstance(fun, list) else []
    functions = list(dict.fromkeys(str(name) for name in given))
    if len(functions) > _MOST_FUNCTIONS:
        said = "a request for %d functions of the mine is not answered; it may name %d"
        context.log.warning(said, len(functions), _MOST_FUNCTIONS, extra={"minion": minion_id})
        return {}
    # Rights come first: a minion that may not have these functions costs no comparison of a target.
    try:
        with cpu_limit(_RULES_SECONDS):
            allowed = [name for name in functions if _may_have(context, minion_id, name)]
    except CpuLimit:
        context.log.warning("the expressions of the option mine_get take too long", extra={"minion": minion_id})
        return {}
    if not allowed:
        return {}
    tgt, tgt_type = load.get("tgt", "*"), str(load.get("tgt_type", "glob"))
    try:
        target = offering(context, tgt, tgt_type)
    except TargetError as error:
        context.log.warning("the target of a mine request is refused: %s", error, extra={"minion": minion_id})
        return {}
    found = {name: _open_to(context, minion_id, context.store.cache.mine_get(target.minions, name)) for name in allowed}
    if isinstance(fun, str) and len(functions) == 1:
        return found.get(functions[0], {})
    return {name: offered for name, offered in found.items() if offered}


def _may_have(context: WorkerContext, minion_id: str, fun: str) -> bool:
    """Return whether the option ``mine_get`` allows the minion this function. Its regular expressions match from the
    beginning, as in Salt.
    """
    rules = context.options.mine_get
    if rules is None:
        return True
    return any(matches(who, minion_id) and any(matches(what, fun) for what in funs) for who, funs in rules.items())


def _open_to(context: WorkerContext, minion_id: str, offered: Mapping[str, object]) -> dict[str, object]:
    """Return {minion id: mine value} of the values in ``offered`` that their owners allow ``minion_id`` to read (``allow_tgt``)."""
    found: dict[str, object] = {}
    asked: dict[tuple[str, str], bool] = {}
    for minion, value in offered.items():
        if not isinstance(value, Mapping) or _GUARD not in value:
            found[minion] = value
            continue
        target = value.get("allow_tgt")
        kind = str(value.get("allow_tgt_type") or "glob")
        key = (repr(target), kind)
        if key not in asked:
            asked[key] = not target or _is_meant(context, minion_id, target, kind)
        if asked[key]:
            found[minion] = value.get(_VALUE)
    return found


def _is_meant(context: WorkerContext, minion_id: str, target: object, kind: str) -> bool:
    try:
        return is_offered(context, minion_id, target, kind)
    except TargetError as error:
        context.log.warning("allow_tgt of a mine is refused, and allows nobody: %s", error)
        return False


def delete(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> bool:
    """Delete one function from the sender's mine; return whether it was there."""
    return context.store.cache.mine_delete(minion_id, str(load.get("fun", "")))


def flush(context: WorkerContext, minion_id: str, load: Mapping[str, object]) -> bool:
    """Delete the sender's whole mine."""
    context.store.cache.mine_flush(minion_id)
    return True
