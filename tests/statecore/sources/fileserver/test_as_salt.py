"""The same trees served by real Salt: environments, lists, links, digests, and who serves what."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.sources.fileserver import FileServer
from tests.statecore.sources.fileserver.conftest import Repository, git, updated, write
from tests.statecore.sources.fileserver.test_users import OWN

pytestmark = pytest.mark.oracle

_ROOTS: Mapping[str, str] = {
    "first/top.sls": "first",
    "first/web/init.sls": "web",
    "first/web/run.sh": "run",
    "first/web/x.pyc": "compiled",
    "first/.git/config": "git",
    "first/in": "-> web/init.sls",
    "first/linkdir": "-> web",
    "first/deep/er/up": "-> ../../top.sls",
    "first/dangling": "-> nothing",
    "first/out": "-> ../beside/key",
    "first/outdir": "-> ../beside",
    "second/top.sls": "second",
    "second/db.sls": "db",
    "second/empty/deep/": "",
    "dev/dev.sls": "dev",
    "beside/key": "key",
    "mine/base/top.sls": "own",
    "mine/base/web/own.sls": "own too",
    "mine/base/web/linked~": "",
    "mine/base/hollow/": "",
    "mine/dev/top.sls": "own of dev",
    "mine/qa/x": "x",
    "extmods/fileserver/filed.py": OWN.read_text(),
    "cache/minions/web1/files/etc/hosts": "hosts",
    "cache/minions/web1/files/top.sls": "evil",
    "cache/minions/web1/files/srv/link": "-> /etc/passwd",
    "cache/minions/web2/files/var/log/x": "log",
    "cache/minions/db1/data.p": "nothing pushed",
}

_TREE: Mapping[str, str] = {
    "top.sls": "git top\n",
    "web/init.sls": "git web\n",
    "web/deep/x.sh": "x\n",
    "web/link": "-> init.sls",
    "web/linkdir": "-> deep",
    "web/dangling": "-> nothing",
    "web/out": "-> ../../../etc/passwd",
    "salt/formula/init.sls": "formula\n",
    "salt/up": "-> ../top.sls",
}

#: What Salt lists as files though it serves none of them.
_NO_FILES = ("dangling", "linkdir", "web/linkdir", "web/dangling", "web/out", "out", "outdir")

#: Links that lead out of their root: followed, so Salt means not to tell them, and does where they begin with dots.
_LEAD_OUT = ("out", "outdir")

_GIT: Mapping[str, Any] = {"fileserver_backend": ["gitfs"], "gitfs_provider": "gitpython"}
_MINIONS: Mapping[str, Any] = {"fileserver_backend": ["minionfs"], "file_recv": True}
_OWN: Mapping[str, Any] = {
    "fileserver_backend": ["mine"],
    "extension_modules": "R/extmods",
    "mine_root": "R/mine",
    "file_buffer_size": 65536,
    "hash_type": "sha256",
}
_BASE: Mapping[str, Any] = {"file_roots": {"base": ["R/first", "R/second"], "dev": ["R/dev"]}}

#: Name -> options. R is where the trees are, URL and OTHER are repositories, SHA is a commit.
CASES: Mapping[str, Mapping[str, Any]] = {
    "overlays": _BASE,
    "any environment": {"file_roots": {"base": ["R/first"], "__env__": ["R/__env__"]}},
    "links are not followed": {**_BASE, "fileserver_followsymlinks": False},
    "globs": {**_BASE, "file_ignore_glob": ["*.pyc", "*.git/*"]},
    "regular expressions": {**_BASE, "file_ignore_regex": [r"\.pyc$", "/er/"]},
    "md5": {**_BASE, "hash_type": "md5"},
    "roots before git": {**_BASE, **_GIT, "gitfs_remotes": ["URL"], "fileserver_backend": ["roots", "gitfs"]},
    "git before roots": {**_BASE, **_GIT, "gitfs_remotes": ["URL"], "fileserver_backend": ["git", "roots"]},
    "a user's own": _OWN,
    "a user's own before roots": {**_OWN, **_BASE, "fileserver_backend": ["mine", "roots"]},
    "minions": _MINIONS,
    "minions below a mountpoint": {**_MINIONS, "minionfs_mountpoint": "salt://pushed", "minionfs_env": "dev"},
    "minions of a list": {**_MINIONS, "minionfs_whitelist": ["web*"], "minionfs_blacklist": ["web2"]},
    "git": {**_GIT, "gitfs_remotes": ["URL"]},
    "two remotes": {**_GIT, "gitfs_remotes": ["OTHER", "URL"]},
    "root": {**_GIT, "gitfs_root": "salt", "gitfs_remotes": ["URL"]},
    "root and mountpoint of one": {
        **_GIT,
        "gitfs_remotes": [{"URL": [{"root": "salt"}, {"mountpoint": "salt://a/b"}]}],
    },
    "base is a tag": {**_GIT, "gitfs_remotes": [{"URL": [{"base": "v1"}]}]},
    "base is an annotated tag": {**_GIT, "gitfs_base": "v2", "gitfs_remotes": ["URL"]},
    "base is a commit": {**_GIT, "gitfs_remotes": [{"URL": [{"base": "SHA"}]}]},
    "environments of one": {
        **_GIT,
        "gitfs_remotes": [
            {"URL": [{"saltenv": [{"qa": [{"ref": "dev"}, {"root": "salt"}]}, {"dev": [{"mountpoint": "m"}]}]}]}
        ],
    },
    "environments of all": {
        **_GIT,
        "gitfs_saltenv": [{"qa": [{"ref": "dev"}]}, {"base": [{"root": "salt"}]}],
        "gitfs_remotes": ["URL", {"OTHER": [{"saltenv": [{"qa": [{"ref": "master"}]}]}]}],
    },
    "base among them": {**_GIT, "gitfs_remotes": [{"URL": [{"saltenv": [{"base": [{"ref": "dev"}]}]}]}]},
    "no mapping": {
        **_GIT,
        "gitfs_disable_saltenv_mapping": True,
        "gitfs_remotes": [{"URL": [{"saltenv": [{"qa": [{"ref": "dev"}]}]}]}],
    },
    "lists": {
        **_GIT,
        "gitfs_saltenv_whitelist": ["base", "v.*"],
        "gitfs_saltenv_blacklist": ["v2"],
        "gitfs_remotes": ["URL"],
    },
    "branches only": {**_GIT, "gitfs_ref_types": ["branch"], "gitfs_remotes": ["URL"]},
    "tags only": {**_GIT, "gitfs_remotes": [{"URL": [{"ref_types": ["tag"]}, {"base": "v1"}]}]},
    "fallback": {**_GIT, "gitfs_remotes": ["URL", {"OTHER": [{"fallback": "master"}]}]},
    "one branch for all": {**_GIT, "gitfs_remotes": ["URL", {"OTHER": [{"all_saltenvs": "master"}]}]},
    "commits are no environments": {**_GIT, "gitfs_ref_types": ["branch", "tag"], "gitfs_remotes": ["URL"]},
    "refspecs": {
        **_GIT,
        "gitfs_refspecs": ["+refs/heads/master:refs/remotes/origin/master", "+refs/tags/*:refs/tags/*"],
        "gitfs_remotes": ["URL"],
    },
}

_ENVS = ("base", "dev", "qa", "feature/x", "v1", "v2", "none")

_PATHS = (
    *("top.sls", "web/init.sls", "web/run.sh", "db.sls", "dev.sls", "in", "linkdir/init.sls", "deep/er/up", "out"),
    *("web/x.pyc", "web/deep/x.sh", "web/link", "web/dangling", "web/out", "formula/init.sls", "a/b/formula/init.sls"),
    *("up", "web1/etc/hosts", "web2/var/log/x", "pushed/web1/etc/hosts", "web1/top.sls", "m/top.sls", "other.sls"),
    *("../beside/key", "/etc/passwd", "web", "", ".git/config"),
)

#: Case -> asks in which we differ, on purpose (docs/differences.md).
_OURS: Mapping[str, frozenset[str]] = {
    # A pushed top file: Salt lists it and serves it not.
    **dict.fromkeys(("minions", "minions below a mountpoint", "minions of a list"), frozenset({"files"})),
    # A link to a directory outside: Salt lists it as a directory.
    "links are not followed": frozenset({"dirs"}),
    # Of several backends Salt tells the links of the last one.
    **dict.fromkeys(("roots before git", "git before roots", "a user's own before roots"), frozenset({"links"})),
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    root = tmp_path_factory.mktemp("served")
    write(root, _ROOTS)
    made, other = Repository(root / "one"), Repository(root / "two")
    first = made.commit(_TREE)
    made.tag("v1")
    made.tag("v2", "-a", "-m", "annotated")
    made.commit({"dev.sls": "git dev\n"}, "dev")
    made.commit({"f.sls": "git f\n"}, "feature/x")
    other.commit({"top.sls": "other top\n", "other.sls": "other\n"})
    git(made.directory, "checkout", "-q", "master")
    return {"R": str(root), "URL": made.url, "OTHER": other.url, "SHA": first}


def _asks(sha: str) -> list[list[str]]:
    lists = [[verb, env, ""] for verb in ("files", "dirs", "empty", "links") for env in (*_ENVS, sha)]
    texts = [["text", path, env] for path in _PATHS for env in ("base", "dev")]
    return [["envs"], *lists, ["files", "base", "web"], *texts, ["text", "top.sls", sha]]


def _placed(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        whole = places.get(value, value)
        return whole if not whole.startswith("R/") else places["R"] + whole[1:]
    if isinstance(value, list):
        return [_placed(each, places) for each in value]
    if isinstance(value, dict):
        return {_placed(key, places): _placed(each, places) for key, each in value.items()}
    return value


def _opts(name: str, places: Mapping[str, str], scratch: Path) -> dict[str, Any]:
    cachedir = f"{places['R']}/cache" if name.startswith("minions") else str(scratch)
    return {"file_roots": {}, "cachedir": cachedir, **_placed(dict(CASES[name]), places)}


@pytest.fixture(scope="module")
def salts(oracle: Any, places: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Case -> Salt's answers."""
    asked = []
    for name in CASES:
        scratch = str(tmp_path_factory.mktemp("salt"))
        opts = {"scratch": scratch, **_opts(name, places, Path(scratch) / "cache")}
        opts["fileserver_backend"] = [
            each.replace("git", "gitfs") if each == "git" else each
            for each in opts.get("fileserver_backend", ["roots"])
        ]
        asked.append([opts, _asks(places["SHA"])])
    told = oracle.run("python", str(Path(__file__).parent / "salt_fileserver.py"), stdin=json.dumps(asked))
    return dict(zip(CASES, json.loads(told), strict=True))


def _ours(server: FileServer) -> Callable[..., Any]:
    lists = {"files": server.paths, "dirs": server.dirs, "empty": server.empty_dirs, "links": server.symlinks}

    def answer(verb: str, *words: str) -> Any:
        if verb == "envs":
            return server.envs()
        if verb in lists:
            return lists[verb](*words)
        found, digest, stat = server.source(*words), server.hash(*words), server.stat(*words)
        if found is None or digest is None or stat is None:
            assert found == digest == stat
            return None
        return [found[0], found[1].read_text(), digest.hsum, stat[0] & 0o100]

    return answer


def _comparable(verb: str, told: Any) -> Any:
    if verb == "files":
        return [path for path in told if path not in _NO_FILES]
    if verb == "links":
        # An empty list is Salt's way to say that there is no such environment.
        return {path: to for path, to in dict(told).items() if path not in _LEAD_OUT}
    return sorted(env for env in told if env != "__env__") if verb == "envs" else told


@pytest.mark.parametrize("name", CASES)
def test_as_salt(name: str, places: Mapping[str, str], salts: Mapping[str, list[Any]], tmp_path: Path) -> None:
    server = updated(_opts(name, places, tmp_path))
    answer = _ours(server)
    different = {}
    for ask, salt in zip(_asks(places["SHA"]), salts[name], strict=True):
        # Salt fails over a commit that one of several remotes does not have.
        if ask[0] in _OURS.get(name, ()) or (isinstance(salt, list) and salt[:1] == ["error"]):
            continue
        ours, theirs = _comparable(ask[0], answer(*ask)), _comparable(ask[0], salt)
        if ours != theirs:
            different[tuple(ask)] = (ours, theirs)
    assert not different, "\n".join(f"{ask}: {ours}, Salt {theirs}" for ask, (ours, theirs) in different.items())
