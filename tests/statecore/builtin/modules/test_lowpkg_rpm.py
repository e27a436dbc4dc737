"""``lowpkg`` on a host with rpm, beside Salt's: both ask the same program, which is played with rpm's outputs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from statecore.model.errors import CommandError
from tests.conftest import Oracle

#: Plays rpm: packages bash (twice) and a key; its formats are filled in as rpm does.
RPM = r"""#!/usr/bin/python3 -IS
import re, sys
words = sys.argv[1:]
if words[:1] == ["--root"]:
    words = words[2:]
PACKAGES = [
    {"NAME": "bash", "VERSION": "5.1.8", "RELEASE": "6.el9", "EPOCH": "", "ARCH": "x86_64", "BUILDTIME": "1660000000",
     "INSTALLTIME": "1670000000", "SIZE": "7738634", "LONGSIZE": "7738634", "LICENSE": "GPLv3+", "VENDOR": "CentOS",
     "BUILDHOST": "b1", "GROUP": "Unspecified", "SOURCERPM": "bash-5.1.8-6.el9.src.rpm", "PACKAGER": "",
     "URL": "https://www.gnu.org", "SUMMARY": "The GNU shell", "DESCRIPTION": "A shell.\nWith two lines."},
    {"NAME": "bash", "VERSION": "5.1.10", "RELEASE": "1.el9", "EPOCH": "", "ARCH": "x86_64", "BUILDTIME": "1660000001",
     "INSTALLTIME": "1670000001", "SIZE": "7738635", "LONGSIZE": "7738635", "LICENSE": "GPLv3+", "VENDOR": "CentOS",
     "BUILDHOST": "b1", "GROUP": "Unspecified", "SOURCERPM": "s", "PACKAGER": "p <p@x>", "URL": "", "SUMMARY": "The GNU shell",
     "DESCRIPTION": "A shell."},
    {"NAME": "dbus", "VERSION": "1.12", "RELEASE": "2", "EPOCH": "1", "ARCH": "i686", "BUILDTIME": "1", "INSTALLTIME": "2",
     "SIZE": "3", "LONGSIZE": "3", "LICENSE": "", "VENDOR": "v", "BUILDHOST": "h", "GROUP": "g", "SOURCERPM": "s",
     "PACKAGER": "", "URL": "", "SUMMARY": "Bus: messages", "DESCRIPTION": "d"},
    {"NAME": "gpg-pubkey", "VERSION": "8483c65d", "RELEASE": "5ccc5b19", "EPOCH": "", "ARCH": "(none)", "BUILDTIME": "1",
     "INSTALLTIME": "2", "SIZE": "0", "LONGSIZE": "0", "LICENSE": "pubkey", "VENDOR": "(none)", "BUILDHOST": "h", "GROUP": "g",
     "SOURCERPM": "(none)", "PACKAGER": "", "URL": "", "SUMMARY": "key", "DESCRIPTION": "k"},
]
FILES = {"bash": ["/bin/bash", "/etc/skel/.bashrc"], "dbus": ["/bin/dbus"]}


def filled(form, package):
    def branch(match):
        yes, no = match[2], match[3] or ""
        return yes if package.get(match[1]) else no
    while True:
        made = re.sub(r"%\|(\w+)\?\{((?:[^{}|]|%?\{[^{}]*\})*)\}(?::\{((?:[^{}|]|%?\{[^{}]*\})*)\})?\|", branch, form)
        if made == form:
            break
        form = made
    form = re.sub(r"%\{(\w+)(?::\w+)?\}", lambda match: package.get(match[1].upper(), "(none)"), form)
    return form.replace("\\n", "\n").replace("\\t", "\t")


if words == ["--querytags"]:
    print("NAME\nLONGSIZE\nSIZE")
elif "-V" in words or "-Va" in words:
    print("S.5....T.  c /etc/skel/.bashrc\n.M.......    /bin/bash\n......G..  c /etc/g")
    sys.exit(1)
elif "-K" in words:
    sys.exit(0 if words[-1].endswith("good.rpm") else 1)
elif "-qf" in words:
    names = [name for name, files in FILES.items() if words[-1] in files]
    form = words[words.index("--queryformat") + 1]
    print(filled(form, {"NAME": names[0]}) if names else f"file {words[-1]} is not owned by any package", end="")
    sys.exit(not names)
elif "-qp" in words:
    print(filled(words[words.index("--queryformat") + 1], PACKAGES[2]), end="")
elif "-ql" in words or "-qla" in words:
    named = [word for word in words if not word.startswith("-")]
    for name in named or FILES:
        print("\n".join(FILES.get(name, [f"package {name} is not installed"])))
else:
    form = words[words.index("--queryformat") + 1]
    named = [word for word in words if not word.startswith("-") and word != form]
    for package in PACKAGES:
        if not named or package["NAME"] in named:
            print(filled(form, package), end="")
    for name in named:
        if name not in {package["NAME"] for package in PACKAGES}:
            print(f"package {name} is not installed")
"""

#: Function, arguments and named arguments.
CALLS: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("list_pkgs", [], {}),
    ("list_pkgs", ["dbus", "none"], {}),
    ("list_pkgs", ["dbus"], {"root": "/"}),
    ("verify", [], {}),
    ("verify", ["bash"], {"ignore_types": ["config"]}),
    ("verify", ["bash"], {"ignore_types": "config, doc"}),
    ("modified", [], {}),
    ("modified", ["bash"], {"mode": True}),
    ("modified", ["bash"], {"mode": False, "time": True}),
    ("file_list", ["bash", "dbus"], {}),
    ("file_list", [], {}),
    ("file_dict", ["bash", "none"], {}),
    ("owner", [], {}),
    ("owner", ["/bin/bash"], {}),
    ("owner", ["/bin/bash", "/none"], {}),
    ("info", ["bash"], {}),
    ("info", ["bash", "dbus"], {}),
    ("info", [], {"attr": "version,size"}),
    ("info", ["bash"], {"attr": "version,description", "all_versions": True}),
    ("info", ["dbus"], {"attr": "epoch,build_date,install_date_time_t"}),
    ("version_cmp", ["0.2-001", "0.2.0.1-002"], {}),
    ("version_cmp", ["1:1.0", "1.0-3"], {}),
    ("version_cmp", ["1:1.0", "1.0-3"], {"ignore_epoch": True}),
    ("version_cmp", ["2.0-1", "2.0"], {}),
]


@pytest.fixture
def suse(plain: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A host that is this machine, with the played rpm first in PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "rpm").write_text(RPM)
    (programs / "rpm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(type(plain.context().host), "which", lambda host, name: str(programs / name))
    plain.root = Path("/")
    plain.grains |= {"os_family": "Suse", "osarch": "x86_64"}
    return plain


@pytest.mark.oracle
def test_answers_are_salts(suse: Any, oracle: Oracle) -> None:
    program = (
        "import json, os, subprocess, sys; import salt.modules.rpm_lowpkg as module, salt.modules.cmdmod\n"
        "asked = json.load(sys.stdin); os.environ['PATH'] = asked['path']\n"
        "def all_(cmd, **more):\n"
        "    done = subprocess.run(cmd, shell=isinstance(cmd, str), capture_output=True, text=True)\n"
        "    return {'stdout': done.stdout.rstrip('\\n'), 'stderr': done.stderr, 'retcode': done.returncode}\n"
        "out = lambda cmd, **more: all_(cmd)['stdout']\n"
        "module.__salt__ = {'cmd.run': out, 'cmd.run_stdout': out, 'cmd.run_all': all_}\n"
        "module.__grains__ = {'osarch': 'x86_64'}\n"
        "print(json.dumps([getattr(module, fun)(*args, **kwargs) for fun, args, kwargs in asked['calls']]))"
    )
    asked = {"path": os.environ["PATH"], "calls": CALLS}
    told = json.loads(oracle.run("python", "-c", program, stdin=json.dumps(asked)))
    for (fun, args, kwargs), theirs in zip(CALLS, told, strict=True):
        ours = json.loads(json.dumps(suse.call(f"lowpkg.{fun}", *args, **kwargs)))
        assert ours == theirs, (fun, args, kwargs)


def test_files_of_packages(suse: Any, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.rpm", tmp_path / "bad.rpm"
    for path in (good, bad):
        path.write_bytes(b"x")
    assert suse.call("lowpkg.checksum", str(good), str(bad), str(tmp_path / "no")) == {
        str(good): True,
        str(bad): False,
        str(tmp_path / "no"): False,
    }
    assert suse.call("lowpkg.bin_pkg_info", str(good)) == {
        "name": "dbus.i686",
        "version": "1:1.12-2",
        "arch": "i686",
        "repoid": "none",
        "install_date": "1970-01-01T00:00:02+00:00Z",
        "install_date_time_t": 2,
    }


@pytest.mark.parametrize(
    ("call", "args", "kwargs", "words"),
    [
        ("checksum", [], {}, "No package files has been specified"),
        ("bin_pkg_info", ["/no/such.rpm"], {}, "does not exist on minion"),
        ("info", ["bash"], {"attr": "nothing"}, "No valid attributes found"),
    ],
)
def test_what_is_refused(suse: Any, call: str, args: list[Any], kwargs: dict[str, Any], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        suse.call(f"lowpkg.{call}", *args, **kwargs)


def test_on_debian_it_is_dpkgs(plain: Any) -> None:
    plain.grains["os_family"] = "Other"
    with pytest.raises(Exception, match="lowpkg works with rpm on systems of the families"):
        plain.call("lowpkg.list_pkgs")
