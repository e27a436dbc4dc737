"""Packages by rpm and dnf: what they are told, by the program that the host has, and what they say, read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from statecore.builtin.modules.pkg_rpm import dnf, group_listings, locks
from statecore.host.host import Host
from statecore.model.errors import CommandError, InvocationError, NotAvailable
from statecore.model.ports import CommandResult

INSTALLED = (
    "bash\t(none)\t5.2\t1\tx86_64\t1700000000\nglibc\t(none)\t2.39\t1\ti686\t0\nkernel\t(none)\t6.8\t1\tx86_64\t0\n"
)


class Told(Host):
    """A mounted host that answers by what a command starts with, and remembers what it was told."""

    def __init__(self, root: Path, programs: Sequence[str]) -> None:
        super().__init__(root)
        self.programs = programs
        self.calls: list[str] = []
        self.answers: dict[str, tuple[int, str, str]] = {"rpm -qa": (0, INSTALLED, "")}

    def which(self, program: str) -> str | None:
        return f"/usr/bin/{program}" if program in self.programs else None

    def run(self, cmd: str | Sequence[str], **options: Any) -> CommandResult:
        words = list(cmd)[6:] if list(cmd)[:2] == ["/bin/sh", "-c"] else list(cmd)
        line = " ".join(words)
        self.calls.append(line)
        code, out, err = next((answer for start, answer in self.answers.items() if line.startswith(start)), (0, "", ""))
        return CommandResult(code, out, err, 1)


@pytest.fixture
def told(plain, monkeypatch):
    """Makes the host of ``plain`` one that has these programs; its grains say which family it is of."""
    made = plain.context

    def chosen(*programs: str, family: str = "RedHat") -> Told:
        host = Told(plain.root, ("rpm", *programs))
        grains = {"os_family": family, "osarch": "x86_64"}
        monkeypatch.setattr(plain, "context", lambda **changes: made(**{"host": host, "grains": grains, **changes}))
        return host

    return chosen


@pytest.mark.parametrize(
    ("programs", "family", "reason"),
    [
        ((), "RedHat", "the host has no dnf5 nor dnf nor yum"),
        (
            ("dnf", "apt-get", "apt-cache", "dpkg-query", "dpkg"),
            "Debian",
            "of the family Debian, whose packages are those of APT",
        ),
        (
            ("apt-get", "apt-cache", "dpkg-query", "dpkg"),
            "RedHat",
            "of the family RedHat, whose packages are those of RPM",
        ),
    ],
)
def test_the_host_decides(plain, told, programs, family, reason):
    host = told(*programs, family=family)
    host.answers["dpkg"] = (0, "amd64\n", "")
    if family == "Debian":
        assert plain.call("pkg.list_pkgs") == {}
        assert host.calls[-1].startswith("dpkg")
        return
    with pytest.raises(NotAvailable, match=reason):
        plain.call("pkg.list_pkgs")


def test_what_is_installed(plain, told):
    host = told("dnf")
    assert plain.call("pkg.list_pkgs") == {"bash": "5.2-1", "glibc.i686": "2.39-1", "kernel": "6.8-1"}
    assert plain.call("pkg.list_pkgs", attr="version,arch")["glibc.i686"] == [{"version": "2.39", "arch": "i686"}]
    assert plain.call("pkg.list_pkgs", attr="all")["bash"][0]["install_date"] == "2023-11-14T22:13:20+00:00Z"
    assert plain.call("pkg.version", "bash.x86_64", "bash") == {"bash.x86_64": "", "bash": "5.2-1"}
    assert plain.call("pkg.normalize_name", "bash.x86_64") == "bash"
    assert plain.call("pkg.normalize_name", "glibc.i686") == "glibc.i686"
    assert plain.call("pkg.normalize_name", "python3.11") == "python3.11"
    assert plain.call("pkg.parse_arch", "glibc.i686") == {"name": "glibc", "arch": "i686"}
    assert plain.call("pkg.info_installed", "bash")["bash"]["release"] == "1"
    with pytest.raises(CommandError, match="not installed: no"):
        plain.call("pkg.info_installed", "no")
    host.answers["rpm -qa"] = (1, "", "error: cannot open Packages database")
    with pytest.raises(CommandError, match="cannot open Packages"):
        plain.call("pkg.list_pkgs")


@pytest.mark.parametrize(
    ("programs", "function", "arguments", "called"),
    [
        (("dnf5", "dnf"), "install", {"name": "a"}, "dnf5 -y install --best --allowerasing a"),
        (("dnf",), "install", {"name": "a"}, "dnf -y --best --allowerasing install a"),
        (("yum",), "install", {"name": "a"}, "yum -y install a"),
        (("dnf",), "install", {"name": "a", "version": "1:2-3"}, "dnf -y --best --allowerasing install a-2-3"),
        (("dnf",), "install", {"name": "a.i686", "version": "2-3"}, "dnf -y --best --allowerasing install a-2-3.i686"),
        (("dnf",), "install", {"name": "bash", "version": "5.1-1"}, "dnf -y downgrade bash-5.1-1"),
        (
            ("dnf",),
            "install",
            {"name": "kernel", "version": "6.1-1"},
            "dnf -y --best --allowerasing install kernel-6.1-1",
        ),
        (("dnf",), "install", {"name": "bash", "reinstall": True}, "dnf -y reinstall bash"),
        (
            ("dnf",),
            "install",
            {"name": "a", "fromrepo": "x,y", "skip_verify": True, "setopt": "b=1,c=2", "disableexcludes": "all"},
            "dnf -y --best --allowerasing --disablerepo=* --enablerepo=x,y --disableexcludes=all --setopt=b=1 --setopt=c=2"
            " --nogpgcheck install a",
        ),
        (
            ("dnf",),
            "install",
            {"name": "a", "enablerepo": ["x", "y"], "disablerepo": "z"},
            "dnf -y --best --allowerasing --disablerepo=z --enablerepo=x --enablerepo=y install a",
        ),
        (
            ("dnf",),
            "install",
            {"name": "a", "downloadonly": True},
            "dnf -y --best --allowerasing --downloadonly install a",
        ),
        (
            ("dnf5",),
            "install",
            {"name": "a", "downloadonly": True},
            "dnf5 -y install --best --allowerasing --downloadonly a",
        ),
        (("dnf",), "remove", {"name": "ba*"}, "dnf -y remove bash"),
        (("dnf",), "remove", {"pkgs": [{"bash": "5.2-1"}, {"kernel": "1"}]}, "dnf -y remove bash-5.2-1"),
        (("dnf",), "purge", {"name": "bash"}, "dnf -y remove bash"),
        (("dnf",), "autoremove", {}, "dnf -y autoremove"),
        (("dnf",), "upgrade", {"refresh": False, "pkgs": ["bash"]}, "dnf --quiet -y upgrade bash"),
        (
            ("dnf",),
            "upgrade",
            {"refresh": False, "security": True, "exclude": "kernel*", "dist_upgrade": True, "minimal": True},
            "dnf --quiet -y --exclude=kernel* --security upgrade-minimal",
        ),
        (("dnf",), "update", {"refresh": False}, "dnf --quiet -y --setopt=obsoletes=False upgrade"),
        (("dnf",), "refresh_db", {"enablerepo": "x"}, "dnf --quiet --assumeyes check-update --enablerepo=x"),
        (("dnf",), "list_upgrades", {"refresh": False}, "dnf --quiet list --upgrades"),
        (("yum",), "list_upgrades", {"refresh": False}, "yum --quiet list updates"),
        (("dnf5",), "latest_version", {"refresh": False}, ""),
        (("dnf",), "list_repo_pkgs", {"cacheonly": True}, "dnf --quiet -C list available --showduplicates"),
        (("dnf5",), "list_repo_pkgs", {}, "dnf5 --quiet list --available --showduplicates"),
    ],
)
def test_what_is_told(plain, told, programs, function, arguments, called):
    host = told(*programs)
    (host.root / "tmp").mkdir(exist_ok=True)
    plain.call(f"pkg.{function}", **arguments)
    ran = [call for call in host.calls if not call.startswith("rpm")]
    assert ran[-1:] == ([called] if called else [])


def test_what_fails(plain, told):
    host = told("dnf")
    host.answers["dnf -y"] = (1, "", "Error: Unable to find a match: no")
    with pytest.raises(
        CommandError, match=r"Error occurred installing package\(s\)(.|\n)*- Error: Unable to find a match: no"
    ):
        plain.call("pkg.install", "no")
    with pytest.raises(CommandError, match=r"Error occurred removing"):
        plain.call("pkg.remove", "bash")
    host.answers["dnf --quiet -y"] = (1, "", "Error: no space")
    with pytest.raises(CommandError, match="Problem encountered upgrading packages"):
        plain.call("pkg.upgrade", refresh=False)
    host.answers = {"dnf --quiet": (1, "", "Error: Failed to download metadata for repo 'x'"), **host.answers}
    with pytest.raises(CommandError, match="Failed to download metadata for repo 'x'"):
        plain.call("pkg.latest_version", "a", refresh=False)
    host.answers["dnf --quiet"] = (1, "", "Error: No matching Packages to list")
    assert plain.call("pkg.latest_version", "a", refresh=False) == ""
    with pytest.raises(CommandError, match="Error getting repos"):
        plain.call("pkg.refresh_db", failhard=True)
    with pytest.raises(InvocationError, match="pkgs must be a list"):
        plain.call("pkg.install", pkgs=5)
    with pytest.raises(InvocationError, match="Only one of"):
        plain.call("pkg.install", pkgs=["a"], sources=[{"a": "/a"}])


@pytest.mark.parametrize(("code", "value"), [(0, None), (100, True), (1, False)])
def test_refresh(plain, told, code, value):
    told("dnf").answers["dnf --quiet --assumeyes check-update"] = (code, "", "")
    assert plain.call("pkg.refresh_db") is value


def test_listings_whose_lines_were_broken():
    text = (
        "Available Packages\na-very-long-name-of-a-package.x86_64\n"
        "                      1:2.0-1     updates\na.noarch 1.0- @main\nb.i686 3-1 main\n"
    )
    assert dnf.parse_listing(text, "x86_64") == [
        dnf.AvailablePackage("a-very-long-name-of-a-package", "x86_64", "1:2.0-1", "updates"),
        dnf.AvailablePackage("b.i686", "i686", "3-1", "main"),
        dnf.AvailablePackage("a", "noarch", "1.0", "main"),
    ]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("# Added lock on Mon\nbash-0:5.2-1.*\n\n!nano-0:1-1.*\n", ["bash"]),
        ("2:vim-enhanced-7.4.629-5.el6.*\n", ["vim-enhanced"]),
        ("python3-dnf-4.14-1\nbare\n", ["python3-dnf", "bare"]),
    ],
)
def test_locks(text, names):
    assert [lock.name for lock in locks.parse(text)] == names


def test_locks_of_dnf5(plain, told):
    host = told("dnf5")
    assert plain.call("pkg.list_holds") == []
    place = host.root / "etc/dnf/versionlock.toml"
    place.parent.mkdir(parents=True)
    place.write_text(
        'version = "1.0"\n[[packages]]\nname = "bash"\n[[packages.conditions]]\nkey = "evr"\ncomparator = "="\n'
        'value = "5.2-1"\n[[packages]]\nname = "curl"\n'
    )
    assert plain.call("pkg.list_holds") == ["bash-0:5.2-1.*", "curl"]
    assert plain.call("pkg.list_holds", full=False) == ["bash", "curl"]
    assert plain.call("pkg.unhold", "bash")["bash"]["comment"] == "Package bash is no longer held."
    assert host.calls[-1] == "dnf5 versionlock delete bash"
    host.answers["dnf5 versionlock add"] = (1, "", "no such package")
    assert plain.call("pkg.hold", "no")["no"] == {
        "name": "no",
        "changes": {},
        "result": False,
        "comment": "Package no was unable to be held. no such package",
    }
    place.write_text("[[packages")
    with pytest.raises(CommandError, match=r"/etc/dnf/versionlock\.toml: "):
        plain.call("pkg.list_holds")


def test_locks_of_yum_are_removed_by_their_whole_text(plain, told):
    host = told("yum")
    with pytest.raises(InvocationError, match="yum-plugin-versionlock is not installed"):
        plain.call("pkg.list_holds")
    (host.root / "etc/yum/pluginconf.d").mkdir(parents=True)
    (host.root / "etc/yum/pluginconf.d/versionlock.conf").write_text("[main]\nlocklist = /etc/locks\n")
    (host.root / "etc/locks").write_text("0:bash-5.2-1.*\n0:bash-doc-5.2-1.*\n")
    plain.call("pkg.unhold", "bash")
    assert host.calls[-1] == "yum -q versionlock delete 0:bash-5.2-1.*"


def test_verification(plain, told):
    host = told("dnf")
    host.answers = {
        "rpm -V": (1, "S.5....T.  c /etc/a b\nmissing   d /usr/x\n.M.......    /y\nUnsatisfied dependencies\n", "")
    }
    assert plain.call("pkg.verify", "bash", verify_options="nosize") == {}
    host.answers["rpm --nosize -V"] = host.answers["rpm -V"]
    assert plain.call("pkg.verify", "bash", verify_options="nosize", ignore_types="doc") == {
        "/etc/a b": {"mismatch": ["size", "md5sum", "mtime"], "type": "config"},
        "/y": {"mismatch": ["mode"]},
    }
    assert plain.call("pkg.modified", "bash")["/usr/x"] == ["missing"]
    host.answers["rpm -V"] = (1, "", "package no is not installed")
    with pytest.raises(CommandError, match="Failed to verify package"):
        plain.call("pkg.verify", "no")


def test_groups_as_dnf_and_dnf5_tell_them(plain, told):
    old = "Group: Works\n Group-Id: works\n Description: What: works.\n"
    old += " Mandatory Packages:\n   +mill\n Optional Packages:\n   gear\n"
    new = "Id                   : works\nName                 : Works\nMandatory packages   : mill\n                     : wheel\n"
    assert group_listings.parse_info(old) == {
        "type": "package group",
        "group": "Works",
        "id": "works",
        "description": "What: works.",
        "mandatory": ["mill"],
        "optional": ["gear"],
        "default": [],
        "conditional": [],
    }
    assert group_listings.parse_info(new)["mandatory"] == ["mill", "wheel"]
    environment = "Environment Group: All\n Environment-Id: all\n Mandatory Groups:\n   Works\n"
    host = told("dnf")
    host.answers = {
        "dnf --quiet groupinfo All": (0, environment, ""),
        "dnf --quiet groupinfo Works": (0, old, ""),
        **host.answers,
    }
    assert plain.call("pkg.group_info", "All")["mandatory"] == ["Works"]
    assert plain.call("pkg.group_info", "All", expand=True)["mandatory"] == ["mill"]
    assert plain.call("pkg.group_diff", "Works")["mandatory"] == {"installed": [], "not installed": ["mill"]}
    with pytest.raises(CommandError, match="Group 'None' not found"):
        plain.call("pkg.group_info", "None")
    host.answers["dnf grouplist"] = (0, "Installed Groups:\n   Works\nAvailable Groups:\n   Play\nDone\n", "")
    assert plain.call("pkg.group_list")["available"] == ["Play"]
    assert group_listings.parse_table("ID  Name  Installed\nworks  Works of all  yes\nplay Play no\n")["installed"] == [
        "works"
    ]


def test_advisories(plain, told):
    told("dnf").answers["dnf --quiet updateinfo"] = (
        0,
        "i A-1 Low/Sec. a-1\n  A-1 Low/Sec. b-1\ni A-2 bugfix c-1\n",
        "",
    )
    assert plain.call("pkg.list_patches")["A-1"] == {"installed": False, "summary": ["a-1", "b-1"]}
    assert list(plain.call("pkg.list_installed_patches")) == ["A-2"]


#: Programs of the host -> the command that downloads, the folder.
DOWNLOADERS = {
    ("dnf", "yumdownloader"): ("yumdownloader -q --destdir=/var/cache/dnf/packages a b", "dnf"),
    ("dnf5",): ("dnf5 -q download --destdir=/var/cache/dnf5/packages a b", "dnf5"),
    ("yum", "yumdownloader"): ("yumdownloader -q --destdir=/var/cache/yum/packages a b", "yum"),
}


@pytest.mark.parametrize("programs", DOWNLOADERS)
def test_downloads(plain, told, programs):
    command, folder = DOWNLOADERS[programs]
    host = told(*programs)
    cache = plain.root / f"var/cache/{folder}/packages"
    cache.mkdir(parents=True)
    for name in ("a-1-1.x86_64.rpm", "a-b-1-1.x86_64.rpm"):
        (cache / name).write_bytes(b"rpm")
    run = host.run

    def downloads(cmd, **options):
        done = run(cmd, **options)
        line = host.calls[-1]
        if line == command:
            assert not (cache / "a-1-1.x86_64.rpm").exists()
            (cache / "a-2-1.x86_64.rpm").write_bytes(b"rpm")
        if line.startswith("rpm -qp"):
            names = [Path(word).name.rsplit("-", 2) for word in line.split() if word.endswith(".rpm")]
            rows = [f"{name}\t(none)\t{version}\t1\tx86_64\t0\n" for name, version, _ in names]
            return CommandResult(0, "".join(rows), "", 1)
        return done

    host.run = downloads
    assert plain.call("pkg.download", "a", "b") == {
        "a": f"/var/cache/{folder}/packages/a-2-1.x86_64.rpm",
        "_error": "The following package(s) failed to download: b",
    }
    assert command in host.calls
    assert (cache / "a-b-1-1.x86_64.rpm").exists()
    with pytest.raises(CommandError, match="Unable to download any of the following packages: c"):
        plain.call("pkg.download", "c")
    with pytest.raises(InvocationError, match="No packages were specified"):
        plain.call("pkg.download")


def test_nothing_downloads_on_yum_alone(plain, told):
    told("yum")
    with pytest.raises(CommandError, match="'yumdownloader' command not available: install yum-utils"):
        plain.call("pkg.download", "a")


def test_differences(plain, told):
    host = told("dnf", "yumdownloader", "rpm2cpio", "cpio", "diff")
    (plain.root / "etc").mkdir()
    for name in ("own", "a.conf"):
        (plain.root / "etc" / name).write_text("text\n")
    host.answers["rpm -qf --queryformat %{NAME}\n /etc/a.conf"] = (0, "a", "")
    host.answers["rpm -qf"] = (1, "", "not owned")
    assert plain.call("pkg.diff", "/etc/own", "/etc/none") == {"/etc/own": "Not managed", "/etc/none": "N/A"}
    with pytest.raises(CommandError, match="Unable to download any of the following packages: a"):
        plain.call("pkg.diff", "/etc/a.conf")


#: What needs-restarting prints of dnf and dnf5, and systemctl of the processes.
RUNNING = {
    "812": "\u25cf sshd.service - OpenSSH server daemon\n     Loaded: loaded\n",
    "9": "\u25cf sshd.service - OpenSSH server daemon\n",
    "77": "\u25cf session-1.scope - Session 1 of User root\n",
    "3": "",
}


@pytest.mark.parametrize("program", ["dnf", "dnf5"])
def test_services_to_restart(plain, told, program):
    host = told(program)
    host.answers[f"{program} --quiet needs-restarting"] = (
        1,
        "812 : /usr/sbin/sshd -D\n9 : sshd\n77 : -bash\n3 : gone\nNo core libraries\n",
        "",
    )
    for process, shown in RUNNING.items():
        host.answers[f"systemctl status --no-pager --lines=0 {process}"] = (0 if shown else 4, shown, "")
    with pytest.raises(CommandError, match="systemd is required"):
        plain.call("pkg.services_need_restart")
    (plain.root / "run/systemd/system").mkdir(parents=True)
    assert plain.call("pkg.services_need_restart") == ["sshd"]
    host.answers[f"{program} --quiet needs-restarting"] = (0, "", "")
    assert plain.call("pkg.services_need_restart") == []


def test_services_to_restart_on_yum(plain, told):
    told("yum")
    with pytest.raises(CommandError, match="dnf or dnf5 is required"):
        plain.call("pkg.services_need_restart")
