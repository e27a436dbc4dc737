"""Synchronisation of users' modules from the state tree (``salt://_modules``, ``salt://_states``, ...) to a local
directory.

Minions use it for ``saltutil.sync_*``; masters use it for ``salt-run saltutil.sync_*``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from statecore.host.content import private_files
from statecore.host.rooted_path import RootedPath, confined, remove_tree
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import Files

#: Suffixes of module files.
MODULE_FILES = (".py", ".pyx", ".so", ".zip")


def sync(
    files: Files,
    directory: Path,
    kind: str,
    envs: Iterable[str],
    opts: Mapping[str, object],
    whitelist: object = None,
    blacklist: object = None,
) -> list[str]:
    """Copy users' modules of one ``kind`` (modules, states, ...) from ``salt://_<kind>`` of the given saltenvs to
    ``<directory>/<kind>``. Later saltenvs replace earlier ones.

    Return ``kind.name`` of each written file. ``whitelist`` and ``blacklist`` are lists of names, or maps of kind to
    names; None takes the options extmod_whitelist and extmod_blacklist. Files that are no longer in the tree are
    removed, unless the option clean_dynamic_modules is off. Raise CommandError if a file cannot be written or removed.
    """
    only = _names(opts.get("extmod_whitelist") if whitelist is None else whitelist, kind)
    never = _names(opts.get("extmod_blacklist") if blacklist is None else blacklist, kind)
    prefix, target = f"_{kind}/", directory / kind
    wanted: dict[str, tuple[str, str]] = {}
    for env in envs:
        for path in files.paths(env, prefix):
            relative = path.removeprefix(prefix)
            name = _name(relative)
            if relative.endswith(MODULE_FILES) and (only is None or name in only) and not (never and name in never):
                wanted[relative] = (path, env)
    if not wanted and not target.is_dir():
        return []
    try:
        private_files.directory(target)
        # Paths come from the tree: a commit, or a user's file server backend, may have any names.
        with confined(target) as top:
            written = [
                f"{kind}.{_name(relative)}"
                for relative, source in wanted.items()
                if _copy(files, *source, top / relative)
            ]
            if opts.get("clean_dynamic_modules", True):
                _clean(top, wanted)
    except OSError as error:
        raise CommandError(f"users' modules cannot be kept in {target}: {error.strerror}") from error
    return written


def _copy(files: Files, path: str, env: str, target: RootedPath) -> bool:
    """Copy one module file from the state tree to the path ``target`` when it differs. Return True if it was written."""
    source = files.fetch(path, env)
    if source is None:
        raise CommandError(f"salt://{path} is listed in environment '{env}' but cannot be fetched")
    content = source.read_bytes()
    if target.is_file() and hashlib.sha256(target.read_bytes()).digest() == hashlib.sha256(content).digest():
        return False
    # The files are code that will run, so only the owner may write them.
    private_files.write(target, content)
    return True


def _clean(target: RootedPath, wanted: Mapping[str, object]) -> None:
    for path in sorted(target.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()) or path.name == "__pycache__":
                remove_tree(path)
        elif str(path.relative_to(target)) not in wanted:
            path.unlink()


def _name(relative: str) -> str:
    """Return the dotted module name of a module file: ``sub/name.py`` becomes ``sub.name``."""
    return relative.rpartition(".")[0].replace("/", ".")


def _names(listed: object, kind: str) -> list[str] | None:
    """Return the module names that a whitelist or blacklist has for this kind of modules; None when it has none."""
    value = listed.get(kind) if isinstance(listed, Mapping) else listed
    if not value:
        return None
    if not isinstance(value, str | list | tuple):
        raise InvocationError(
            f"extmod_whitelist, extmod_blacklist: {kind} are named by a list, or with commas between, not {value!r}"
        )
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else [str(name) for name in value]
