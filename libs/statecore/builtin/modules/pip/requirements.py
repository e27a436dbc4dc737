"""Requirements files for pip. Files of the state tree, and files that pip's user may not read, are copied to the
host.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from statecore.host.content import private_files
from statecore.host.rooted_path import located, remove_tree
from statecore.model import tree_url
from statecore.model.context import Context
from statecore.model.errors import CommandError, InvocationError

#: A line of a requirements file that includes another requirements or constraints file.
_CHAINED = re.compile(r"^\s*(?:-r|-c|--requirement|--constraint)(?:\s+|=)([^\s#]+)", re.MULTILINE)


def listed(requirements: str | Sequence[str] | None) -> list[str]:
    """Return the names of requirements files from a list or from text with commas. Raise InvocationError for any other
    value.
    """
    if requirements is None:
        return []
    if isinstance(requirements, str):
        return [each.strip() for each in requirements.split(",") if each.strip()]
    if not isinstance(requirements, list | tuple) or not all(isinstance(each, str) for each in requirements):
        raise InvocationError(f"requirements must be a string or list of strings, not {requirements!r}")
    return list(requirements)


@contextlib.contextmanager
def readable(
    ctx: Context, requirements: str | Sequence[str] | None, user: str | None, cwd: str | None, saltenv: str
) -> Iterator[list[str]]:
    """Yield the list of host paths of requirements files that pip's user can read.

    Files of the state tree are copied, together with the files that they include. With ``user`` all files are copied.
    The copies are removed afterwards. Raise CommandError for a missing file.
    """
    wanted = listed(requirements)
    if not any(each.startswith(tree_url.SCHEME) for each in wanted) and not user:
        yield [_absolute(each, cwd) for each in wanted]
        return
    name = f"/tmp/.saltern-pip-{os.urandom(8).hex()}"
    real_path = ctx.host.path(name)
    real_path.parent.mkdir(parents=True, exist_ok=True)
    real_path.mkdir(mode=private_files.DIRECTORY_MODE)
    try:
        placed = [_copy_with_includes(ctx, each, f"{name}/{at}", cwd, saltenv) for at, each in enumerate(wanted)]
        if user:
            uid = ctx.host.uid(user)
            for path in (real_path, *real_path.rglob("*")):
                with located(path) as (own, way):
                    os.chown(own, uid, -1, dir_fd=way, follow_symlinks=False)
        yield placed
    finally:
        with contextlib.suppress(OSError):
            remove_tree(real_path)


def texts(ctx: Context, requirements: str | Sequence[str], cwd: str | None, saltenv: str) -> list[str]:
    """Return the contents of requirements files and of the files that they include, as a list of texts. Raise
    CommandError for a missing file.
    """
    found = [_chain(ctx, each, cwd, saltenv)[1] for each in listed(requirements)]
    return [text.decode("utf-8", "replace") for chain in found for text in chain.values()]


def _copy_with_includes(ctx: Context, wanted: str, top: str, cwd: str | None, saltenv: str) -> str:
    """Copy a requirements file, and all files that it includes, into the directory ``top``. Return the path of the
    copy. The positions of the files relative to each other are kept.
    """
    start, chain = _chain(ctx, wanted, cwd, saltenv)
    for at, text in chain.items():
        copy = ctx.host.path(f"{top}/{at.lstrip('/')}")
        private_files.write(copy, text)
    return f"{top}/{start.lstrip('/')}"


def _chain(ctx: Context, wanted: str, cwd: str | None, saltenv: str) -> tuple[str, dict[str, bytes]]:
    """Return (path of the file, {path: content as bytes}) for a requirements file and all files that it includes. Raise
    CommandError for a missing file.

    Paths are paths of the host, or paths in the state tree for a salt:// file.
    """
    if wanted.startswith(tree_url.SCHEME):
        start, named = tree_url.split(wanted)
        saltenv = named or saltenv
    else:
        start = _absolute(wanted, cwd)
    waiting, found = [start], {}
    while waiting:
        at = waiting.pop()
        if at in found:
            continue
        found[at] = _read(ctx, at, wanted, saltenv)
        for more in _CHAINED.findall(found[at].decode("utf-8", "replace")):
            if "://" not in more:
                waiting.append(_joined(PurePosixPath(at).parent, more))
    return start, found


def _read(ctx: Context, at: str, wanted: str, saltenv: str) -> bytes:
    source: Path | None
    if wanted.startswith(tree_url.SCHEME) and not at.startswith("/"):
        source, shown = ctx.files.fetch(at, saltenv), f"{tree_url.SCHEME}{at}"
    else:
        source, shown = ctx.host.path(at), at
    if source is None or not source.is_file():
        raise CommandError(f"pip requirements file '{shown}' not found")
    return source.read_bytes()


def _absolute(path: str, cwd: str | None) -> str:
    if path.startswith("/"):
        return path
    if not cwd:
        raise CommandError(f"pip requirements file '{path}' is no absolute path, and there is no cwd")
    return _joined(PurePosixPath(cwd), path)


def _joined(directory: PurePosixPath, path: str) -> str:
    """Return ``path`` relative to ``directory`` without "." and "..". A ".." never leads above the top of the state
    tree.
    """
    parts: list[str] = []
    for part in (directory / path).parts:
        if part == "..":
            parts = parts[:-1] or parts
        elif part != ".":
            parts.append(part)
    return str(PurePosixPath(*parts))
