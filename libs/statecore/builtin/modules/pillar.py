"""Functions that read the minion's pillar, in memory or compiled again: Salt's ``pillar`` execution module.

Values are masked as Salt 3008 masks them when an operator calls these functions, unless the call has ``unmask=True`` or
the option ``pillar_mask_output`` is False. States and templates always get the plain values.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from statecore.model import yaml
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.values import DELIMITER, redacted, traverse, update
from statecore.model.values import filter_by as _filter_by

log = logging.getLogger(__name__)

ALIASES = {"get": "get", "fetch": "get"}

#: Marker for "no default given". It is Salt's own marker, because callers may pass it on.
_NOT_SET = "__unset__"

_ABSENT = object()


def get(
    ctx: Context,
    key: str,
    default: object = _NOT_SET,
    merge: bool = False,
    merge_nested_lists: bool | None = None,
    delimiter: str = DELIMITER,
    pillarenv: str | None = None,
    saltenv: str | None = None,
    unmask: bool | None = None,
) -> object:
    """Return the pillar value at a path such as ``pkg:apache``; if the path does not exist, ``default``, or "" without
    a default.

    With ``merge`` the value is merged over the default. With ``pillarenv`` or ``saltenv`` the pillar of that
    environment is compiled for this call. Raise CommandError for a missing key when the option
    ``pillar_raise_on_missing`` is set and no default is given.

    CLI Example:

        salt '*' pillar.get pkg:apache unmask=True
    """
    data = _data(ctx, pillarenv, saltenv)
    found = traverse(data, key, _ABSENT, delimiter)
    if merge and isinstance(default, dict | list):
        lists = bool(ctx.opts.get("pillar_merge_lists", False)) if merge_nested_lists is None else merge_nested_lists
        found = _merged(default, found, lists)
    elif found is _ABSENT and default == _NOT_SET and ctx.opts.get("pillar_raise_on_missing"):
        raise CommandError(f"Pillar key not found: {key}")
    elif found is _ABSENT:
        found = "" if isinstance(default, str) and default == _NOT_SET else default
    return _shown(ctx, found, unmask)


def _merged(default: object, found: object, lists: bool) -> object:
    if found is _ABSENT:
        return copy.deepcopy(default)
    if isinstance(default, dict) and isinstance(found, Mapping):
        return update(copy.deepcopy(default), found, lists=lists)
    if isinstance(default, list) and isinstance(found, list):
        return [*copy.deepcopy(default), *(item for item in found if item not in default)]
    log.error("pillar.get: the default is a %s but the value a %s; not merged", type(default), type(found))
    return found


def items(
    ctx: Context,
    *args: str,
    pillar: Mapping[str, object] | None = None,
    pillarenv: str | None = None,
    saltenv: str | None = None,
    unmask: bool | None = None,
) -> dict[str, object]:
    """Compile the minion's pillar again and return it as a map. ``pillar`` is a map whose values override it. With
    names, return only these keys.

    CLI Example:

        salt '*' pillar.items unmask=True
    """
    if args:
        return item(ctx, *args, pillarenv=pillarenv, saltenv=saltenv, unmask=unmask)
    shown: dict[str, object] = _shown(ctx, _fresh(ctx, pillarenv, saltenv, pillar), unmask)
    return shown


def data(ctx: Context, *args: str, **kwargs: Any) -> dict[str, object]:
    """Compile the minion's pillar again and return it as a map; the same function as ``pillar.items``."""
    return items(ctx, *args, **{key: value for key, value in kwargs.items() if not key.startswith("__")})


def item(
    ctx: Context,
    *args: str,
    default: object = "",
    delimiter: str = DELIMITER,
    pillarenv: str | None = None,
    saltenv: str | None = None,
    unmask: bool | None = None,
) -> dict[str, object]:
    """Return a map of path to pillar value for the given paths. A path that does not exist has the value
    ``default``.

    CLI Example:

        salt '*' pillar.item roles unmask=True
    """
    data = _data(ctx, pillarenv, saltenv)
    found = {key: traverse(data, key, "" if default is None else default, delimiter) for key in args}
    shown: dict[str, object] = _shown(ctx, found, unmask)
    return shown


def raw(ctx: Context, key: str | None = None, unmask: bool | None = None) -> object:
    """Return the pillar in the minion's memory as a map, or the value of one top-level key ({} if there is no such
    key). Values are masked only with ``unmask=False``.
    """
    found = ctx.pillar.get(key, {}) if key else dict(ctx.pillar)
    return found if unmask is not False else redacted(found)


def ls(ctx: Context, *args: str, **kwargs: Any) -> list[str]:
    """Compile the minion's pillar again and return the list of its top-level keys."""
    return list(items(ctx, *args, **{key: value for key, value in kwargs.items() if not key.startswith("__")}))


def keys(ctx: Context, key: str, delimiter: str = DELIMITER, unmask: bool | None = None) -> list[str]:
    """Return the keys of the map at a path in the pillar. Raise CommandError for a missing path, InvocationError if the
    value is not a map.
    """
    found = traverse(ctx.pillar, key, _ABSENT, delimiter)
    if found is _ABSENT:
        raise CommandError(f"Pillar key not found: {key}")
    if not isinstance(found, Mapping):
        raise InvocationError(f"Pillar value in key {key} is not a dict")
    return list(found)


def obfuscate(ctx: Context, *args: str, **kwargs: Any) -> object:
    """Compile the minion's pillar again. Return it as a map with the name of each value's type in place of the value,
    such as ``<str>``.
    """
    plain = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    return _types(items(ctx, *args, **{**plain, "unmask": True}))


def ext(
    ctx: Context,
    external: Mapping[str, object] | str,
    pillar: Mapping[str, object] | None = None,
    unmask: bool | None = None,
) -> dict[str, object]:
    """Compile the minion's pillar with one more external pillar and return it as a map. ``external`` is a map {name:
    arguments}, or such a map as YAML text.

    The master accepts only the external pillars that its option ``on_demand_ext_pillar`` lists.

    CLI Example:

        salt '*' pillar.ext '{libvirt: _}'
    """
    try:
        wanted = yaml.load(external) if isinstance(external, str) else external
    except yaml.YamlFault as error:
        raise InvocationError(f"The external pillar cannot be read as YAML: {error.placed}") from error
    if not isinstance(wanted, Mapping):
        raise InvocationError("An external pillar must be formatted as a dictionary: {name: arguments}")
    compiled = ctx.minion.compile_pillar(ctx.opts.get("saltenv"), ctx.opts.get("pillarenv"), _override(pillar), wanted)
    shown: dict[str, object] = _shown(ctx, compiled, unmask)
    return shown


def file_exists(ctx: Context, path: str, saltenv: str | None = None) -> bool:
    """Return whether a file exists in the pillar tree of this host (``pillar_roots``). External pillars are not
    searched.

    Without ``saltenv`` all environments are searched. Raise CommandError where no ``pillar_roots`` are configured.

    CLI Example:

        salt-call --local pillar.file_exists foo/bar.sls
    """
    roots = ctx.opts.get("pillar_roots")
    if not roots:
        raise CommandError("No pillar_roots found. Are you running this on the master?")
    wanted = [roots.get(saltenv, ())] if saltenv else list(roots.values())
    return any(Path(str(root), path).is_file() for each in wanted for root in each)


def filter_by(
    ctx: Context,
    lookup_dict: Mapping[object, object],
    pillar: str,
    merge: Mapping[str, object] | None = None,
    default: str = "default",
    base: str | None = None,
) -> object:
    """Return the entry of the map ``lookup_dict`` whose key, a glob, matches a pillar value; None if no key matches and
    the map has no entry ``default``. The arguments are those of ``grains.filter_by``.
    """
    return _filter_by(lookup_dict, pillar, ctx.pillar, merge, default, base)


def _data(ctx: Context, pillarenv: str | None, saltenv: str | None) -> Mapping[str, object]:
    return ctx.pillar if pillarenv is None and saltenv is None else _fresh(ctx, pillarenv, saltenv, None)


def _fresh(
    ctx: Context, pillarenv: str | None, saltenv: str | None, override: Mapping[str, object] | None
) -> dict[str, object]:
    env = pillarenv
    if env is None:
        env = (
            saltenv or ctx.opts.get("saltenv") if ctx.opts.get("pillarenv_from_saltenv") else ctx.opts.get("pillarenv")
        )
    return ctx.minion.compile_pillar(saltenv or ctx.opts.get("saltenv"), env, _override(override))


def _override(given: object) -> Mapping[str, object] | None:
    if given is not None and not isinstance(given, Mapping):
        raise InvocationError("Pillar data must be formatted as a dictionary")
    return given


def _shown(ctx: Context, value: object, unmask: bool | None) -> Any:
    """Return a pillar value as an operator may see it: masked unless ``unmask`` is True.

    With ``unmask`` None, the value is masked if an operator called the function directly ("pillar.mask" is set in the
    context), unless the option ``pillar_mask_output`` is False.
    """
    if unmask is None:
        unmask = not (ctx.scratch.get("pillar.mask") and ctx.opts.get("pillar_mask_output", True))
    return value if unmask else redacted(value)


def _types(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _types(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_types(each) for each in value]
    return f"<{type(value).__name__}>"
