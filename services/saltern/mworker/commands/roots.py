"""Wheel functions that read and write files of file_roots and pillar_roots (Salt: salt/wheel/file_roots.py).

A path never leads out of its root, even through links, and also while a link is exchanged: each file is opened beneath its
root.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from saltern.kit.links.control import ControlError
from statecore.host.beneath import LeadsOutside, Links
from statecore.host.content import atomic_file
from statecore.host.rooted_path import confined
from statecore.sources.tree_roots import TreeRoot

#: Environment -> directories.
Roots: TypeAlias = Mapping[str, Sequence[str]]

#: Number of bytes at the beginning of a file that decide whether the file is text.
_HEAD = 512


def find(roots: Roots, path: str, saltenv: str = "base") -> list[dict[str, str]]:
    """Return where a path of a saltenv exists: [{file: "txt" or "bin"}], one entry for each root that has it."""
    return [{str(full): "txt" if _is_text(full) else "bin"} for full in _files(roots, path, saltenv)]


def list_env(roots: Roots, saltenv: str = "base") -> dict[str, object]:
    """Return the files of a saltenv as {root: tree}; in a tree directories are maps, and files are "f"."""
    return {str(root): _tree(TreeRoot(str(root)).file("", Links.BENEATH)) for root in roots.get(saltenv, ())}


def list_roots(roots: Roots) -> dict[str, list[dict[str, object]]]:
    """Return the map of saltenv to the list of its roots, each as list_env shows it."""
    return {saltenv: [list_env(roots, saltenv)] for saltenv in roots}


def read(roots: Roots, path: str, saltenv: str = "base") -> list[dict[str, str]]:
    """Return [{path: text}], one entry for each root of the saltenv that has the file ``path`` as a text file."""
    files = [full for full in _files(roots, path, saltenv) if _is_text(full)]
    return [{str(full): full.read_text("utf-8", "replace")} for full in files]


def write(roots: Roots, data: str, path: str, saltenv: str = "base", index: int = 0) -> str:
    """Write a file into the root number ``index`` (default: the first) of a saltenv; missing directories are created.

    Return a text that says that the file was written, or why not. Raises ControlError if writing fails.
    """
    directories = roots.get(saltenv)
    if directories is None:
        return f"Named environment {saltenv} is not present"
    if not 0 <= index < len(directories):
        return f"Specified index {index} in environment {saltenv} is not present"
    if Path(path).is_absolute():
        return f"The path passed in {path} is not relative to the environment {saltenv}"
    full = _inside(directories[index], path)
    if full is None or full == Path(directories[index]):
        return f"Invalid path: {path}"
    try:
        with confined(Path(directories[index])) as root:
            place = root / full.relative_to(directories[index])
            with contextlib.suppress(FileNotFoundError):
                # A link that leads out is refused, and not replaced.
                place.stat()
            place.parent.mkdir(parents=True, exist_ok=True)
            atomic_file.write(place, data)
    except OSError as error:
        if isinstance(error, LeadsOutside) or error.errno == errno.ELOOP:
            return f"Invalid path: {path}"
        raise ControlError("FileError", f"{full} cannot be written: {error.strerror}") from error
    return f"Wrote data to file {full}"


FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "find": find,
    "list_env": list_env,
    "list_roots": list_roots,
    "read": read,
    "write": write,
}


def _inside(root: str, path: str) -> Path | None:
    """Return the absolute path of a file within a root directory; None if the path leads out of it. Links are not read."""
    base = Path(os.path.normpath(root))
    full = Path(os.path.normpath(base / path))
    return full if full.is_relative_to(base) else None


def _files(roots: Roots, path: str, saltenv: str) -> Iterator[Path]:
    """Yield the file ``path`` of each root of a saltenv that has it. Each is opened beneath its root."""
    for root in roots.get(saltenv, ()):
        full = _inside(root, path)
        if full is not None:
            relative = full.relative_to(os.path.normpath(root))
            file = TreeRoot(str(root)).file(str(relative), Links.BENEATH)
            with contextlib.suppress(OSError):
                if file.is_file():
                    yield file


def _is_text(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if b"\0" in head:
        return False
    # The last character may be cut off.
    return "\ufffd" not in head.decode("utf-8", "replace").rstrip("\ufffd")


def _tree(directory: Path) -> dict[str, object]:
    try:
        entries = sorted(directory.iterdir())
    except OSError:
        return {}
    return {entry.name: _shown(entry) for entry in entries}


def _shown(entry: Path) -> object:
    try:
        is_dir = entry.is_dir()
    except OSError:
        # A link that leads out of the root: what it leads to is not looked at.
        return {}
    if not is_dir:
        return "f"
    return {} if entry.is_symlink() else _tree(entry)
