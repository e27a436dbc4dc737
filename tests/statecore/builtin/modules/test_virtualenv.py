"""The virtualenv module over programs that are played: with which words they are run."""

from __future__ import annotations

import pytest

from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError
from statecore.model.ports import CommandResult


class Played(Host):
    """A mounted host whose programs only remember how they were called."""

    def __init__(self, root):
        super().__init__(root)
        self.calls = []
        self.version = "virtualenv 20.24.1 from /x\n"
        self.code = 0
        for name in ("usr/bin/python3", "usr/bin/python3.9", "usr/bin/virtualenv", "usr/bin/pyvenv"):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("")
            path.chmod(0o755)

    def run(self, cmd, **options):
        self.calls.append(list(cmd))
        if "--version" in cmd:
            return CommandResult(0, self.version, "", 1)
        if not self.code and "ensurepip" not in cmd:
            (self.root / "srv/v/bin").mkdir(parents=True, exist_ok=True)
        elif self.code:
            (self.root / "srv/v").mkdir(parents=True, exist_ok=True)
        return CommandResult(self.code, "out", "err", 1)


@pytest.fixture
def host(plain, monkeypatch):
    played = Played(plain.root)
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": played, **changes}))
    return played


CALLS = [
    ({}, ["virtualenv"]),
    ({"venv_bin": "venv"}, ["/usr/bin/python3", "-m", "venv"]),
    ({"venv_bin": "venv", "python": "python3.9"}, ["/usr/bin/python3.9", "-m", "venv"]),
    ({"venv_bin": "/usr/bin/python3.9"}, ["/usr/bin/python3.9", "-m", "venv"]),
    ({"venv_bin": "pyvenv", "upgrade": True, "symlinks": True}, ["pyvenv", "--upgrade", "--symlinks"]),
    ({"venv_bin": "venv", "prompt": "a b"}, ["/usr/bin/python3", "-m", "venv", "--prompt", "a b"]),
    ({"prompt": "a b"}, ["virtualenv", "--prompt=a b"]),
    ({"python": "python3.9", "clear": True}, ["virtualenv", "--python=/usr/bin/python3.9", "--clear"]),
    (
        {"system_site_packages": True, "never_download": True},
        ["virtualenv", "--never-download", "--system-site-packages"],
    ),
    ({"never_download": False, "distribute": True}, ["virtualenv", "--download"]),
    ({"extra_search_dir": "/a, /b"}, ["virtualenv", "--extra-search-dir=/a", "--extra-search-dir=/b"]),
    ({"extra_search_dir": ["/a"]}, ["virtualenv", "--extra-search-dir=/a"]),
]


@pytest.mark.parametrize(("args", "words"), CALLS)
def test_create(plain, host, args, words):
    assert plain.call("virtualenv.create", "/srv/v", **args)["retcode"] == 0
    assert host.calls[-1] == [*words, "/srv/v"]


def test_an_old_virtualenv(plain, host):
    host.version = "1.9.1\n"
    plain.call("virtualenv.create", "/srv/v", distribute=True, never_download=True)
    assert host.calls[-1] == ["virtualenv", "--distribute", "--never-download", "/srv/v"]
    host.version = "13.0\n"
    plain.call("virtualenv.create", "/srv/v", never_download=True)
    assert host.calls[-1] == ["virtualenv", "/srv/v"]


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"upgrade": False}, "The `upgrade`(`--upgrade`) option is not supported by 'virtualenv'"),
        ({"symlinks": True}, "The `symlinks`(`--symlinks`) option is not supported by 'virtualenv'"),
        (
            {"venv_bin": "venv", "extra_search_dir": "/a"},
            "`extra_search_dir`(`--extra-search-dir`) option is not supported",
        ),
        ({"venv_bin": "pyvenv", "python": "python3"}, "The `python`(`--python`) option is not supported by 'pyvenv'"),
        ({"venv_bin": "python3", "python": "python3"}, "either as `venv_bin` or as `python`, not both."),
        ({"venv_bin": "python4"}, "Cannot find requested python (python4)."),
        ({"python": "python4"}, "Cannot find requested python (python4)."),
        ({"venv_bin": "/none/virtualenv"}, "the host has no program /none/virtualenv"),
    ],
)
def test_what_the_program_does_not_know(plain, host, args, why):
    with pytest.raises(CommandError) as told:
        plain.call("virtualenv.create", "/srv/v", **args)
    assert why in str(told.value)
    assert all("--version" in call for call in host.calls)


def test_nonsense(plain, host):
    with pytest.raises(InvocationError):
        plain.call("virtualenv.create", path="v")
    assert host.calls == []


def test_half_an_environment_is_not_left(plain, host):
    host.code = 1
    assert plain.call("virtualenv.create", "/srv/v")["retcode"] == 1
    assert not (plain.root / "srv/v").exists()
    (plain.root / "srv/v").mkdir()
    plain.call("virtualenv.create", "/srv/v")
    assert (plain.root / "srv/v").exists()


def test_pip_is_brought(plain, host):
    plain.call("virtualenv.create", "/srv/v", pip=True)
    assert host.calls[-1] == ["/srv/v/bin/python", "-m", "ensurepip", "--upgrade", "--default-pip"]


def test_without_virtualenv(plain, host):
    (plain.root / "usr/bin/virtualenv").unlink()
    plain.call("virtualenv.create", "/srv/v")
    assert host.calls[-1][:3] == ["/usr/bin/python3", "-m", "venv"]
    plain.opts["venv_bin"] = "/usr/bin/python3.9"
    plain.call("virtualenv.create", "/srv/v")
    assert host.calls[-1][:3] == ["/usr/bin/python3.9", "-m", "venv"]


def test_no_environment(plain, host):
    with pytest.raises(CommandError, match="Path '/srv/v' does not appear to be a virtualenv"):
        plain.call("virtualenv.get_site_packages", "/srv/v")
