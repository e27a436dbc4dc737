"""Attack: a URL, a remote or a revision that git reads as an option, such as ``--upload-pack=PROGRAM``."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from statecore.model.errors import CommandError
from tests.security.conftest import LocalMinion

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

_EVIL = "--upload-pack=touch MARK; git-upload-pack"

CALLS: dict[str, Mapping[str, object]] = {
    "git.remote_refs url": {"fun": "git.remote_refs", "url": _EVIL},
    "git.clone url": {"fun": "git.clone", "cwd": "REPO-new", "url": _EVIL},
    "git.fetch remote": {"fun": "git.fetch", "cwd": "REPO", "remote": _EVIL},
    "git.fetch refspec": {"fun": "git.fetch", "cwd": "REPO", "remote": "REPO", "refspecs": [_EVIL]},
    "git.checkout rev": {"fun": "git.checkout", "cwd": "REPO", "rev": "--orphan=new"},
    "git.rev_parse rev": {"fun": "git.rev_parse", "cwd": "REPO", "rev": "--git-dir"},
    "git.revision rev": {"fun": "git.revision", "cwd": "REPO", "rev": "--output=MARK"},
    "git.merge rev": {"fun": "git.merge", "cwd": "REPO", "rev": "--abort"},
    "git.branch name": {"fun": "git.branch", "cwd": "REPO", "name": "--edit-description"},
    "git.remote_set remote": {"fun": "git.remote_set", "cwd": "REPO", "url": "REPO", "remote": "--fetch"},
    "git.submodule command": {"fun": "git.submodule", "cwd": "REPO", "command": "--help"},
    "git.config_get key": {"fun": "git.config_get", "cwd": "REPO", "key": "--edit"},
    "git.config_set key": {"fun": "git.config_set", "cwd": "REPO", "key": "--file=MARK", "value": "x"},
    "git.push remote": {"fun": "git.push", "cwd": "REPO", "remote": "--receive-pack=touch MARK", "ref": "x"},
    "git.ls_remote remote": {"fun": "git.ls_remote", "remote": _EVIL},
    "git.archive rev": {"fun": "git.archive", "cwd": "REPO", "output": "MARK", "rev": "--remote=REPO"},
    "git.tag name": {"fun": "git.tag", "cwd": "REPO", "name": "--file=MARK"},
    "git.diff item": {"fun": "git.diff", "cwd": "REPO", "item1": "--output=MARK"},
    "git.describe rev": {"fun": "git.describe", "cwd": "REPO", "rev": "--help"},
    "git.worktree_add path": {"fun": "git.worktree_add", "cwd": "REPO", "worktree_path": "--help"},
    "git.symbolic_ref value": {"fun": "git.symbolic_ref", "cwd": "REPO", "ref": "HEAD", "value": "-d"},
    "git.rebase rev": {"fun": "git.rebase", "cwd": "REPO", "rev": "--exec 'touch MARK'"},
    "git.stash action": {"fun": "git.stash", "cwd": "REPO", "action": "--help"},
    "git.merge_base ref": {"fun": "git.merge_base", "cwd": "REPO", "refs": ["--help", "HEAD"]},
    "git.config_unset key": {"fun": "git.config_unset", "cwd": "REPO", "key": "--edit"},
}


@pytest.mark.parametrize("name", CALLS)
def test_git_gets_no_option_from_a_value(name: str, plain: LocalMinion, tmp_path: Path) -> None:
    repository, mark = plain.root / "repository", tmp_path / "mark"
    subprocess.run(["git", "init", "-q", repository], check=True, timeout=30)
    given = {
        key: [each.replace("MARK", str(mark)) for each in value]
        if isinstance(value, list)
        else str(value).replace("MARK", str(mark)).replace("REPO", str(repository))
        for key, value in CALLS[name].items()
    }
    # The commands of a mounted host need root, so that the module runs on this machine's own tree.
    with pytest.raises(CommandError):
        plain.here().call(str(given.pop("fun")), **given)
    assert not mark.exists()
    assert not (repository / ".git/refs/heads/new").exists()


def test_the_state_refuses_such_a_name(plain: LocalMinion, tmp_path: Path) -> None:
    state = plain.here().states["git.latest"](
        name=_EVIL.replace("MARK", str(tmp_path / "mark")), target=str(tmp_path / "t")
    )
    assert state["result"] is False
    assert not (tmp_path / "mark").exists()
