"""Pillar: data that the master sends to one minion only, compiled from SLS files of its own tree and external pillars.

Merged in this order, later over earlier: SLS files by the top file, external pillars (before the SLS files with
``ext_pillar_first``), the override given in the call. A master merges an override that only the minion vouches for last
(``unseen``).

Source: docs/protocol.md#pillar-transfer.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from statecore.model.errors import SlsError
from statecore.model.ports import Files, Function
from statecore.model.time_limit import ComputedTooMuch, computing_limit
from statecore.pillar.decryption import Decrypt, decrypted
from statecore.pillar.errors import Errors
from statecore.pillar.external import External, ExternalPillars
from statecore.pillar.merging import Merging
from statecore.pillar.sls import BASE, PillarFiles, PillarSls, environment_asked
from statecore.render import SlsTree
from statecore.render.limit import MASTER_RENDER_TIME_LIMIT, limit_of_master
from statecore.render.memory import RenderMemory
from statecore.render.top import Chosen

__all__ = ["ExternalPillars", "PillarFiles", "PillarResult", "compile_pillar", "pillar_top"]


class PillarResult(NamedTuple):
    """Result of a pillar compilation: the minion's pillar and a list of errors. Files with errors contribute no data."""

    data: dict[str, object]
    #: Error messages with file and line. They have no excerpts, which could contain another minion's secrets.
    errors: tuple[str, ...]


def compile_pillar(
    files: Files,
    *,
    minion_id: str,
    grains: Mapping[str, object],
    opts: Mapping[str, object],
    functions: Mapping[str, Function],
    saltenv: str | None = None,
    pillarenv: str | None = None,
    override: Mapping[str, object] | None = None,
    renderers: Mapping[str, Function] | None = None,
    external: ExternalPillars | None = None,
    on_demand: Mapping[str, object] | None = None,
    unseen: Mapping[str, object] | None = None,
    live: MutableMapping[str, object] | None = None,
    decrypt: Decrypt | None = None,
    memory: RenderMemory | None = None,
    untrusted: bool = False,
) -> PillarResult:
    """Compile the pillar of a minion from the tree in ``files`` and from external pillars. Return the PillarResult with
    the pillar and its errors; none is raised. If the compilation takes more CPU time than ``master_render_time_limit``, the
    pillar is empty, and an error says so.

    Options used: ext_pillar, ext_pillar_first, on_demand_ext_pillar, pillarenv_from_saltenv,
    pillar_source_merging_strategy, pillar_merge_lists, pillar_includes_override_sls, pillar_safe_render_error,
    state_top, env_order, renderer, jinja_*, master_render_time_limit.

    ``pillarenv`` limits the compilation to one pillarenv. ``override`` is merged over the result, and templates see it
    as ``pillar``. ``unseen`` is merged over everything else after the decryption: no template, top file and plugin sees it.
    ``renderers`` are the user's own, as "name.render". ``external`` runs the plugins of the option
    ``ext_pillar`` and of ``on_demand`` (one further plugin that the minion requests); None: no external pillars.
    ``live`` is the map that ``functions`` see as pillar; it is filled during the compilation. ``memory`` is a cache
    shared by the compilations for many minions. ``untrusted``: a stranger wrote the tree (``SlsTree``).
    ``decrypt`` decrypts the values that the option ``decrypt_pillar``
    names.
    """
    asked = environment_asked(opts, saltenv, pillarenv)
    known: MutableMapping[str, object] = {} if live is None else live
    known.update(override or {})
    errors = Errors(safe=bool(opts.get("pillar_safe_render_error", True)))
    seconds = limit_of_master(opts)
    try:
        with computing_limit(seconds, MASTER_RENDER_TIME_LIMIT) if seconds else nullcontext():
            merging = Merging(opts, errors)
            alone = asked or (None if merging.merges else saltenv or BASE)
            tops = [env for env in files.envs() if alone in (None, env)]
            tree = SlsTree(
                files,
                # For pillar, the top files of all pillarenvs count, in the order of the files. ``env_order`` orders their
                # results.
                opts={**opts, "id": minion_id, "saltenv": asked, "env_order": tops},
                grains=grains,
                pillar=known,
                functions=functions,
                renderers=renderers,
                memory=memory,
                secret=True,
                untrusted=untrusted,
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
            if unseen:
                data = merging.merged(data, dict(unseen))
    except ComputedTooMuch as error:
        if not seconds:
            raise
        errors.of_limit(error, minion_id)
        known.clear()
        return PillarResult({}, tuple(errors.messages))
    return PillarResult(data, tuple(errors.messages))


def pillar_top(
    files: Files,
    *,
    minion_id: str,
    grains: Mapping[str, object],
    opts: Mapping[str, object],
    functions: Mapping[str, Function],
    renderers: Mapping[str, Function] | None = None,
) -> dict[str, dict[str, list[object]]]:
    """Return the merged pillar top files, rendered for a minion: {pillarenv: {target: list of SLS references and
    options}}. Raise SlsError if a top file cannot be rendered or has a wrong form.
    """
    own = {**opts, "id": minion_id, "env_order": files.envs()}
    tree = SlsTree(files, opts=own, grains=grains, pillar={}, functions=functions, renderers=renderers, secret=True)
    found = tree.sections("replace")
    return {env: {str(target): _shown(rows) for target, rows in targets.items()} for env, targets in found.items()}


def _shown(rows: Sequence[object]) -> list[object]:

    match_rows = [row for row in rows if isinstance(row, Mapping) and "match" in row]
    return [*match_rows, *dict.fromkeys(row for row in rows if isinstance(row, str))]


def _by_sls(
    tree: SlsTree,
    opts: Mapping[str, object],
    merging: Merging,
    errors: Errors,
    asked: str | None,
    override: Mapping[str, object],
) -> dict[str, object]:
    """Return the pillar of the SLS files that the top file assigns, merged over the pillar given in the call (``override``).

    This order matters where lists are joined.
    """
    try:
        chosen = tree.chosen("replace", asked or "")
    except SlsError as error:
        errors.of_top(error)
        chosen = Chosen()
    envs = tree.files.envs()
    data: dict[str, object] = dict(override)
    order = opts.get("env_order")
    for env in _ordered(chosen.refs, order if isinstance(order, list | tuple) else ()):
        if env not in envs:
            # The pillarenv base always exists. Without directories it has no data, which is not an error.
            if env != BASE:
                errors.add(f"No matching pillar environment for environment '{env}' found")
            continue
        optional = frozenset(sls for at, sls in chosen.optional if at == env)
        walk = PillarSls(tree, env, merging, errors, optional, bool(opts.get("pillar_includes_override_sls")))
        for ref in chosen.refs[env]:
            for sls in tree.find(ref, env) or [ref]:
                data = merging.merged(data, walk.render(sls))
    return data


def _ordered(envs: Mapping[str, object], order: Sequence[object]) -> list[str]:

    return [*(str(env) for env in order if env in envs), *(env for env in envs if env not in order)]
