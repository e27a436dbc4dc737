"""URLs of files in the state tree: ``salt://path?saltenv=name``."""

from __future__ import annotations

from typing import NamedTuple

#: What every URL of the state tree begins with.
SCHEME = "salt://"


class TreeUrl(NamedTuple):
    """Path and saltenv of a URL of the state tree."""

    #: Path below the roots of the saltenv, without a slash at its beginning; "" for the whole saltenv.
    path: str
    #: Saltenv that the URL names, or None.
    saltenv: str | None


def is_tree_url(url: str) -> bool:
    """Return whether a URL names a file of the state tree."""
    return url.startswith(SCHEME)


def split(url: str) -> TreeUrl:
    """Return the path and the saltenv of a URL or of a path in the state tree.

    The path ends at ``?``, unless it begins with the escape character ``|``: ``salt://|a?b`` is the file ``a?b``, and only
    ``?saltenv=`` ends it. The old query ``?env=`` is left out, as in Salt.
    """
    path, found, saltenv = url.removeprefix(SCHEME).lstrip("/").partition("?saltenv=")
    if path.startswith("|"):
        return TreeUrl(path.removeprefix("|"), saltenv or None)
    return TreeUrl(path if found else path.partition("?")[0], saltenv or None)
