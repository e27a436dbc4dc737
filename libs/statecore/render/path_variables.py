"""Template variables that tell a template its own path in the tree (``tpldir``, ``slspath`` ...)."""

from __future__ import annotations

from pathlib import PurePosixPath


def template_variables(path: str) -> dict[str, str]:
    """Return the variables ``tplfile``, ``tpldir``, ``tpldot`` and ``tplroot`` for the template at ``path`` in the
    tree.

    An imported template gets these for its own path.
    """
    directory = path.rpartition("/")[0]
    return {
        "tplfile": path,
        "tpldir": directory or ".",
        "tpldot": directory.replace("/", "."),
        "tplroot": path.split("/")[0],
    }


def sls_variables(path: str, sls: str, saltenv: str, file: str) -> dict[str, str]:
    """Return the path variables of an SLS. ``path`` is its path in the tree, ``file`` its path on disk.

    ``slspath`` is the SLS file's directory, for ``init.sls`` and for other files.
    """
    directory = "" if "/" not in path else PurePosixPath(path).parent.as_posix()
    return {
        "sls": sls,
        "saltenv": saltenv,
        "env": saltenv,
        "tplpath": file,
        **template_variables(path),
        "slspath": directory,
        "slsdotpath": directory.replace("/", "."),
        "slscolonpath": directory.replace("/", ":"),
        "sls_path": directory.replace("/", "_"),
    }
