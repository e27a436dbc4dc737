"""Requested state runs: ``state.request`` tests a run and stores it in ``<cachedir>/req_state.p``,
``state.run_request`` applies it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from statecore.builtin.modules.state import runs
from statecore.host.content import data_files
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

_DEFAULT = "default"


def request(ctx: Context, mods: str | Sequence[str] | None = None, **kwargs: object) -> object:
    """Test a state run, as ``state.apply`` with ``test=True``, and store it for ``state.run_request``. Return the
    test's running dictionary (state tag to the state's return), or a list of errors.

    ``name`` distinguishes several requests. Raise CommandError when the request cannot be stored.

    CLI Example:

        salt '*' state.request web,db
    """
    file = _requests_file(ctx)
    name = _checked(kwargs.pop("name", None) or _DEFAULT)
    arguments = {key: value for key, value in kwargs.items() if not key.startswith("__pub_")} | {"test": True}
    tested = runs.apply(ctx, mods, **{**kwargs, "test": True})
    data_files.store(file, {**_kept(file), name: {"test_run": tested, "mods": mods, "kwargs": arguments}})
    return tested


def check_request(ctx: Context, name: str | None = None) -> Mapping[str, object]:
    """Return the requested state runs: a map of the request's name to ``test_run``, ``mods`` and ``kwargs``. With a
    name return only that request's map; raise InvocationError if there is no such request.

    CLI Example:

        salt '*' state.check_request
    """
    kept = _kept(_requests_file(ctx))
    if name is None:
        return kept
    if _checked(name) not in kept:
        raise InvocationError(f"There is no request '{name}'; there is {', '.join(kept) or 'none at all'}")
    return dict(kept[name])


def clear_request(ctx: Context, name: str | None = None) -> bool:
    """Delete a requested state run, or all. Return True; False if there is none of this name.

    CLI Example:

        salt '*' state.clear_request
    """
    file = _requests_file(ctx)
    if not name:
        # Removed unread, because the file may be damaged.
        data_files.remove(file)
        return True
    _checked(name)
    if not file.exists():
        return True
    return _forget(file, name)


def run_request(ctx: Context, name: str = _DEFAULT, **kwargs: object) -> object:
    """Apply a requested state run; keywords override those of the request. Return the running dictionary (state tag to
    the state's return) or a list of errors; {} if there is no request.

    The request is deleted afterwards, unless the run was refused or did not compile.

    CLI Example:

        salt '*' state.run_request
    """
    file = _requests_file(ctx)
    wanted = _kept(file).get(_checked(name))
    if not wanted:
        return {}
    asked = {**wanted.get("kwargs", {}), **kwargs}
    asked.pop("test", None)
    result = runs.apply(ctx, **{"mods": wanted.get("mods"), **asked})
    if not isinstance(result, list):
        _forget(file, name)
    return result


def _checked(name: object) -> str:
    if not isinstance(name, str):
        raise InvocationError(f"'name' must be the name of a request, not the {type(name).__name__} {name!r}")
    return name


def _requests_file(ctx: Context) -> Path:
    cachedir = ctx.opts.get("cachedir")
    if not cachedir:
        raise CommandError("There is no directory for requested runs: set 'cachedir'")
    return Path(str(cachedir)) / "req_state.p"


def _kept(file: Path) -> dict[str, dict[str, Any]]:
    kept = data_files.load(file)
    return {name: each for name, each in kept.items() if isinstance(each, dict)} if isinstance(kept, dict) else {}


def _forget(file: Path, name: str) -> bool:
    kept = _kept(file)
    if kept.pop(name, None) is None:
        return False
    if kept:
        data_files.store(file, kept)
    else:
        data_files.remove(file)
    return True
