"""The minion's pillar: in memory, or compiled anew (Salt's ``pillar`` module).

Asked for by an operator, values are masked as Salt 3008 masks them, unless ``unmask=True`` or the option
``pillar_mask_output`` is False. States and templates always see the values.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError
from statecore.model.values import DELIMITER, redacted, traverse, update
from statecore.model.values import filter_by as _filter_by

log = logging.getLogger(__name__)

ALIASES = {"get": "get", "fetch": "get"}

#: Stands for "no default given"; Salt's own marker, which callers may pass on.
_NOT_SET = "__unset__"

_ABSENT = object()


def get(
    ctx: Context,
    key: str,
    default: Any = _NOT_SET,
    merge: bool = False,
    merge_nested_lists: bool | None = None,
    delimiter: str = DELIMITER,
    pillarenv: str | None = None,
    saltenv: str | None = None,
    unmask: bool | None = None,
) -> Any:
    """The value at a path, ``default`` (or "") when there is none; with ``merge`` the value merged over the default.

    With ``pillarenv`` or ``saltenv`` the pillar of that environment is compiled for this call. Raises CommandError for
    a missing key when the option ``pillar_raise_on_missing`` is set and no default is given.

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


def _merged(default: Any, found: Any, lists: bool) -> Any:
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
    pillar: Mapping[str, Any] | None = None,
    pillarenv: str | None = None,
    saltenv: str | None = None,
    unmask: bool | None = None,
) -> dict[str, Any]:
    """The pillar, compiled anew; ``pillar`` overrides values in it. With names, only those (as ``item``).

    CLI Example:

        salt '*' pillar.items unmask=True
    """
    if args:
        return item(ctx, *args, pillarenv=pillarenv, saltenv=saltenv, unmask=unmask)
    shown: dict[str, Any] = _shown(ctx, _fresh(ctx, pillarenv, saltenv, pillar), unmask)
    return shown


def data(ctx: Context, *args: str, **kwargs: Any) -> dict[str, Any]:
    """The same as ``items``."""
    return items(ctx, *args, **{key: value for key, value in kwargs.items() if not key.startswith("__")})


def item(
    ctx: Context,
    *args: str,
    default: Any = "",
    delimiter: str = DELIMITER,
    pillarenv: str | None = None,
    saltenv: str | None = None,
    unmask: bool | None = None,
) -> dict[str, Any]:
    """The values at these paths.

    CLI Example:

        salt '*' pillar.item roles unmask=True
    """
    data = _data(ctx, pillarenv, saltenv)
    found = {key: traverse(data, key, "" if default is None else default, delimiter) for key in args}
    shown: dict[str, Any] = _shown(ctx, found, unmask)
    return shown


def raw(ctx: Context, key: str | None = None, unmask: bool | None = None) -> Any:
    """The pillar in memory, or one key of it; values are shown unless ``unmask=False``."""
    found = ctx.pillar.get(key, {}) if key else dict(ctx.pillar)
    return found if unmask is not False else redacted(found)


def ls(ctx: Context, *args: str, **kwargs: Any) -> list[str]:
    """The top keys of the pillar, compiled anew."""
    return list(items(ctx, *args, **{key: value for key, value in kwargs.items() if not key.startswith("__")}))


def keys(ctx: Context, key: str, delimiter: str = DELIMITER, unmask: bool | None = None) -> list[str]:
    """The keys of the dict at a path. Raises CommandError when there is none."""
    found = traverse(ctx.pillar, key, _ABSENT, delimiter)
    if found is _ABSENT:
        raise CommandError(f"Pillar key not found: {key}")
    if not isinstance(found, Mapping):
        raise InvocationError(f"Pillar value in key {key} is not a dict")
    return list(found)


def obfuscate(ctx: Context, *args: str, **kwargs: Any) -> Any:
    """``items`` with each value replaced by its type."""
    plain = {key: value for key, value in kwargs.items() if not key.startswith("__")}
    return _types(items(ctx, *args, **{**plain, "unmask": True}))


def ext(
    ctx: Context, external: Mapping[str, Any] | str, pillar: Mapping[str, Any] | None = None, unmask: bool | None = None
) -> dict[str, Any]:
    """The pillar, compiled anew with one external pillar more: ``{name: arguments}``, or YAML of it.

    The master grants those that its option ``on_demand_ext_pillar`` lists.

    CLI Example:

        salt '*' pillar.ext '{libvirt: _}'
    """
    try:
        wanted = yaml.safe_load(external) if isinstance(external, str) else external
    except yaml.YAMLError as error:
        raise InvocationError(f"The external pillar cannot be read as YAML: {error}") from error
    if not isinstance(wanted, Mapping):
        raise InvocationError("An external pillar must be formatted as a dictionary: {name: arguments}")
    compiled = ctx.minion.compile_pillar(ctx.opts.get("saltenv"), ctx.opts.get("pillarenv"), _override(pillar), wanted)
    shown: dict[str, Any] = _shown(ctx, compiled, unmask)
    return shown


def file_exists(ctx: Context, path: str, saltenv: str | None = None) -> bool:
    """Whether a file is in the pillar tree of this host, in one environment or any. External pillars are not asked.

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
    lookup_dict: Mapping[Any, Any],
    pillar: str,
    merge: Mapping[str, Any] | None = None,
    default: str = "default",
    base: str | None = None,
) -> Any:
    """The entry of a table whose key, a glob, matches a pillar value; as ``grains.filter_by``."""
    return _filter_by(lookup_dict, pillar, ctx.pillar, merge, default, base)


def _data(ctx: Context, pillarenv: str | None, saltenv: str | None) -> Mapping[str, Any]:
    return ctx.pillar if pillarenv is None and saltenv is None else _fresh(ctx, pillarenv, saltenv, None)


def _fresh(
    ctx: Context, pillarenv: str | None, saltenv: str | None, override: Mapping[str, Any] | None
) -> dict[str, Any]:
    env = pillarenv
    if env is None:
        env = (
            saltenv or ctx.opts.get("saltenv") if ctx.opts.get("pillarenv_from_saltenv") else ctx.opts.get("pillarenv")
        )
    return ctx.minion.compile_pillar(saltenv or ctx.opts.get("saltenv"), env, _override(override))


def _override(given: Any) -> Mapping[str, Any] | None:
    if given is not None and not isinstance(given, Mapping):
        raise InvocationError("Pillar data must be formatted as a dictionary")
    return given


def _shown(ctx: Context, value: Any, unmask: bool | None) -> Any:
    """Masked when an operator asked (the runtime marks such calls) and neither call nor option says otherwise."""
    if unmask is None:
        unmask = not (ctx.scratch.get("pillar.mask") and ctx.opts.get("pillar_mask_output", True))
    return value if unmask else redacted(value)


def _types(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _types(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_types(each) for each in value]
    return f"<{type(value).__name__}>"
