"""A minion without a master whose files and pillar come from Git repositories: it fetches them, when it looks at them."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import Runtime, load_user_backend, local_runtime
from statecore.sources.fileserver.masterless import MasterlessRepositories
from tests.statecore.sources.fileserver.conftest import Repository, write


def opts_of(tmp_path: Path, repository: Repository, **more: Any) -> dict[str, Any]:
    roots = tmp_path / "roots"
    pushed = tmp_path / "cache" / "minions" / "web1" / "files"
    write(roots, {"own.sls": "own\n"})
    write(pushed, {"etc/hosts": "pushed\n"})
    return {
        "id": "alone",
        "cachedir": str(tmp_path / "cache"),
        "fileserver_backend": ["git", "roots", "minion"],
        "file_roots": {"base": [str(roots)]},
        "pillar_roots": {"base": []},
        "gitfs_remotes": [repository.url],
        **more,
    }


def files_of(runtime: Runtime) -> list[str]:
    found = runtime.call("cp.list_master")
    assert found.success, found.value
    assert isinstance(found.value, list)
    return found.value


def test_every_backend_is_served_and_fetched_once_in_a_process(repository: Repository, tmp_path: Path) -> None:
    opts = opts_of(tmp_path, repository)
    runtime = local_runtime(opts, fetches=True)
    assert not (tmp_path / "cache" / "gitfs").exists()
    everything = ["own.sls", "top.sls", "web/init.sls", "web1/etc/hosts"]
    assert files_of(runtime) == everything
    repository.commit({"new.sls": "new\n"})
    assert files_of(runtime) == everything
    assert files_of(local_runtime(opts, fetches=True)) == sorted([*everything, "new.sls"])


def test_who_has_a_master_to_fetch_for_him_does_not(repository: Repository, tmp_path: Path) -> None:
    assert files_of(local_runtime(opts_of(tmp_path, repository))) == ["own.sls"]
    assert not (tmp_path / "cache" / "gitfs").exists()


def test_what_cannot_be_fetched_is_named_and_what_was_fetched_before_counts(
    repository: Repository, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    opts = opts_of(tmp_path, repository, fileserver_backend=["gitfs"])
    assert files_of(local_runtime(opts, fetches=True)) == ["top.sls", "web/init.sls"]
    repository.directory.rename(tmp_path / "aside")
    with caplog.at_level(logging.ERROR):
        assert files_of(local_runtime(opts, fetches=True)) == ["top.sls", "web/init.sls"]
    assert f"gitfs remote '{repository.url}': git fetch: " in caplog.text
    assert "what was fetched before counts" in caplog.text


def test_options_that_cannot_be_used_are_an_answer(repository: Repository, tmp_path: Path) -> None:
    for more, words in (
        ({"fileserver_backend": ["svn"]}, "there is no file server backend 'svn'"),
        ({"gitfs_remotes": ["--upload-pack=evil"]}, "is no URL of a repository"),
    ):
        answer = local_runtime(opts_of(tmp_path, repository, **more), fetches=True).call("cp.list_master")
        assert not answer.success
        assert words in str(answer.value)


def test_the_external_pillar_git_is_fetched(tmp_path: Path) -> None:
    pillar = Repository(tmp_path / "pillar")
    pillar.commit({"top.sls": "base: {'*': [d]}\n", "d.sls": "word: one\n"})
    opts = {
        "id": "alone",
        "cachedir": str(tmp_path / "cache"),
        "file_roots": {"base": []},
        "pillar_roots": {"base": []},
        "ext_pillar": [{"git": [f"master {pillar.url}"]}],
    }
    assert dict(local_runtime(opts, fetches=True).pillar) == {"word": "one"}
    pillar.commit({"d.sls": "word: two\n"})
    assert dict(local_runtime(opts, fetches=True).pillar) == {"word": "two"}
    # A process fetches once, however often it compiles.
    own = MasterlessRepositories(opts, load_user_backend)
    own.for_pillar()
    pillar.directory.rename(tmp_path / "aside")
    own.for_pillar()
