"""Packages by rpm and zypper: what the programs are told, and what they say, read. States are in ../states/played."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from statecore.builtin.modules.pkg_zypper import listings, locks, zypper
from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.model.ports import CommandResult

INSTALLED = "bash\t(none)\t5.2\t1\tx86_64\t1700000000\nvim\t2\t9.1\t1\tx86_64\t0\ngpg-pubkey\t(none)\t1\t1\t(none)\t0\n"

SEARCH = """<?xml version='1.0'?><stream><search-result><solvable-list>
<solvable status="not-installed" name="a" kind="package" edition="1.2-1" arch="x86_64" repository="main"/>
<solvable status="not-installed" name="a" kind="package" edition="1.10-1" arch="x86_64" repository="more"/>
<solvable status="not-installed" name="ab" kind="package" edition="3-1" arch="x86_64" repository="main"/>
<solvable status="not-installed" name="a" kind="srcpackage" edition="9-1" arch="noarch" repository="main"/>
</solvable-list></search-result></stream>"""

PRODUCTS = """<stream><product-list><product name="Leap" version="15.6" release="1" epoch="0" arch="x86_64" vendor="openSUSE"
 productline="" isbase="true" installed="1" registerrelease=""><endoflife time_t="1767139200" text="2025-12-31T00:00:00"/>
<description>openSUSE Leap is
  a distribution.</description></product></product-list></stream>"""

INFO = """Loading repository data...


Information for package a:
--------------------------
Repository     : main
Name           : a
Version        : 1.10-1
Arch           : x86_64
Installed      : No
Status         : not installed
Description    :
    Text: of a.


Information for package bash:
-----------------------------
Name           : bash
Version        : 5.2-1
Installed      : Yes (automatically)
Status         : up-to-date
"""


class Told(Host):
    """A mounted host that answers by what a command starts with, and remembers what it was told."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.calls: list[str] = []
        self.environments: list[Any] = []
        self.answers: dict[str, tuple[int, str, str]] = {"rpm -qa --nodigest": (0, INSTALLED, "")}

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}" if program in ("rpm", "zypper") else None

    def run(self, cmd: str | Sequence[str], **options: Any) -> CommandResult:
        words = list(cmd)[6:] if list(cmd)[:2] == ["/bin/sh", "-c"] else list(cmd)
        line = " ".join(words).replace("zypper --non-interactive", "zypper")
        self.calls.append(line)
        self.environments.append(options.get("env") or {})
        code, out, err = next((answer for start, answer in self.answers.items() if line.startswith(start)), (0, "", ""))
        return CommandResult(code, out or ("<stream/>" if "--xmlout" in line else ""), err, 1)


@pytest.fixture
def host(plain, monkeypatch):
    """Makes the host of ``plain`` one with rpm and zypper."""
    made, told = plain.context, Told(plain.root)
    grains = {"os_family": "Suse", "osarch": "x86_64"}
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": told, "grains": grains, **changes}))
    return told


def test_another_family_is_refused(plain, host, monkeypatch):
    made = plain.context
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"grains": {"os_family": "Arch"}, **changes}))
    with pytest.raises(NotAvailable, match="of the family Arch, not Suse"):
        plain.call("pkg.list_pkgs")


def test_what_is_installed(plain, host):
    assert plain.call("pkg.list_pkgs") == {"bash": "5.2-1", "vim": "2:9.1-1"}
    assert plain.call("pkg.list_pkgs", versions_as_list=True)["vim"] == ["2:9.1-1"]
    assert plain.call("pkg.list_pkgs", attr="epoch,version")["vim"] == [{"epoch": "2", "version": "9.1"}]
    assert plain.call("pkg.list_pkgs", removed=True) == {}
    assert plain.call("pkg.version", "bash") == "5.2-1"
    assert plain.call("pkg.version_cmp", "1.2-1", "1.10-1") == -1
    assert plain.call("pkg.normalize_name", "bash.x86_64") == "bash"
    plain.call("pkg.list_pkgs", root="/mnt")
    assert host.calls[-1].startswith("rpm --root /mnt -qa")
    with pytest.raises(InvocationError, match="includes: things is none of"):
        plain.call("pkg.list_pkgs", includes=["things"])


@pytest.mark.parametrize(
    ("function", "arguments", "called"),
    [
        ("install", {"name": "a"}, "zypper --no-refresh install --auto-agree-with-licenses --name a"),
        ("install", {"name": "a", "version": "1.2-1"}, "… --name a=1.2-1"),
        ("install", {"pkgs": [{"a": "<=1.2"}, "b"]}, "… --name a<=1.2 b"),
        ("install", {"name": "a", "version": "1.1*"}, "… --name a=1.10-1"),
        ("install", {"name": "a", "version": ">=1, <1.5"}, "… --name a=1.2-1"),
        ("install", {"name": "a", "resolve_capabilities": True}, "… --capability a"),
        ("install", {"name": "a", "no_recommends": True}, "… --name --no-recommends a"),
        ("install", {"name": "a", "downloadonly": True}, "… --name --download-only a"),
        ("install", {"name": "bash", "reinstall": True}, "… --name --force bash"),
        ("install", {"name": "a", "fromrepo": "main"}, "… --name --force --force-resolution --from main a"),
        (
            "install",
            {"name": "a", "skip_verify": True, "root": "/mnt"},
            "zypper --root /mnt --no-gpg-checks --no-refresh install --auto-agree-with-licenses --name a",
        ),
        ("remove", {"name": "bash"}, "zypper --no-refresh remove bash"),
        ("purge", {"pkgs": [{"vim": "2:9.1-1"}]}, "zypper --no-refresh remove vim-2:9.1-1"),
        ("upgrade", {"refresh": False}, "zypper --no-refresh update --auto-agree-with-licenses"),
        (
            "upgrade",
            {"refresh": False, "dist_upgrade": True, "novendorchange": True, "fromrepo": ["m", "n"]},
            "zypper --no-refresh dist-upgrade --auto-agree-with-licenses --from m --from n --no-allow-vendor-change",
        ),
        ("upgrade", {"refresh": False, "name": "a"}, "zypper --no-refresh update --auto-agree-with-licenses a"),
        ("refresh_db", {}, "zypper refresh --force"),
        ("refresh_db", {"force": False, "repos": "m"}, "zypper refresh m"),
        ("refresh_db", {"gpgautoimport": True}, "zypper --gpg-auto-import-keys refresh --force"),
        ("hold", {"pkgs": ["a", {"b": "2"}]}, "zypper --no-refresh al a b=2"),
        ("services_need_restart", {}, "zypper --no-refresh ps -sss"),
        ("list_upgrades", {"refresh": False, "fromrepo": "m"}, "zypper --xmlout --no-refresh list-updates --repo m"),
    ],
)
def test_what_zypper_is_told(plain, host, function, arguments, called):
    host.answers["zypper --xmlout --no-refresh se -xv"] = (0, SEARCH, "")
    plain.call(f"pkg.{function}", **arguments)
    expected = called.replace("…", "zypper --no-refresh install --auto-agree-with-licenses")
    assert expected in host.calls
    assert all(
        environment.get("ZYPP_LOCK_TIMEOUT")
        for line, environment in zip(host.calls, host.environments, strict=True)
        if line.startswith("zypper")
    )


def test_only_queries_go_past_the_lock(plain, host):
    plain.call("pkg.install", name="a")
    plain.call("pkg.list_patches")
    read_only = ["ZYPP_READONLY_HACK" in each for each in host.environments]
    assert [line.split()[2] for line, each in zip(host.calls, read_only, strict=True) if each] == ["--no-refresh"]


def test_an_older_version_is_forced(plain, host):
    line = "The selected package 'a-1.2-1.x86_64' from repository 'main' has lower version than the installed one."
    host.answers["zypper --no-refresh install --auto-agree-with-licenses --name a=1.2-1"] = (0, f"{line}\n", "")
    plain.call("pkg.install", name="a", version="1.2-1")
    assert "zypper --no-refresh install --auto-agree-with-licenses --name --force a-1.2-1.x86_64" in host.calls


@pytest.mark.parametrize(
    ("code", "fails"), [(0, False), (102, False), (106, False), (107, False), (4, True), (7, True), (104, True)]
)
def test_exit_codes(plain, host, code, fails):
    host.answers["zypper --no-refresh install"] = (code, "", "it says why")
    if not fails:
        assert plain.call("pkg.install", name="a") == {}
        return
    with pytest.raises(CommandError, match="Zypper command failure: it says why"):
        plain.call("pkg.install", name="a")
    assert plain.call("pkg.install", name="a", ignore_repo_failure=True) == {}


def test_errors_in_xml_are_read(plain, host):
    told = '<stream><message type="error">System management is locked by 12 (zypper).</message></stream>'
    host.answers["zypper --xmlout"] = (7, told, "")
    with pytest.raises(CommandError, match=r"failure: System management is locked by 12"):
        plain.call("pkg.list_repo_pkgs")
    host.answers["zypper --xmlout"] = (0, "no XML", "")
    with pytest.raises(CommandError, match=r"zypper's answer is no XML .*exit code 0: no XML"):
        plain.call("pkg.list_patches")


def test_a_version_that_nobody_offers(plain, host):
    host.answers["zypper --xmlout --no-refresh se -xv"] = (0, SEARCH, "")
    with pytest.raises(CommandError, match=r"'9\*' found for package 'a' \(available: 1.10-1, 1.2-1\)"):
        plain.call("pkg.install", name="a", version="9*")


def test_what_repositories_have(plain, host):
    host.answers["zypper --xmlout --no-refresh se -s"] = (0, SEARCH, "")
    assert plain.call("pkg.list_repo_pkgs", "a") == {"a": ["1.10-1", "1.2-1"]}
    assert plain.call("pkg.list_repo_pkgs", "a*", fromrepo="main") == {"a": ["1.2-1"], "ab": ["3-1"]}
    assert plain.call("pkg.list_repo_pkgs", "a", byrepo=True) == {"main": {"a": ["1.2-1"]}, "more": {"a": ["1.10-1"]}}
    host.answers["zypper --xmlout --no-refresh search --match-exact"] = (0, SEARCH, "")
    assert plain.call("pkg.search", "a", match="exact")["ab"]["edition"] == "3-1"
    with pytest.raises(CommandError, match="No packages found matching 'z'"):
        plain.call("pkg.search", "z")


def test_information(plain, host):
    host.answers["zypper --no-refresh info"] = (0, INFO, "")
    found = plain.call("pkg.info_available", "a", "bash", refresh=False)
    assert found["a"] == {
        "repository": "main",
        "version": "1.10-1",
        "arch": "x86_64",
        "installed": False,
        "status": "not installed",
        "text": "of a.",
    }
    assert found["bash"]["installed"] is True
    assert plain.call("pkg.latest_version", "a", "bash", refresh=False) == {"a": "1.10-1", "bash": ""}
    assert plain.call("pkg.upgrade_available", "a", refresh=False) is True
    assert plain.call("pkg.latest_version") == {}
    assert listings.parse_info("package 'x' not found.\n") == {}


def test_products(plain, host):
    host.answers["zypper --xmlout --no-refresh --disable-repositories products -i"] = (0, PRODUCTS, "")
    (found,) = plain.call("pkg.list_products")
    assert found["eol_t"] == 1767139200
    assert found["isbase"] is True
    assert "registerrelease" not in found
    assert found["description"] == "openSUSE Leap is a distribution."
    assert plain.call("pkg.list_pkgs", includes=["product"])["product:Leap"] == "0:15.6-1"


def test_capabilities(plain, host):
    told = "bash\tbash\nbash\t/bin/sh\nbash\tconfig(bash)\ndash\t/bin/sh\n"
    host.answers["rpm -qa --queryformat [%{=NAME}"] = (0, told, "")
    assert plain.call("pkg.list_provides") == {"/bin/sh": ["bash", "dash"], "config(bash)": ["bash"]}


def test_locks(plain, host):
    file = host.path("/etc/zypp/locks")
    file.parent.mkdir(parents=True)
    file.write_text("\ntype: package\nsolvable_name: vim\nversion: = 2:9.1\n\n\ntype: package\nsolvable_name: ba*\n\n")
    assert plain.call("pkg.list_locks") == {
        "vim": {"type": "package", "version": "= 2:9.1"},
        "ba*": {"type": "package"},
    }
    assert plain.call("pkg.list_holds") == ["vim-2:9.1-1.*", "bash-0:5.2-1.*"]
    assert plain.call("pkg.list_holds", full=False, pattern="b.*") == []
    other = plain.call("pkg.unhold", pkgs=[{"vim": "1"}])["vim"]
    assert other["result"] is False
    assert other["comment"].endswith("as it is held with the other version.")
    assert plain.call("pkg.unhold", "vim")["vim"]["changes"] == {"new": "", "old": "hold"}
    assert host.calls[-1] == "zypper --no-refresh rl vim=2:9.1"
    host.answers["zypper --xmlout --no-refresh cl"] = (0, "<stream><message>Removed 3 locks.</message></stream>", "")
    assert plain.call("pkg.clean_locks") == {"removed": "3"}
    with pytest.raises(CommandError, match="Name or packages must be specified"):
        plain.call("pkg.hold")
    assert locks.parse("") == {}


def test_refresh_is_read():
    told = (
        "Repository 'a' is up to date.\nRetrieving repository 'b' metadata [..done]\n"
        "Building repository 'b' cache [....done]\nBuilding repository 'c' cache [error]\n"
    )
    assert zypper.parse_refresh(told) == {"a": False, "b": True}


def test_the_pillar_says_whether_metadata_is_fetched_anyway(plain, host, monkeypatch):
    made = plain.context
    pillar = {"zypper": {"refreshdb_force": False}}
    monkeypatch.setattr(plain, "context", lambda **changes: made(**{"pillar": pillar, **changes}))
    plain.call("pkg.refresh_db")
    plain.call("pkg.refresh_db", force=True)
    assert host.calls == ["zypper refresh", "zypper refresh --force"]


def test_downloads(plain, host):
    told = (
        '<stream><download-result><solvable><kind>package</kind><name>a</name></solvable><repository name="Main" alias="main"/>'
        '<localfile path="/var/cache/a.rpm"/></download-result></stream>'
    )
    host.answers["zypper --xmlout --no-refresh download"] = (0, told, "")
    file = host.path("/var/cache/a.rpm")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"rpm")
    found = plain.call("pkg.download", "a", "b")
    assert found["a"]["path"] == "/var/cache/a.rpm"
    assert found["_error"].endswith("download: b")
    host.answers["rpm -K"] = (1, "", "bad")
    with pytest.raises(CommandError, match="Unable to download packages: a"):
        plain.call("pkg.download", "a")
