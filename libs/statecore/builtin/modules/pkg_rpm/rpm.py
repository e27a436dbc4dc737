"""Helpers of ``pkg`` on RedHat: they run the program ``rpm`` and parse its output."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from statecore.model.errors import CommandError
from statecore.model.ports import CommandResult, ManagedHost
from statecore.model.text_lines import lines_of
from statecore.system.packages.package_versions import rpm as versions

#: Environment of every command: English messages, which are parsed here.
ENVIRONMENT = {"LC_ALL": "C", "LANGUAGE": "C"}

#: Directories of rpm's database: before Fedora 36, and since.
_DATABASES = ("/var/lib/rpm", "/usr/lib/sysimage/rpm")

_TAGS = ("NAME", "EPOCH", "VERSION", "RELEASE", "ARCH", "INSTALLTIME")
_FORMAT = "\t".join(f"%{{{tag}}}" for tag in _TAGS) + "\n"

#: Sets of compatible architectures: package names within a set have no architecture appended.
_ALIKE = (
    frozenset({"x86_64", "x86_64_v2"}),
    frozenset({"i386", "i486", "i586", "i686"}),
    frozenset({"armv5tel", "armv5tejl", "armv6l", "armv6hl", "armv7l", "armv7hl", "armv7hnl"}),
)

#: Words that are an architecture when they follow the last dot of a package's name.
ARCHITECTURES = frozenset().union(
    *_ALIKE,
    ("noarch", "athlon", "amd64", "ia32e", "ia64", "geode", "aarch64", "ppc", "ppc64", "ppc64le", "s390", "s390x"),
    ("sparc", "sparcv8", "sparcv9", "sparcv9v", "sparc64", "sparc64v", "alpha", "sh3", "sh4", "sh4a", "riscv64"),
)


@dataclass(frozen=True, slots=True)
class RpmPackage:
    """One package that rpm has installed: name, epoch, version, release, architecture and installation time."""

    #: Name, with the architecture appended where that is not the host's own ("glibc.i686").
    name: str
    epoch: str | None
    version: str
    release: str
    architecture: str
    #: Installation time in seconds since 1970; None where the database has none.
    installed: int | None

    @property
    def full_version(self) -> str:
        """Version of the package as ``epoch:version-release``, without an epoch that is 0."""
        return f"{self.epoch}:{self.plain_version}" if self.epoch else self.plain_version

    @property
    def plain_version(self) -> str:
        """Version of the package as ``version-release``."""
        return f"{self.version}-{self.release}" if self.release else self.version

    def attributes(self) -> dict[str, str | int | None]:
        """Return the attributes of the package that ``pkg.list_pkgs attr=all`` shows: a map with epoch, version,
        release, arch, install_date and install_date_time_t. Unknown ones are None.
        """
        date = None if self.installed is None else datetime.fromtimestamp(self.installed, UTC).isoformat() + "Z"
        return {
            "epoch": self.epoch,
            "version": self.version,
            "release": self.release or None,
            "arch": self.architecture,
            "install_date": date,
            "install_date_time_t": self.installed,
        }


def run(host: ManagedHost, argv: Sequence[str]) -> CommandResult:
    """Run a program that changes nothing, such as rpm, with English messages. Return its result (exit code and
    output). Raise HostError if it cannot be started.
    """
    return host.run(argv, env=ENVIRONMENT)


def state(host: ManagedHost) -> tuple[tuple[str, int, int], ...]:
    """Return (path, time, size) of each of rpm's database files, which change whenever the database changes; () without
    a database.
    """
    found = []
    for directory in _DATABASES:
        try:
            # Reading changes the shared memory file and the lock file too.
            paths = [path for path in host.path(directory).iterdir() if not path.name.endswith(("-shm", ".lock"))]
            found += [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in paths]
        except OSError:
            continue
    return tuple(sorted(found))


def packages(host: ManagedHost, architecture: str, root: str | None = None) -> list[RpmPackage]:
    """Return the packages that rpm has installed, as a list of RpmPackage. ``architecture``: the host's own. ``root``:
    directory of the host that is used as ``/``. Raise CommandError if rpm fails.
    """
    where = ["--root", root] if root else []
    result = run(host, ["rpm", *where, "-qa", "--nodigest", "--nosignature", "--queryformat", _FORMAT])
    if result.retcode:
        raise CommandError(f"rpm -qa failed: {result.stderr.strip() or result.stdout.strip()}")
    found = []
    for line in lines_of(result.stdout):
        columns = line.split("\t")
        if len(columns) == len(_TAGS):
            found.append(_package(columns, architecture))
    return found


def sorted_versions(found: Sequence[str]) -> list[str]:
    """Return a list of RPM version texts without duplicates, oldest first."""
    return sorted(set(found), key=functools.cmp_to_key(versions.compare))


def file_packages(host: ManagedHost, paths: Sequence[str], architecture: str) -> list[RpmPackage]:
    """Return the packages that RPM files of the host contain, as a list of RpmPackage. Raise CommandError for a file
    that is no package.
    """
    result = run(host, ["rpm", "-qp", "--nodigest", "--nosignature", "--queryformat", _FORMAT, *paths])
    found = [_package(line.split("\t"), architecture) for line in lines_of(result.stdout) if line.count("\t") == 5]
    if result.retcode or len(found) != len(paths):
        raise CommandError(f"rpm cannot read {', '.join(paths)}: {result.stderr.strip() or result.stdout.strip()}")
    return found


def resolved_name(name: str, architecture: str, own: str) -> str:
    """Return the name of an RPM package, with the architecture appended if it is not the host's own."""
    if architecture in (own, "noarch", "(none)") or any({architecture, own} <= alike for alike in _ALIKE):
        return name
    return f"{name}.{architecture}"


def split_name(name: str) -> tuple[str, str | None]:
    """Split an RPM package name such as ``glibc.i686`` into (name, architecture). The architecture is None for a name
    without one.
    """
    plain, _, architecture = name.rpartition(".")
    return (plain, architecture) if plain and architecture in ARCHITECTURES else (name, None)


def _package(columns: Sequence[str], own: str) -> RpmPackage:
    name, epoch, version, release, architecture, installed = columns
    return RpmPackage(
        name=resolved_name(name, architecture, own),
        epoch=None if epoch in ("(none)", "0", "") else epoch,
        version=version,
        release="" if release == "(none)" else release,
        architecture=architecture,
        installed=int(installed) if installed.isdecimal() and installed != "0" else None,
    )
