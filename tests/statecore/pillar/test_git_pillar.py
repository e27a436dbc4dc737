"""The external pillar ``git`` compared with real Salt, and the errors of remotes that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import local_runtime
from statecore.sources.gitrepos.mirror import Mirror
from statecore.sources.gitrepos.remotes import all_pillar_remotes
from tests.statecore.sources.fileserver.conftest import Repository, git

_GRAINS: Mapping[str, Any] = {"id": "web1", "os": "Debian"}

#: Name -> options; ONE and TWO are repositories. ``saltenv`` and ``pillarenv`` are what is asked for.
CASES: Mapping[str, Mapping[str, Any]] = {
    "one": {"ext_pillar": [{"git": ["master ONE"]}]},
    "a branch": {"ext_pillar": [{"git": ["dev ONE"]}]},
    "a branch as base": {"ext_pillar": [{"git": [{"dev ONE": [{"env": "base"}]}]}]},
    "a tag": {"ext_pillar": [{"git": [{"v1 ONE": [{"env": "base"}]}]}]},
    "two": {"ext_pillar": [{"git": ["master ONE", "master TWO"]}]},
    "two, the other way round": {"ext_pillar": [{"git": ["master TWO", "master ONE"]}]},
    "two entries": {"ext_pillar": [{"git": ["master ONE"]}, {"git": ["master TWO"]}]},
    "no includes": {"ext_pillar": [{"git": ["master ONE", "master TWO"]}], "git_pillar_includes": False},
    "root": {"ext_pillar": [{"git": [{"master ONE": [{"root": "sub/tree"}]}]}]},
    "root of all": {"ext_pillar": [{"git": ["master ONE"]}], "git_pillar_root": "sub/tree"},
    "mountpoint": {"ext_pillar": [{"git": ["master TWO", {"master ONE": [{"mountpoint": "mounted"}]}]}]},
    "any environment": {"ext_pillar": [{"git": ["__env__ ONE"]}]},
    "any environment, asked for": {"ext_pillar": [{"git": ["__env__ ONE"]}], "pillarenv": "dev"},
    "any environment, by saltenv": {"ext_pillar": [{"git": ["__env__ ONE"]}], "saltenv": "dev"},
    "any environment with a base": {"ext_pillar": [{"git": [{"__env__ ONE": [{"base": "dev"}]}]}]},
    "any environment, not there": {"ext_pillar": [{"git": ["__env__ ONE"]}], "pillarenv": "none"},
    "any environment with a fallback": {
        "ext_pillar": [{"git": [{"__env__ TWO": [{"fallback": "master"}]}]}],
        "pillarenv": "none",
    },
    "one branch for all": {
        "ext_pillar": [{"git": [{"__env__ TWO": [{"all_saltenvs": "master"}]}, "__env__ ONE"]}],
        "pillarenv": "dev",
    },
    "another pillarenv": {"ext_pillar": [{"git": ["master ONE", "dev ONE"]}], "pillarenv": "dev"},
    "over files": {"ext_pillar": [{"git": ["master ONE"]}], "pillar_roots": {"base": ["FILES"]}},
    "before files": {
        "ext_pillar": [{"git": ["master ONE"]}],
        "pillar_roots": {"base": ["FILES"]},
        "ext_pillar_first": True,
    },
    "no branch in the entry": {"ext_pillar": [{"git": ["ONE"]}], "git_pillar_branch": "dev", "git_pillar_base": "dev"},
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("git")
    one, two = Repository(root / "one"), Repository(root / "two")
    one.commit(
        {
            "top.sls": "base:\n  '*': [a]\ndev:\n  '*': [a]\nnone:\n  '*': [a]\n",
            "a.sls": "one: 1\nboth: {one: {{ grains.os }}}\nlast: one\n",
            "shared.sls": "shared: one\n",
            "sub/tree/top.sls": "base:\n  '*': [b]\n",
            "sub/tree/b.sls": "below: true\n",
        }
    )
    one.tag("v1")
    one.commit({"a.sls": "one: dev\nenv: {{ saltenv }}\n"}, "dev")
    git(one.directory, "checkout", "-q", "master")
    one.commit({"a.sls": "one: 2\nboth: {one: {{ grains.os }}}\nlast: one\n"})
    two.commit(
        {
            "top.sls": "base:\n  'web*': [c]\n  'x': [d]\ndev:\n  '*': [c]\nnone:\n  '*': [c]\n",
            "c.sls": "include: [e]\ntwo: 1\nboth: {two: {{ id | default('none') }}}\nlast: two\n",
            "e.sls": "{% set x = 1 %}\nincluded: two\n",
        }
    )
    files = root / "files"
    files.mkdir()
    (files / "top.sls").write_text("base:\n  '*': [f]\n")
    (files / "f.sls").write_text("file: true\nlast: file\nseen: {{ pillar.get('one', 'nothing') }}\n")
    return {"ONE": one.url, "TWO": two.url, "FILES": str(files)}


def _placed(value: Any, places: Mapping[str, str]) -> Any:
    return json.loads(_replaced(json.dumps(value), places))


def _replaced(text: str, places: Mapping[str, str]) -> str:
    for name, place in places.items():
        text = text.replace(name, place)
    return text


def _asked(name: str, places: Mapping[str, str]) -> tuple[dict[str, Any], str | None, str | None]:
    opts = {"pillar_roots": {}, **_placed(CASES[name], places)}
    saltenv, pillarenv = opts.pop("saltenv", None), opts.pop("pillarenv", None)
    return opts, saltenv, pillarenv


def _ours(opts: Mapping[str, Any], saltenv: str | None, pillarenv: str | None, cachedir: Path) -> Any:
    whole = {**opts, "id": "web1", "cachedir": str(cachedir), "saltenv": saltenv, "pillarenv": pillarenv}
    for remote in all_pillar_remotes(whole):
        Mirror(cachedir / "git_pillar", remote).update()
    return json.loads(json.dumps(local_runtime(whole, grains=_GRAINS).pillar))


@pytest.fixture(scope="module")
def salts(oracle: Any, places: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    asked = []
    for name in CASES:
        opts, saltenv, pillarenv = _asked(name, places)
        scratch = str(tmp_path_factory.mktemp("salt"))
        asked.append([{**opts, "scratch": scratch}, _GRAINS, saltenv, pillarenv])
    told = oracle.run("python", str(Path(__file__).parent / "salt_git_pillars.py"), stdin=json.dumps(asked))
    return dict(zip(CASES, json.loads(told), strict=True))


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_salt(name: str, places: Mapping[str, str], salts: Mapping[str, Any], tmp_path: Path) -> None:
    assert _ours(*_asked(name, places), tmp_path) == salts[name]


def _pillar(entries: Any, cachedir: Path, *, fetch: bool = True) -> dict[str, Any]:
    opts = {"ext_pillar": [{"git": entries}], "pillar_roots": {}}
    if fetch:
        return dict(_ours(opts, None, None, cachedir))
    whole = {**opts, "id": "web1", "cachedir": str(cachedir)}
    return dict(local_runtime(whole, grains=_GRAINS).pillar)


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        (["nowhere ONE"], "has no branch or tag 'nowhere'"),
        ([{"master ONE": [{"root": "not/there"}]}], "has no directory 'not/there' in 'master'"),
        ([{"master ONE": [{"rot": "sub"}]}], "has no parameter 'rot'; the nearest is 'root'"),
        ([{"master ONE": None}], "has no parameters: take the colon away"),
        ([{"master ONE": [{"base": "dev"}]}], "base is for remotes whose branch is __env__"),
        ([{"master ONE": [{"ref_types": ["brunch"]}]}], "ref_types knows branch, tag, sha, not brunch"),
        (["master http://user@x.invalid/x.git"], "has not been fetched yet"),
    ],
)
def test_what_cannot_be_compiled_is_named(entries: Any, error: str, places: Mapping[str, str], tmp_path: Path) -> None:
    assert _pillar(_placed(["master ONE"], places), tmp_path)["one"] == 2
    (said,) = _pillar(_placed(entries, places), tmp_path, fetch=False)["_errors"]
    assert said.startswith("Failed to load ext_pillar git: ")
    assert error in said


def test_errors_of_files_are_told_and_the_rest_is_there(tmp_path: Path) -> None:
    made = Repository(tmp_path / "broken")
    made.commit({"top.sls": "base:\n  '*': [a, b]\n", "a.sls": "{{ nothing }}\n", "b.sls": "b: 1\n"})
    told = _pillar([f"master {made.url}"], tmp_path / "cache")
    assert told["b"] == 1
    (error,) = told["_errors"]
    assert error.startswith("Rendering SLS 'a' failed. Please see master log for details.")
    assert f"salt://a.sls (master {made.url})" in error


def test_a_new_commit_counts_once_it_is_fetched(tmp_path: Path) -> None:
    made = Repository(tmp_path / "changing")
    entries = [f"master {made.url}"]
    made.commit({"top.sls": "base:\n  '*': [a]\n", "a.sls": "a: 1\n"})
    assert _pillar(entries, tmp_path / "cache") == {"a": 1}
    made.commit({"a.sls": "a: 2\n"})
    assert _pillar(entries, tmp_path / "cache", fetch=False) == {"a": 1}
    assert _pillar(entries, tmp_path / "cache") == {"a": 2}
