"""Wheel functions that read and write files of file_roots and pillar_roots (Salt: salt/wheel/file_roots.py).

A path never leads out of its root, even through links.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from saltern.kit.links.control import ControlError
from statecore.host.content import atomic_file
from statecore.host.rooted_path import leads_into

#: Environment -> directories.
Roots: TypeAlias = Mapping[str, Sequence[str]]

#: Number of bytes at the beginning of a file that decide whether the file is text.
_HEAD = 512


def find(roots: Roots, path: str, saltenv: str = "base") -> list[dict[str, str]]:
    """Return where a path of a saltenv exists: [{file: "txt" or "bin"}], one entry for each root that has it."""
    found = []
    for root in roots.get(saltenv, ()):
        full = _inside(root, path)
        if full is not None and full.is_file():
            found.append({str(full): "txt" if _is_text(full) else "bin"})
    return found


def list_env(roots: Roots, saltenv: str = "base") -> dict[str, object]:
    """Return the files of a saltenv as {root: tree}; in a tree directories are maps, and files are "f"."""
    return {str(root): _tree(Path(root)) for root in roots.get(saltenv, ())}


def list_roots(roots: Roots) -> dict[str, list[dict[str, object]]]:
    """Return the map of saltenv to the list of its roots, each as list_env shows it."""
    return {saltenv: [list_env(roots, saltenv)] for saltenv in roots}


def read(roots: Roots, path: str, saltenv: str = "base") -> list[dict[str, str]]:
    """Return [{path: text}], one entry for each root of the saltenv that has the file ``path`` as a text file."""
    files = [name for entry in find(roots, path, saltenv) for name, kind in entry.items() if kind == "txt"]
    return [{name: Path(name).read_text("utf-8", "replace")} for name in files]


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
        full.parent.mkdir(parents=True, exist_ok=True)
        atomic_file.write(full, data)
    except OSError as error:
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
    """Return the absolute path of a file within a root directory; None if the path leads out of it."""
    base = Path(root)
    full = Path(os.path.normpath(base / path))
    return full if leads_into(full, base) else None


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
    return {
        entry.name: _tree(entry) if entry.is_dir() and not entry.is_symlink() else ({} if entry.is_dir() else "f")
        for entry in entries
    }
