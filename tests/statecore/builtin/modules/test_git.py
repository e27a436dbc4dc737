"""The execution module git with real repositories: what it returns and raises, beside real Salt."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError
from tests.conftest import Oracle
from tests.statecore.conftest import PlainMinion
from tests.statecore.function_calls import Call, ours, salts

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="this machine has no git")

ENVIRONMENT = {
    "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    **{f"GIT_{who}_{what}": f"{what}@x".lower() for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}

#: R is a repository with branches main and dev and the tag v1, T is a clone of it, D the directory of both.
LAID_OUT = (
    "cd D; git init -q -b main R; cd R; echo 1 > a; git add a; git commit -qm one; git tag v1; git branch dev;"
    "git checkout -q dev; echo dev > b; git add b; git commit -qm dev; git checkout -q main;"
    "git config receive.denyCurrentBranch ignore; cd ..; git clone -q R T"
)

CASES: dict[str, list[Call]] = {
    "commits": [
        ("$", "echo 2 > D/R/new; echo 3 > D/R/other", {}),
        ("git.status", ["R"], {}),
        ("git.add", ["R", "new"], {}),
        ("git.add", ["R", "none"], {}),
        ("git.add", ["R", "other"], {"opts": "-v --dry-run"}),
        ("git.status", ["R"], {}),
        ("git.commit", ["R", "more"], {}),
        ("git.commit", ["R", "more"], {}),
        ("git.commit", ["R", "only"], {"filename": "other", "opts": ["-q"]}),
        ("git.rm", ["R", "new"], {}),
        ("git.rm", ["R", "none"], {}),
        ("git.status", ["R"], {}),
        ("git.reset", ["R"], {"opts": "--hard HEAD"}),
        ("git.reset", ["R"], {"opts": "--hard nothing"}),
        ("$", "echo 5 > D/R/a", {}),
        ("git.stash", ["R"], {}),
        ("git.stash", ["R", "list"], {}),
        ("git.stash", ["R", "pop"], {}),
        ("git.stash", ["R", "pop"], {}),
        ("git.diff", ["R"], {}),
        ("git.diff", ["R", "v1", "HEAD"], {"opts": "--name-only"}),
        ("git.diff", ["R"], {"cached": True}),
        ("git.diff", ["R"], {"paths": "b,new"}),
        ("git.diff", ["R"], {"no_index": True, "paths": ["a", "new"]}),
        ("git.diff", ["R"], {"no_index": True, "cached": True}),
        ("git.diff", ["R", "none"], {}),
        ("git.discard_local_changes", ["R"], {}),
        ("git.discard_local_changes", ["R", "none"], {}),
        ("git.status", ["R"], {}),
        ("git.status", ["D"], {}),
    ],
    "branches": [
        ("git.current_branch", ["R"], {}),
        ("git.list_branches", ["R"], {}),
        ("git.list_branches", ["T"], {"remote": True}),
        ("git.branch", ["R", "new"], {}),
        ("git.branch", ["R", "new"], {}),
        ("git.branch", ["R", "new"], {"opts": "-d"}),
        ("git.checkout", ["R", "dev"], {}),
        ("git.checkout", ["R", "dev"], {}),
        ("git.checkout", ["R", "none"], {}),
        ("git.checkout", ["R"], {}),
        ("git.checkout", ["R"], {"opts": "-b fresh"}),
        ("git.checkout", ["R", "v1"], {"force": True}),
        ("git.current_branch", ["R"], {}),
        ("git.symbolic_ref", ["R", "HEAD"], {}),
        ("git.checkout", ["R", "main"], {}),
        ("git.symbolic_ref", ["R", "HEAD"], {}),
        ("git.symbolic_ref", ["R", "HEAD"], {"opts": "--short"}),
        ("git.symbolic_ref", ["R", "HEAD", "refs/heads/main"], {"opts": "-d"}),
        ("git.merge", ["R", "dev"], {}),
        ("git.merge", ["R", "none"], {}),
        ("git.list_tags", ["R"], {}),
        ("git.tag", ["R", "v2"], {}),
        ("git.tag", ["R", "v2"], {}),
        ("git.tag", ["R", "v3", "v1"], {"message": "Three"}),
        ("git.tag", ["R", "v4"], {"opts": "-m x"}),
        ("git.tag", ["R", "v2"], {"opts": "-d"}),
        ("git.tag", ["R", "none"], {"opts": "--delete"}),
        ("git.list_tags", ["R"], {}),
        ("git.rebase", ["R", "dev"], {}),
        ("git.rebase", ["R"], {"opts": "-i"}),
        ("git.rebase", ["R"], {}),
    ],
    "revisions": [
        ("git.revision", ["R"], {}),
        ("git.revision", ["R", "dev"], {"short": True}),
        ("git.revision", ["R", "none"], {}),
        ("git.rev_parse", ["R", "HEAD"], {"opts": "--abbrev-ref"}),
        ("git.rev_parse", ["R"], {"opts": ["--git-dir"]}),
        ("git.rev_parse", ["R", "none"], {"opts": "--verify"}),
        ("git.describe", ["R"], {}),
        ("git.describe", ["R", "dev"], {}),
        ("git.describe", ["R", "none"], {}),
        ("git.merge_base", ["R", "main,dev"], {}),
        ("git.merge_base", ["R", ["main", "dev"]], {"all": True}),
        ("git.merge_base", ["R", "v1,dev"], {"is_ancestor": True}),
        ("git.merge_base", ["R", "dev,v1"], {"is_ancestor": True}),
        ("git.merge_base", ["R", "dev"], {"is_ancestor": True}),
        ("git.merge_base", ["R", "main,dev"], {"independent": True}),
        ("git.merge_base", ["R", "main,dev"], {"octopus": True}),
        ("git.merge_base", ["R", "main,dev"], {"octopus": True, "independent": True}),
        ("git.merge_base", ["R", "main,dev"], {"all": True, "independent": True}),
        ("git.merge_base", ["R", "main,dev"], {"fork_point": "dev"}),
        ("git.merge_base", ["R"], {"fork_point": "main"}),
        ("git.merge_base", ["R", "main,none"], {}),
        ("git.merge_tree", ["R", "main", "dev"], {}),
        ("git.merge_tree", ["R", "main", "dev", "v1"], {}),
        ("git.merge_tree", ["R", "main", "none"], {}),
    ],
    "remotes": [
        ("git.remotes", ["T"], {}),
        ("git.remotes", ["R"], {}),
        ("git.remote_get", ["T"], {}),
        ("git.remote_get", ["T", "none"], {}),
        ("git.remote_set", ["T", "https://git.test/x", "other"], {"https_user": "u", "https_pass": "p"}),
        ("git.remote_set", ["T", "ssh://git@git.test/x", "other"], {"push_url": "https://git.test/y"}),
        ("git.remote_set", ["T", "http://git.test/x", "other"], {"https_user": "u"}),
        ("git.remote_set", ["home", "https://git.test/x"], {}),
        ("git.diff", ["home", "main"], {}),
        ("git.config_get", ["user.name"], {"cwd": "home"}),
        ("git.config_get_regexp", ["user"], {"cwd": "home"}),
        ("git.remote_get", ["T", "other"], {}),
        ("git.remotes", ["T"], {"redact_auth": False}),
        ("git.remote_refs", ["D/R"], {}),
        ("git.remote_refs", ["D/R"], {"heads": True}),
        ("git.remote_refs", ["D/R"], {"tags": True}),
        ("git.remote_refs", ["D/R"], {"filter": "d*"}),
        ("git.remote_refs", ["D/none"], {}),
        ("git.ls_remote", ["T"], {}),
        ("git.ls_remote", ["T"], {"ref": "dev"}),
        ("git.ls_remote", [], {"remote": "D/R", "opts": "--heads"}),
        ("git.ls_remote", ["T", "none"], {}),
        ("git.ls_remote", ["T", "http://h/x"], {"https_user": "u"}),
        ("git.fetch", ["T"], {}),
        ("$", "cd D/R; git branch new; git tag v2; git commit -q --allow-empty -m more", {}),
        ("git.fetch", ["T", "origin"], {"opts": "--tags"}),
        ("git.fetch", ["T", "origin"], {}),
        ("$", "cd D/R; git commit -q --allow-empty --amend -m other; git tag -f v2", {}),
        (
            "git.fetch",
            ["T", "origin"],
            {"force": True, "refspecs": "refs/heads/*:refs/remotes/origin/*,refs/tags/*:refs/tags/*"},
        ),
        ("git.fetch", ["T", "none"], {}),
        ("git.pull", ["T"], {"opts": "--ff-only -q origin main"}),
        ("git.pull", ["T"], {"opts": "origin none"}),
        ("$", "cd D/T; git commit -q --allow-empty -m mine", {}),
        ("git.push", ["T", "origin", "HEAD:refs/heads/pushed"], {"opts": "--porcelain"}),
        ("git.push", ["T", "origin", "none"], {}),
        ("git.list_branches", ["R"], {}),
    ],
    "configuration": [
        ("git.config_get", ["user.name"], {"cwd": "T"}),
        ("git.config_get", ["user.name"], {}),
        ("git.config_get", ["core.bare"], {"cwd": "T"}),
        ("git.config_set", ["a.b", "one"], {"cwd": "T"}),
        ("git.config_set", ["a.b", "two"], {"cwd": "T", "add": True}),
        ("git.config_get", ["a.b"], {"cwd": "T"}),
        ("git.config_get", ["a.b"], {"cwd": "T", "all": True}),
        ("git.config_set", ["a.b"], {"cwd": "T", "multivar": ["x", 5]}),
        ("git.config_set", ["a.b"], {"cwd": "T", "multivar": "p,q"}),
        ("git.config_set", ["a.b", "x"], {"cwd": "T", "multivar": "p,q"}),
        ("git.config_set", ["a.b", "x"], {}),
        ("git.config_set", ["a.b", "x"], {"cwd": "T", "colour": "red"}),
        ("git.config_set", ["nokey", "x"], {"cwd": "T"}),
        ("git.config_get_regexp", ["^a"], {"cwd": "T"}),
        ("git.config_get_regex", ["^a", "p"], {"cwd": "T"}),
        ("git.config_get_regexp", ["^none"], {"cwd": "T"}),
        ("git.config_unset", ["a.b"], {"cwd": "T"}),
        ("git.config_unset", ["a.b", "."], {"cwd": "T"}),
        ("git.config_unset", ["a.b", "p"], {"cwd": "T"}),
        ("git.config_unset", ["a.b"], {"cwd": "T", "all": True}),
        ("git.config_unset", ["a.b"], {"cwd": "T"}),
        ("git.config_unset", ["nokey"], {"cwd": "T"}),
        ("git.config_set", ["g.lobal", "x"], {"global": True}),
        ("git.config_get", ["g.lobal"], {"global": True}),
        ("git.config_get", ["g.lobal"], {"cwd": "T"}),
        ("git.config_unset", ["g.lobal"], {"global": True}),
        ("git.config_get", ["a.b"], {"cwd": "D"}),
    ],
    "repositories": [
        ("git.init", ["N"], {}),
        ("git.init", ["N"], {}),
        ("git.init", ["B"], {"bare": True, "shared": "group", "opts": "-q"}),
        ("git.init", ["S"], {"separate_git_dir": "D/G", "shared": 640, "opts": "-b trunk"}),
        ("git.current_branch", ["N"], {}),
        ("git.clone", ["C", "D/R"], {}),
        ("git.clone", ["C", "D/R"], {}),
        ("git.clone", ["D/inside", "D/R", "name"], {"opts": "--branch dev"}),
        ("git.clone", ["C2"], {}),
        ("git.clone", ["C2", "http://h/x"], {"https_user": "u"}),
        ("git.clone", ["C2", "D/none"], {}),
        ("git.clone", ["C2", "D/R"], {"identity": "/no/key"}),
        ("git.current_branch", ["D/inside/name"], {}),
        ("git.archive", ["R", "D/a.tar"], {}),
        ("$", "tar tf D/a.tar | grep -x R/a", {}),
        ("git.archive", ["R", "D/b.tar", "dev"], {"prefix": "", "format": "tar"}),
        ("$", "tar tf D/b.tar | grep -x b", {}),
        ("git.archive", ["R", "D/c.tar", "none"], {}),
        ("git.submodule", ["R", "status"], {}),
        ("git.submodule", ["R", "status"], {"init": True}),
        ("git.submodule", ["R", "none"], {}),
        ("git.version", [], {}),
        ("git.version", [], {"versioninfo": True}),
    ],
    "worktrees": [
        ("git.is_worktree", ["R"], {}),
        ("git.is_worktree", ["D"], {}),
        ("git.list_worktrees", ["R"], {}),
        ("git.worktree_add", ["R", "D/W"], {}),
        ("git.worktree_add", ["R", "D/W"], {}),
        ("git.worktree_add", ["R", "D/V"], {"ref": "v1", "detach": True}),
        ("git.worktree_add", ["R", "D/X"], {"ref": "dev", "branch": "x", "reset_branch": True, "force": True}),
        ("git.worktree_add", ["R", "D/Y"], {"detach": True, "branch": "y"}),
        ("git.is_worktree", ["D/W"], {}),
        ("git.list_worktrees", ["R"], {}),
        ("git.worktree_rm", ["D/W"], {}),
        ("git.worktree_rm", ["D/W"], {}),
        ("git.worktree_rm", ["R"], {}),
        ("git.list_worktrees", ["R"], {"stale": True}),
        ("git.list_worktrees", ["R"], {"all": True, "stale": True}),
        ("git.worktree_prune", ["R"], {"dry_run": True}),
        ("git.worktree_prune", ["R"], {}),
        ("git.list_worktrees", ["R"], {"all": True}),
    ],
}

#: Case -> number of the call -> why Salt's answer is another, or a fault.
DIFFERS: dict[str, dict[int, str]] = {
    "remotes": {
        12: "Salt has removed the remote before it refuses the login",
        13: "for the same reason its list is shorter",
    },
    "repositories": {20: "the sentence says it in fewer words"},
}


@pytest.fixture
def minion(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[PlainMinion]:
    """A minion of this machine, with a configuration of git of its own."""
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": Host(), **changes}))
    for name, value in (ENVIRONMENT | {"GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig")}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOME", "/root") if os.geteuid() == 0 else None
    return plain


def placed(value: Any, directory: Path) -> Any:
    """The names R, T and others as paths below the directory; D/x too."""
    if isinstance(value, str):
        if value in ("R", "T", "N", "B", "S", "C", "C2"):
            return f"{directory}/{value}"
        return value.replace("D/", f"{directory}/") if value != "D" else str(directory)
    if isinstance(value, list):
        return [placed(each, directory) for each in value]
    return {key: placed(each, directory) for key, each in value.items()} if isinstance(value, dict) else value


def laid_out(name: str, directory: Path) -> list[Call]:
    directory.mkdir()
    calls: list[Call] = [("$", LAID_OUT.replace("cd D", f"cd {directory}"), {}), *CASES[name]]
    return [(fun, placed(args, directory), placed(kwargs, directory)) for fun, args, kwargs in calls]


def shown(told: list[list[Any]], directory: Path) -> list[Any]:
    return eval(repr(told).replace(str(directory), "D"))


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_salt(name: str, minion: PlainMinion, oracle: Oracle, tmp_path: Path) -> None:
    mine, stock = tmp_path / "ours", tmp_path / "salts"
    answers: list[Any] = shown(ours(minion.call, laid_out(name, mine)), mine)
    told = shown(salts(oracle, tmp_path / "cache", laid_out(name, stock)), stock)
    calls = [("$", "lay out", {}), *CASES[name]]
    left = [(number, call, answer) for number, (call, answer) in enumerate(zip(calls, answers, strict=True))]
    right = [(number, call, answer) for number, (call, answer) in enumerate(zip(calls, told, strict=True))]
    skipped = DIFFERS.get(name, {})
    differing = [(a, b[2]) for a, b in zip(left, right, strict=True) if a != b and a[0] not in skipped]
    assert differing == []


def test_a_symbolic_ref_is_set(minion: PlainMinion, tmp_path: Path) -> None:
    """Salt passes each letter of the value as a word."""
    repository = laid_out("branches", tmp_path / "d")
    ours(minion.call, repository[:1])
    minion.call("git.symbolic_ref", f"{tmp_path}/d/R", "HEAD", "refs/heads/dev")
    assert minion.call("git.current_branch", f"{tmp_path}/d/R") == "dev"


def test_a_relative_place_is_in_the_users_home(minion: PlainMinion) -> None:
    with pytest.raises(CommandError, match=r"Specified cwd '.*/nowhere/at/all' either not absolute or does not exist"):
        minion.call("git.status", "nowhere/at/all")
    with pytest.raises(InvocationError, match="rev"):
        minion.call("git.checkout", "nowhere")


def test_a_key_of_the_state_tree_is_used_and_removed(
    minion: PlainMinion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ssh is told of the key, which is gone afterwards; git's failure has Salt's words."""
    minion.write("keys/deploy", "the key\n")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "ssh").write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ncat "${{8}}" >> {tmp_path}/asked\nexit 1\n'
    )
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with pytest.raises(CommandError, match="Unable to authenticate using identity file:"):
        minion.call("git.remote_refs", "git@git.test:x", identity="salt://keys/deploy")
    asked = (tmp_path / "asked").read_text()
    name = next(word for word in asked.split() if word.startswith("/tmp/.saltern-git-"))
    assert "the key" in asked
    assert not Path(name).exists()
    with pytest.raises(CommandError, match="were not found: salt://keys/none"):
        minion.call("git.remote_refs", "git@git.test:x", identity="salt://keys/none")
