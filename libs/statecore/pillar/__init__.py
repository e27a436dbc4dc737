"""Pillar: what one minion is told, and no other: SLS of a tree of its own and external pillars, merged into one map.

Seed 004, protocol section 7.2. The sources in their order, later over earlier: SLS by the top file, external pillars
(before the SLS with ``ext_pillar_first``), the override that the call brings.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from statecore.model.errors import SlsError
from statecore.model.named_tuple import NamedTuple
from statecore.model.ports import Files, Function
from statecore.pillar.decryption import Decrypt, decrypted
from statecore.pillar.errors import Errors
from statecore.pillar.external import External, ExternalPillars
from statecore.pillar.merging import Merging
from statecore.pillar.sls import BASE, PillarFiles, PillarSls, environment_asked
from statecore.render import SlsTree
from statecore.render.memory import RenderMemory
from statecore.render.top import Chosen

__all__ = ["ExternalPillars", "PillarFiles", "PillarResult", "compile_pillar", "pillar_top"]


class PillarResult(NamedTuple):
    """What a minion gets, and what went wrong on the way. Nothing of a file with an error is in the data."""

    data: dict[str, Any]
    #: One sentence each, with file and line; no excerpts, which could show another minion's secrets.
    errors: tuple[str, ...]


def compile_pillar(
    files: Files,
    *,
    minion_id: str,
    grains: Mapping[str, Any],
    opts: Mapping[str, Any],
    functions: Mapping[str, Function],
    saltenv: str | None = None,
    pillarenv: str | None = None,
    override: Mapping[str, Any] | None = None,
    renderers: Mapping[str, Function] | None = None,
    external: ExternalPillars | None = None,
    on_demand: Mapping[str, Any] | None = None,
    live: MutableMapping[str, Any] | None = None,
    decrypt: Decrypt | None = None,
    memory: RenderMemory | None = None,
) -> PillarResult:
    """The pillar of a minion from the tree in ``files``, its environments in their order, and from external pillars.

    Options: ext_pillar, ext_pillar_first, on_demand_ext_pillar, pillarenv_from_saltenv, pillar_source_merging_strategy,
    pillar_merge_lists, pillar_includes_override_sls, pillar_safe_render_error, state_top, env_order, renderer, jinja_*.

    ``renderers``: users' own, as "name.render".

    ``pillarenv`` limits the run to one environment; ``override`` is laid over the result, and is what templates see as
    ``pillar``. ``external`` runs the plugins of the option ``ext_pillar``, and of ``on_demand``, one more of them that the
    minion asks for; without it there are none. ``live``: what ``functions`` see as pillar; it is filled on the way.
    ``memory``: what compilations of many minions have in common. ``decrypt``: how the option ``decrypt_pillar`` is obeyed.
    """
    asked = environment_asked(opts, saltenv, pillarenv)
    known: MutableMapping[str, Any] = {} if live is None else live
    known.update(override or {})
    errors = Errors(safe=bool(opts.get("pillar_safe_render_error", True)))
    merging = Merging(opts, errors)
    alone = asked or (None if merging.merges else saltenv or BASE)
    tops = [env for env in files.envs() if alone in (None, env)]
    tree = SlsTree(
        files,
        # Every environment's top file counts, in the order of the files; for pillar ``env_order`` orders what they give.
        opts={**opts, "id": minion_id, "saltenv": asked, "env_order": tops},
        grains=grains,
        pillar=known,
        functions=functions,
        renderers=renderers,
        memory=memory,
    )
    sources = External(external, opts, merging, errors, minion_id)
    first = bool(opts.get("ext_pillar_first"))
    if first:
        known.update(sources.over(dict(override or {}), override, on_demand))
    data = _by_sls(tree, opts, merging, errors, asked, override or {}) if tops else dict(override or {})
    if first:
        data = merging.merged(dict(known), data)
    known.update(data)
    if not first:
        data = sources.over(data, override, on_demand)
    if override:
        data = merging.merged(data, dict(override))
    if decrypt is not None:
        data = decrypted(data, opts, decrypt, errors)
    known.update(data)
    return PillarResult(data, tuple(errors.told))


def pillar_top(
    files: Files,
    *,
    minion_id: str,
    grains: Mapping[str, Any],
    opts: Mapping[str, Any],
    functions: Mapping[str, Function],
    renderers: Mapping[str, Function] | None = None,
) -> dict[str, dict[str, list[Any]]]:
    """The top files of the pillar as one, rendered for a minion: {environment: {target: list}}. Raises SlsError."""
    own = {**opts, "id": minion_id, "env_order": files.envs()}
    tree = SlsTree(files, opts=own, grains=grains, pillar={}, functions=functions, renderers=renderers)
    found = tree.sections("replace")
    return {env: {str(target): _shown(rows) for target, rows in targets.items()} for env, targets in found.items()}


def _shown(rows: Sequence[Any]) -> list[Any]:
    """How the target is meant, then the references, each once, as Salt shows them."""
    told = [row for row in rows if isinstance(row, Mapping) and "match" in row]
    return [*told, *dict.fromkeys(row for row in rows if isinstance(row, str))]


def _by_sls(
    tree: SlsTree,
    opts: Mapping[str, Any],
    merging: Merging,
    errors: Errors,
    asked: str | None,
    override: Mapping[str, Any],
) -> dict[str, Any]:
    """What the tree gives, over the override: so the lists of both come in that order where lists are joined."""
    try:
        chosen = tree.chosen("replace", asked or "")
    except SlsError as error:
        errors.of_top(error)
        chosen = Chosen()
    envs = tree.files.envs()
    data: dict[str, Any] = dict(override)
    for env in _ordered(chosen.refs, opts.get("env_order") or ()):
        if env not in envs:
            # Base is an environment even where it has no directories: then it gives nothing.
            if env != BASE:
                errors.add(f"No matching pillar environment for environment '{env}' found")
            continue
        optional = frozenset(sls for at, sls in chosen.optional if at == env)
        walk = PillarSls(tree, env, merging, errors, optional, bool(opts.get("pillar_includes_override_sls")))
        for ref in chosen.refs[env]:
            for sls in tree.find(ref, env) or [ref]:
                data = merging.merged(data, walk.render(sls))
    return data


def _ordered(envs: Mapping[str, Any], order: Sequence[Any]) -> list[str]:
    """Environments as ``env_order`` has them, then the others."""
    return [*(str(env) for env in order if env in envs), *(env for env in envs if env not in order)]
