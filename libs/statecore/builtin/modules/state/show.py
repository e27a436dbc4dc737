"""Functions of ``state`` that show what would be applied, and that analyse the state tree.

They change nothing and therefore do not wait for state runs: ``queue`` and ``concurrent`` are accepted and ignored. The
module ``state_tree`` implements the analysis; it is loaded on the first call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from statecore.builtin.modules.state import arguments
from statecore.model.context import Context

_COMPILE_ERROR, _NOTHING = 1, 2


def show_top(ctx: Context, queue: object = None, **kwargs: object) -> object:
    """Return a map of saltenv to the list of SLS files that the top file assigns to this minion, or a list of errors.

    CLI Example:

        salt '*' state.show_top
    """
    return _verdict(ctx, ctx.state_system.show_top(arguments.options(ctx, None, kwargs)))


def show_highstate(ctx: Context, queue: object = None, **kwargs: object) -> object:
    """Return the high data (a map of ID to declaration) of all SLS files that the top file assigns to this minion, or a
    list of errors.

    CLI Example:

        salt '*' state.show_highstate
    """
    shown = _verdict(ctx, ctx.state_system.show_high(None, arguments.options(ctx, None, kwargs)))
    if not shown:
        ctx.scratch["retcode"] = _NOTHING
    return shown


def show_sls(
    ctx: Context, mods: str | Sequence[str], test: object = None, queue: object = None, **kwargs: object
) -> object:
    """Return the high data (a map of ID to declaration) of SLS files, or a list of errors.

    CLI Example:

        salt '*' state.show_sls core,edit.vim saltenv=dev
    """
    names, options = arguments.split(mods), arguments.options(ctx, test, kwargs)
    return _verdict(ctx, ctx.state_system.show_high(names, {**options, "verify": True}))


def show_lowstate(ctx: Context, queue: object = None, **kwargs: object) -> list[object]:
    """Return the low chunks of all SLS files that the top file assigns to this minion, in order of evaluation, or a
    list of errors.

    CLI Example:

        salt '*' state.show_lowstate
    """
    return _low_verdict(ctx, ctx.state_system.show_low(None, arguments.options(ctx, None, kwargs)))


def show_low_sls(
    ctx: Context, mods: str | Sequence[str], test: object = None, queue: object = None, **kwargs: object
) -> list[object]:
    """Return the low chunks of SLS files, in order of evaluation, or a list of errors.

    CLI Example:

        salt '*' state.show_low_sls core
    """
    names, options = arguments.split(mods), arguments.options(ctx, test, kwargs)
    return _low_verdict(ctx, ctx.state_system.show_low(names, options))


def show_states(ctx: Context, queue: object = None, **kwargs: object) -> object:
    """Return the names of the SLS files that a highstate would apply, in order, included files too; or a list of
    errors.

    CLI Example:

        salt '*' state.show_states
    """
    chunks = show_lowstate(ctx, **kwargs)
    maps = [chunk for chunk in chunks if isinstance(chunk, Mapping)]
    if len(maps) < len(chunks):
        return chunks
    return list(dict.fromkeys(chunk["__sls__"] for chunk in maps))


def show_state_usage(ctx: Context, queue: object = None, **kwargs: object) -> object:
    """Return a map of saltenv to a map with the SLS files that the top file assigns to this minion (``used``), those
    that it does not (``unused``), ``count_all``, ``count_used`` and ``count_unused``.

    An SLS file that is only included counts as unused.

    CLI Example:

        salt '*' state.show_state_usage
    """
    return _verdict(ctx, ctx.state_system.show_usage(arguments.options(ctx, None, kwargs)))


def sls_exists(
    ctx: Context, mods: str | Sequence[str], test: object = None, queue: object = None, **kwargs: object
) -> bool:
    """Return whether SLS files (text with commas, or a list) exist in the state tree and render without errors.

    CLI Example:

        salt '*' state.sls_exists core,edit.vim
    """
    return isinstance(show_sls(ctx, mods, test, **kwargs), dict)


def id_exists(
    ctx: Context,
    ids: str | Sequence[str],
    mods: str | Sequence[str],
    test: object = None,
    queue: object = None,
    **kwargs: object,
) -> bool:
    """Return whether SLS files have all these IDs. Return False if the files cannot be rendered.

    CLI Example:

        salt '*' state.id_exists create_myfile,update_template filestate
    """
    wanted = set(arguments.split(ids, "ids"))
    chunks = show_low_sls(ctx, mods, test, **kwargs)
    return wanted <= {str(chunk["__id__"]) for chunk in chunks if isinstance(chunk, Mapping)}


def clear_cache(ctx: Context) -> list[str]:
    """Delete the stored high data of earlier state runs, which runs with ``cache=True`` use. Return the names of the
    deleted files.

    CLI Example:

        salt '*' state.clear_cache
    """
    return ctx.state_system.clear_cache()


def _verdict(ctx: Context, result: object) -> object:
    if isinstance(result, list):
        ctx.scratch["retcode"] = ctx.scratch.get("retcode") or _COMPILE_ERROR
    return result


def _low_verdict(ctx: Context, chunks: Sequence[object]) -> list[object]:
    if not all(isinstance(chunk, Mapping) for chunk in chunks):
        _verdict(ctx, chunks)
    return list(chunks)


def check(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: object) -> object:
    """Return the errors and oddities in the state tree: a map with ``summary`` (number of findings by level) and
    ``findings`` (a list with file, line and column), as ``state_tree.check``.
    """
    return ctx.call("state_tree.check", mods, **kwargs)


def plan(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: object) -> object:
    """Return the changes that a state run would make: a map with ``summary`` and ``states`` (a list with verdict,
    changes and diffs of whole files), as ``state_tree.plan``. Return a list of errors if the tree does not compile.
    """
    return ctx.call("state_tree.plan", mods, **kwargs)


def apply_plan(ctx: Context, plan: str, queue: bool | int | None = None) -> object:
    """Apply a plan that ``state.plan keep=True`` kept on this minion, or refuse it with the list of differences if the
    tree, the pillar, the grains or the host have changed since, as ``state_tree.apply_plan``. Return the running
    dictionary (state tag to the state's return).

    CLI Example:

        salt web1 state.apply_plan 5f0c3c1a2b4d6e7f
    """
    return ctx.call("state_tree.apply_plan", plan, queue=queue)


def graph(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: object) -> object:
    """Return the states of a state run in their order with their requisites (see ``state_tree.graph``), in the
    ``format`` mermaid, dot, svg or json.
    """
    return ctx.call("state_tree.graph", mods, **kwargs)


def explain(ctx: Context, mods: str | Sequence[str], id_: str, **kwargs: object) -> object:
    """Return a map that explains an ID: for each of its states the position in the run with the reasons, the
    requisites, and file and line of each part, as ``state_tree.explain``. Return a list of errors if the tree does not
    compile.
    """
    return ctx.call("state_tree.explain", mods, id_, **kwargs)


def graph_highstate(ctx: Context, queue: object = None, **kwargs: object) -> object:
    """Return the states of a highstate in their order with their requisites, as a graph in DOT."""
    return graph(ctx, None, **{"format": "dot", **kwargs})
