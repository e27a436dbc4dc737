"""The state tree as minions see it."""

from __future__ import annotations

from services.mworker.runners.runner import RunnerFault, RunnerTools
from statecore.files import LocalFiles


def envs(tools: RunnerTools, backend: str | None = None, sources: bool = False) -> list[str] | dict[str, list[str]]:
    """Environments; with ``sources`` {backend: environments}."""
    found = _files(tools, backend).envs()
    return {"roots": found} if sources else found


def file_list(tools: RunnerTools, saltenv: str = "base", backend: str | None = None) -> list[str]:
    """Paths of all files."""
    return _files(tools, backend).paths(saltenv)


def dir_list(tools: RunnerTools, saltenv: str = "base", backend: str | None = None) -> list[str]:
    """Paths of all directories."""
    return _files(tools, backend).dirs(saltenv)


def empty_dir_list(tools: RunnerTools, saltenv: str = "base", backend: str | None = None) -> list[str]:
    """Paths of the directories that hold nothing."""
    return _files(tools, backend).empty_dirs(saltenv)


def symlink_list(tools: RunnerTools, saltenv: str = "base", backend: str | None = None) -> dict[str, str]:
    """Path of a link -> where it leads."""
    return _files(tools, backend).symlinks(saltenv)


def update(tools: RunnerTools, backend: str | None = None) -> bool:
    """True: directories are looked at each time that a minion asks, so there is nothing to fetch."""
    _files(tools, backend)
    return True


def _files(tools: RunnerTools, backend: str | None) -> LocalFiles:
    if backend not in (None, "roots"):
        raise RunnerFault(f"there is no file server backend '{backend}'; there is roots")
    return LocalFiles(tools.options.file_roots, tools.options.hash_type)
