"""Build the Debian packages ``saltern-common``, ``saltern-minion`` and ``saltern-master``: ``make deb``.

    .venv/bin/python hosts/build_deb.py [--out dist] [--architecture amd64] [--version 0.1.0] [--cache .debs] WHEELS...

The packages bring an environment of their own, /opt/saltern: a virtual environment on the machine's python3, with libraries for
each Python of PYTHONS, so that one package serves several releases of Debian and an upgrade of the system. Its libraries are the
wheels of requirements.lock, by hash; WHEELS are our own four. Nothing is compiled, so any machine with pip and dpkg-deb builds
for any architecture of PLATFORMS.

One commit gives the same bytes: times are SOURCE_DATE_EPOCH's, owners are root, the order of files and the compression are fixed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path

from statecore.model.salt_version import SALTERN_VERSION

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "hosts"

#: Python of each release of Debian that the packages are for: 12 and 13.
PYTHONS = ("3.11", "3.13")

#: Debian's name of an architecture -> platform tags of wheels. glibc of Debian 12 is 2.36.
PLATFORMS: Mapping[str, tuple[str, ...]] = {
    debian: (*(f"manylinux_2_{minor}_{machine}" for minor in range(36, 16, -1)), f"manylinux2014_{machine}")
    for debian, machine in (("amd64", "x86_64"), ("arm64", "aarch64"))
}

#: Directory of the environment on the managed machine.
PREFIX = "opt/saltern"

#: Interpreter of a program: variables such as PYTHONPATH and packages of a user are not the environment's.
_PROGRAM = """\
#!/{prefix}/bin/python3 -Es
import sys

from {module} import {function}

sys.exit({function}())
"""


@dataclass(frozen=True)
class Package:
    """One Debian package: its control fields, and the programs, libraries and files that it installs."""

    name: str
    summary: str
    description: str
    depends: str
    #: Sets of docker/locked.py whose packages it has; those of ``without`` are another package's.
    libraries: str
    without: str = ""
    #: Our own distributions.
    own: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    #: Path on the machine -> file below hosts/.
    files: tuple[tuple[str, str], ...] = ()
    conffiles: tuple[str, ...] = ()
    #: Empty directories.
    directories: tuple[str, ...] = ()
    #: Further fields of the control file.
    fields: tuple[tuple[str, str], ...] = ()


def _service(name: str) -> tuple[tuple[str, str], ...]:
    """Return the rows (path on the machine, file below hosts/) of the files of salt-minion or salt-master."""
    return (
        (f"lib/systemd/system/salt-{name}.service", f"systemd/salt-{name}.service"),
        (f"etc/default/salt-{name}", f"defaults/salt-{name}"),
        (f"usr/share/saltern/{name}", f"defaults/{name}"),
    )


_ABOUT = "Saltern speaks Salt's wire protocol and runs its state trees. It joins stock\n masters and minions of Salt 3006 to 3008."

PACKAGES = (
    Package(
        "saltern-common",
        "environment of the Saltern minion and master",
        f"{_ABOUT}\n .\n This package has the libraries, on the machine's Python, and salt-call.",
        f"python3 (>= {PYTHONS[0]}~), python3 (<< 3.{int(PYTHONS[-1].split('.')[1]) + 1}~), init-system-helpers",
        "minion",
        own=("saltern-statecore", "saltern-saltwire", "saltern-services"),
        programs=("saltern", "salt-call", "statecore"),
        files=(("usr/share/doc/saltern-common/hosts.md", "../docs/operations/hosts.md"),),
        fields=(("Conflicts", "salt-common"), ("Replaces", "salt-common")),
    ),
    Package(
        "saltern-minion",
        "Salt minion: manages this host for a Salt master",
        f"{_ABOUT}\n .\n This package has the minion as a service. It takes over id, keys, cache and\n schedule of a stock minion.",
        "saltern-common (= {version})",
        "",
        programs=("salt-minion",),
        files=_service("minion"),
        conffiles=("/etc/default/salt-minion",),
        directories=("etc/salt/minion.d",),
        fields=(("Conflicts", "salt-minion"), ("Replaces", "salt-minion")),
    ),
    Package(
        "saltern-master",
        "Salt master: all roles on one machine",
        f"{_ABOUT}\n .\n This package has all roles of a master as one service, and the operators'\n commands salt, salt-key, "
        "salt-run and salt-cp.",
        "saltern-common (= {version}), passwd, redis-server | valkey-server | saltern-no-redis",
        "master",
        without="minion",
        own=("saltern-masterstore",),
        programs=("salt-master", "salt", "salt-key", "salt-run", "salt-cp", "eventlisten"),
        files=_service("master"),
        conffiles=("/etc/default/salt-master",),
        directories=("etc/salt/master.d",),
        fields=(("Conflicts", "salt-master"), ("Replaces", "salt-master")),
    ),
)


class BuildError(Exception):
    """Raised when a package cannot be built. The message says which and why."""


def locked_sets() -> Mapping[str, tuple[str, ...]]:
    """Return the sets of docker/locked.py: {name of the set: names of packages}."""
    sys.path.insert(0, str(ROOT / "docker"))
    import locked

    return locked.SETS


def downloaded(kind: str, without: str, python: str, architecture: str, cache: Path) -> list[Path]:
    """Return the paths of the wheels of the set ``kind`` of libraries for one Python version and architecture, without
    the libraries of the set ``without``. They are downloaded by pip, which checks the hashes of requirements.lock, or
    are in ``cache`` from an earlier build.

    Raises BuildError if pip fails.
    """
    sets = locked_sets()
    names = [name for name in sets.get(kind, ()) if name not in sets.get(without, ())]
    if not names:
        return []
    import locked

    text = locked.select((ROOT / "requirements.lock").read_text("utf-8").splitlines(True), names)
    place = cache / f"{architecture}-{python}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if place.is_dir():
        return sorted(place.glob("*.whl"))
    new = place.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    requirements = new / "requirements.txt"
    requirements.write_text(text)
    platforms = [word for platform in PLATFORMS[architecture] for word in ("--platform", platform)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", "--only-binary", ":all:", "--python-version", python, "--implementation", "cp"]
    command += [*platforms, "--dest", str(new), "--requirement", str(requirements)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"the libraries of {kind} for Python {python} on {architecture}: {done.stderr.strip()}")
    new.rename(place)
    return sorted(place.glob("*.whl"))


def unpack(wheel: Path, site: Path) -> None:
    """Unpack the libraries of a wheel into the directory ``site``, a ``site-packages``. Raises BuildError if one of
    the files exists there already.
    """
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            target = _place(name)
            if target is None or name.endswith("/"):
                continue
            path = site / target
            if path.exists():
                raise BuildError(f"{wheel.name}: {target} is in another wheel as well")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(name))
            path.chmod(0o644)


def _place(name: str) -> str | None:
    """Return the path relative to ``site-packages`` for the file ``name`` of a wheel; None for a file that is not
    unpacked, such as a program.
    """
    top, _, rest = name.partition("/")
    if not top.endswith(".data"):
        return name
    kind, _, path = rest.partition("/")
    return path if kind in ("purelib", "platlib") and path else None


def join_equal_files(root: Path) -> None:
    """Replace files with the same content and mode below ``root`` by hard links to one file: most libraries are the
    same for each Python version.
    """
    known: dict[tuple[str, int], Path] = {}
    for path in sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink()):
        content = path.read_bytes()
        if not content:
            continue
        key = hashlib.sha256(content).hexdigest(), stat.S_IMODE(path.stat().st_mode)
        if key in known:
            path.unlink()
            os.link(known[key], path)
        else:
            known[key] = path


def entry_points(wheels: Iterable[Path]) -> dict[str, str]:
    """Return the programs that the wheels define, as a map of program name to ``module:function``."""
    found: dict[str, str] = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if name.endswith(".dist-info/entry_points.txt"):
                    rows = archive.read(name).decode().splitlines()
                    found |= {row.split("=")[0].strip(): row.split("=")[1].strip() for row in rows if " = " in row}
    return found


def distribution_of(wheel: Path) -> str:
    """Return the name of the distribution that a wheel contains, from its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return str(Parser().parsestr(archive.read(metadata).decode())["Name"])


def lay_out(
    package: Package, root: Path, architecture: str, own: Mapping[str, Path], programs: Mapping[str, str], cache: Path
) -> None:
    """Create all installed files of a package below ``root``. ``own`` maps our distributions to their wheels,
    ``programs`` program names to ``module:function``. Raises BuildError, OSError.
    """
    for python in PYTHONS:
        site = root / PREFIX / "lib" / f"python{python}" / "site-packages"
        wheels = downloaded(package.libraries, package.without, python, architecture, cache)
        for wheel in [*wheels, *(own[name] for name in package.own)]:
            unpack(wheel, site)
    if package.name == "saltern-common":
        binaries = root / PREFIX / "bin"
        binaries.mkdir(parents=True)
        (binaries / "python3").symlink_to("/usr/bin/python3")
        (root / PREFIX / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = false\n")
    for name in package.programs:
        module, _, function = programs[name].partition(":")
        program = root / PREFIX / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(_PROGRAM.format(prefix=PREFIX, module=module, function=function))
        program.chmod(0o755)
        link = root / "usr/bin" / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(f"/{PREFIX}/bin/{name}")
    for path, source in (*package.files, (f"usr/share/doc/{package.name}/copyright", "debian/copyright")):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(HERE / source, root / path)
    for directory in package.directories:
        (root / directory).mkdir(parents=True)
    join_equal_files(root)


def control(package: Package, root: Path, version: str, architecture: str) -> str:
    """Return the text of a package's control file."""
    kilobytes = sum(-(-path.lstat().st_size // 1024) for path in _files(root))
    rows = [
        ("Package", package.name),
        ("Version", version),
        ("Architecture", architecture),
        ("Section", "admin"),
        ("Priority", "optional"),
        ("Maintainer", "The Saltern authors <saltern@localhost>"),
        ("Installed-Size", str(kilobytes)),
        ("Depends", package.depends.format(version=version)),
        *package.fields,
        ("Description", f"{package.summary}\n {package.description}"),
    ]
    return "".join(f"{name}: {value}\n" for name, value in rows)


def _files(root: Path) -> Iterator[Path]:
    """Yield the files and links of a package below ``root``, each inode once, without its control files."""
    seen = set()
    for path in sorted(root.rglob("*")):
        number = path.lstat().st_ino
        if (path.is_dir() and not path.is_symlink()) or (root / "DEBIAN") in path.parents or number in seen:
            continue
        seen.add(number)
        yield path


def add_control_files(package: Package, root: Path, version: str, architecture: str) -> None:
    """Write DEBIAN/ with the control file, maintainer scripts, conffiles and checksums."""
    text = control(package, root, version, architecture)
    sums = "".join(
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(root)}\n"
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    )
    place = root / "DEBIAN"
    place.mkdir()
    (place / "control").write_text(text)
    (place / "md5sums").write_text(sums)
    if package.conffiles:
        (place / "conffiles").write_text("".join(f"{path}\n" for path in package.conffiles))
    for script in sorted((HERE / "debian").glob(f"{package.name}.*")):
        target = place / script.suffix.removeprefix(".")
        shutil.copyfile(script, target)
        target.chmod(0o755)


def settle(root: Path, epoch: int) -> None:
    """Set the modes of all files and directories below ``root`` to 0755 or 0644, and their times to ``epoch`` (seconds
    since 1970).
    """
    for path in [root, *root.rglob("*")]:
        if not path.is_symlink():
            runs = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runs else 0o644)
        os.utime(path, (epoch, epoch), follow_symlinks=False)


def build(out: Path, version: str, architecture: str, epoch: int, wheels: Sequence[Path], cache: Path) -> list[Path]:
    """Build all packages into the directory ``out``, and return the paths of the packages. ``wheels`` are those of our
    own distributions; ``cache`` is the directory for downloaded wheels. Raises BuildError, OSError.
    """
    own = {distribution_of(wheel): wheel for wheel in wheels}
    missing = {name for package in PACKAGES for name in package.own} - set(own)
    if missing:
        raise BuildError(f"no wheel of {', '.join(sorted(missing))} is given: `make wheels` builds them")
    programs = entry_points(wheels)
    out.mkdir(parents=True, exist_ok=True)
    built = []
    with tempfile.TemporaryDirectory() as temporary:
        for package in PACKAGES:
            root = Path(temporary) / package.name
            root.mkdir()
            lay_out(package, root, architecture, own, programs, cache)
            add_control_files(package, root, version, architecture)
            settle(root, epoch)
            target = out / f"{package.name}_{version}_{architecture}.deb"
            # One thread: the number of threads would change how the data is cut into blocks.
            command = [
                "dpkg-deb",
                "--root-owner-group",
                "-Zxz",
                "-z3",
                "--threads-max=1",
                "--build",
                str(root),
                str(target),
            ]
            environment = os.environ | {"SOURCE_DATE_EPOCH": str(epoch)}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise BuildError(f"{package.name}: {done.stderr.strip()}")
            built.append(target)
    return built


def main(argv: Sequence[str] | None = None) -> int:
    """Build the packages. Return 0, or 1 if that fails, with the reason on stderr."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="directory of the packages (default: dist)")
    parser.add_argument("--architecture", choices=sorted(PLATFORMS), default="amd64")
    parser.add_argument("--version", default=SALTERN_VERSION, help="of the packages (default: the project's)")
    parser.add_argument("--cache", type=Path, default=ROOT / ".debs", help="keeps downloaded wheels (default: .debs)")
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    flags = parser.parse_args(argv)
    try:
        if shutil.which("dpkg-deb") is None:
            raise BuildError("there is no dpkg-deb: build on a Debian, or install the package dpkg")
        epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
        if not epoch.isdigit():
            raise BuildError("SOURCE_DATE_EPOCH is not set: `make deb` sets it to the time of the commit")
        built = build(flags.out, flags.version, flags.architecture, int(epoch), flags.wheels, flags.cache)
    except (BuildError, OSError) as error:
        sys.stderr.write(f"build_deb: {error}\n")
        return 1
    for path in built:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        sys.stdout.write(f"{digest}  {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
