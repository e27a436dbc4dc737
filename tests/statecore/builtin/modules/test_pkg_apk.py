"""Packages by apk: its database read, what it is told, and the states over it. apk itself is played: Debian does not package it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from statecore.builtin.modules.pkg_apk import apk
from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.model.ports import CommandResult

ALL = "All specified packages are already installed"

#: Newest version first.
REPOSITORY = {
    "nginx": ["1.24.0-r7", "1.24.0-r6", "1.22.1-r0"],
    "curl": ["8.5.0-r0"],
    "musl": ["1.2.4-r2"],
}


class Alpine(Host):
    """A mounted host whose apk is played: it has a database, and knows REPOSITORY."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.calls: list[str] = []
        self.offline = False
        for directory in ("lib/apk/db", "etc/apk", "tmp"):
            (root / directory).mkdir(parents=True)
        (root / "etc/apk/repositories").write_text(
            "# Mirrors.\nhttps://a.test/v3.19/main\n#https://a.test/v3.19/community\n"
        )
        self.keep({"musl": "1.2.4-r2", "curl": "8.4.0-r0"})

    def keep(self, installed: dict[str, str]) -> None:
        """Writes the database; each package has one file."""
        text = "".join(
            f"C:Q1x=\nP:{name}\nV:{version}\nA:x86_64\nF:usr\nF:usr/bin\nR:{name}\nZ:Q1y=\n\n"
            for name, version in installed.items()
        )
        (self.root / "lib/apk/db/installed").write_text(text)

    @property
    def installed(self) -> dict[str, str]:
        text = (self.root / "lib/apk/db/installed").read_text()
        return dict(zip(re.findall(r"(?m)^P:(.*)", text), re.findall(r"(?m)^V:(.*)", text), strict=True))

    def which(self, program: str) -> str | None:
        return "/sbin/apk" if program == "apk" else None

    def run(self, cmd: str | Sequence[str], **options: Any) -> CommandResult:
        words = list(cmd)[6:] if list(cmd)[:2] == ["/bin/sh", "-c"] else list(cmd)
        self.calls.append(" ".join(words[1:]))
        code, out, err = self._play([word for word in words[1:] if word not in ("--no-progress", "--wait", "120")])
        return CommandResult(code, out, err, 1)

    def _play(self, words: list[str]) -> tuple[int, str, str]:
        now = self.installed
        newer = {name: REPOSITORY[name][0] for name in now if REPOSITORY.get(name, [now[name]])[0] != now[name]}
        verb = next(word for word in words if word in ("update", "policy", "add", "del", "fix", "upgrade"))
        names = [word for word in words[words.index(verb) + 1 :] if not word.startswith("--")]
        if verb == "update":
            return (1, "", "WARNING: fetching: network error\n") if self.offline else (0, "OK: 3 packages\n", "")
        if verb == "policy":
            return 0, "".join(self._policy(name, now.get(name)) for name in names), ""
        if verb == "upgrade" and "--simulate" in words:
            rows = [
                f"({at}/{len(newer)}) Upgrading {name} ({now[name]} -> {new})"
                for at, (name, new) in enumerate(newer.items(), 1)
            ]
            return 0, "\n".join([*rows, "OK: 7 MiB in 3 packages\n"]), ""
        if verb == "upgrade":
            self.keep(now | {name: new for name, new in newer.items() if not names or name in names})
        if verb == "del":
            self.keep({name: version for name, version in now.items() if name not in names})
        if verb == "add":
            for word in names:
                if word.startswith("/"):
                    assert self.path(word).read_text() == "a package"
                    now["local"] = "1.0-r0"
                    continue
                name, operator, version = re.fullmatch(r"([^<>=]+)(>=|<=|<|>|=)?(.*)", word).groups()
                if name not in REPOSITORY:
                    return (
                        1,
                        "",
                        f"ERROR: unable to select packages:\n  {name} (no such package):\n    required by: world[{name}]\n",
                    )
                now[name] = (
                    version if operator == "=" else "1.22.1-r0" if operator in ("<", "<=") else REPOSITORY[name][0]
                )
            self.keep(now)
        return 0, "OK\n", ""

    def _policy(self, name: str, there: str | None) -> str:
        rows = dict.fromkeys([*REPOSITORY.get(name, []), *([there] if there else [])])
        return (
            ""
            if not rows
            else f"{name} policy:\n"
            + "".join(
                f"  {version}:\n"
                + ("    lib/apk/db/installed\n" if version == there else "")
                + ("    https://a.test/v3.19/main\n" if version in REPOSITORY.get(name, []) else "")
                for version in rows
            )
        )


@pytest.fixture
def alpine(plain, monkeypatch):
    """The host of ``plain`` played as an Alpine."""
    host = Alpine(plain.root)
    made = plain.context
    grains = {"os": "Alpine", "os_family": "Alpine", "osarch": "x86_64"}
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": host, "grains": grains, **changes}))
    return host


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "value"),
    [
        ("list_pkgs", (), {}, {"musl": "1.2.4-r2", "curl": "8.4.0-r0"}),
        ("list_pkgs", (), {"versions_as_list": True}, {"musl": ["1.2.4-r2"], "curl": ["8.4.0-r0"]}),
        ("list_pkgs", (), {"removed": True}, {}),
        ("version", ("c*",), {}, {"curl": "8.4.0-r0"}),
        ("version", ("nginx",), {}, ""),
        ("latest_version", ("nginx",), {}, "1.24.0-r7"),
        ("latest_version", ("musl", "curl", "no"), {}, {"musl": "", "curl": "8.5.0-r0", "no": ""}),
        ("available_version", (), {}, ""),
        ("upgrade_available", ("musl",), {}, False),
        ("list_upgrades", (), {}, {"curl": "8.5.0-r0"}),
        ("list_repo_pkgs", ("curl", "nginx"), {}, {"curl": ["8.5.0-r0"], "nginx": REPOSITORY["nginx"]}),
        ("version_cmp", ("1.0_rc1", "1.0"), {}, -1),
        ("owner", ("/usr/bin/curl",), {}, "curl"),
        ("owner", ("/usr/bin/curl", "/bin/x"), {}, {"/usr/bin/curl": "curl", "/bin/x": ""}),
        ("owner", (), {}, ""),
        ("file_list", ("curl",), {}, {"errors": [], "files": ["/usr/bin/curl"]}),
        ("file_dict", ("no",), {}, {"errors": ["package no is not installed"], "packages": {}}),
        ("refresh_db", (), {}, True),
    ],
)
def test_reading(plain, alpine, name, args, kwargs, value):
    assert plain.call(f"pkg.{name}", *args, **kwargs) == value


@pytest.mark.parametrize(
    ("arguments", "called"),
    [
        ({"name": "nginx"}, ["add --upgrade nginx"]),
        ({"pkgs": ["curl", {"nginx": "1.22.1-r0"}]}, ["add --upgrade curl nginx=1.22.1-r0"]),
        ({"name": "nginx", "version": "<1.24"}, ["policy nginx", "add --upgrade nginx<1.24"]),
        ({"name": "nginx", "version": ">=1.22, <1.24.0-r7"}, ["policy nginx", "add --upgrade nginx=1.24.0-r6"]),
        ({"name": "nginx", "version": "1.24*"}, ["policy nginx", "add --upgrade nginx=1.24.0-r7"]),
        ({"name": "curl", "reinstall": True}, ["fix --reinstall curl"]),
        (
            {"name": "nginx", "refresh": True, "fromrepo": "https://b.test", "skip_verify": True},
            ["update", "--repository https://b.test --allow-untrusted add --upgrade nginx"],
        ),
    ],
)
def test_what_is_told(plain, alpine, arguments, called):
    plain.call("pkg.install", **arguments)
    assert [call.replace("--no-progress ", "").replace("--wait 120 ", "") for call in alpine.calls] == called
    assert list((alpine.root / "tmp").iterdir()) == []


def test_what_cannot_be_done(plain, alpine):
    with pytest.raises(CommandError, match=r"(?s)Error occurred installing package\(s\).*no \(no such package\)"):
        plain.call("pkg.install", "no")
    with pytest.raises(
        CommandError, match=r"No version matching 'nginx>2' could be found \(available: 1.24.0-r7, 1.24.0-r6, "
    ):
        plain.call("pkg.install", "nginx", version=">2")
    with pytest.raises(InvocationError, match="not supported: downloadonly"):
        plain.call("pkg.install", "nginx", downloadonly=True)
    alpine.offline = True
    assert plain.call("pkg.refresh_db") is False
    with pytest.raises(CommandError, match="Error getting repos"):
        plain.call("pkg.refresh_db", failhard=True)


#: fun, arguments, (result, changes, comment) in test mode, then applied, then applied again.
NEW = {"nginx": {"new": "1.24.0-r7", "old": ""}}
CURL = {"curl": {"new": "8.5.0-r0", "old": "8.4.0-r0"}}
CASES = {
    "installed": (
        "pkg.installed",
        {"name": "nginx"},
        (None, NEW, "The following packages would be installed/updated: nginx"),
        (True, NEW, "The following packages were installed/updated: nginx"),
        (True, {}, ALL),
    ),
    "a pin": (
        "pkg.installed",
        {"name": "nginx", "version": "1.24.0-r6"},
        (None, {"nginx": {"new": "installed", "old": ""}}, "The following packages would be installed/updated: nginx"),
        (
            True,
            {"nginx": {"new": "1.24.0-r6", "old": ""}},
            "The following packages were installed/updated: nginx=1.24.0-r6",
        ),
        (True, {}, ALL + " and are at the desired version"),
    ),
    "a condition": (
        "pkg.installed",
        {"name": "nginx", "version": "<1.24"},
        (None, {"nginx": {"new": "installed", "old": ""}}, "The following packages would be installed/updated: nginx"),
        (
            True,
            {"nginx": {"new": "1.22.1-r0", "old": ""}},
            "The following packages were installed/updated: nginx<1.24",
        ),
        (True, {}, ALL + " and are at the desired version"),
    ),
    "newest": (
        "pkg.latest",
        {"name": "curl"},
        (None, CURL, "The following packages would be installed/upgraded: curl"),
        (True, CURL, "The following packages were successfully installed/upgraded: curl"),
        (True, {}, "Package curl is already up-to-date"),
    ),
    "up to date": (
        "pkg.uptodate",
        {"name": "x"},
        (None, CURL, "System update will be performed"),
        (True, CURL, "Upgrade ran successfully"),
        (True, {}, "System is already up-to-date"),
    ),
    "removed": (
        "pkg.removed",
        {"name": "curl"},
        (None, {"curl": {"new": "removed", "old": ""}}, "The following packages will be removed: curl."),
        (True, {"curl": {"new": "", "old": "8.4.0-r0"}}, "All targeted packages were removed."),
        (True, {}, "All specified packages are already absent"),
    ),
    "purged": (
        "pkg.purged",
        {"name": "curl"},
        (None, {"curl": {"new": "purged", "old": ""}}, "The following packages will be purged: curl."),
        (True, {"curl": {"new": "", "old": "8.4.0-r0"}}, "All targeted packages were purged."),
        (True, {}, "None of the targeted packages are installed or partially installed"),
    ),
    "a file": (
        "pkg.installed",
        {"name": "x", "sources": [{"local": "salt://local.apk"}]},
        (None, {"local": {"new": "installed", "old": ""}}, "The following packages would be installed/updated: local"),
        (True, {"local": {"new": "1.0-r0", "old": ""}}, "The following packages were installed/updated: local"),
        (True, {}, ALL),
    ),
    "held": ("pkg.held", {"name": "curl"}, *[(False, {}, "the host's package manager cannot hold packages")] * 3),
    "verified": (
        "pkg.installed",
        {"name": "curl", "pkg_verify": True},
        *[(False, {}, "pkg.verify not implemented")] * 3,
    ),
    "a group": (
        "pkg.group_installed",
        {"name": "x"},
        *[(False, {}, "pkg.group_install not available for this platform")] * 3,
    ),
    "fetched": (
        "pkg.downloaded",
        {"name": "x"},
        *[(False, {}, "The pkg.downloaded state is not available on this platform")] * 3,
    ),
    "advised": (
        "pkg.patch_downloaded",
        {"name": "x"},
        *[(False, {}, "The pkg.patch_downloaded state is not available on this platform")] * 3,
    ),
    "provided": (
        "pkg.installed",
        {"name": "x", "resolve_capabilities": True},
        *[(False, {}, "not supported: resolve_capabilities; the host's package manager finds packages by name only")]
        * 3,
    ),
}


@pytest.mark.parametrize("told_as", CASES)
def test_states(plain, alpine, told_as):
    plain.write("local.apk", "a package")
    fun, arguments, *expected = CASES[told_as]
    for test, told in zip((True, False, False), expected, strict=True):
        before = alpine.installed
        entry = plain.state(fun, test=test, **arguments)
        assert (entry["result"], entry["changes"], entry["comment"]) == told
        assert not test or before == alpine.installed


def test_repositories(plain, alpine):
    file = alpine.root / "etc/apk/repositories"
    edge = "@edge https://a.test/edge/main"
    would = plain.state("pkgrepo.managed", name=edge, test=True)
    assert (would["result"], would["changes"]) == (None, {"repo": edge})
    assert plain.state("pkgrepo.managed", name=edge)["changes"] == {"repo": edge}
    assert alpine.calls[-1].endswith("update")
    assert plain.state("pkgrepo.managed", name=edge)["comment"] == f"Package repo '{edge}' already configured"
    enabled = plain.state("pkgrepo.managed", name="https://a.test/v3.19/community")
    assert enabled["changes"]["disabled"] == {"old": True, "new": False}
    assert plain.state("pkgrepo.managed", name="https://a.test/v3.19/main/", disabled=True)["result"] is True
    assert file.read_text() == (
        "# Mirrors.\n#https://a.test/v3.19/main/\nhttps://a.test/v3.19/community\n@edge https://a.test/edge/main\n"
    )
    assert plain.state("pkgrepo.absent", name=edge)["changes"] == {"repo": edge}
    assert plain.state("pkgrepo.absent", name=edge)["comment"] == f"Package repo {edge} is absent"
    assert list(plain.call("pkg.list_repos")) == ["https://a.test/v3.19/main/", "https://a.test/v3.19/community"]
    alpine.offline = True
    failed = plain.state("pkgrepo.managed", name=edge)
    assert (failed["result"], failed["changes"]) == (False, {"repo": edge})
    assert "the indexes could not be fetched" in failed["comment"]


def test_keys_of_repositories(plain, alpine):
    plain.write("x.rsa.pub", "-----BEGIN PUBLIC KEY-----\nAA\n-----END PUBLIC KEY-----\n")
    plain.write("page", "<html>")
    url = "https://b.test/main"
    assert plain.state("pkgrepo.managed", name=url, key_url="salt://x.rsa.pub")["result"] is True
    assert "BEGIN PUBLIC KEY" in (alpine.root / "etc/apk/keys/x.rsa.pub").read_text()
    (alpine.root / "etc/apk/keys/x.rsa.pub").unlink()
    again = plain.state("pkgrepo.managed", name=url, key_url="salt://x.rsa.pub")
    assert again["changes"] == {"key": {"old": "", "new": "/etc/apk/keys/x.rsa.pub"}}
    assert "it holds no public key" in plain.state("pkgrepo.managed", name="/srv/x", key_url="salt://page")["comment"]
    assert "file not found" in plain.state("pkgrepo.managed", name="/srv/x", key_url="salt://none")["comment"]
    assert plain.state("pkgrepo.managed", name="nonsense")["comment"].startswith("Name nonsense is not valid")
    assert plain.state("pkgrepo.managed", name=url, ppa="x")["comment"].startswith("not supported: ppa")


def test_the_database_of_apk_3_and_none_at_all(plain, alpine):
    (alpine.root / "usr/lib/apk/db").mkdir(parents=True)
    (alpine.root / "lib/apk/db/installed").rename(alpine.root / "usr/lib/apk/db/installed")
    assert plain.call("pkg.version", "curl") == "8.4.0-r0"
    (alpine.root / "usr/lib/apk/db/installed").unlink()
    assert plain.call("pkg.list_pkgs") == {}


def test_hosts_without_apk(plain, alpine):
    alpine.which = lambda program: None
    with pytest.raises(NotAvailable, match="the host has no apk"):
        plain.call("pkg.version", "curl")


def test_records_of_the_database():
    found = apk.parse_database("P:a\nV:1-r0\nF:\nR:x\nF:etc\nR:a.conf\na:0:0:644\n\nT:no package\n\nP:b\nV:2-r1\n")
    assert found["a"].files == ("/x", "/etc/a.conf")
    assert found["b"].version == "2-r1"
