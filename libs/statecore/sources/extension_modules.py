"""Users' modules from the state tree (``salt://_modules``, ``_states``, ...) into a directory of this machine.

Minions fetch the kinds that minions have (``saltutil.sync_*``), masters theirs (``salt-run saltutil.sync_*``).
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import Files

#: Files that can be modules.
MODULE_FILES = (".py", ".pyx", ".so", ".zip")


def sync(
    files: Files,
    directory: Path,
    kind: str,
    envs: Iterable[str],
    opts: Mapping[str, Any],
    whitelist: Any = None,
    blacklist: Any = None,
) -> list[str]:
    """Copies ``_<kind>`` of the environments, the later over the earlier, into ``<directory>/<kind>``.

    Returns ``kind.name`` of what was written. The lists hold names, or names by kind; None: what the options
    extmod_whitelist and extmod_blacklist say. What is gone from the tree is removed, unless the option clean_dynamic_modules
    is off. Raises CommandError.
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
    try:
        written = [
            f"{kind}.{_name(relative)}"
            for relative, source in wanted.items()
            if _copy(files, *source, target / relative)
        ]
        if opts.get("clean_dynamic_modules", True) and target.is_dir():
            _clean(target, wanted)
    except OSError as error:
        raise CommandError(f"users' modules cannot be kept in {target}: {error.strerror}") from error
    return written


def _copy(files: Files, path: str, env: str, target: Path) -> bool:
    """Whether the file had to be written."""
    source = files.fetch(path, env)
    if source is None:
        raise CommandError(f"salt://{path} is listed in environment '{env}' but cannot be fetched")
    content = source.read_bytes()
    if target.is_file() and hashlib.sha256(target.read_bytes()).digest() == hashlib.sha256(content).digest():
        return False
    # Code that will be run: nobody else may write it.
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    target.write_bytes(content)
    target.chmod(0o600)
    return True


def _clean(target: Path, wanted: Mapping[str, Any]) -> None:
    for path in sorted(target.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()) or path.name == "__pycache__":
                shutil.rmtree(path)
        elif str(path.relative_to(target)) not in wanted:
            path.unlink()


def _name(relative: str) -> str:
    """Dotted module name of a file below its kind's directory."""
    return relative.rpartition(".")[0].replace("/", ".")


def _names(listed: Any, kind: str) -> list[str] | None:
    """The names a white or black list has for this kind; None when it says nothing."""
    value = listed.get(kind) if isinstance(listed, Mapping) else listed
    if not value:
        return None
    if not isinstance(value, str | list | tuple):
        raise InvocationError(
            f"extmod_whitelist, extmod_blacklist: {kind} are named by a list, or with commas between, not {value!r}"
        )
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else [str(name) for name in value]
