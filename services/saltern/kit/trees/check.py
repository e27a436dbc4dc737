"""Whether the trees can be read, for a probe and one line in the log: a worker that serves an empty tree serves nobody."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from saltern.kit.config.master import MasterOptions

#: Options that name trees, and what they are where nobody says anything: these need not be there.
_TREES = ("file_roots", "pillar_roots")


def trouble(options: MasterOptions) -> str | None:
    """None while every directory of the trees can be listed, else which cannot, and why."""
    return "; ".join(_troubles(options)) or None


def _troubles(options: MasterOptions) -> Iterator[str]:
    defaults = MasterOptions()
    for name in _TREES:
        roots: Mapping[str, Sequence[str]] = getattr(options, name)
        if roots == getattr(defaults, name) or (name == "file_roots" and "roots" not in options.fileserver_backend):
            continue
        for env, directories in roots.items():
            for directory in directories:
                # A placeholder is a directory for each environment that is asked for: which, is not known yet.
                if "__env__" not in directory and (why := _unlisted(directory)):
                    yield f"{name}: {env}: {directory}: {why}; mount the tree there, or change {name}"


def _unlisted(directory: str) -> str | None:
    try:
        with os.scandir(directory) as entries:
            next(entries, None)
    except OSError as error:
        return error.strerror or str(error)
    return None
