"""virtualenv states: environments that are really made, with wheels that the test makes; beside real Salt."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from statecore.host.host import Host
from tests.statecore import python_environments
from tests.statecore.conftest import PlainMinion

_SALT = Path(__file__).parent / "salt_states.py"

pytestmark = pytest.mark.timeout(400)

VERSION = f"Python {sys.version.split()[0]}"
FROM = {"find_links": "W", "no_index": True}

#: One after the other: (name, arguments besides the name, in test mode, (result, changes, comment)). V is the environment.
STEPS = [
    ("would", {"venv_bin": "venv"}, True, (None, {}, "Virtualenv V is set to be created")),
    ("make", {"venv_bin": "venv", "python": sys.executable}, False, (True, {"new": VERSION}, "Created new virtualenv")),
    ("again", {"venv_bin": "venv"}, False, (True, {}, "virtualenv exists")),
    (
        "clear, would",
        {"clear": True},
        True,
        (None, {"cleared_packages": "FREEZE", "old": VERSION}, "Virtualenv V is set to be cleared"),
    ),
    (
        "packages",
        {"pip_pkgs": ["one==1.0"], **FROM},
        False,
        (True, {"packages": {"new": ["one==1.0"], "old": ""}}, "virtualenv exists"),
    ),
    ("packages again", {"pip_pkgs": ["one"], **FROM}, False, (True, {}, "virtualenv exists")),
    (
        "wheel options",
        {"pip_pkgs": ["one"], "use_wheel": True},
        False,
        (
            False,
            {},
            "The 'use_wheel' option is only supported in pip between 1.4 and 9.0.3. The version of pip detected was PIP.",
        ),
    ),
    (
        "no requirements",
        {"requirements": "salt://none.txt"},
        False,
        (False, {}, "pip requirements file 'salt://none.txt' not found"),
    ),
]

OWN_STEPS = [
    (
        "more packages, would",
        {"pip_pkgs": ["one>=1.1"], **FROM},
        True,
        (None, {}, "virtualenv exists\nPackages are set to be installed in it"),
    ),
    (
        "requirements",
        {"requirements": "salt://reqs.txt", **FROM},
        False,
        (True, {"packages": {"new": ["Two_Words==0.3", "one==1.1"], "old": ["one==1.0"]}}, "virtualenv exists"),
    ),
    ("requirements again", {"requirements": "salt://reqs.txt", **FROM}, True, (True, {}, "virtualenv exists")),
    (
        "packages that are not there",
        {"pip_pkgs": ["nowhere"], **FROM},
        False,
        (False, {}, "virtualenv exists\nLINES"),
    ),
    (
        "clear",
        {"clear": True, "venv_bin": sys.executable, "system_site_packages": True, "prompt": "mine"},
        False,
        (
            True,
            {"cleared_packages": "FREEZE", "old": VERSION, "new": VERSION},
            "Cleared existing virtualenv",
        ),
    ),
    ("no path", {"name": "here"}, False, (False, {}, "'here' is not an absolute path")),
    (
        "terminal",
        {"pip_pkgs": ["one>=1.1"], "use_vt": True, **FROM},
        False,
        (True, {"packages": {"new": ["one==1.1"], "old": ""}}, "virtualenv exists"),
    ),
    ("no map", {"env_vars": "A"}, False, (False, {}, "env_vars A is not a dictionary")),
    ("no list", {"requirements": 5}, False, (False, {}, "pip requirements must be either a string or a list")),
    (
        "no such python",
        {"name": "V2", "venv_bin": "venv", "python": "/none/python"},
        False,
        (False, {}, "Failed to create virtualenv: Cannot find requested python (/none/python)."),
    ),
    (
        "what venv does not know",
        {"name": "V2", "venv_bin": "venv", "never_download": True},
        False,
        (
            False,
            {},
            "Failed to create virtualenv: The `never_download`(`--never-download`) option is not supported by 'venv'",
        ),
    ),
    (
        "no such program",
        {"name": "V2", "venv_bin": "/none/virtualenv"},
        False,
        (False, {}, "Failed to create virtualenv: the host has no program /none/virtualenv"),
    ),
]

#: Step -> why what Salt tells is another: what of it.
DIFFERS = dict.fromkeys(("make", "clear, would"), "Salt reads the version from stderr, where no Python 3 writes it")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    directory = tmp_path_factory.mktemp("virtualenv")
    python_environments.write_wheels(directory / "W")
    (directory / "tree").mkdir()
    (directory / "tree/reqs.txt").write_text("one>=1.1\ntwo.words\n")
    return directory


def placed(args: dict, made: Path, environment: Path) -> dict:
    places = {"V": str(environment), "V2": f"{environment}2", "W": str(made / "W")}
    given = {"name": "V", **args}
    return {key: places.get(value, value) if isinstance(value, str) else value for key, value in given.items()}


def shown(entry: dict, environment: Path) -> tuple:
    text = json.dumps([entry["result"], entry["changes"], entry["comment"]]).replace(str(environment), "V")
    result, changes, comment = json.loads(text)
    if "cleared_packages" in changes:
        assert any(line.startswith("pip==") for line in changes["cleared_packages"])
        changes["cleared_packages"] = "FREEZE"
    head, separator, _ = comment.partition("\nLooking in links")
    pip = next(environment.glob("lib/*/site-packages/pip-*.dist-info"), Path("pip-x.dist-info"))
    comment = comment.replace(pip.name.removesuffix(".dist-info").split("-")[1], "PIP")
    return result, changes, f"{head}\nLINES" if separator else comment


@pytest.fixture(scope="module")
def ours(made, tmp_path_factory):
    """What our states tell, by the steps' names: they build on each other."""
    minion = PlainMinion(tmp_path_factory.mktemp("ours"))
    minion.tree = made / "tree"
    environment = made / "ours"
    told, scratch = {}, {}
    for name, args, test, _ in [*STEPS, *OWN_STEPS]:
        ctx = minion.context(host=Host("/"), test=test, scratch=scratch)
        told[name] = shown(ctx.states["virtualenv.managed"](**placed(args, made, environment)), environment)
    told["configuration"] = (environment / "pyvenv.cfg").read_text()
    told["left"] = [path.name for path in made.glob("ours2*")]
    return told


@pytest.mark.parametrize(("name", "wanted"), [(step[0], step[3]) for step in [*STEPS, *OWN_STEPS]])
def test_step(ours, name, wanted):
    assert ours[name] == wanted


def test_what_was_made(ours):
    assert "include-system-site-packages = true" in ours["configuration"]
    assert "prompt = 'mine'" in ours["configuration"]
    assert ours["left"] == []


@pytest.mark.oracle
def test_salts_steps(made, ours, oracle, tmp_path):
    environment = tmp_path / "V"
    phases = []
    for name, args, test, _ in STEPS:
        declared = [{key: value} for key, value in placed(args, made, environment).items()]
        phases.append([test, {name: {"virtualenv": ["managed", *declared], "__sls__": "s", "__env__": "base"}}])
    asked = {"directory": str(tmp_path), "tree": str(made / "tree"), "pillar": {}, "grains": {}, "phases": phases}
    told = json.loads(oracle.run("python", str(_SALT), stdin=json.dumps(asked), timeout=240))
    for (name, *_), running in zip(STEPS, told, strict=True):
        result, changes, comment = shown(next(iter(running.values())), environment)
        wanted = ours[name]
        if name in DIFFERS:
            assert "" in (changes.get("new"), changes.get("old"))
            changes |= {key: VERSION for key, value in changes.items() if value == ""}
        assert (result, changes, comment) == wanted, name


@pytest.mark.oracle
def test_by_virtualenv(plain, oracle, tmp_path):
    """The program itself, and what the environment knows of itself."""
    place = tmp_path / "V"
    ctx = plain.context(host=Host("/"))
    program = oracle.program("virtualenv")
    assert ctx.call("virtualenv.virtualenv_ver", program) >= (20,)
    told = ctx.states["virtualenv.managed"](name=str(place), venv_bin=program, prompt="mine", never_download=True)
    assert (told["result"], told["changes"], told["comment"]) == (True, {"new": VERSION}, "Created new virtualenv")
    packages = ctx.call("virtualenv.get_site_packages", str(place))
    assert packages == str(next(place.glob("lib/python3*/site-packages")))
    assert ctx.call("virtualenv.get_distribution_path", str(place), "pip") == packages
    path = ctx.call("virtualenv.get_resource_path", str(place), "pip", "py.typed")
    assert path == f"{packages}/pip/py.typed"
    assert "pip" in ctx.call("virtualenv.get_resource_content", str(place), "pip", "py.typed")
