"""Git states on this machine: a repository, its clone, what is told of it; beside real Salt."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from statecore.host.host import Host

_SALT = Path(__file__).parent / "salt_states.py"
_ENV = {
    "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}
_ENV |= {f"GIT_{who}_{what}": f"{what}@x".lower() for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}

#: What is done before the state: R is the repository, T the target.
CLONE = "git clone -q R T"
COMMIT = "cd R; echo 2 > a; git commit -qam two"
REWRITE = "cd R; echo 3 > a; git commit -qa --amend -m three"
CASES = {
    "clone": ("latest", {}, ""),
    "clone of a branch": ("latest", {"rev": "dev"}, ""),
    "clone of a branch to a branch": ("latest", {"rev": "dev", "branch": "dev"}, ""),
    "clone of a tag": ("latest", {"rev": "v1"}, ""),
    "clone bare": ("latest", {"bare": True}, ""),
    "clone over something": ("latest", {}, "mkdir T; touch T/x"),
    "clone over something by force": ("latest", {"force_clone": True}, "mkdir T; touch T/x"),
    "nothing new": ("latest", {"rev": "main", "branch": "main"}, CLONE),
    "fast forward": ("latest", {"rev": "main"}, f"{CLONE}; {COMMIT}"),
    "fast forward of HEAD": ("latest", {}, f"{CLONE}; {COMMIT}"),
    "no fast forward": ("latest", {"rev": "main"}, f"{CLONE}; {REWRITE}; cd ../T; git fetch -q"),
    "reset": ("latest", {"rev": "main", "force_reset": True}, f"{CLONE}; {REWRITE}; cd ../T; git fetch -q"),
    "local changes": ("latest", {"rev": "main"}, f"{CLONE}; echo x > T/a"),
    "other branch": ("latest", {"rev": "dev", "branch": "dev"}, CLONE),
    "no such revision": ("latest", {"rev": "none"}, ""),
    "no such repository": ("latest", {"name": "/nothing/there"}, ""),
    "no absolute target": ("latest", {"target": "x"}, ""),
    "bad force_reset": ("latest", {"force_reset": "x"}, ""),
    "cloned": ("cloned", {}, ""),
    "cloned already": ("cloned", {}, CLONE),
    "cloned with a branch": ("cloned", {"branch": "dev"}, ""),
    "cloned to another branch": ("cloned", {"branch": "dev"}, CLONE),
    "cloned to no branch": ("cloned", {"branch": "none"}, ""),
    "detached": ("detached", {"rev": "v1"}, ""),
    "detached already": ("detached", {"rev": "v1"}, f"{CLONE}; cd T; git checkout -q v1"),
    "config": ("config_set", {"name": "user.name", "value": "ann", "repo": "T"}, CLONE),
    "config already": (
        "config_set",
        {"name": "user.name", "value": "ann", "repo": "T"},
        f"{CLONE}; git -C T config user.name ann",
    ),
    "config of several": (
        "config_set",
        {"name": "a.b", "multivar": ["x", "y"], "repo": "T"},
        f"{CLONE}; git -C T config a.b z",
    ),
    "config without repository": ("config_set", {"name": "user.name", "value": "ann"}, ""),
    "unset": ("config_unset", {"name": "a.b", "repo": "T"}, f"{CLONE}; git -C T config a.b z"),
    "unset already": ("config_unset", {"name": "a.b", "repo": "T"}, CLONE),
    "unset of several": (
        "config_unset",
        {"name": "a.b", "repo": "T"},
        f"{CLONE}; git -C T config a.b z; git -C T config --add a.b y",
    ),
}

#: Case -> what of it Salt tells in another way: phase, or phase.key; and why.
DIFFERS = {
    "clone bare": ({"again"}, "Salt counts a fetch without news as nothing"),
    "detached": ({"would.comment", "does.comment", "again"}, "Salt fetches each time, and once more behind a clone"),
    "detached already": ({"would", "does", "again"}, "Salt fetches each time"),
    "other branch": ({"would.comment"}, "Salt tells of the tracking branch twice"),
    "unset": ({"does", "again"}, "Salt fails with an exception once it has unset it"),
    "no such repository": (
        {"would.comment", "does.comment", "again.comment"},
        "git's own words, and Salt's command line",
    ),
    "cloned to no branch": ({"does.comment", "again.comment"}, "git's own words"),
}

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="this machine has no git")


def lay_out(directory: Path, before: str) -> None:
    directory.mkdir()
    script = (
        "git init -q -b main R; cd R; echo 1 > a; git add a; git commit -qm one; git tag v1; git branch dev; git checkout -q dev;"
        "echo dev > b; git add b; git commit -qm dev; git checkout -q main; cd .."
    )
    for each in (script, before):
        subprocess.run(
            ["/bin/sh", "-ec", each], cwd=directory, env={**os.environ, **_ENV}, check=True, capture_output=True
        )


def arguments(directory: Path, args: dict) -> dict:
    function_needs = {"name": str(directory / "R"), "target": str(directory / "T")} if "repo" not in args else {}
    return {
        **function_needs,
        **{key: str(directory / value) if key == "repo" else value for key, value in args.items()},
    }


def called(name: str, directory: Path) -> dict:
    function, args, _ = CASES[name]
    given = arguments(directory, args)
    if function.startswith("config"):
        given.pop("target", None)
    return given


def shown(entry: dict, directory: Path) -> dict:
    text = json.dumps({key: entry[key] for key in ("result", "changes", "comment")}).replace(str(directory), "")
    return json.loads(re.sub(r"\b[0-9a-f]{40}\b", "SHA", text))


@pytest.fixture
def own_environment(monkeypatch):
    for key, value in _ENV.items():
        monkeypatch.setenv(key, value)


@pytest.fixture(scope="module")
def told_before():
    """What ours told of a case: asked once."""
    return {}


@pytest.fixture
def ours(plain, own_environment, tmp_path, told_before):
    """What our states tell of a case, by phase."""

    def ask(name):
        if name not in told_before:
            told_before[name] = play(plain, name, tmp_path / "case")
        return told_before[name]

    return ask


def play(plain, name: str, directory: Path) -> dict:
    lay_out(directory, CASES[name][2])
    told = {}
    for phase, test in {"would": True, "does": False, "again": False}.items():
        ctx = plain.context(host=Host("/"), test=test)
        told[phase] = shown(ctx.states[f"git.{CASES[name][0]}"](**called(name, directory)), directory)
    return told


@pytest.mark.parametrize("name", CASES)
def test_the_second_run_changes_nothing_more(ours, name):
    told = ours(name)
    if told["does"]["result"]:
        assert (told["again"]["result"], told["again"]["changes"]) == (True, {})
        assert told["would"]["result"] is (None if told["does"]["changes"] else True) or name == "clone bare"
    else:
        assert told["does"]["comment"]
        assert told["does"]["changes"] == {}


@pytest.fixture(scope="module")
def salts(oracle, tmp_path_factory):
    directory = tmp_path_factory.mktemp("salt")
    (directory / "tree").mkdir()
    high = {}
    for number, name in enumerate(CASES):
        lay_out(directory / f"case{number}", CASES[name][2])
        given = called(name, directory / f"case{number}")
        high[name] = {"git": [CASES[name][0], *({key: value} for key, value in given.items())]}
    asked = {"directory": str(directory), "tree": str(directory / "tree"), "pillar": {}, "grains": {}}
    asked["phases"] = [[True, high], [False, high], [False, high]]
    env = {**os.environ, **_ENV}
    done = subprocess.run(
        [oracle.program("python"), _SALT], input=json.dumps(asked), text=True, capture_output=True, env=env, timeout=240
    )
    assert done.returncode == 0, done.stderr
    told = {name: {} for name in CASES}
    for phase, running in zip(("would", "does", "again"), json.loads(done.stdout), strict=True):
        for entry in running.values():
            number = list(CASES).index(entry["__id__"])
            told[entry["__id__"]][phase] = shown(entry, directory / f"case{number}")
    return told


@pytest.mark.oracle
@pytest.mark.parametrize("name", CASES)
def test_as_salt(ours, name, salts):
    skip = DIFFERS.get(name, (set(), ""))[0]

    def agreed(told):
        return {
            f"{phase}.{key}": value
            for phase, entry in told.items()
            for key, value in entry.items()
            if phase not in skip and f"{phase}.{key}" not in skip
        }

    assert agreed(ours(name)) == agreed(salts[name])
