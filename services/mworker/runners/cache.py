"""What the master keeps of its minions (grains, pillar, mine), and what runners keep by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from services.kit.masterkeys import MasterKeys
from services.mworker.pillar_seal import unsealed
from services.mworker.runners.fileserver import unlocked
from services.mworker.runners.runner import RunnerFault, RunnerTools
from statecore.gitrepos.remotes import GITFS, PILLAR

#: The bank of what minions told.
_MINIONS = "minions"


def grains(tools: RunnerTools, tgt: Any = None, tgt_type: str = "glob") -> dict[str, dict[str, Any]]:
    """{minion: grains as the minion told them last}; {} without a target."""
    return {} if tgt is None else dict(tools.store.cache.grains_of(tools.minions(tgt, tgt_type)))


def pillar(tools: RunnerTools, tgt: Any = None, tgt_type: str = "glob") -> dict[str, dict[str, Any]]:
    """{minion: pillar as it was compiled last}; of all of them without a target."""
    minions = tools.minions("*" if tgt is None else tgt, tgt_type)
    return unsealed(MasterKeys.load(tools.key_dir).secret, tools.store.cache.pillars_of(minions))


def mine(tools: RunnerTools, tgt: Any = None, tgt_type: str = "glob") -> dict[str, dict[str, Any]]:
    """{minion: {function: value}} of what minions offer; of all of them without a target."""
    minions = tools.minions("*" if tgt is None else tgt, tgt_type)
    return {minion: offered for minion in minions if (offered := tools.store.cache.mine_of(minion))}


def clear_grains(tools: RunnerTools, tgt: Any = None, tgt_type: str = "glob") -> bool:
    """Forgets the grains of minions; False without a target. They are told anew when the minion asks for pillar."""
    return _each(tools, tgt, tgt_type, tools.store.cache.forget_grains)


def clear_pillar(tools: RunnerTools, tgt: Any = None, tgt_type: str = "glob") -> bool:
    """Forgets the pillar that targets by pillar look at; False without a target."""
    return _each(tools, tgt, tgt_type, tools.store.cache.forget_pillar)


def clear_mine(tools: RunnerTools, tgt: Any = None, tgt_type: str = "glob") -> bool:
    """Forgets all that minions offer; False without a target."""
    return _each(tools, tgt, tgt_type, tools.store.cache.mine_flush)


def clear_mine_func(
    tools: RunnerTools, tgt: Any = None, tgt_type: str = "glob", clear_mine_func_flag: str | None = None
) -> bool:
    """Forgets one function that minions offer, named by ``clear_mine_func_flag``."""
    fun = clear_mine_func_flag
    if not fun:
        raise RunnerFault("clear_mine_func_flag must name the function")
    return _each(tools, tgt, tgt_type, lambda minion: tools.store.cache.mine_delete(minion, str(fun)))


def clear_all(tools: RunnerTools, tgt: Any = None, tgt_type: str = "glob") -> bool:
    """Forgets grains, pillar and mine of minions; False without a target."""
    return _each(tools, tgt, tgt_type, tools.store.cache.forget)


def store(tools: RunnerTools, bank: str, key: str, data: Any, cachedir: str | None = None) -> None:
    """Keeps data under a key of a bank. Banks of minions are told by minions alone."""
    _own(bank)
    tools.store.banks.store(str(bank).strip("/"), str(key), data)


def list_(tools: RunnerTools, bank: str, cachedir: str | None = None) -> list[str]:
    """Keys of a bank, and banks in it: ``a/b`` lies in ``a``. The bank ``minions`` holds one for each minion."""
    words = str(bank).strip("/").split("/")
    if words[0] != _MINIONS:
        return tools.store.banks.names("/".join(words))
    known = {each for each in tools.minions("*", "glob") if tools.store.cache.grains(each) is not None}
    return sorted(known) if len(words) == 1 else ["data", "mine"] if words[1] in known else []


def fetch(tools: RunnerTools, bank: str, key: str, cachedir: str | None = None) -> Any:
    """The data under a key of a bank, {} where there is none; of ``minions/<id>`` the keys are data and mine."""
    words = str(bank).strip("/").split("/")
    if words[0] != _MINIONS or len(words) != 2:
        return tools.store.banks.fetch("/".join(words), str(key))
    kept: Mapping[str, Callable[[], Any]] = {
        "mine": lambda: tools.store.cache.mine_of(words[1]),
        "data": lambda: {
            name: told[words[1]]
            for name, told in (("grains", grains(tools, words[1], "list")), ("pillar", pillar(tools, words[1], "list")))
            if words[1] in told
        },
    }
    return kept[key]() if key in kept else {}


def flush(tools: RunnerTools, bank: str, key: str | None = None, cachedir: str | None = None) -> None:
    """Forgets a key of a bank; without one the bank, and the banks in it."""
    _own(bank)
    tools.store.banks.flush(str(bank).strip("/"), None if key is None else str(key))


def clear_git_lock(
    tools: RunnerTools, role: str, remote: str | None = None, type: Any = None
) -> dict[str, list[str]] | str:
    """Lets updates of Git remotes go on that were held up; ``role``: gitfs or git_pillar, ``remote``: a glob of their URLs."""
    if role not in (GITFS, PILLAR):
        raise RunnerFault(f"Invalid role '{role}'; there are {GITFS} and {PILLAR}")
    return unlocked(tools.options, role, remote)


def _own(bank: str) -> None:
    if str(bank).strip("/").split("/")[0] == _MINIONS:
        raise RunnerFault(f"the bank '{bank}' is what minions told; cache.clear_grains and its kin forget that")


def _each(tools: RunnerTools, tgt: Any, tgt_type: str, forget: Any) -> bool:
    if tgt is None:
        return False
    for minion in tools.minions(tgt, tgt_type):
        forget(minion)
    return True
