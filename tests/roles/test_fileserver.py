"""Trees in Git repositories and what minions push, through roles as they run: fetched by maintenance, served by workers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, Lab, until
from tests.statecore.sources.fileserver.conftest import Repository
from tests.statecore.sources.fileserver.test_users import OWN

pytestmark = pytest.mark.roles

#: Bytes of the file that a minion fetches: more than a worker may take of memory for it.
_BIG = 40 * 1024 * 1024


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    made = Repository(tmp_path_factory.mktemp("git") / "origin")
    made.commit({"from_git/init.sls": "from git:\n  test.nop: []\n", "text": "one\n", "run.sh": "#!/bin/sh\n"})
    made.commit({"pillar/top.sls": "base:\n  '*': [a]\n", "pillar/a.sls": "of_git: one\nme: {{ grains.id }}\n"})
    made.tag("v1")
    return made


@pytest.fixture(scope="module")
def lab(module_labs: NewLab, repository: Repository, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    own = tmp_path_factory.mktemp("own")
    (own / "tree" / "base").mkdir(parents=True)
    (own / "tree" / "base" / "of_mine").write_text("in small letters")
    (own / "dirs").mkdir()
    shutil.copy(OWN, own / "dirs")
    made = module_labs(
        minions=("web1",),
        options={
            "fileserver_backend": ["roots", "gitfs", "minionfs", "mine"],
            "fileserver_dirs": [str(own / "dirs")],
            "fileserver_users_interval": 1,
            "module_settings": {"mine_root": str(own / "tree")},
            "fileserver_events": True,
            "gitfs_remotes": [repository.url],
            "gitfs_update_interval": 1,
            "ext_pillar": [{"git": [{f"master {repository.url}": [{"root": "pillar"}]}]}],
            "git_pillar_update_interval": 3600,
            "file_recv": True,
            "minionfs_mountpoint": "salt://pushed",
            "pillar_cache": True,
        },
    )
    made.start_all()
    yield made
    assert made.tracebacks() == []


def text(lab: Lab, path: str) -> object:
    return lab.salt("web1", "cp.get_file_str", f"salt://{path}")["web1"]


def test_branches_and_tags_are_environments(lab: Lab) -> None:
    until(lambda: lab.runner("fileserver.envs") == ["base", "v1"], SOON, "maintenance has fetched")
    assert lab.runner("fileserver.envs", "sources=True") == {
        "roots": ["base"],
        "gitfs": ["base", "v1"],
        "minionfs": ["base"],
        "mine": ["base"],
    }
    assert "text" in lab.runner("fileserver.file_list", "saltenv=v1", "backend=git")
    assert "top.sls" in lab.runner("fileserver.file_list")
    assert "top.sls" not in lab.runner("fileserver.file_list", "backend=-roots")
    (entry,) = lab.salt("web1", "state.apply", "from_git")["web1"].values()
    assert entry["result"] is True


def test_a_backend_of_the_users_own(lab: Lab) -> None:
    assert text(lab, "of_mine") == "IN SMALL LETTERS"
    assert lab.runner("fileserver.file_list", "backend=mine") == ["of_mine"]
    updated = lab.root / "master-cache" / "mine-updated"
    until(lambda: updated.exists(), SOON, "maintenance has had it update itself")
    assert lab.runner("fileserver.lock", "backend=mine", "remote=x") == {"locked": ["locked x"]}
    assert lab.runner("fileserver.clear_lock", "backend=mine") == {
        "cleared": ["unlocked None update"],
        "errors": ["not all"],
    }
    failed = lab.run("salt-run", "fileserver.clear_cache", "backend=mine")
    assert failed.code == 1
    assert "clear_cache failed: OSError: no such cache (" in failed.out + failed.err
    place = next(lab.root.parent.glob("own*/tree/base"))
    (place / "broken.sls").write_text("x")
    assert text(lab, "broken.sls") in (False, "")
    assert "file server backend 'mine': file_hash failed: RuntimeError: cannot be read" in lab.log("mworker")
    (place / "broken.sls").unlink()


def test_a_commit_reaches_minions_by_itself(lab: Lab, repository: Repository) -> None:
    assert text(lab, "text") == "one\n"
    repository.commit({"text": "two\n"})
    until(lambda: text(lab, "text") == "two\n", SOON, "maintenance has fetched")
    assert text(lab, "text?saltenv=v1") == "one\n"


def test_updates_are_events_and_may_be_held_up(lab: Lab, repository: Repository) -> None:
    assert lab.runner("fileserver.lock", "backend=git", "remote=*nothing*") == "No locks were set"
    assert lab.runner("fileserver.lock", "backend=git") == {
        "locked": [f"Set update lock for gitfs remote '{repository.url}'"]
    }
    assert lab.run("salt-run", "fileserver.update", "--out", "json").code != 0
    assert lab.runner("fileserver.clear_lock", "backend=git", "remote=*origin") == {
        "cleared": [f"Removed update lock for gitfs remote '{repository.url}'"]
    }
    assert lab.runner("fileserver.clear_lock", "backend=git") == "No locks were removed"
    assert lab.runner("cache.clear_git_lock", "gitfs") == "No locks were removed"
    assert lab.runner("fileserver.update", "backend=git") is True


def test_a_repository_that_is_away_is_named_and_what_was_fetched_stays(lab: Lab, repository: Repository) -> None:
    away = repository.directory.rename(repository.directory.with_name("away"))
    try:
        told = lab.run("salt-run", "fileserver.update", "--out", "json")
        assert told.code != 0
        assert f"gitfs remote '{repository.url}': git fetch: fatal:" in told.out
        until(
            lambda: "what was fetched before stays" in (lab.root / "log" / "maintenance").read_text(),
            SOON,
            "it is said",
        )
        assert text(lab, "text") == "two\n"
    finally:
        away.rename(repository.directory)


def test_pillar_from_git_is_kept_until_it_is_refreshed(lab: Lab, repository: Repository) -> None:
    def pillar(key: str) -> object:
        return lab.salt("web1", "pillar.get", key, "unmask=True")["web1"]

    assert lab.salt("web1", "saltutil.refresh_pillar")["web1"] is True
    until(lambda: pillar("me") == "web1", SOON, "the minion has its pillar")
    assert pillar("of_git") == "one"
    repository.commit({"pillar/a.sls": "of_git: two\nme: {{ grains.id }}\n"})
    told = lab.runner("git_pillar.update")
    assert list(told.values()) == [True]
    assert list(lab.runner("git_pillar.update", "branch=master").values()) == [None]
    assert lab.runner("pillar.show_pillar", "web1")["of_git"] == "two"
    assert lab.runner("pillar.show_pillar_cache")["web1"]["of_git"] == "one"
    assert lab.runner("cache.pillar", "web1")["web1"]["of_git"] == "one"
    assert lab.salt("web1", "saltutil.refresh_pillar")["web1"] is True
    until(lambda: pillar("of_git") == "two", SOON, "what was kept is gone")
    assert lab.runner("pillar.show_pillar_cache")["web1"]["of_git"] == "two"
    assert lab.runner("pillar.clear_pillar_cache") is True
    assert lab.runner("pillar.show_pillar_cache") == {}
    assert "base" in lab.runner("pillar.show_top", "web1")


def test_what_a_minion_pushes_is_served(lab: Lab) -> None:
    (lab.host("web1") / "etc" / "pushed.txt").write_text("of web1\n")
    assert lab.salt("web1", "cp.push", "/etc/pushed.txt")["web1"] is True
    path = "pushed/web1/etc/pushed.txt"
    assert path in lab.runner("fileserver.file_list", "backend=minionfs")
    assert text(lab, path) == "of web1\n"


def test_runners_keep_data_by_name(lab: Lab) -> None:
    lab.runner("cache.store", "sites/north", "one", "data={a: 1}")
    assert lab.runner("cache.fetch", "sites/north", "one") == {"a": 1}
    assert lab.runner("cache.list", "sites") == ["north"]
    assert lab.runner("cache.flush", "sites") is True
    assert lab.runner("cache.list", "sites/north") == []
    assert lab.runner("cache.list", "minions") == ["web1"]
    assert lab.runner("cache.fetch", "minions/web1", "data")["grains"]["id"] == "web1"


def test_banks_of_what_minions_told(lab: Lab) -> None:
    assert lab.runner("cache.list", "grains") == ["web1"]
    assert lab.runner("cache.fetch", "grains", "web1")["id"] == "web1"
    assert lab.runner("cache.fetch", "grains", "web9") == {}
    assert lab.runner("cache.list", "pillar") == sorted(lab.runner("cache.pillar"))
    assert lab.runner("cache.fetch", "pillar", "web1") == lab.runner("cache.pillar", "web1").get("web1", {})
    assert lab.runner("cache.list", "mine") == sorted(lab.runner("cache.mine"))
    refused = lab.run("salt-run", "cache.flush", "grains")
    assert refused.code == 1
    assert "is what minions told" in refused.out


def test_a_big_file_takes_no_memory(lab: Lab) -> None:
    with (lab.tree / "salt" / "big").open("wb") as file:
        file.truncate(_BIG)
    workers = [name for name in lab.processes if name.startswith("mworker")]
    before = {name: lab.memory(name) for name in workers}
    target = lab.host("web1") / "etc" / "big"
    assert lab.salt("web1", "cp.get_file", "salt://big", "/etc/big", "-t", "60")["web1"] == "/etc/big"
    assert target.stat().st_size == _BIG
    assert all(lab.memory(name) - before[name] < _BIG / 2 for name in workers)
    (lab.tree / "salt" / "big").unlink()
