"""``salt.utils.extmods`` for users' modules: fetches users' modules from the state tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from statecore.loader.current_context import context_of
from statecore.model.errors import CommandError
from statecore.sources import extension_modules


def sync(
    opts: Mapping[str, object],
    form: str,
    saltenv: str | Sequence[str] | None = None,
    extmod_whitelist: object = None,
    extmod_blacklist: object = None,
    force_local: bool = False,
) -> tuple[list[str], bool]:
    """Fetch users' modules of one kind ``form`` ("modules", "runners" ...) from ``salt://_<form>`` into the directory
    of the option ``extension_modules``.

    Return (names of new and changed modules, whether any file was new, changed or deleted). Raise CommandError if the
    option is not set.
    """
    ctx = context_of("salt.utils.extmods.sync")
    directory = opts.get("extension_modules") or ctx.opts.get("extension_modules")
    if not directory:
        raise CommandError("There is no directory for users' modules: set 'extension_modules'")
    envs = saltenv.split(",") if isinstance(saltenv, str) else list(saltenv or ["base"])
    root = Path(str(directory))
    before = _files(root / form)
    names = extension_modules.sync(ctx.files, root, form, envs, opts, extmod_whitelist, extmod_blacklist)
    return names, _files(root / form) != before


def _files(directory: Path) -> dict[str, tuple[int, int]]:
    found = directory.rglob("*") if directory.is_dir() else ()
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in found if path.is_file()}
