"""Runners that show and delete the master's data about minions (grains, pillar, mine), and that store data in banks."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from saltern.kit.keys.master_keys import read_secret
from saltern.mworker.pillar_seal import PillarSeal
from saltern.mworker.runners.fileserver import unlocked
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from statecore.sources.gitrepos.remotes import GITFS, PILLAR

#: The bank of minions' data in Salt before 3008.
_MINIONS = "minions"


def grains(tools: RunnerTools, tgt: object = None, tgt_type: str = "glob") -> dict[str, dict[str, object]]:
    """Return {minion: its last known grains} of the targeted minions; {} without a target."""
    return {} if tgt is None else dict(tools.store.cache.grains_of(tools.minions(tgt, tgt_type)))


def pillar(tools: RunnerTools, tgt: object = None, tgt_type: str = "glob") -> dict[str, dict[str, object]]:
    """Return {minion: its last compiled pillar} of the targeted minions; without a target of all minions."""
    minions = tools.minions("*" if tgt is None else tgt, tgt_type)
    seal = PillarSeal(read_secret(tools.key_dir), accept_unbound=tools.options.accept_unsigned_records)
    kept = tools.store.cache.pillars_of(minions)
    return {minion: opened for minion, sealed in kept.items() if (opened := seal.open(minion, sealed)) is not None}


def mine(tools: RunnerTools, tgt: object = None, tgt_type: str = "glob") -> dict[str, dict[str, object]]:
    """Return the mine values of the targeted minions as {minion: {function: value}}; without a target, those of all
    minions.
    """
    minions = tools.minions("*" if tgt is None else tgt, tgt_type)
    return {minion: offered for minion in minions if (offered := tools.store.cache.mine_of(minion))}


def clear_grains(tools: RunnerTools, tgt: object = None, tgt_type: str = "glob") -> bool:
    """Delete the grains that the master stores of the targeted minions. Return True; False without a target.

    Minions send their grains again with their next request for pillar.
    """
    return _each(tools, tgt, tgt_type, tools.store.cache.forget_grains)


def clear_pillar(tools: RunnerTools, tgt: object = None, tgt_type: str = "glob") -> bool:
    """Delete the pillar that the master stores of the targeted minions for targeting. Return True; False without a target."""
    return _each(tools, tgt, tgt_type, tools.store.cache.forget_pillar)


def clear_mine(tools: RunnerTools, tgt: object = None, tgt_type: str = "glob") -> bool:
    """Delete the whole mine of the targeted minions. Return True; False without a target."""
    return _each(tools, tgt, tgt_type, tools.store.cache.mine_flush)


def clear_mine_func(
    tools: RunnerTools, tgt: object = None, tgt_type: str = "glob", clear_mine_func_flag: str | None = None
) -> bool:
    """Delete one function from the mine of the targeted minions. Return True; False without a target.

    ``clear_mine_func_flag`` names the function.
    """
    fun = clear_mine_func_flag
    if not fun:
        raise RunnerFault("clear_mine_func_flag must name the function")
    return _each(tools, tgt, tgt_type, lambda minion: tools.store.cache.mine_delete(minion, str(fun)))


def clear_all(tools: RunnerTools, tgt: object = None, tgt_type: str = "glob") -> bool:
    """Delete the grains, pillar and mine that the master stores of the targeted minions. Return True; False without a target."""
    return _each(tools, tgt, tgt_type, tools.store.cache.forget)


def store(tools: RunnerTools, bank: str, key: str, data: object, cachedir: str | None = None) -> None:
    """Store data under a key of a cache bank (a named area of the master's cache).

    Fails for the banks of minions' data, which cannot be written.
    """
    _own(bank)
    tools.store.banks.store(_words(bank), str(key), data)


def list_(tools: RunnerTools, bank: str, cachedir: str | None = None) -> list[str]:
    """Return the keys of a cache bank and the names of the banks inside it. The bank ``a/b`` is inside the bank ``a``.

    The banks ``grains``, ``pillar`` and ``mine`` have one key for each minion. ``minions`` contains one bank for each
    minion, as in Salt before 3008.
    """
    words = _words(bank).split("/")
    if words[0] in _TOLD and len(words) == 1:
        return sorted(_TOLD[words[0]](tools, "*"))
    if words[0] != _MINIONS:
        return tools.store.banks.names("/".join(words))
    known = {each for each in tools.minions("*", "glob") if tools.store.cache.grains(each) is not None}
    return sorted(known) if len(words) == 1 else ["data", "mine"] if words[1] in known else []


def fetch(tools: RunnerTools, bank: str, key: str, cachedir: str | None = None) -> object:
    """Return the data stored under a key of a bank; {} if there is none.

    In the banks ``grains``, ``pillar`` and ``mine`` the keys are minion ids. The bank ``minions/<id>`` has the keys
    ``data`` and ``mine``.

    CLI Example:

    .. code-block:: bash

        salt-run cache.fetch grains web1
        salt-run cache.fetch minions/web1 data
    """
    words = _words(bank).split("/")
    if words[0] in _TOLD and len(words) == 1:
        return _told(tools, words[0], str(key))
    if words[0] != _MINIONS or len(words) != 2:
        return tools.store.banks.fetch("/".join(words), str(key))
    if key == "mine":
        return _told(tools, "mine", words[1])
    return (
        {name: told for name in ("grains", "pillar") if (told := _told(tools, name, words[1]))} if key == "data" else {}
    )


def flush(tools: RunnerTools, bank: str, key: str | None = None, cachedir: str | None = None) -> bool:
    """Delete a key of a cache bank. Without a key: delete the bank and the banks inside it.

    Return False if there was nothing to delete.
    """
    _own(bank)
    return tools.store.banks.flush(_words(bank), None if key is None else str(key))


def clear_git_lock(
    tools: RunnerTools, role: str, remote: str | None = None, type: object = None
) -> dict[str, list[str]] | str:
    """Remove update locks of Git remotes. ``role``: gitfs or git_pillar. ``remote``: a glob of remote URLs; default: all.

    Return a map of the removed locks, or the text "No locks were removed".
    """
    if role not in (GITFS, PILLAR):
        raise RunnerFault(f"Invalid role '{role}'; there are {GITFS} and {PILLAR}")
    return unlocked(tools.options, role, remote)


def _words(bank: str) -> str:
    return str(bank).strip("/")


def _own(bank: str) -> None:
    if _words(bank).split("/")[0] in (_MINIONS, *_TOLD):
        raise RunnerFault(f"the bank '{bank}' is what minions told; cache.clear_grains and its kin forget that")


def _told(tools: RunnerTools, bank: str, minion: str) -> dict[str, object]:
    """Return the data that the master stores of a minion in a bank (``grains``, ``pillar`` or ``mine``); {} if there is none."""
    return _TOLD[bank](tools, minion, "list").get(minion, {})


def _each(tools: RunnerTools, tgt: object, tgt_type: str, forget: Callable[[str], object]) -> bool:
    if tgt is None:
        return False
    for minion in tools.minions(tgt, tgt_type):
        forget(minion)
    return True


#: Banks of minions' data in Salt 3008: name -> function (tools, target, target type) -> {minion: its data}.
_TOLD: Mapping[str, Callable[..., dict[str, dict[str, object]]]] = {"grains": grains, "pillar": pillar, "mine": mine}
