"""Backup copies of managed files: list, restore and delete the copies that ``backup: minion`` kept."""

from __future__ import annotations

from pathlib import Path

from statecore.host.content import backups, managed_file
from statecore.host.content.managed_file import Attributes
from statecore.model.context import Context


def list_backups(ctx: Context, path: str, limit: int | None = None) -> dict[int, dict[str, object]]:
    """Return the backup copies of a file that states with ``backup: minion`` kept: a map of number (0 is the newest) to
    Backup Time, Size (bytes) and Location.
    """
    found = backups.backups_of(ctx.host.path(path), _cache(ctx))[: None if limit is None else int(limit)]
    return {
        number: {"Backup Time": each.shown, "Size": each.place.stat().st_size, "Location": str(each.place)}
        for number, each in enumerate(found)
    }


def list_backup(ctx: Context, path: str, limit: int | None = None) -> dict[int, dict[str, object]]:
    """Alias of ``file.list_backups``."""
    return list_backups(ctx, path, limit)


def list_backups_dir(ctx: Context, path: str, limit: int | None = None) -> dict[str, dict[int, dict[str, object]]]:
    """Return the backup copies of all files in a directory: a map of file name to the map of ``file.list_backups``.

    ``path`` is the directory with a slash at the end, or a file in the directory.
    """
    directory = path.rpartition("/")[0] or "/"
    names = backups.names_in(ctx.host.path(directory), _cache(ctx))
    return {name: list_backups(ctx, f"{directory.rstrip('/')}/{name}", limit) for name in names}


def restore_backup(ctx: Context, path: str, backup_id: object) -> dict[str, object]:
    """Replace a file by one of its backup copies. The present file is copied first. Return a map with ``result`` and
    ``comment``.

    backup_id
        number of the copy in ``file.list_backups``
    """
    found = _chosen(ctx, path, backup_id)
    if isinstance(found, str):
        return {"result": False, "comment": found}
    real_path = ctx.host.path(path)
    if real_path.is_file():
        backups.back_up(real_path, _cache(ctx))
    managed_file.replace(ctx.host, real_path, found, Attributes())
    return {"result": True, "comment": f"Successfully restored {found} to {path}"}


def delete_backup(ctx: Context, path: str, backup_id: object) -> dict[str, object]:
    """Delete one backup copy of a file. ``backup_id`` is its number in ``file.list_backups``. Return a map with
    ``result`` and ``comment``.
    """
    found = _chosen(ctx, path, backup_id)
    if isinstance(found, str):
        return {"result": False, "comment": found}
    try:
        found.unlink()
    except OSError as error:
        return {"result": False, "comment": f"Unable to remove {found}: {error.strerror}"}
    return {"result": True, "comment": f"Successfully removed {found}"}


def remove_backup(ctx: Context, path: str, backup_id: object) -> dict[str, object]:
    """Alias of ``file.delete_backup``."""
    return delete_backup(ctx, path, backup_id)


def _chosen(ctx: Context, path: str, backup_id: object) -> Path | str:
    """Return the path of a file's backup copy with the number ``backup_id``. If there is none, return the reason as
    text.
    """
    if not str(backup_id).isdecimal():
        return f"Invalid backup_id '{backup_id}'"
    found = backups.backups_of(ctx.host.path(path), _cache(ctx))
    number = int(str(backup_id))
    return found[number].place if number < len(found) else f"backup_id '{backup_id}' does not exist for {path}"


def _cache(ctx: Context) -> Path:
    return Path(str(ctx.opts.get("cachedir") or "/var/cache/salt/minion")) / "file_backup"
