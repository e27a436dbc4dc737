"""What the master keeps of its minions: grains and mine."""

from __future__ import annotations

from typing import Any

from services.mworker.runners.runner import RunnerFault, RunnerTools


def grains(tools: RunnerTools, tgt: Any = None, tgt_type: str = "glob") -> dict[str, dict[str, Any]]:
    """{minion: grains as the minion told them last}; {} without a target."""
    return {} if tgt is None else dict(tools.store.cache.grains_of(tools.minions(tgt, tgt_type)))


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


def _each(tools: RunnerTools, tgt: Any, tgt_type: str, forget: Any) -> bool:
    if tgt is None:
        return False
    for minion in tools.minions(tgt, tgt_type):
        forget(minion)
    return True
