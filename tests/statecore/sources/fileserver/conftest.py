"""Trees, and repositories that are made by git itself."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import load_user_backend
from statecore.sources.fileserver import FileServer
from statecore.sources.gitrepos.mirror import Mirror
from statecore.sources.gitrepos.remotes import gitfs_remotes


def write(directory: Path, files: Mapping[str, str]) -> None:
    """Files; ``-> there`` is a link, a name that ends in a slash a directory, one that ends in ``.sh`` a program."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("/"):
            path.mkdir(exist_ok=True)
        elif text.startswith("-> "):
            path.symlink_to(text[3:])
        else:
            path.write_text(text)
            path.chmod(0o755 if name.endswith(".sh") else 0o644)


def git(directory: Path, *words: str) -> str:
    """What git prints, with nobody's configuration."""
    own = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    person = {f"GIT_{who}_{what}": "x@y.z" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(
        ["git", "-C", str(directory), *words],
        env={**os.environ, **own, **person},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


class Repository:
    """A repository that remotes point to."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.url = f"file://{directory}"
        git(directory, "init", "-q", "-b", "master")

    def commit(self, files: Mapping[str, str], branch: str = "master") -> str:
        """A commit on a branch, which is made from where HEAD is; its id."""
        if git(self.directory, "branch", "--list", branch):
            git(self.directory, "checkout", "-q", branch)
        elif branch != "master":
            git(self.directory, "checkout", "-q", "-b", branch)
        write(self.directory, files)
        git(self.directory, "add", "-A")
        git(self.directory, "commit", "-q", "-m", "more")
        return git(self.directory, "rev-parse", "HEAD")

    def tag(self, name: str, *words: str) -> None:
        git(self.directory, "tag", name, *words)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """One with a commit on master."""
    made = Repository(tmp_path / "origin")
    made.commit({"top.sls": "top\n", "web/init.sls": "web\n"})
    return made


def updated(opts: Mapping[str, Any]) -> FileServer:
    """The file server of options, its remotes fetched."""
    for remote in gitfs_remotes(opts):
        Mirror(Path(opts["cachedir"]) / "gitfs", remote).update()
    return FileServer.of(opts, load_user_backend)
