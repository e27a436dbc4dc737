"""Runner ``pillar``: compiles the pillar of a minion, and shows or clears the pillar cache."""

from __future__ import annotations

from collections.abc import Mapping

from saltern.kit.config.master import as_opts
from saltern.kit.keys.master_keys import read_secret
from saltern.kit.trees.served_files import file_server
from saltern.mworker.pillar_seal import PillarSeal
from saltern.mworker.runners.runner import RunnerFault, RunnerTools
from statecore.model.errors import SlsError
from statecore.runtime.master_data import MinionDataRequest, pillar_top_of
from statecore.runtime.runtime import Runtime, local_runtime


def show_pillar(tools: RunnerTools, minion: str = "*", **kwargs: object) -> Mapping[str, object]:
    """Compile and return the pillar of a minion, with the grains that the minion last sent. Errors of the compilation are in
    the key ``_errors``.

    minion
        a minion id; without it: the pillar that every minion has
    saltenv, pillarenv
        environments of the compilation
    any other name
        overrides the grain of that name
    """
    own: dict[str, object] = {name: kwargs.pop(name) for name in ("saltenv", "pillarenv") if name in kwargs}
    return dict(_runtime(tools, minion, kwargs, own).pillar)


def show_top(
    tools: RunnerTools, minion: str | None = None, saltenv: str = "base"
) -> dict[str, dict[str, list[object]]]:
    """Return the merged top files of the pillar: {saltenv: {target: list of SLS names}}.

    minion
        the top files are rendered with the grains of this minion; without it: with those of the first minion that sent
        grains
    """
    chosen = minion or next(iter(sorted(tools.store.cache.all_grains())), "*")
    runtime = _runtime(tools, chosen, {}, {"saltenv": saltenv})
    try:
        return pillar_top_of(runtime.context, runtime.loader, MinionDataRequest(chosen, saltenv))
    except SlsError as error:
        raise RunnerFault("\n".join(f"{fault.message} ({fault.mark})" for fault in error.faults)) from error


def show_pillar_cache(tools: RunnerTools, minion: str = "*", **kwargs: object) -> dict[str, object] | bool:
    """Return {minion: cached pillar}; False if the option pillar_cache is off.

    saltenv, pillarenv
        show the pillar cached for these environments; without them: for any environment
    """
    if not tools.options.pillar_cache:
        return False
    seal = PillarSeal(read_secret(tools.key_dir), accept_unbound=tools.options.accept_unsigned_records)
    asked = [str(kwargs.get(name) or "") for name in ("saltenv", "pillarenv")]
    found: dict[str, object] = {}
    for each in tools.minions(minion, "glob"):
        kept = sorted(tools.store.cache.kept_pillar(each).items())
        opened = [(name, seal.open(each, sealed, name)) for name, sealed in kept]
        fitting = [one for name, one in opened if one is not None and (not any(asked) or name == " ".join(asked))]
        if fitting:
            found[each] = fitting[0]
    return found


def clear_pillar_cache(tools: RunnerTools, minion: str = "*", **kwargs: object) -> bool:
    """Delete the cached pillar of minions, so that their next request compiles the pillar again.

    Return True; False if the option pillar_cache is off.
    """
    if not tools.options.pillar_cache:
        return False
    for each in tools.minions(minion, "glob"):
        tools.store.cache.drop_pillar(each)
    return True


def _runtime(tools: RunnerTools, minion: str, grains: Mapping[str, object], opts: Mapping[str, object]) -> Runtime:
    known = {**(tools.store.cache.grains(minion) or {"fqdn": minion}), "id": minion, **grains}
    own = as_opts(tools.options, id=minion, file_client="local", **opts)
    return local_runtime(own, files=file_server(tools.options), grains=known)
