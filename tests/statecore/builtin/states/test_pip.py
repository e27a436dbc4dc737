"""pip states on a real virtual environment, with wheels that the test makes; beside real Salt."""

from __future__ import annotations

import json
import os
import pwd
from pathlib import Path

import pytest

from statecore.host.host import Host
from tests.conftest import open_to_all
from tests.statecore import python_environments

_SALT = Path(__file__).parent / "salt_states.py"

#: Some forty times pip is started, half a second each on a machine that does nothing else.
pytestmark = pytest.mark.timeout(400)

#: What every call names: E is the environment, W the directory of the wheels.
WHERE = {"bin_env": "E", "no_index": True, "find_links": "W"}
ONLY = {"bin_env": "E"}

INSTALLED = "All packages were successfully installed"
ALL_THERE = "All specified packages are already installed"

#: One after the other on one environment: (name, function, arguments, in test mode, (result, changes, comment)).
STEPS = [
    (
        "would",
        "installed",
        {"name": "one==1.0", **WHERE},
        True,
        (None, {}, "Python package one==1.0 is set to be installed"),
    ),
    ("install", "installed", {"name": "one==1.0", **WHERE}, False, (True, {"one==1.0": "Installed"}, INSTALLED)),
    (
        "again",
        "installed",
        {"name": "one==1.0", **WHERE},
        False,
        (True, {}, f"Python package one==1.0 was already installed\n{ALL_THERE}"),
    ),
    (
        "again, would",
        "installed",
        {"name": "one", **WHERE},
        True,
        (True, {}, f"Python package one was already installed\n{ALL_THERE}"),
    ),
    (
        "another version",
        "installed",
        {"name": "one >= 1.1, < 2", **WHERE},
        False,
        (True, {"one==1.1": "Installed"}, INSTALLED),
    ),
    (
        "reinstall",
        "installed",
        {"name": "one==1.1", "force_reinstall": True, **WHERE},
        False,
        (True, {"one==1.1": "Installed"}, INSTALLED),
    ),
    (
        "several",
        "installed",
        {"name": "x", "pkgs": ["one", "Two_Words"], **WHERE},
        False,
        (
            True,
            {"two-words==0.3": "Installed"},
            f"Python package one was already installed\n{INSTALLED}",
        ),
    ),
    (
        "not found",
        "installed",
        {"name": "nowhere", **WHERE},
        False,
        (False, {}, "Failed to install packages: nowhere. Error: LINES"),
    ),
    (
        "dependency not found",
        "installed",
        {"name": "three", **WHERE},
        False,
        (False, {}, "Failed to install packages: three. Error: LINES"),
    ),
    (
        "without dependencies",
        "installed",
        {"name": "three", "no_deps": True, **WHERE},
        False,
        (True, {"three==3.0": "Installed"}, INSTALLED),
    ),
    (
        "one equals sign",
        "installed",
        {"name": "one=1.0", **WHERE},
        False,
        (False, {}, "Invalid version specification in package one=1.0. '=' is not supported, use '==' instead."),
    ),
    (
        "wheel options",
        "installed",
        {"name": "one", "use_wheel": True, **ONLY},
        False,
        (
            False,
            {},
            "The 'use_wheel' option is only supported in pip between 1.4 and 9.0.3. The version of pip detected was PIP.",
        ),
    ),
    (
        "no such user",
        "installed",
        {"name": "one", "user": "nobody-of-ours", **ONLY},
        False,
        (False, {}, "User nobody-of-ours does not exist"),
    ),
    (
        "no list",
        "installed",
        {"name": "one", "pkgs": "one", **ONLY},
        False,
        (False, {}, "pkgs argument must be formatted as a list"),
    ),
    (
        "no environment",
        "installed",
        {"name": "one", "bin_env": "E/none"},
        False,
        (False, {}, "Error installing 'one': Access denied to E/none, could not find a pip binary"),
    ),
    (
        "empty environment",
        "installed",
        {"name": "one", "bin_env": "W"},
        False,
        (False, {}, "Error installing 'one': Could not find a pip binary in virtualenv W"),
    ),
    (
        "requirements, would",
        "installed",
        {"name": "x", "requirements": "salt://reqs/all.txt", **WHERE},
        True,
        (None, {}, "Requirements file 'salt://reqs/all.txt' will be processed."),
    ),
    (
        "requirements",
        "installed",
        {"name": "x", "requirements": "salt://reqs/all.txt", **WHERE},
        False,
        (True, {"requirements": True}, "Successfully processed requirements file salt://reqs/all.txt."),
    ),
    (
        "requirements not found",
        "installed",
        {"name": "x", "requirements": "salt://reqs/none.txt", **WHERE},
        False,
        (
            False,
            {},
            'Unable to process requirements file "salt://reqs/none.txt" '
            "Error: pip requirements file 'salt://reqs/none.txt' not found",
        ),
    ),
    (
        "requirements that cannot be met",
        "installed",
        {"name": "x", "requirements": "salt://reqs/bad.txt", **WHERE},
        False,
        (False, {}, 'Unable to process requirements file "salt://reqs/bad.txt" Error: LINES'),
    ),
    ("remove, would", "removed", {"name": "one", **ONLY}, True, (None, {}, "Package one is set to be removed")),
    (
        "remove",
        "removed",
        {"name": "one", **ONLY},
        False,
        (True, {"one": "Removed"}, "Package was successfully removed."),
    ),
    ("remove again", "removed", {"name": "one", **ONLY}, False, (True, {}, "Package is not installed.")),
    (
        "remove, no environment",
        "removed",
        {"name": "one", "bin_env": "W"},
        False,
        (False, {}, "Error uninstalling 'one': Could not find a pip binary in virtualenv W"),
    ),
    (
        "a wheel by its path",
        "installed",
        {"name": "W/one-1.0-py3-none-any.whl", **WHERE},
        False,
        (True, {"one==1.0": "Installed"}, INSTALLED),
    ),
    (
        "editable, would",
        "installed",
        {"name": "x", "editable": "P", **WHERE},
        True,
        (None, {}, 'Package will be installed in editable mode (i.e. setuptools "develop mode") from P.'),
    ),
    (
        "editable",
        "installed",
        {"name": "x", "editable": "P", **WHERE},
        False,
        (True, {"editable": True}, "Package successfully installed from VCS checkout P."),
    ),
]

#: Steps that ours alone takes, where Salt does something else, or nothing useful.
OWN_STEPS = [
    (
        "the newest, from links",
        "installed",
        {"name": "one", "upgrade": True, **WHERE},
        False,
        (True, {"one==1.1": "Installed"}, INSTALLED),
    ),
    (
        "the newest already",
        "installed",
        {"name": "one", "upgrade": True, **WHERE},
        True,
        (True, {}, f"Python package one was already installed\n{ALL_THERE} and up-to-date"),
    ),
    (
        "a pre-release",
        "installed",
        {"name": "one", "upgrade": True, "pre_releases": True, **WHERE},
        False,
        (True, {"one==2.0rc1": "Installed"}, INSTALLED),
    ),
    (
        "what pip must judge",
        "installed",
        {"name": "x", "requirements": "salt://reqs/marked.txt", **WHERE},
        True,
        (None, {}, "Requirements file 'salt://reqs/marked.txt' will be processed."),
    ),
    (
        "requirements again",
        "installed",
        {"name": "x", "requirements": "salt://reqs/all.txt", **WHERE},
        False,
        (True, {"requirements": True}, "Successfully processed requirements file salt://reqs/all.txt."),
    ),
    (
        "requirements once more",
        "installed",
        {"name": "x", "requirements": ["salt://reqs/all.txt"], **WHERE},
        False,
        (True, {}, "Requirements were already installed."),
    ),
    (
        "several, would",
        "installed",
        {"name": "x", "pkgs": ["one", "nowhere"], **WHERE},
        True,
        (None, {}, "Python package(s) set to be installed:\nnowhere"),
    ),
    (
        "editable again",
        "installed",
        {"name": "x", "editable": "P", **WHERE},
        False,
        (True, {}, "Package is already installed in editable mode from P."),
    ),
    (
        "remove by another spelling",
        "removed",
        {"name": "Two.Words", **ONLY},
        False,
        (True, {"Two.Words": "Removed"}, "Package was successfully removed."),
    ),
    (
        "terminal",
        "installed",
        {"name": "Two.Words", "use_vt": True, **WHERE},
        False,
        (True, {"two-words==0.3": "Installed"}, INSTALLED),
    ),
    (
        "repo",
        "installed",
        {"name": "one", "repo": "git+https://x", **ONLY},
        False,
        (
            False,
            {},
            "not supported: repo; it has no effect in Salt; use index_url, find_links or editable",
        ),
    ),
    (
        "no map",
        "installed",
        {"name": "one", "env_vars": ["A=1"], **ONLY},
        False,
        (False, {}, "env_vars ['A=1'] is not a dictionary"),
    ),
    (
        "no URL",
        "installed",
        {"name": "nowhere", "index_url": "here", **ONLY},
        False,
        (False, {}, "Failed to install packages: nowhere. Error:  'here' is not a valid URL"),
    ),
    (
        "index and none",
        "installed",
        {"name": "nowhere", "index_url": "https://a.test", **WHERE},
        False,
        (
            False,
            {},
            "Failed to install packages: nowhere. Error:  'no_index' and ('index_url' or 'extra_index_url') are mutually "
            "exclusive.",
        ),
    ),
    (
        "into a directory",
        "installed",
        {"name": "one==1.0", "target": "T", **WHERE},
        False,
        (True, {"one==1.0": "Installed"}, INSTALLED),
    ),
    (
        "into a directory again",
        "installed",
        {"name": "one==1.0", "target": "T", **WHERE},
        False,
        (True, {}, f"Python package one==1.0 was already installed\n{ALL_THERE}"),
    ),
]

#: Steps that both take and answer differently, and why.
DIFFERS = {
    "requirements": "Salt does not bring what a file of the tree asks for (-r)",
    "a wheel by its path": "it is there already for Salt, which did not install the older one",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Environment, wheels and project of this module; each test steps through its own copy."""
    directory = tmp_path_factory.mktemp("pip")
    python_environments.write_wheels(directory / "W")
    python_environments.make_environment(directory / "E")
    python_environments.write_backend(directory / "P")
    tree = directory / "tree"
    (tree / "reqs/more").mkdir(parents=True)
    (tree / "reqs/all.txt").write_text("# ours\none==1.0\n-r more/two.txt\n")
    (tree / "reqs/more/two.txt").write_text("Two_Words\n")
    (tree / "reqs/marked.txt").write_text("one; python_version > '2'\n")
    (tree / "reqs/bad.txt").write_text("nowhere\n")
    return directory


def placed(value, directory: Path, environment: Path):
    """Arguments with the places of this run."""
    if isinstance(value, dict):
        return {key: placed(each, directory, environment) for key, each in value.items()}
    if not isinstance(value, str):
        return value
    first, _, rest = value.partition("/")
    places = {"E": environment, "W": directory / "W", "P": directory / "P", "T": environment / "target"}
    return "/".join([str(places[first]), *([rest] if rest else [])]) if first in places else value


def shown(entry: dict, directory: Path, environment: Path) -> tuple:
    """result, changes, comment with the names of the places; what pip itself says is cut."""
    text = json.dumps([entry["result"], entry["changes"], entry["comment"]])
    for name, path in {
        "T": environment / "target",
        "E": environment,
        "W": directory / "W",
        "P": directory / "P",
    }.items():
        text = text.replace(str(path), name)
    result, changes, comment = json.loads(text)
    head, separator, rest = comment.partition("Error: ")
    if separator and "\n" in rest:
        assert "ERROR" in rest, rest
        comment = f"{head}Error: LINES"
    return result, changes, comment.replace(_pip(environment), "PIP")


def _pip(environment: Path) -> str:
    return next(
        path.name.removesuffix(".dist-info").split("-")[1]
        for path in environment.glob("lib/*/site-packages/pip-*.dist-info")
    )


@pytest.fixture(scope="module")
def ours(made, tmp_path_factory):
    """What our states tell, by the steps' names: they build on each other."""
    from tests.statecore.conftest import PlainMinion

    minion = PlainMinion(tmp_path_factory.mktemp("ours"))
    minion.tree = made / "tree"
    environment = python_environments.copy_environment(made / "E", made / "ours")
    told, scratch = {}, {}
    for name, function, args, test, _ in [*STEPS, *OWN_STEPS]:
        # As in one run: what pip's version is, is asked once.
        ctx = minion.context(host=Host("/"), test=test, scratch=scratch)
        told[name] = shown(ctx.states[f"pip.{function}"](**placed(args, made, environment)), made, environment)
    return told


@pytest.mark.parametrize(("name", "wanted"), [(step[0], step[4]) for step in [*STEPS, *OWN_STEPS]])
def test_step(ours, name, wanted):
    assert ours[name] == wanted


@pytest.mark.oracle
def test_salts_steps(made, ours, oracle, tmp_path):
    """The same steps, by Salt."""
    environment = python_environments.copy_environment(made / "E", tmp_path / "E")
    phases = []
    for name, function, args, test, _ in STEPS:
        declared = [{key: value} for key, value in placed(args, made, environment).items()]
        phases.append([test, {name: {"pip": [function, *declared], "__sls__": "s", "__env__": "base"}}])
    asked = {"directory": str(tmp_path), "tree": str(made / "tree"), "pillar": {}, "grains": {}, "phases": phases}
    told = json.loads(oracle.run("python", str(_SALT), stdin=json.dumps(asked), timeout=240))
    theirs = {}
    for (name, *_), running in zip(STEPS, told, strict=True):
        entry = next(iter(running.values()))
        theirs[name] = shown(entry, made, environment)
    wanted = {name: ours[name] for name, *_ in STEPS}
    assert {name: each for name, each in theirs.items() if name not in DIFFERS} == {
        name: each for name, each in wanted.items() if name not in DIFFERS
    }


#: A pip that tells who it is and what it can read, in place of installing anything.
_PLAYED_PIP = """#!/bin/sh
case "$1" in
--version) echo "pip 23.0 from nowhere" ;;
list) echo "[]" ;;
install) id -un > OUT; cat "$3" "$(dirname "$3")/deeper.txt" >> OUT; echo "$*" >> OUT; echo "${ONE:-unset}" >> OUT ;;
esac
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_as_another_user(plain, tmp_path_factory):
    """A user that may not read the requirements files gets copies of them, which are gone afterwards."""
    directory = tmp_path_factory.mktemp("user")
    open_to_all(directory)
    out = directory / "out"
    out.write_text("")
    os.chown(out, pwd.getpwnam("nobody").pw_uid, -1)
    program = directory / "pip"
    program.write_text(_PLAYED_PIP.replace("OUT", str(out)))
    program.chmod(0o755)
    for name, text in {"requirements.txt": "one==1.0\n-r deeper.txt\n", "deeper.txt": "# nothing\n"}.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o600)
    before = set(Path("/tmp").glob(".saltern-pip-*"))
    where = {"bin_env": str(program), "cwd": "/", "env_vars": {"ONE": 1}, "timeout": 5, "cache_dir": "/var/tmp/x"}
    ctx = plain.context(host=Host("/"))
    told = ctx.states["pip.installed"](name="x", requirements=f"{directory}/requirements.txt", user="nobody", **where)
    assert told["result"] is True, told["comment"]
    user, *copied, command, variable = out.read_text().splitlines()
    assert (user, copied, variable) == ("nobody", ["one==1.0", "-r deeper.txt", "# nothing"], "1")
    assert command.endswith("--timeout 5 --disable-pip-version-check --cache-dir /var/tmp/x")
    assert set(Path("/tmp").glob(".saltern-pip-*")) == before
