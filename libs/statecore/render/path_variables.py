"""Template variables with the path of the template in the state tree (``tpldir``, ``slspath`` ...)."""

from __future__ import annotations

from pathlib import PurePosixPath


def template_variables(path: str) -> dict[str, str]:
    """Map of the variables ``tplfile``, ``tpldir``, ``tpldot`` and ``tplroot`` to their values, for the template at
    ``path`` in the state tree.

    An imported template gets these variables for its own path.
    """
    directory = path.rpartition("/")[0]
    return {
        "tplfile": path,
        "tpldir": directory or ".",
        "tpldot": directory.replace("/", "."),
        "tplroot": path.split("/")[0],
    }


def sls_variables(path: str, sls: str, saltenv: str, file: str) -> dict[str, str]:
    """Map of the path variables of an SLS file (``sls``, ``slspath``, ``tplfile`` ...) to their values.

    ``path`` is the file's path in the state tree, ``file`` its path on disk. ``slspath`` is the file's directory, for
    ``init.sls`` and for other files.
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
