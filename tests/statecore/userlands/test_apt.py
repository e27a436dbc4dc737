"""The pkg and pkgrepo states on a mounted Debian: real dpkg, real APT, a repository of files."""

from __future__ import annotations

import shutil
import subprocess

import pytest

pytestmark = [pytest.mark.userland, pytest.mark.timeout(1500)]

LINE = "deb [trusted=yes] file:/srv/debs ./"
LIST = "/etc/apt/sources.list.d/local.list"


@pytest.fixture
def debian(rpm_root, userland_of):
    """The same tree, asked as the Debian that it was made as; what a test installs is gone afterwards."""
    userland = userland_of(rpm_root, {"os": "Debian", "os_family": "Debian", "osarch": "amd64"})
    place = rpm_root / "srv/debs"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    index = []
    for version in ("1.0-1", "1:1.1-1"):
        source = place / "source"
        (source / "DEBIAN").mkdir(parents=True)
        control = (
            f"Package: mill\nVersion: {version}\nArchitecture: all\nMaintainer: x <x@y.test>\nDescription: A mill\n"
        )
        (source / "DEBIAN/control").write_text(control)
        (source / "DEBIAN/conffiles").write_text("/etc/mill.conf\n")
        (source / "etc").mkdir()
        (source / "etc/mill.conf").write_text("made\n")
        file = f"mill_{version.replace(':', '%3a')}_all.deb"
        userland.run("dpkg-deb", "--build", "/srv/debs/source", f"/srv/debs/{file}")
        digest = subprocess.run(["sha256sum", place / file], capture_output=True, text=True, check=True).stdout.split()[
            0
        ]
        index.append(f"{control}Filename: ./{file}\nSize: {(place / file).stat().st_size}\nSHA256: {digest}\n")
        shutil.rmtree(source)
    (place / "Packages").write_text("\n".join(index))
    kept = (rpm_root / "etc/apt/sources.list").read_text()
    (rpm_root / "etc/apt/sources.list").write_text("")
    yield userland
    (rpm_root / "etc/apt/sources.list").write_text(kept)
    (rpm_root / LIST.lstrip("/")).unlink(missing_ok=True)
    userland.run("dpkg", "--purge", "mill")


def test_from_a_repository_to_a_package_and_back(debian):
    added = debian.state("pkgrepo.managed", name=LINE, file=LIST)
    assert (added["result"], added["changes"]) == (True, {"repo": LINE}), added["comment"]
    assert (debian.root / LIST.lstrip("/")).read_text() == f"{LINE}\n"
    assert debian.state("pkgrepo.managed", name=LINE, file=LIST)["changes"] == {}
    old = debian.state("pkg.installed", name="mill", version="1.0-1", hold=True)
    assert (old["result"], old["changes"]) == (True, {"mill": {"old": "install", "new": "1.0-1\nhold"}}), old["comment"]
    assert debian.state("pkg.unheld", name="mill")["result"] is True
    newer = debian.state("pkg.latest", name="mill")
    assert newer["changes"] == {"mill": {"old": "1.0-1", "new": "1:1.1-1"}}
    back = debian.state("pkg.installed", name="mill", version="<1:1")
    assert back["changes"] == {"mill": {"old": "1:1.1-1", "new": "1.0-1"}}, back["comment"]
    assert debian.state("pkg.uptodate", name="x", test=True)["changes"] == {"mill": {"old": "1.0-1", "new": "1:1.1-1"}}
    gone = debian.state("pkg.removed", name="mill")
    assert gone["changes"] == {"mill": {"old": "1.0-1", "new": ""}}
    assert debian.call("pkg.list_pkgs", removed=True) == {"mill": "1.0-1"}
    assert debian.state("pkg.purged", name="mill")["changes"] == {
        "installed": {},
        "removed": {"mill": {"old": "1.0-1", "new": ""}},
    }
    assert debian.state("pkgrepo.absent", name=LINE)["changes"] == {"repo": LINE}
    assert not (debian.root / LIST.lstrip("/")).exists()
    assert debian.state("pkg.installed", name="mill")["result"] is False


def test_package_files_and_answers(debian):
    (debian.tree / "mill.deb").write_bytes((debian.root / "srv/debs/mill_1.0-1_all.deb").read_bytes())
    (debian.tree / "answers").write_text("mill mill/question string green\n")
    done = debian.state("pkg.installed", name="x", sources=[{"mill": "salt://mill.deb"}], debconf="salt://answers")
    assert (done["result"], done["changes"]) == (True, {"mill": {"old": "", "new": "1.0-1"}}), done["comment"]
    assert "green" in (debian.root / "var/cache/debconf/config.dat").read_text()


def test_fetched_and_not_installed(debian):
    # APT keeps no copies of files that it can reach; of these it does.
    line = LINE.replace("file:", "copy:")
    debian.state("pkgrepo.managed", name=line, file=LIST)
    done = debian.state("pkg.downloaded", name="mill", version="1:1.1-1")
    assert (done["result"], list(done["changes"])) == (True, ["mill"]), done["comment"]
    assert list(debian.call("pkg.list_downloaded")["mill"]) == ["1:1.1-1"]
    assert "mill" not in debian.call("pkg.list_pkgs")
    assert debian.state("pkg.downloaded", name="mill")["comment"] == "All specified packages are already downloaded"
    debian.run("apt-get", "clean")
