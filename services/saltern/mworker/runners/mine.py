"""Runner ``mine``: data that minions publish to each other (mine functions)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from saltern.mworker.runners.runner import RunnerTools


def get(tools: RunnerTools, tgt: object, fun: str | Sequence[str], tgt_type: str = "glob") -> dict[str, object]:
    """Return the mine data of the targeted minions.

    fun
        a mine function: the result is {minion: value}; several functions, as a list or separated by commas: the result is
        {function: {minion: value}}, without functions that no minion publishes

    CLI Example:

        salt-run mine.get '*' network.ip_addrs
    """
    minions = tools.minions(tgt, tgt_type)
    names = list(dict.fromkeys(str(name) for name in (fun.split(",") if isinstance(fun, str) else fun)))
    found = {
        name: {key: _open(value) for key, value in tools.store.cache.mine_get(minions, name).items()} for name in names
    }
    if isinstance(fun, str) and len(names) == 1:
        return found[names[0]]
    return {name: offered for name, offered in found.items() if offered}


def update(
    tools: RunnerTools, tgt: object, tgt_type: str = "glob", clear: bool = False, mine_functions: object = None
) -> dict[str, object]:
    """Let minions send their mine data to the master now: {minion: return of mine.update}."""
    kwarg = {"clear": clear} | ({} if mine_functions is None else {"mine_functions": mine_functions})
    asked = tools.ask(tgt, tgt_type, "mine.update", kwarg=kwarg)
    return {minion: load.get("return") for minion, load in asked.answers().items()}


def _open(value: object) -> object:
    """Return the value of a mine entry that has ``allow_tgt``: the master's operator may read every value."""
    if isinstance(value, Mapping) and "__saltmine_acl__" in value:
        return value.get("__data__")
    return value
