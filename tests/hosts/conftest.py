"""Debian packages of this checkout, and Debian machines with a real systemd to install them on.

SALTERN_HOST_TREES: a directory where the trees of the machines are kept from run to run. SALTERN_DEBS: a directory with
wheels and packages that are built already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.hosts.machine import Machine, unified_cgroups

ROOT = Path(__file__).resolve().parents[2]

#: Debian 12 and 13.
SUITES = ("bookworm", "trixie")

#: Seconds that the packages of a tree, and those of this checkout, may take.
TIMEOUT = 1500

_INCLUDED = (
    "systemd",
    "systemd-sysv",
    "dbus",
    "python3",
    "make",
    "redis-server",
    "procps",
    "iproute2",
    "ca-certificates",
)

#: Time of the packages of the tests.
EPOCH = "1767225600"

#: Names of the packages.
NAMES = ("saltern-common", "saltern-minion", "saltern-master")


def build_wheels(out: Path) -> list[Path]:
    """Build our four wheels into a directory."""
    words = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "--no-build-isolation",
    ]
    folders = [f"./libs/{name}" for name in ("statecore", "saltwire", "masterstore")]
    _done([*words, "--wheel-dir", str(out), *folders, "./services"])
    return sorted(out.glob("*.whl"))


def build_debs(out: Path, wheels: list[Path]) -> list[Path]:
    """Build the three Debian packages into a directory."""
    _done([sys.executable, "hosts/build_deb.py", "--out", str(out), *map(str, wheels)])
    return sorted(out.glob("*.deb"))


def _done(words: list[str]) -> None:
    env = os.environ | {"SOURCE_DATE_EPOCH": EPOCH}
    done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Our four wheels."""
    kept = os.environ.get("SALTERN_DEBS")
    return sorted(Path(kept).glob("*.whl")) if kept else build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="session")
def debs(tmp_path_factory: pytest.TempPathFactory, wheels: list[Path]) -> dict[str, Path]:
    """The Debian packages of this checkout, by name."""
    kept = os.environ.get("SALTERN_DEBS")
    found = sorted(Path(kept).glob("*.deb")) if kept else build_debs(tmp_path_factory.mktemp("debs"), wheels)
    return {path.name.partition("_")[0]: path for path in found}


@pytest.fixture(scope="session")
def tree_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """Makes a Debian tree with systemd, and keeps it for further tests."""
    if os.geteuid() != 0:
        pytest.skip("only root makes and boots a machine")
    if shutil.which("debootstrap") is None:
        pytest.skip("debootstrap is not installed")
    if unified_cgroups() is None:
        pytest.skip("this machine has no cgroups of version 2")
    kept = os.environ.get("SALTERN_HOST_TREES")
    place = Path(kept) if kept else tmp_path_factory.mktemp("trees")

    def made(suite: str) -> Path:
        tree = place / suite
        if not (tree / "usr/bin/redis-server").exists():
            command = ["debootstrap", "--variant=minbase", f"--include={','.join(_INCLUDED)}", suite, str(tree)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
            if done.returncode:
                pytest.skip(f"debootstrap could not make a tree: {done.stdout[-300:]} {done.stderr[-300:]}")
            for archive in (tree / "var/cache/apt/archives").glob("*.deb"):
                archive.unlink()
        return tree

    yield made
    if not kept:
        shutil.rmtree(place)


@pytest.fixture
def boot(tree_of: Callable[[str], Path], tmp_path: Path) -> Iterator[Callable[..., Machine]]:
    """Boots machines; all of them end with the test."""
    with ExitStack() as stack:

        def booted(suite: str, name: str = "box", network_of: Machine | None = None) -> Machine:
            machine = Machine(tree_of(suite), tmp_path / name, name, network_of)
            stack.callback(machine.stop)
            return machine

        yield booted


def install(machine: Machine, *packages: Path) -> str:
    """Install packages from files on a machine with apt; a changed configuration file is kept without a question."""
    for package in packages:
        machine.bring(package, f"/root/{package.name}")
    words = ["apt-get", "install", "-y", "--allow-downgrades", "-o", "Dpkg::Options::=--force-confold"]
    words += [f"/root/{package.name}" for package in packages]
    return machine.run(*words, env={"DEBIAN_FRONTEND": "noninteractive"})


def repacked(package: Path, out: Path, version: str, change: Callable[[Path], None]) -> Path:
    """Return a package like another one, with another version and what ``change`` does to its unpacked tree."""
    tree = out / f"{package.name}.tree"
    subprocess.run(["dpkg-deb", "-R", package, tree], check=True)
    control = tree / "DEBIAN/control"
    old = next(line for line in control.read_text().splitlines() if line.startswith("Version: "))
    was = old.removeprefix("Version: ")
    control.write_text(control.read_text().replace(old, f"Version: {version}").replace(f"(= {was})", f"(= {version})"))
    change(tree)
    target = out / package.name.replace(f"_{was}_", f"_{version}_")
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, target], check=True, stdout=subprocess.DEVNULL
    )
    shutil.rmtree(tree)
    return target
