"""The pip module over a pip that is played: which one is run, with which words; what it says, read."""

from __future__ import annotations

import json

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import CommandResult


class Played(Host):
    """A mounted host whose pip answers from ``answers``: first word behind pip -> output."""

    def __init__(self, root):
        super().__init__(root)
        self.calls = []
        self.answers = {"--version": "pip 23.2.1 from /x (python 3.11)\n", "list": "[]"}
        for name in ("usr/bin/python3", "srv/venv/bin/python3.11", "srv/own/pip", "srv/own/python3.9"):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
            path.chmod(0o755)
        (root / "srv/empty").mkdir()
        (root / "srv/plain").write_text("")

    def run(self, cmd, **options):
        words = list(cmd)
        rest = words[3:] if words[1:3] == ["-m", "pip"] else words[1:]
        self.calls.append((words, options))
        verb = next((word for word in rest if word in self.answers), "")
        answer = self.answers.get(verb, "")
        code, text = answer if isinstance(answer, tuple) else (0, answer)
        return CommandResult(code, text, "" if not code else "bad", 1)


@pytest.fixture
def pip(plain, monkeypatch):
    host = Played(plain.root)
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": host, **changes}))
    plain.host = host
    return plain


@pytest.mark.parametrize(
    ("bin_env", "words"),
    [
        (None, ["/usr/bin/python3", "-m", "pip"]),
        ("/srv/venv", ["/srv/venv/bin/python3.11", "-m", "pip"]),
        ("/srv/own/pip", ["/srv/own/pip"]),
        ("/srv/own/python3.9", ["/srv/own/python3.9", "-m", "pip"]),
        ("python3", ["/usr/bin/python3", "-m", "pip"]),
    ],
)
def test_which_pip(pip, bin_env, words):
    pip.call("pip.freeze", bin_env=bin_env)
    called, options = pip.host.calls[-1]
    assert called == [*words, "freeze", "--all", "--disable-pip-version-check"]
    assert options["env"].get("VIRTUAL_ENV") == ("/srv/venv" if bin_env == "/srv/venv" else None)


@pytest.mark.parametrize(
    ("bin_env", "why"),
    [
        ("/srv/empty", "Could not find a pip binary in virtualenv /srv/empty"),
        ("/srv/plain", "Access denied to /srv/plain, could not find a pip binary"),
        ("/srv/none", "Access denied to /srv/none, could not find a pip binary"),
        ("pip9", "Access denied to pip9, could not find a pip binary"),
    ],
)
def test_no_pip(pip, bin_env, why):
    with pytest.raises(CommandError, match=why):
        pip.call("pip.version", bin_env=bin_env)


def test_a_host_without_python(pip):
    (pip.root / "usr/bin/python3").unlink()
    with pytest.raises(CommandError, match="has none of python3, python, pip3, pip"):
        pip.call("pip.list")


INSTALLS = [
    ({"pkgs": "a,b"}, ["a", "b"]),
    ({"pkgs": ["a>1,<2", "b; python_version<'3'"]}, ["a>1,<2", "b; python_version<'3'"]),
    ({"pkgs": "a>1;<2"}, ["a>1,<2"]),
    ({"pkgs": "a", "upgrade": True, "no_deps": True, "pre_releases": True}, ["--upgrade", "--no-deps", "--pre", "a"]),
    (
        {"pkgs": "a", "force_reinstall": True, "ignore_installed": True},
        ["--force-reinstall", "--ignore-installed", "a"],
    ),
    (
        {"pkgs": "a", "find_links": "https://x/,/srv", "no_index": True},
        ["--find-links", "https://x/", "--find-links", "/srv", "--no-index", "a"],
    ),
    (
        {"pkgs": "a", "index_url": "https://i/", "extra_index_url": "https://e/"},
        ["--index-url", "https://i/", "--extra-index-url", "https://e/", "a"],
    ),
    ({"pkgs": "a", "proxy": "p:1", "timeout": 3}, ["--proxy", "p:1", "--timeout", "3", "a"]),
    ({"pkgs": "a", "no_binary": ["a", "b"]}, ["--no-binary", "a,b", "a"]),
    ({"pkgs": "a", "exists_action": "i", "cert": "/c"}, ["--cert", "/c", "--exists-action", "i", "a"]),
    ({"pkgs": "a", "download_cache": "/d", "no_cache_dir": True}, ["--no-cache-dir", "--cache-dir", "/d", "a"]),
    (
        {"pkgs": "a", "build": "/b", "target": "/t", "source": "/s", "download": "/d"},
        ["--build", "/b", "--target", "/t", "--download", "/d", "--source", "/s", "a"],
    ),
    (
        {"pkgs": "a", "global_options": "x,y", "install_options": ["--z"]},
        ["--global-option", "x", "--global-option", "y", "--install-option", "--z", "a"],
    ),
    ({"editable": "git+https://x#egg=a"}, ["--editable", "git+https://x#egg=a"]),
    ({"editable": ["/srv", "."]}, ["--editable", "/srv", "--editable", "."]),
    ({"pkgs": "a", "extra_args": [{"--one": 1}, "--two"]}, ["a", "--one", "1", "--two"]),
    (
        {
            "pkgs": "a",
            "trusted_host": "h",
            "allow_external": "x",
            "allow_unverified": "y",
            "allow_all_external": True,
            "process_dependency_links": True,
        },
        [
            "--allow-all-external",
            "--process-dependency-links",
            "--trusted-host",
            "h",
            "--allow-external",
            "x",
            "--allow-unverified",
            "y",
            "a",
        ],
    ),
    (
        {"pkgs": "a", "no_install": True, "no_download": True, "disable_version_check": True},
        ["--disable-pip-version-check", "--no-install", "--no-download", "a"],
    ),
    ({"requirements": "/srv/plain"}, ["--requirement", "/srv/plain"]),
    ({"requirements": "plain", "cwd": "/srv"}, ["--requirement", "/srv/plain"]),
]


@pytest.mark.parametrize(("args", "words"), INSTALLS)
def test_install(pip, args, words):
    assert pip.call("pip.install", bin_env="/srv/own/pip", **args)["retcode"] == 0
    called, options = pip.host.calls[-1]
    assert called == ["/srv/own/pip", "install", *words]
    assert options["cwd"] == args.get("cwd")


def test_install_through_the_minions_proxy(pip):
    pip.opts |= {"proxy_host": "p", "proxy_port": 8, "proxy_username": "u", "proxy_password": "s"}
    pip.call("pip.install", "a", bin_env="/srv/own/pip")
    assert pip.host.calls[-1][0][2:] == ["--proxy", "http://u:s@p:8", "a"]
    pip.call("pip.install", "a", bin_env="/srv/own/pip", proxy=False)
    assert pip.host.calls[-1][0][2:] == ["a"]


def test_nothing_to_install(pip):
    assert pip.call("pip.install", bin_env="/srv/own/pip") == {"retcode": 0, "stdout": "No packages to install."}


@pytest.mark.parametrize(
    ("args", "error", "why"),
    [
        ({"timeout": 1.5}, InvocationError, "'1.5' is not a valid timeout, must be an integer"),
        ({"timeout": "soon"}, InvocationError, "'soon' is not a valid timeout"),
        ({"find_links": "here"}, CommandError, "'here' is not a valid URL or path"),
        ({"find_links": "/none"}, CommandError, "'/none' is not a valid URL or path"),
        ({"index_url": "here"}, CommandError, "'here' is not a valid URL"),
        ({"extra_index_url": "here"}, CommandError, "'here' is not a valid URL"),
        ({"index_url": "https://x", "no_index": True}, CommandError, "mutually exclusive"),
        ({"mirrors": "http://x"}, CommandError, "does not support mirror argument"),
        ({"exists_action": "x"}, CommandError, "only supports the values s, i, w, and b. 'x' is not valid."),
        ({"editable": "git+https://x"}, CommandError, "You must specify an egg for this editable"),
        ({"extra_args": [{"--a": ["b"]}]}, InvocationError, "extra_args: too many levels in --a"),
        ({"log": "/srv"}, CommandError, "'/srv' is a directory. Use --log path_to_file"),
        ({"log": "/none/log"}, CommandError, "parent directory '/none' does not exist"),
        ({"requirements": 5}, InvocationError, "requirements must be a string or list of strings, not 5"),
        ({"requirements": "salt://none"}, CommandError, "pip requirements file 'salt://none' not found"),
        (
            {"requirements": "none"},
            CommandError,
            "pip requirements file 'none' is no absolute path, and there is no cwd",
        ),
        ({"env_vars": "A=1"}, InvocationError, "env_vars A=1 is not a dictionary"),
        ({"use_wheel": True}, CommandError, "'use_wheel' option is only supported"),
        ({"user": "none-such"}, CommandError, "none-such"),
    ],
)
def test_install_of_nonsense(pip, args, error, why):
    with pytest.raises(error, match=why):
        pip.call("pip.install", "a", bin_env="/srv/own/pip", **args)
    assert not any("install" in call for call, _ in pip.host.calls)


def test_list(pip):
    pip.host.answers["list"] = json.dumps([{"name": "A_b", "version": "1"}, {"name": "c", "version": "2"}])
    assert pip.call("pip.list") == {"a-b": "1", "c": "2"}
    assert pip.call("pip.list", "A.B") == {"a-b": "1"}
    assert pip.call("pip.is_installed", "a.b") is True
    assert pip.call("pip.is_installed", "a") is False
    assert pip.call("pip.list", target="/srv") == {"a-b": "1", "c": "2"}
    assert pip.host.calls[-1][0][-2:] == ["--path", "/srv"]


def test_list_of_an_old_pip(pip):
    pip.host.answers |= {
        "--version": "pip 8.1 from /x\n",
        "freeze": "-f x\n# y\nA_b==1\nc===2\n-e git+https://x#egg=D\nnonsense\n",
    }
    assert pip.call("pip.list") == {"pip": "8.1", "a-b": "1", "c": "2", "d": "git+https://x"}
    assert pip.call("pip.list_freeze_parse", "a") == {"a-b": "1"}


def test_upgrades(pip):
    row = {"name": "A_b", "version": "1", "latest_version": "2", "latest_filetype": "wheel"}
    pip.host.answers["list"] = json.dumps([row])
    assert pip.call("pip.list_upgrades") == {"A_b": "2 [wheel]"}
    assert pip.call("pip.upgrade_available", "a-b") is True
    assert pip.call("pip.upgrade_available", "a") is False


def test_upgrade_tells_what_changed(pip, monkeypatch):
    row = {"name": "a", "version": "1", "latest_version": "2", "latest_filetype": "wheel"}
    lists = [json.dumps([row])] * 2 + [json.dumps([{**row, "version": "2"}])]
    run = pip.host.run

    def played(cmd, **options):
        if "list" in cmd:
            pip.host.answers["list"] = lists.pop(0)
        return run(cmd, **options)

    monkeypatch.setattr(pip.host, "run", played)
    assert pip.call("pip.upgrade") == {"changes": {"a": {"old": "1", "new": "2"}}, "result": True, "comment": ""}


@pytest.mark.parametrize(
    ("args", "wanted", "words"),
    [
        ({}, ["1.0", "1.10"], ["index", "versions", "a"]),
        ({"include_rc": True}, ["1.0", "1.10", "2.0rc1"], ["index", "versions", "a", "--pre"]),
        (
            {"include_alpha": True, "include_beta": True},
            ["1.0", "1.10", "2.0a1", "2.0b1"],
            ["index", "versions", "a", "--pre"],
        ),
        (
            {"find_links": "/srv", "no_index": True},
            ["1.0", "1.10"],
            ["index", "versions", "a", "--find-links", "/srv", "--no-index"],
        ),
    ],
)
def test_all_versions(pip, args, wanted, words):
    pip.host.answers["index"] = "a (2.0rc1)\nAvailable versions: 2.0rc1, 2.0b1, 2.0a1, 1.10, 1.0\n"
    assert pip.call("pip.list_all_versions", "a", bin_env="/srv/own/pip", **args) == wanted
    assert pip.host.calls[-1][0] == ["/srv/own/pip", "--disable-pip-version-check", *words]


def test_no_versions(pip):
    pip.host.answers["index"] = (1, "ERROR: No matching distribution found\n")
    assert pip.call("pip.list_all_versions", "a") is None


def test_versions_by_an_old_pip(pip):
    pip.host.answers |= {
        "--version": "pip 20.1 from x\n",
        "install": (1, "  Could not find a version that satisfies x (from versions: 1, 2)\n"),
    }
    assert pip.call("pip.list_all_versions", "a") == ["1", "2"]


def test_uninstall(pip):
    pip.call("pip.uninstall", "a, b", requirements="/srv/plain", bin_env="/srv/own/pip", timeout=4, extra_args=["-x"])
    words = ["/srv/own/pip", "uninstall", "-y", "--requirement", "/srv/plain", "--timeout", "4", "a", "b", "-x"]
    assert pip.host.calls[-1][0] == words


def test_pip_that_fails(pip):
    pip.host.answers |= {"list": (2, ""), "freeze": (1, "")}
    for name in ("pip.list", "pip.freeze", "pip.list_upgrades"):
        with pytest.raises(CommandError, match="bad"):
            pip.call(name)
    pip.host.answers["list"] = "no JSON"
    with pytest.raises(CommandError, match="pip list gave no JSON: 'no JSON'"):
        pip.call("pip.list")
    pip.host.answers["--version"] = (1, "")
    with pytest.raises(CommandError, match="Could not find a `pip` binary"):
        pip.call("pip.version")


REQUIREMENTS = [
    ("a==1\nc\n", True),
    ("a==2\n", False),
    ("d\n", False),
    ("# only\n\n", True),
    ("a==1\n-r more.txt\n", True),
    ("-r less.txt\n", False),
    ("a; python_version > '3'\n", False),
    ("--hash=x\n", False),
    ("git+https://x\n", False),
    ("a==1 --hash=sha256:x\n", False),
    ("a[extra]==1\n", False),
]


@pytest.mark.parametrize(("text", "wanted"), REQUIREMENTS)
def test_requirements_met(pip, text, wanted):
    pip.host.answers["list"] = json.dumps([{"name": "A", "version": "1"}, {"name": "c", "version": "2"}])
    pip.write("r/all.txt", text)
    pip.write("r/more.txt", "c>1\n-r all.txt\n")
    pip.write("r/less.txt", "c>2\n")
    assert pip.call("pip._requirements_met", "salt://r/all.txt") is wanted


def test_uptodate(pip, monkeypatch):
    """The state: nothing newer, something newer, and what cannot be upgraded."""
    assert _told(pip.state("pip.uptodate", name="x")) == (True, {}, "System is already up-to-date.")
    old = {"name": "a", "version": "1", "latest_version": "2", "latest_filetype": "wheel"}
    pip.host.answers["list"] = json.dumps([old])
    assert _told(pip.state("pip.uptodate", name="x", test=True)) == (None, {}, "System update will be performed")
    run = pip.host.run

    def upgrading(cmd, **options):
        if "-U" in cmd:
            pip.host.answers["list"] = json.dumps([{**old, "version": "2"}])
        return run(cmd, **options)

    monkeypatch.setattr(pip.host, "run", upgrading)
    done = pip.state("pip.uptodate", name="x")
    assert _told(done) == (True, {"a": {"old": "1", "new": "2"}}, "Upgrade successful.")
    monkeypatch.setattr(pip.host, "run", run)
    pip.host.answers |= {"list": json.dumps([old]), "install": (1, "")}
    assert _told(pip.state("pip.uptodate", name="x")) == (False, {}, "Failed to update. bad")
    pip.host.answers["list"] = (1, "")
    result, changes, comment = _told(pip.state("pip.uptodate", name="x"))
    assert (result, changes) == (False, {})
    assert comment.startswith("bad. Additional info follows:\n\npid:\n    1\nretcode:\n    1\nstderr:\n    bad")


def _told(entry):
    return entry["result"], entry["changes"], entry["comment"]
