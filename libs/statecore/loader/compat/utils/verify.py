"""``salt.utils.verify`` for users' modules: checks of paths and minion ids."""

from __future__ import annotations

import os
import re

from statecore.loader.compat.exceptions import SaltValidationError

_ID = re.compile(r"[^/\\\0]+")


def clean_path(root: str, path: str, subdir: bool = False, realpath: bool = True) -> str:
    """Return the absolute path without ``..`` and links, if it is directly in the directory ``root``; "" if it is not.

    ``subdir``: the path may also be in a directory below. ``realpath=False``: links are not followed.
    """
    resolve = os.path.realpath if realpath else os.path.normpath
    if not os.path.isabs(root):
        return ""
    top = resolve(root)
    whole = resolve(path if os.path.isabs(path) else os.path.join(root, path))
    inside = whole.startswith(top.rstrip("/") + "/") if subdir else os.path.dirname(whole) == top
    return whole if inside else ""


def clean_join(root: str, *paths: str, subdir: bool = False, realpath: bool = True) -> str:
    """Return ``paths`` joined to the directory ``root``. Raise SaltValidationError if the path is not in ``root``, as
    ``clean_path`` decides.
    """
    path = os.path.join(root, *paths)
    if not clean_path(root, path, subdir, realpath):
        raise SaltValidationError(f"Invalid path: {path!r}")
    return path


def valid_id(opts: object, id_: object) -> bool:
    """Return whether a value can be a minion id: a text that names a single file (no slash, not "..")."""
    return isinstance(id_, str) and _ID.fullmatch(id_) is not None and id_ not in (".", "..")
