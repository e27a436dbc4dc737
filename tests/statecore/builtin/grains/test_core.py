"""Facts of a host in a temporary directory: os-release of many systems, as real Salt reads them; names; what is broken."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from statecore.builtin.grains import core, network
from statecore.host.host import Host
from statecore.runtime.runtime import gather_grains

#: Name -> (os-release, what is told of it)
SYSTEMS = {
    "debian": (
        {
            "ID": "debian",
            "NAME": "Debian GNU/Linux",
            "PRETTY_NAME": "Debian GNU/Linux 12 (bookworm)",
            "VERSION_ID": "12",
            "VERSION": "12 (bookworm)",
            "VERSION_CODENAME": "bookworm",
        },
        ("Debian", "Debian", "Debian GNU/Linux", "12", (12,), "Debian-12", "bookworm"),
    ),
    "debian testing": (
        {"ID": "debian", "NAME": "Debian GNU/Linux", "PRETTY_NAME": "Debian trixie/sid", "VERSION_CODENAME": "trixie"},
        ("Debian", "Debian", "Debian GNU/Linux", "", (), None, "trixie"),
    ),
    "ubuntu": (
        {
            "ID": "ubuntu",
            "ID_LIKE": "debian",
            "NAME": "Ubuntu",
            "PRETTY_NAME": "Ubuntu 22.04.3 LTS",
            "VERSION_ID": "22.04",
            "VERSION_CODENAME": "jammy",
        },
        ("Ubuntu", "Debian", "Ubuntu", "22.04", (22, 4), "Ubuntu-22.04", "jammy"),
    ),
    "mint": (
        {
            "ID": "linuxmint",
            "ID_LIKE": "ubuntu",
            "NAME": "Linux Mint",
            "PRETTY_NAME": "Linux Mint 21",
            "VERSION_ID": "21",
            "VERSION_CODENAME": "vanessa",
        },
        ("Mint", "Debian", "Linux Mint", "21", (21,), "Linux Mint-21", "vanessa"),
    ),
    "raspbian": (
        {
            "ID": "raspbian",
            "ID_LIKE": "debian",
            "NAME": "Raspbian GNU/Linux",
            "PRETTY_NAME": "Raspbian GNU/Linux 11 (bullseye)",
            "VERSION_ID": "11",
            "VERSION_CODENAME": "bullseye",
        },
        ("Raspbian", "Debian", "Raspbian GNU/Linux", "11", (11,), "Raspbian-11", "bullseye"),
    ),
    "pop": (
        {
            "ID": "pop",
            "ID_LIKE": "ubuntu debian",
            "NAME": "Pop!_OS",
            "PRETTY_NAME": "Pop!_OS 22.04 LTS",
            "VERSION_ID": "22.04",
            "VERSION_CODENAME": "jammy",
        },
        ("Pop", "Debian", "Pop!_OS", "22.04", (22, 4), "Pop!_OS-22.04", "jammy"),
    ),
    "kali": (
        {
            "ID": "kali",
            "ID_LIKE": "debian",
            "NAME": "Kali GNU/Linux",
            "PRETTY_NAME": "Kali GNU/Linux Rolling",
            "VERSION_ID": "2024.1",
            "VERSION_CODENAME": "kali-rolling",
        },
        ("Kali", "Debian", "Kali GNU/Linux", "2024.1", (2024, 1), "Kali GNU/Linux-2024", "kali-rolling"),
    ),
    "rocky": (
        {
            "ID": "rocky",
            "ID_LIKE": "rhel centos fedora",
            "NAME": "Rocky Linux",
            "PRETTY_NAME": "Rocky Linux 9.3 (Blue Onyx)",
            "VERSION_ID": "9.3",
            "VERSION": "9.3 (Blue Onyx)",
        },
        ("Rocky", "RedHat", "Rocky Linux", "9.3", (9, 3), "Rocky Linux-9", "Blue Onyx"),
    ),
    "alma": (
        {
            "ID": "almalinux",
            "ID_LIKE": "rhel centos fedora",
            "NAME": "AlmaLinux",
            "PRETTY_NAME": "AlmaLinux 9.3 (Shamrock Pampas Cat)",
            "VERSION_ID": "9.3",
            "VERSION": "9.3 (Shamrock Pampas Cat)",
        },
        ("AlmaLinux", "RedHat", "AlmaLinux", "9.3", (9, 3), "AlmaLinux-9", "Shamrock Pampas Cat"),
    ),
    "rhel": (
        {
            "ID": "rhel",
            "ID_LIKE": "fedora",
            "NAME": "Red Hat Enterprise Linux",
            "PRETTY_NAME": "Red Hat Enterprise Linux 9.3 (Plow)",
            "VERSION_ID": "9.3",
            "VERSION": "9.3 (Plow)",
        },
        ("RedHat", "RedHat", "Red Hat Enterprise Linux", "9.3", (9, 3), "Red Hat Enterprise Linux-9", ""),
    ),
    "fedora": (
        {"ID": "fedora", "NAME": "Fedora Linux", "PRETTY_NAME": "Fedora Linux 39", "VERSION_ID": "39"},
        ("Fedora", "RedHat", "Fedora Linux", "39", (39,), "Fedora Linux-39", ""),
    ),
    "centos": (
        {
            "ID": "centos",
            "ID_LIKE": "rhel fedora",
            "NAME": "CentOS Stream",
            "PRETTY_NAME": "CentOS Stream 9",
            "VERSION_ID": "9",
        },
        ("CentOS Stream", "RedHat", "CentOS Stream", "9", (9,), "CentOS Stream-9", ""),
    ),
    "amazon": (
        {
            "ID": "amzn",
            "ID_LIKE": "fedora",
            "NAME": "Amazon Linux",
            "PRETTY_NAME": "Amazon Linux 2023",
            "VERSION_ID": "2023",
        },
        ("Amazon", "RedHat", "Amazon Linux", "2023", (2023,), "Amazon Linux-2023", ""),
    ),
    "alpine": (
        {"ID": "alpine", "NAME": "Alpine Linux", "PRETTY_NAME": "Alpine Linux v3.19", "VERSION_ID": "3.19.1"},
        ("Alpine", "Alpine", "Alpine Linux", "3.19.1", (3, 19, 1), "Alpine Linux-3", ""),
    ),
    "arch": (
        {"ID": "arch", "NAME": "Arch Linux", "PRETTY_NAME": "Arch Linux"},
        ("Arch", "Arch", "Arch Linux", "", (), None, ""),
    ),
    "strange": (
        {"ID": "strange", "NAME": "Strange OS", "PRETTY_NAME": "Strange", "VERSION_ID": "rolling"},
        ("Strange OS", "Strange", "Strange OS", "rolling", ("rolling",), "Strange OS-rolling", ""),
    ),
    # Of these Salt tells by other files than os-release.
    "leap": (
        {"ID": "opensuse-leap", "ID_LIKE": "suse opensuse", "NAME": "openSUSE Leap", "VERSION_ID": "15.5"},
        ("SUSE", "Suse", "Leap", "15.5", (15, 5), "Leap-15", ""),
    ),
    "sles": (
        {"ID": "sles", "ID_LIKE": "suse", "NAME": "SLES", "VERSION_ID": "15.4"},
        ("SUSE", "Suse", "SLES", "15.4", (15, 4), "SLES-15", ""),
    ),
}

NAMES = ("os", "os_family", "osfullname", "osrelease", "osrelease_info", "osfinger", "oscodename")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "etc").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems(root, name):
    release, told = SYSTEMS[name]
    lines = ["# a comment", "", *(f'{key}="{value}"' for key, value in release.items()), "NONSENSE"]
    (root / "etc/os-release").write_text("\n".join(lines))
    grains = core.operating_system(Host(root), {})
    assert tuple(grains.get(key) for key in NAMES) == told
    major = told[4][0] if told[4] else None
    assert grains.get("osmajorrelease") == (major if isinstance(major, int) else None)
    assert grains["lsb_distrib_id"] == release["NAME"]


@pytest.mark.oracle
def test_systems_are_as_salt_has_them(oracle):
    cases = [case for case in SYSTEMS.values() if "PRETTY_NAME" in case[0]]
    script = Path(__file__).parent / "salt_os_grains.py"
    answers = json.loads(oracle.run("python", str(script), stdin=json.dumps([release for release, _ in cases])))
    for (release, told), answer in zip(cases, answers, strict=True):
        ours = {key: value for key, value in zip(NAMES, told, strict=True) if value}
        theirs = {key: tuple(value) if isinstance(value, list) else value for key, value in answer.items() if value}
        theirs.pop("osmajorrelease", None)
        assert ours == theirs, release["NAME"]


@pytest.mark.parametrize("place", ["etc/os-release", "usr/lib/os-release"])
@pytest.mark.parametrize("quoted", ["NAME={}", 'NAME="{}"', "NAME='{}'"])
def test_where_and_how_it_is_written(root, place, quoted):
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).write_text(quoted.format("Alpine") + "\nID=alpine\n")
    assert core.operating_system(Host(root), {})["os"] == "Alpine"


def test_an_unknown_system(root):
    grains = core.operating_system(Host(root), {})
    assert (grains["os"], grains["os_family"], grains["osrelease"], grains["osrelease_info"]) == (
        "Unknown",
        "Unknown",
        "",
        (),
    )
    assert (grains["kernel"], grains["userland"]) == (os.uname().sysname, "none")


def test_what_a_userland_is(root):
    (root / "etc/os-release").write_text("ID=ubuntu\nID_LIKE=debian\nNAME=Ubuntu\n")
    assert core.operating_system(Host(root), {})["userland"] == "none"
    (root / "bin").mkdir()
    (root / "bin/sh").touch()
    assert core.operating_system(Host(root), {})["userland"] == "debian"


def test_files_that_are_none(root):
    """A pipe would be waited for, a loop would never end, a link out of the root must not be followed there."""
    os.mkfifo(root / "etc/os-release")
    (root / "etc/hostname").symlink_to("hostname")
    (root / "etc/machine-id").symlink_to("/etc/hostname")
    host = Host(root)
    assert core.operating_system(host, {})["os"] == "Unknown"
    assert network.names(host, {})["nodename"]
    assert "machine_id" not in core.machine(host, {})
    (root / "etc/hostname").unlink()
    (root / "etc/hostname").symlink_to("/../../../etc/passwd")
    assert "root:" not in network.names(host, {})["nodename"]


def test_names_of_a_mounted_host(root):
    (root / "etc/hostname").write_text("web1.example.org\n")
    (root / "etc/machine-id").write_text("abc\n")
    assert network.names(Host(root), {}) == {
        "nodename": "web1.example.org",
        "localhost": "web1.example.org",
        "fqdn": "web1.example.org",
        "host": "web1",
        "domain": "example.org",
        "fqdn_ip4": [],
        "fqdn_ip6": [],
        "fqdns": [],
    }
    machine = core.machine(Host(root), {})
    assert (machine["machine_id"], machine["host_root"]) == ("abc", str(root))


@pytest.mark.parametrize(
    ("hosts", "fqdn"),
    [
        ("127.0.0.1 localhost\n10.0.0.1 web1.example.org web1 # mine\n", "web1.example.org"),
        ("10.0.0.1 web1 web1.example.org\n", "web1.example.org"),
        ("10.0.0.1 web10.example.org web10\n", "web1"),
        ("# 10.0.0.1 web1.example.org web1\n", "web1"),
        ("", "web1"),
    ],
)
def test_the_whole_name_is_in_the_hosts_file(root, hosts, fqdn):
    (root / "etc/hosts").write_text(hosts)
    assert network._fqdn(Host(root), "web1") == fqdn


def test_init_systems(root):
    assert core.init_system(Host(root), {}) == {"init": "unknown"}
    (root / "etc/init.d").mkdir()
    assert core.init_system(Host(root), {}) == {"init": "sysvinit"}


def test_systemd_and_selinux_of_a_host(root):
    for name in ("bin/systemctl", "usr/bin/localectl", "usr/sbin/selinuxenabled"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch(0o755)
    (root / "usr/lib/systemd").mkdir(parents=True)
    (root / "usr/lib/systemd/libsystemd-shared-254.5-1.fc39.so").touch()
    (root / "run/systemd/system").mkdir(parents=True)
    grains = core.init_system(Host(root), {})
    assert (grains["init"], grains["systemd"]) == ("systemd", {"version": "254", "features": ""})
    assert set(grains["selinux"]) == {"enabled", "enforced"}


def test_this_process(root):
    process = core.process(Host(root), {})
    assert (process["uid"], process["pid"], process["saltversioninfo"]) == (os.geteuid(), os.getpid(), [3008, 3])
    machine = core.machine(Host(root), {"id": "web1", "master": "salt"})
    assert (machine["server_id"], machine["master"], machine["transactional"]) == (1826842219, "salt", False)


def test_all_together(root):
    (root / "etc/hostname").write_text("web1\n")
    grains = gather_grains(Host(root), {"id": "m", "grains": {"roles": ["web"], "os": "Mine"}})
    assert (grains["id"], grains["host"], grains["roles"], grains["os"]) == ("m", "web1", ["web"], "Mine")
    json.dumps(grains)


def test_later_grains_win(root, tmp_path):
    """Facts, users' modules, the static file, the configuration; maps are replaced, or joined where the option says so."""
    modules = tmp_path / "ext/grains"
    modules.mkdir(parents=True)
    (modules / "own.py").write_text(
        "def own(grains):\n    return {'who': 'custom', 'x': 'custom', 'os': 'Mine', 'deep': {'a': 1}, 'seen': grains['id']}\n"
    )
    (tmp_path / "grains").write_text("{who: file, x: file, deep: {b: 2}}")
    opts = {
        "id": "m",
        "extension_modules": str(tmp_path / "ext"),
        "grains_file": str(tmp_path / "grains"),
        "grains": {"who": "config", "deep": {"c": 3}},
    }
    names = ("who", "x", "os", "deep", "seen")
    grains = gather_grains(Host(root), opts)
    assert [grains[name] for name in names] == ["config", "file", "Mine", {"c": 3}, "m"]
    grains = gather_grains(Host(root), {**opts, "grains_deep_merge": True})
    assert [grains[name] for name in names] == ["config", "file", "Mine", {"a": 1, "b": 2, "c": 3}, "m"]
