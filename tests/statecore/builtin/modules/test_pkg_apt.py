"""Packages by APT and dpkg: what they say is read, and what they are told."""

from __future__ import annotations

import pytest

from statecore.model.errors import CommandError, InvocationError, NotAvailable
from tests.statecore.loopback_server import serve

OPTIONS = "-q -y -o DPkg::Lock::Timeout=120 -o DPkg::Options::=--force-confold -o DPkg::Options::=--force-confdef"


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "value"),
    [
        ("list_pkgs", (), {}, {"base-files": "12.4", "curl": "7.88.1-10", "libc6:i386": "2.36"}),
        ("list_pkgs", (), {"removed": True, "versions_as_list": True}, {"oldthing": ["1.0"]}),
        ("list_pkgs", (), {"purge_desired": True}, {}),
        ("version", ("curl",), {}, "7.88.1-10"),
        ("version", ("nothing",), {}, ""),
        ("version", ("curl", "nothing"), {}, {"curl": "7.88.1-10", "nothing": ""}),
        ("version", ("c*",), {}, {"curl": "7.88.1-10"}),
        ("latest_version", ("nginx-light",), {}, "1.22.1-9"),
        ("available_version", ("nginx-light",), {}, "1.22.1-9"),
        ("latest_version", ("curl",), {}, ""),
        ("latest_version", ("curl",), {"show_installed": True}, "7.88.1-10"),
        ("latest_version", ("nothing", "git"), {}, {"nothing": "", "git": "1:2.39.2-1"}),
        ("latest_version", (), {}, ""),
        ("upgrade_available", ("curl",), {}, False),
        ("list_upgrades", (), {}, {}),
        ("list_repo_pkgs", ("git",), {}, {"git": ["1:2.39.2-1", "1:2.30.0-1"]}),
        ("version_cmp", ("1:1.0", "2.0"), {}, 1),
        ("version_cmp", ("1:1.0", "2.0"), {"ignore_epoch": True}, -1),
        ("normalize_name", ("curl:amd64",), {}, "curl"),
        ("normalize_name", ("curl:i386",), {}, "curl:i386"),
        ("get_selections", (), {}, {"install": ["base-files", "curl"]}),
        ("parse_arch", ("zsh:amd64",), {}, {"name": "zsh", "arch": "amd64"}),
        ("parse_arch", ("zsh",), {}, {"name": "zsh", "arch": None}),
        ("install", (), {}, {}),
        ("remove", ("nothing",), {}, {}),
        ("purge", ("nothing",), {}, {}),
    ],
)
def test_reading(plain, debian, name, args, kwargs, value):
    assert plain.call(f"pkg.{name}", *args, **kwargs) == value


def test_refresh(plain, debian):
    assert plain.call("pkg.refresh_db") == {
        "http://deb.test bookworm InRelease": None,
        "http://deb.test bookworm/main amd64 Packages": True,
        "http://gone.test bookworm InRelease": False,
    }
    with pytest.raises(CommandError, match=r"Error getting repos: http://gone\.test"):
        plain.call("pkg.refresh_db", failhard=True)
    (debian.root / "var/lib/apt/lists").mkdir(parents=True)
    assert plain.call("pkg.refresh_db", cache_valid_time=60) == {}
    debian.broken["apt-get"] = "E: no lock\n"
    with pytest.raises(CommandError, match="E: no lock"):
        plain.call("pkg.refresh_db")


@pytest.mark.parametrize(
    ("arguments", "called", "changes"),
    [
        ({"name": "nginx-light"}, [f"{OPTIONS} install nginx-light"], {"nginx-light": {"old": "", "new": "1.22.1-9"}}),
        (
            {"pkgs": ["git", {"nginx-light": "1.22.0-1"}], "install_recommends": False, "fromrepo": "stable"},
            [f"{OPTIONS} --no-install-recommends -t stable install git nginx-light=1.22.0-1"],
            {"git": {"old": "", "new": "1:2.39.2-1"}, "nginx-light": {"old": "", "new": "1.22.0-1"}},
        ),
        (
            {"name": "git", "version": "<1:2.35, >=1:2.1"},
            [f"{OPTIONS} install git=1:2.30.0-1"],
            {"git": {"old": "", "new": "1:2.30.0-1"}},
        ),
        ({"name": "curl", "version": "7.*", "only_upgrade": True}, [f"{OPTIONS} --only-upgrade install curl=7.*"], {}),
        (
            {"name": "curl", "version": "7.1"},
            [f"{OPTIONS} --allow-downgrades install curl=7.1"],
            {"curl": {"old": "7.88.1-10", "new": "7.1"}},
        ),
        (
            {"name": "curl", "reinstall": True},
            [f"{OPTIONS} --reinstall install curl"],
            {"curl": {"old": "7.88.1-10", "new": "7.88.1-10"}},
        ),
        ({"name": "curl", "version": "7.88.1-10", "refresh": True}, [f"{OPTIONS} install curl=7.88.1-10"], {}),
        (
            {"name": "curl", "refresh": True},
            ["-q -o DPkg::Lock::Timeout=120 update", f"{OPTIONS} install curl"],
            {},
        ),
        (
            {"name": "curl", "force_conf_new": True},
            ["-q -y -o DPkg::Lock::Timeout=120 -o DPkg::Options::=--force-confnew install curl"],
            {},
        ),
    ],
)
def test_installing(plain, debian, arguments, called, changes):
    assert plain.call("pkg.install", **arguments) == changes
    assert [call for call in debian.calls if call.startswith("apt-get")] == [f"apt-get {words}" for words in called]
    assert list((debian.root / "tmp").iterdir()) == []


def test_what_cannot_be_installed(plain, debian):
    with pytest.raises(CommandError) as caught:
        plain.call("pkg.install", pkgs=["git", "nothing"])
    assert caught.value.strerror_without_changes == (
        "Problem encountered installing package(s). Additional info follows:\n\n"
        "errors:\n    - E: Unable to locate package nothing"
    )
    # Who calls it directly is told what was done, too.
    assert "changes:\n    ----------\n    git:\n" in str(caught.value)
    assert caught.value.info["changes"] == {"git": {"old": "", "new": "1:2.39.2-1"}}
    with pytest.raises(
        CommandError, match=r"\n    - package lists that could not be fetched: http://gone.test bookworm"
    ):
        plain.call("pkg.install", "nothing", refresh=True)
    with pytest.raises(CommandError, match=r"No version matching 'git>3' could be found \(available: 1:2.39.2-1, 1:2"):
        plain.call("pkg.install", "git", version=">3", ignore_epoch=True)
    with pytest.raises(InvocationError, match="Only one of"):
        plain.call("pkg.install", pkgs=["git"], sources=[{"git": "/git.deb"}])


@pytest.mark.parametrize("place", ["salt://local", "/opt/local"])
def test_package_files(plain, debian, place):
    plain.write("local", "a package")
    (debian.root / "opt").mkdir()
    (debian.root / "opt/local").write_text("a package")
    assert plain.call("pkg.install", sources=[{"local": place}]) == {"local": {"old": "", "new": "1.0"}}
    assert "--allow-downgrades install /tmp/.saltern-packages-" in debian.calls[-2]
    assert debian.calls[-2].endswith("/0-local.deb")
    assert list((debian.root / "tmp").iterdir()) == []


def test_package_files_from_a_server(plain, debian):
    with serve() as web:
        web.answers["/pool/local_1.0.deb"] = (200, {}, b"a package")
        changes = plain.call("pkg.install", sources=[{"local": f"{web.url}/pool/local_1.0.deb"}])
        assert changes == {"local": {"old": "", "new": "1.0"}}
        with pytest.raises(CommandError, match=r"Unable to cache source .*/gone\.deb for package local: .* HTTP 404"):
            plain.call("pkg.install", sources=[{"local": f"{web.url}/gone.deb"}])


@pytest.mark.parametrize("place", ["salt://gone", "/gone.deb", "ftp://deb.test/gone.deb"])
def test_package_files_that_are_not_there(plain, debian, place):
    with pytest.raises((CommandError, InvocationError), match="gone"):
        plain.call("pkg.install", sources=[{"local": place}])


def test_removing(plain, debian):
    assert plain.call("pkg.remove", "cur*") == {"curl": {"old": "7.88.1-10", "new": ""}}
    assert debian.left["curl"] == "7.88.1-10"
    assert plain.call("pkg.purge", pkgs=["curl", "oldthing", "base-files"]) == {
        "installed": {"base-files": {"old": "12.4", "new": ""}},
        "removed": {"curl": {"old": "7.88.1-10", "new": ""}, "oldthing": {"old": "1.0", "new": ""}},
    }
    assert debian.calls[-3] == "apt-get -q -y -o DPkg::Lock::Timeout=120 purge base-files curl oldthing"


def test_packages_that_nobody_needs(plain, debian):
    assert plain.call("pkg.autoremove", list_only=True) == ["base-files", "curl"]
    assert "curl" in debian.installed
    assert plain.call("pkg.autoremove", purge=True) == {"curl": {"old": "7.88.1-10", "new": ""}}
    assert debian.calls[-2].endswith("--purge autoremove")


def test_upgrading(plain, debian):
    debian.installed["curl"] = "7.80"
    assert plain.call("pkg.list_upgrades", refresh=False) == {"curl": "7.88.1-10"}
    assert plain.call("pkg.upgrade", refresh=False) == {"curl": {"old": "7.80", "new": "7.88.1-10"}}


def test_holding(plain, debian):
    assert plain.call("pkg.hold", "curl") == {
        "curl": {
            "name": "curl",
            "changes": {"old": "install", "new": "hold"},
            "result": True,
            "comment": "Package curl is now being held.",
        }
    }
    assert plain.call("pkg.hold", pkgs=["curl"])["curl"]["comment"] == "Package curl is already set to be held."
    assert plain.call("pkg.list_pkgs")["curl"] == "7.88.1-10"
    plain.call("pkg.install", "curl")
    assert debian.held == {"curl"}
    assert plain.call("pkg.unhold", "curl")["curl"]["comment"] == "Package curl is no longer being held."
    assert plain.call("pkg.unhold", "curl")["curl"]["comment"] == "Package curl is already set not to be held."
    assert plain.call("pkg.unhold", "no")["no"]["result"] is False
    with pytest.raises(InvocationError, match="must be specified"):
        plain.call("pkg.hold")


def test_dpkg_is_asked_again_only_when_its_database_changed(plain, debian):
    status = debian.root / "var/lib/dpkg/status"
    status.parent.mkdir(parents=True)
    status.write_text("one")
    ctx = plain.context()
    for text in (None, "a second"):
        if text:
            status.write_text(text)
        ctx.call("pkg.list_pkgs")
        ctx.call("pkg.version", "curl")
    assert sum(call.startswith("dpkg-query") for call in debian.calls) == 2


def test_hosts_without_apt(plain, debian):
    debian.absent |= {"apt-get", "dpkg"}
    with pytest.raises(NotAvailable, match="the host has no apt-get, dpkg"):
        plain.call("pkg.version", "curl")


def test_answers_to_questions(plain, debian, monkeypatch):
    plain.write("answers", "nginx nginx/log boolean true\n")
    told = []
    monkeypatch.setattr(debian, "_debconf_set_selections", lambda words, stdin: told.append(stdin), raising=False)
    entry = plain.state("pkg.installed", name="nginx-light", debconf="salt://answers", test=True)
    assert (entry["result"], told) == (None, [])
    assert plain.state("pkg.installed", name="nginx-light", debconf="salt://answers")["result"] is True
    assert told == ["nginx nginx/log boolean true\n"]
    debian.broken["debconf-set-selections"] = "error: Cannot parse"
    with pytest.raises(CommandError, match="debconf-set-selections failed: error: Cannot parse"):
        plain.call("pkg.install", "git", debconf="salt://answers")
    entry = plain.state("pkg.installed", name="git", debconf="salt://none")
    assert (entry["result"], entry["changes"]) == (False, {})


def test_fetched_packages(plain, debian):
    place = debian.root / "var/cache/apt/archives"
    place.mkdir(parents=True)
    (place / "git_1%3a2.39.2-1_amd64.deb").write_text("1234")
    (place / "odd.deb").write_text("")
    found = plain.call("pkg.list_downloaded")
    assert list(found) == ["git"]
    assert found["git"]["1:2.39.2-1"]["size"] == 4
    assert found["git"]["1:2.39.2-1"]["path"] == "/var/cache/apt/archives/git_1%3a2.39.2-1_amd64.deb"
    assert plain.state("pkg.downloaded", name="git", version="1:2.39.2-1")["changes"] == {}
    would = plain.state("pkg.downloaded", name="curl", test=True)
    assert (would["result"], would["comment"]) == (None, "The following packages would be downloaded: curl")
    assert plain.state("pkg.downloaded", name="curl")["comment"] == "The following packages failed to download: curl"
