"""Mounted hosts with a real userland, made from Debian's packages once for all tests of a run.

``debian_root``: a Debian as small as it comes.
``rpm_tree``: the host of a family whose packages are RPM's. Debian packages rpm and dnf; what the host says of itself, where its
database is, and a repository of small packages are made here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.engine.call import finish
from statecore.host.host import Host
from statecore.loader import Loader
from statecore.loader.tables import attached
from statecore.model.context import Context
from statecore.render import SlsTree
from statecore.runtime.masterless_ports import LocalMinion, NoEvents, NoJobs
from statecore.sources.local_tree import LocalFiles

#: Seconds that the packages may take to come and to be unpacked.
TIMEOUT = 1200

_INCLUDED = ("rpm", "dnf", "createrepo-c", "dnf-plugins-core")

_OS_RELEASE = 'NAME="Fedora Linux"\nID=fedora\nVERSION_ID=40\nPRETTY_NAME="Fedora Linux 40"\n'

_REPOSITORY = "[local]\nname=Local\nbaseurl=file:///srv/repo\nenabled=1\ngpgcheck=0\nmetadata_expire=1\n"

#: Name, epoch, version, release, what it requires; every package brings a program and a configuration file.
PACKAGES = (
    ("mill", 0, "1.0", "1", ""),
    ("mill", 0, "1.1~rc1", "1", ""),
    ("mill", 0, "1.1", "1", ""),
    ("wheel", 1, "0.9", "2", "mill"),
    ("gear", 0, "3.0", "1", ""),
)

_SPEC = """\
Name: {name}
Epoch: {epoch}
Version: {version}
Release: {release}
Summary: A {name}
License: MIT
BuildArch: noarch
{requires}
%description
A {name}.
%install
mkdir -p %{{buildroot}}/usr/bin %{{buildroot}}/etc
echo {version} > %{{buildroot}}/usr/bin/{name}
echo made > %{{buildroot}}/etc/{name}.conf
%files
/usr/bin/{name}
%config(noreplace) /etc/{name}.conf
"""

_GROUPS = """\
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE comps PUBLIC "-//Red Hat, Inc.//DTD Comps info//EN" "comps.dtd">
<comps><group><id>works</id><name>Works</name><description>A mill works</description><default>true</default>
<uservisible>true</uservisible><packagelist><packagereq type="mandatory">mill</packagereq>
<packagereq type="default">wheel</packagereq><packagereq type="optional">gear</packagereq></packagelist></group></comps>
"""


class Userland:
    """A mounted host, and calls on it; every call sees it anew."""

    def __init__(self, root: Path, tree: Path, grains: Mapping[str, Any]) -> None:
        self.root = root
        self.tree = tree
        self.grains = grains

    def run(self, *argv: str) -> str:
        """Standard output of a program of the host."""
        done = subprocess.run(
            ["chroot", self.root, *argv], capture_output=True, text=True, env={"PATH": "/usr/bin:/usr/sbin"}
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def context(self, *, test: bool = False) -> Context:
        files = LocalFiles({"base": [self.tree]})
        opts = {"id": "web1", "cachedir": str(self.tree.with_name("cache"))}
        unused: Any = None
        return attached(
            Context(
                host=Host(self.root),
                grains=self.grains,
                pillar={},
                opts=opts,
                files=files,
                templates=SlsTree(files, opts=opts, grains=self.grains, pillar={}, functions={}).templates,
                events=NoEvents(),
                jobs=NoJobs(),
                minion=LocalMinion(),
                catalog=unused,
                state_system=unused,
                functions={},
                states={},
                test=test,
            ),
            Loader(),
            finish,
        )

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        return self.context().call(name, *args, **kwargs)

    def state(self, function: str, /, *, test: bool = False, **kwargs: Any) -> dict[str, Any]:
        entry: dict[str, Any] = self.context(test=test).states[function](**kwargs)
        return entry


def _debootstrap(root: Path, included: tuple[str, ...]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root makes a userland")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed")
    made = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={','.join(included)}", "bookworm", root],
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )
    if made.returncode:
        pytest.skip(f"debootstrap could not make a tree: {made.stdout[-300:]} {made.stderr[-300:]}")


@pytest.fixture(scope="session")
def rpm_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The root of a host with rpm and dnf. SALTERN_RPM_TREE: a directory where it is kept from run to run."""
    kept = os.environ.get("SALTERN_RPM_TREE")
    root = Path(kept) if kept else tmp_path_factory.mktemp("userlands") / "rpm"
    if not (root / "srv/repo/repodata").is_dir():
        _debootstrap(root, _INCLUDED)
        _furnish(root)
    yield root
    if not kept:
        # Half a gigabyte, which pytest would keep.
        shutil.rmtree(root)


@pytest.fixture(scope="session")
def pristine_debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A Debian 12 as debootstrap leaves it. SALTERN_DEBIAN_TREE: a directory where it is kept from run to run."""
    kept = os.environ.get("SALTERN_DEBIAN_TREE")
    root = Path(kept) if kept else tmp_path_factory.mktemp("userlands") / "debian"
    if not (root / "usr/bin/crontab").exists():
        _debootstrap(root, ("cron", "locales", "procps"))
    yield root
    if not kept:
        shutil.rmtree(root)


@pytest.fixture
def debian_root(pristine_debian: Path, tmp_path: Path) -> Iterator[Path]:
    """The root of a Debian 12 for one test."""
    if os.geteuid() != 0:
        pytest.skip("only root copies a userland")
    root = tmp_path / "debian"
    subprocess.run(["cp", "-a", pristine_debian, root], check=True)
    yield root
    shutil.rmtree(root)


@pytest.fixture
def userland_of(tmp_path: Path):
    """Makes calls possible on a tree as a host with these grains."""
    (tmp_path / "tree").mkdir()
    return lambda root, grains: Userland(root, tmp_path / "tree", grains)


@pytest.fixture
def rpm_tree(rpm_root: Path, userland_of):
    """A host of the RedHat family; what a test installs is gone afterwards."""
    userland = userland_of(rpm_root, {"os": "Fedora", "os_family": "RedHat", "osarch": "x86_64"})
    yield userland
    (rpm_root / "etc/dnf/plugins/versionlock.list").write_text("")
    if installed := userland.run("rpm", "-qa", "--qf", "%{NAME}\n").split():
        userland.run("rpm", "-e", *set(installed))


def _furnish(root: Path) -> None:
    """Makes of the tree a host of another family, with packages to be had."""
    (root / "etc/os-release").unlink()
    (root / "etc/os-release").write_text(_OS_RELEASE)
    # Debian keeps the database in root's home, as its own packages are not in it.
    (root / "etc/rpm").mkdir(exist_ok=True)
    (root / "etc/rpm/macros").write_text("%_dbpath /var/lib/rpm\n")
    (root / "etc/yum.repos.d").mkdir(exist_ok=True)
    (root / "etc/yum.repos.d/local.repo").write_text(_REPOSITORY)
    # It is a repository of packages that were built here, and there are none.
    (root / "etc/dnf/plugins/local.conf").write_text("[main]\nenabled = false\n")
    (root / "var/lib/rpm").mkdir(parents=True, exist_ok=True)
    (root / "srv/repo").mkdir(parents=True)
    for name, epoch, version, release, requires in PACKAGES:
        spec = _SPEC.format(
            name=name,
            epoch=epoch,
            version=version,
            release=release,
            requires=f"Requires: {requires}" if requires else "",
        )
        (root / f"srv/{name}.spec").write_text(spec)
        _run(root, "rpmbuild", "-bb", "--define", "_rpmdir /srv/repo", f"/srv/{name}.spec")
    (root / "srv/comps.xml").write_text(_GROUPS)
    _run(root, "createrepo_c", "-g", "/srv/comps.xml", "/srv/repo")


def _run(root: Path, *argv: str) -> None:
    done = subprocess.run(["chroot", root, *argv], capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stdout + done.stderr
