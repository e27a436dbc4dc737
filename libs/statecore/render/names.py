"""Names of templates that say where in the tree they are."""

from __future__ import annotations

from pathlib import PurePosixPath


def place(path: str) -> dict[str, str]:
    """Names that an imported template finds changed: they are of its own path."""
    directory = path.rpartition("/")[0]
    return {
        "tplfile": path,
        "tpldir": directory or ".",
        "tpldot": directory.replace("/", "."),
        "tplroot": path.split("/")[0],
    }


def of_sls(path: str, sls: str, saltenv: str, file: str) -> dict[str, str]:
    """Names of an SLS: ``path`` in the tree, ``file`` on disk. slspath is the directory, of an init.sls and of a plain one."""
    directory = "" if "/" not in path else PurePosixPath(path).parent.as_posix()
    return {
        "sls": sls,
        "saltenv": saltenv,
        "env": saltenv,
        "tplpath": file,
        **place(path),
        "slspath": directory,
        "slsdotpath": directory.replace("/", "."),
        "slscolonpath": directory.replace("/", ":"),
        "sls_path": directory.replace("/", "_"),
    }
