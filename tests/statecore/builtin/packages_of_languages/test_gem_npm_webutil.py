"""The modules and states gem, npm and webutil: played programs answer; npm and webutil answer as real Salt's modules do."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError
from tests.conftest import Oracle
from tests.statecore.conftest import PlainMinion
from tests.statecore.function_calls import Call, ours, salts

PROGRAMS = Path(__file__).parent / "programs"

#: FILE and DIR stand for a file and a directory of the test. Calls one after the other, as real Salt answers them.
CALLS: list[Call] = [
    ("npm.list", [], {}),
    ("npm.install", ["left-pad@1.3.0"], {}),
    ("npm.install", [], {"pkgs": ["@scope/a@2.0.0", "b"], "dir": "DIR"}),
    ("npm.install", ["c"], {"registry": "https://r.example/", "dry_run": True, "silent": False}),
    ("npm.install", ["nosuch"], {}),
    ("npm.list", ["left-pad"], {}),
    ("npm.list", [], {"dir": "DIR", "depth": 0}),
    ("npm.list", [], {"depth": "x"}),
    ("npm.uninstall", ["left-pad"], {}),
    ("npm.list", [], {}),
    ("npm.cache_list", [], {}),
    ("npm.cache_list", ["x"], {}),
    ("npm.cache_path", [], {}),
    ("npm.cache_clean", [], {"force": True}),
    ("webutil.verify", ["FILE", "ann", "p"], {}),
    ("webutil.userdel", ["FILE", "ann"], {}),
    ("webutil.useradd", ["FILE", "ann", "bad"], {}),
    ("webutil.useradd", ["FILE", "ann", "p"], {}),
    ("webutil.useradd", ["FILE", "bob", "q"], {"opts": "B"}),
    ("webutil.useradd", ["FILE", "ann", "r"], {}),
    ("webutil.verify", ["FILE", "ann", "r"], {}),
    ("webutil.verify", ["FILE", "ann", "p"], {}),
    ("webutil.userdel", ["FILE", "ann"], {}),
    ("webutil.userdel", ["FILE", "ann"], {"all_results": True}),
]

#: Calls of gem, and Salt 3006's return; a text is the message of its error.
GEM: list[tuple[str, list[Any], dict[str, Any], Any]] = [
    ("version", [], {}, "3.3.15"),
    ("list", [], {}, {"bundler": ["default: 2.4.6"], "rake": ["13.0.6", "12.3.3"]}),
    ("list", ["ra"], {}, {"rake": ["13.0.6", "12.3.3"]}),
    ("list_upgrades", [], {}, {"rake": "13.2.1"}),
    (
        "install",
        ["vagrant"],
        {"version": "1.2", "source": "https://s/"},
        "Successfully installed vagrant-1.2\n1 gem installed",
    ),
    ("install", ["nosuch"], {}, CommandError("ERROR:  Could not find a valid gem 'nosuch' (>= 0) in any repository")),
    ("update", ["rake bundler"], {}, "Nothing to update"),
    ("update_system", [], {}, "Nothing to update"),
    ("uninstall", [["vagrant"]], {}, "Successfully uninstalled vagrant"),
    ("sources_list", [], {}, ["https://rubygems.org/"]),
    ("sources_add", ["https://g/"], {}, "https://g/ added to sources"),
    ("sources_list", [], {}, ["https://rubygems.org/", "https://g/"]),
    ("sources_remove", ["https://g/"], {}, "https://g/ removed from sources"),
]

#: RubyGems' version, arguments of gem.install, the words that gem gets.
WORDS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("3.3.15", {}, ["--no-document"]),
    ("4.0.1", {"rdoc": True}, ["--no-document"]),
    ("3.3.15", {"rdoc": True, "ri": True, "pre_releases": True}, ["--prerelease"]),
    ("2.7.6", {}, ["--no-rdoc", "--no-ri"]),
    ("2.7.6", {"ri": True, "pre_releases": True}, ["--no-rdoc", "--pre"]),
    ("3.3.15", {"version": "~> 1", "proxy": "http://p/"}, ["--version", "~> 1", "--no-document", "-p", "http://p/"]),
]

ADD, REMOVE = "is set to be added to htpasswd file", "is set to be removed from htpasswd file"
NPM_SET, NPM_DONE = "NPM package(s) '{}' are set to be installed", "Package(s) '{}' successfully installed"

#: State, arguments; then [result, changes, comment] in test mode, of the run, and of a second run, as Salt 3006 says them.
STATES: list[tuple[str, dict[str, Any], list[Any], list[Any], list[Any]]] = [
    (
        "gem.installed",
        {"name": "vagrant"},
        [None, {}, "The gem vagrant would have been installed"],
        [True, {"vagrant": "Installed"}, "Gem was successfully installed"],
        [True, {}, "Gem is already installed."],
    ),
    (
        "gem.installed",
        {"name": "rake", "version": ">= 14.0"},
        [None, {}, "The gem rake would have been installed"],
        [True, {"rake": "Installed"}, "Gem was successfully installed"],
        [True, {}, "Installed Gem meets version requirements."],
    ),
    ("gem.installed", {"name": "rake", "version": "12.3.3"}, *[[True, {}, "Gem is already installed."]] * 3),
    (
        "gem.installed",
        {"name": "bundler", "version": "< 3"},
        *[[True, {}, "Installed Gem meets version requirements."]] * 3,
    ),
    (
        "gem.removed",
        {"name": "vagrant"},
        [None, {}, "The gem vagrant would have been removed"],
        [True, {"vagrant": "Removed"}, "Gem was successfully removed."],
        [True, {}, "Gem is not installed."],
    ),
    (
        "gem.sources_add",
        {"name": "https://g/"},
        [None, {}, "The gem source https://g/ would have been added."],
        [True, {"https://g/": "Installed"}, "Gem source was successfully added."],
        [True, {}, "Gem source is already added."],
    ),
    (
        "gem.sources_remove",
        {"name": "https://g/"},
        [None, {}, "The gem source would have been removed."],
        [True, {"https://g/": "Removed"}, "Gem source was successfully removed."],
        [True, {}, "Gem source is already removed."],
    ),
    (
        "npm.installed",
        {"name": "left-pad"},
        [None, {"old": [], "new": ["left-pad"]}, NPM_SET.format("left-pad")],
        [True, {"old": [], "new": ["left-pad"]}, NPM_DONE.format("left-pad")],
        [True, {}, "Package(s) 'left-pad' satisfied by left-pad@1.0.0"],
    ),
    (
        "npm.installed",
        {"name": "all", "pkgs": ["left-pad@1.3.0", "@s/a"], "dir": "DIR"},
        [None, {"old": [], "new": ["left-pad@1.3.0", "@s/a"]}, NPM_SET.format("left-pad@1.3.0, @s/a")],
        [True, {"old": [], "new": ["left-pad@1.3.0", "@s/a"]}, NPM_DONE.format("left-pad@1.3.0, @s/a")],
        [True, {}, "Package(s) 'left-pad@1.3.0, @s/a' satisfied by left-pad@1.3.0, @s/a@1.0.0"],
    ),
    (
        "npm.installed",
        {"name": "left-pad@2.0.0", "dir": "DIR"},
        [None, {"old": [], "new": ["left-pad@2.0.0"]}, NPM_SET.format("left-pad@2.0.0")],
        [True, {"old": [], "new": ["left-pad@2.0.0"]}, NPM_DONE.format("left-pad@2.0.0")],
        [True, {}, "Package(s) 'left-pad@2.0.0' satisfied by left-pad@2.0.0"],
    ),
    (
        "npm.installed",
        {"name": "nosuch"},
        [None, {"old": [], "new": ["nosuch"]}, NPM_SET.format("nosuch")],
        *[[False, {}, "Error installing 'nosuch': npm ERR! 404 'nosuch' is not in this registry."]] * 2,
    ),
    (
        "npm.removed",
        {"name": "left-pad"},
        [None, {}, "Package 'left-pad' is set to be removed"],
        [True, {"left-pad": "Removed"}, "Package 'left-pad' was successfully removed"],
        [True, {}, "Package 'left-pad' is not installed"],
    ),
    (
        "npm.bootstrap",
        {"name": "DIR"},
        [None, {"old": [], "new": {"added": 1, "changed": 0, "removed": 0}}, "DIR is set to be bootstrapped"],
        [True, {"DIR": "Bootstrapped"}, "Directory was successfully bootstrapped"],
        [True, {}, "Directory is already bootstrapped"],
    ),
    (
        "npm.cache_cleaned",
        {"name": None, "force": True},
        [None, {}, "Cached packages set to be removed"],
        *[[True, {"cache": "Removed"}, "Cached packages successfully removed"]] * 2,
    ),
    (
        "npm.cache_cleaned",
        {"name": "left-pad"},
        [None, {}, "Cached left-pad set to be removed"],
        *[[False, {}, "Error cleaning cached left-pad: npm ERR! use --force"]] * 2,
    ),
    ("npm.cache_cleaned", {"name": "nothing"}, *[[True, {}, "Package nothing is not in the cache"]] * 3),
    (
        "webutil.user_exists",
        {"name": "ann", "password": "p", "htpasswd_file": "FILE", "options": "B"},
        [None, {"ann": True}, f"User 'ann' {ADD}"],
        [True, {"ann": True}, "Adding password for user ann"],
        [True, {}, "User already known"],
    ),
    (
        "webutil.user_exists",
        {"name": "ann", "password": "q", "htpasswd_file": "FILE", "update": True},
        [None, {"ann": True}, f"User 'ann' {ADD}"],
        [True, {"ann": True}, "Updating password for user ann"],
        [True, {}, "User already known"],
    ),
    (
        "webutil.user_exists",
        {"name": "ann", "password": "q", "htpasswd_file": "FILE", "force": True},
        [None, {"ann": True}, f"User 'ann' {ADD}"],
        *[[True, {"ann": True}, "Updating password for user ann"]] * 2,
    ),
    (
        "webutil.user_exists",
        {"name": "bob", "password": "bad", "htpasswd_file": "FILE"},
        [None, {"bob": True}, f"User 'bob' {ADD}"],
        *[[False, {}, "htpasswd: password too short"]] * 2,
    ),
    (
        "webutil.user_absent",
        {"name": "ann", "htpasswd_file": "FILE"},
        [None, {"ann": True}, f"User 'ann' {REMOVE}"],
        [True, {"ann": True}, "Deleting password for user ann"],
        [True, {}, "User already not in file"],
    ),
    ("webutil.user_absent", {"name": "ann"}, *[[False, {}, "htpasswd_file is missing: the path of the file"]] * 3),
]


@pytest.fixture
def minion(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PlainMinion:
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": Host(), **changes}))
    monkeypatch.setenv("PATH", f"{PROGRAMS}:{os.environ['PATH']}")
    monkeypatch.setenv("GEMS", str(tmp_path / "gems.json"))
    monkeypatch.setenv("NPM", str(tmp_path / "npm.json"))
    (tmp_path / "project").mkdir()
    return plain


def placed(value: Any, tmp_path: Path) -> Any:
    """A case with the test's file and directory in it."""
    text = json.dumps(value).replace("FILE", str(tmp_path / "htpasswd")).replace("DIR", str(tmp_path / "project"))
    return json.loads(text)


@pytest.mark.oracle
def test_npm_and_webutil_answer_as_salts(
    minion: PlainMinion, oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = placed(CALLS, tmp_path)
    told = ours(minion.call, calls)
    monkeypatch.setenv("NPM", str(tmp_path / "salts.json"))
    (tmp_path / "htpasswd").unlink()
    stock = salts(oracle, tmp_path / "cache", calls)
    for call, mine, salts_own in zip(calls, told, stock, strict=True):
        for answer in (mine, salts_own):
            if isinstance(answer[1], dict):
                answer[1].pop("pid", None)
        assert [call, *mine] == [call, *salts_own]


def test_gem(minion: PlainMinion) -> None:
    for function, args, kwargs, wanted in GEM:
        if isinstance(wanted, CommandError):
            with pytest.raises(CommandError) as caught:
                minion.call(f"gem.{function}", *args, **kwargs)
            assert str(caught.value) == str(wanted)
        else:
            assert minion.call(f"gem.{function}", *args, **kwargs) == wanted, function


@pytest.mark.parametrize(("version", "given", "words"), WORDS)
def test_the_words_for_gem(
    minion: PlainMinion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, given: Any, words: list[str]
) -> None:
    monkeypatch.setenv("GEM_VERSION", version)
    minion.call("gem.install", "a", **given)
    assert json.loads((tmp_path / "gems.json").read_text())["asked"][-1] == ["install", "a", *words]


def test_states(minion: PlainMinion, tmp_path: Path) -> None:
    (tmp_path / "project/package.json").write_text('{"dependencies": {"z": "3.0.0"}}')
    for case in STATES:
        state, arguments, *phases = placed(list(case), tmp_path)
        name = arguments.pop("name")
        for test, wanted in zip((True, False, False), phases, strict=True):
            entry = minion.state(state, test=test, name=name, **arguments)
            assert [entry["result"], entry["changes"], entry["comment"]] == wanted, (state, arguments, test)


def test_a_package_from_git(minion: PlainMinion) -> None:
    name = "git+https://host/own.git#v1"
    assert minion.state("npm.installed", name=name)["changes"] == {"old": [], "new": [name]}
    assert minion.state("npm.installed", name=name)["changes"] == {}


def test_a_failed_npm_is_false_for_templates(minion: PlainMinion) -> None:
    with pytest.raises(CommandError, match="npm ERR! stuck") as caught:
        minion.call("npm.uninstall", "stuck")
    assert getattr(caught.value, "value", None) is False


def test_a_host_without_the_programs(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch) -> None:
    for call, says in (("npm.list", "the host has no program npm"), ("webutil.verify", "no program htpasswd")):
        with pytest.raises(Exception, match=says):
            plain.call(call, "a", "b", "c")


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm here")
def test_a_real_npm(plain: PlainMinion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": Host(), **changes}))
    (tmp_path / "own").mkdir()
    (tmp_path / "own/package.json").write_text('{"name": "own", "version": "1.2.3"}')
    packed = subprocess.run(
        ["npm", "pack", "--silent"], cwd=tmp_path / "own", capture_output=True, text=True, check=True
    )
    (tmp_path / "project").mkdir()
    needs = {"own": f"file:../own/{packed.stdout.strip()}"}
    (tmp_path / "project/package.json").write_text(json.dumps({"name": "p", "version": "1.0.0", "dependencies": needs}))
    environment = {"dir": str(tmp_path / "project")}
    assert plain.state("npm.bootstrap", test=True, name=environment["dir"])["result"] is None
    assert plain.state("npm.bootstrap", name=environment["dir"])["changes"] == {environment["dir"]: "Bootstrapped"}
    assert plain.state("npm.bootstrap", name=environment["dir"])["changes"] == {}
    assert plain.call("npm.list", **environment)["own"]["version"] == "1.2.3"
    assert plain.state("npm.installed", name="own@1.2.3", **environment)["comment"].endswith("satisfied by own@1.2.3")
    assert plain.state("npm.removed", name="own", **environment)["changes"] == {"own": "Removed"}
