"""Unit files of systemd and the links that enable them (systemd.unit(5)), for hosts where systemd does not run.

Generated units, presets, and specifiers other than the unit's own name need a running systemd and are not supported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from statecore.host.rooted_path import walk
from statecore.model.ports import ManagedHost
from statecore.model.text_lines import lines_of, text_of

#: Directories of unit files, highest priority first. Links are made in the first one.
UNITS = (
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
)

TYPES = frozenset(
    {"service", "socket", "device", "mount", "automount", "swap", "target", "path", "timer", "slice", "scope"}
)

#: Target of the link that masks a unit.
NOTHING = "/dev/null"

#: Option of [Install] -> suffix of the directory in which its links are made.
_DIRECTORIES: Mapping[str, str] = {"WantedBy": "wants", "RequiredBy": "requires", "UpheldBy": "upholds"}


@dataclass(frozen=True, slots=True)
class Unit:
    """A systemd unit file of the host: full name, path, and its section [Install]."""

    #: Full name, such as ``name@instance.service``.
    name: str
    #: Path on the host.
    path: str
    #: The section [Install]: option -> words.
    install: Mapping[str, tuple[str, ...]]

    def links(self) -> list[str]:
        """List of the host's paths of the symbolic links that enable the systemd unit."""
        named = [
            f"{UNITS[0]}/{self._filled(target)}.{directory}/{self._instance()}"
            for option, directory in _DIRECTORIES.items()
            for target in self.install.get(option, ())
        ]
        return named + [f"{UNITS[0]}/{self._filled(alias)}" for alias in self.install.get("Alias", ())]

    def _instance(self) -> str:
        head, sign, rest = self.name.partition("@")
        default = self.install.get("DefaultInstance", ())
        return f"{head}@{default[0]}{rest}" if sign and rest.startswith(".") and default else self.name

    def _filled(self, text: str) -> str:
        stem = self.name.rpartition(".")[0]
        prefix, _, instance = stem.partition("@")
        known = {"%i": instance, "%I": instance, "%p": prefix, "%P": prefix, "%n": self.name, "%N": stem, "%%": "%"}
        for sign, value in known.items():
            text = text.replace(sign, value)
        return text


def full_name(name: str) -> str:
    """Return the full name of a systemd unit: ``nginx`` becomes ``nginx.service``."""
    return name if "." in name and name.rpartition(".")[2] in TYPES else f"{name}.service"


def find(host: ManagedHost, name: str) -> Unit | None:
    """Return the systemd unit of the host with this full name, or None if it does not exist or is masked.

    For an instance, its template's file is used.
    """
    head, sign, rest = name.partition("@")
    files = [name, f"{head}@.{rest.rpartition('.')[2]}"] if sign else [name]
    for file in files:
        for directory in UNITS:
            path = f"{directory}/{file}"
            place = host.path(path)
            if place.is_file():
                return Unit(name, path, _install(place))
    return None


def names(host: ManagedHost) -> list[str]:
    """Sorted full names of all systemd units of the host that have files."""
    found = set()
    for directory in UNITS:
        place = host.path(directory)
        if place.is_dir():
            found |= {path.name for path in place.iterdir() if path.suffix.removeprefix(".") in TYPES}
    return sorted(found)


def links_to(host: ManagedHost, unit: Unit) -> list[Path]:
    """List of the paths, for this process, of the existing symbolic links that enable a systemd unit."""
    top = host.path(UNITS[0])
    # /lib is a link to /usr/lib on current systems, so links may contain either path.
    bare = unit.path.removeprefix("/usr")
    files = {unit.path, bare, f"/usr{bare}"} if bare.startswith("/lib/") else {unit.path}
    return [
        path
        for path in _links(top)
        if (path.name == unit.name and path.parent != top)
        or (_target(path) in files and path.name not in (unit.name, Path(unit.path).name))
    ]


def _links(top: Path) -> Iterator[Path]:
    directories = (".wants", ".requires", ".upholds")
    for directory, below, files in walk(top):
        below[:] = [name for name in below if name.endswith(directories)]
        # walk lists dangling links among the files.
        yield from (path for path in (directory / name for name in files) if path.is_symlink())


def _target(link: Path) -> str:
    target = str(link.readlink())
    return target if target.startswith("/") else f"{UNITS[0]}/{target}"


def _install(place: Path) -> dict[str, tuple[str, ...]]:
    section = ""
    found: dict[str, tuple[str, ...]] = {}
    for line in _lines(place):
        if line.startswith("["):
            section = line
        elif section == "[Install]" and "=" in line:
            option, _, value = line.partition("=")
            words: Sequence[str] = value.split()
            # An empty value resets the option.
            found[option.strip()] = (*found.get(option.strip(), ()), *words) if words else ()
    return found


def _lines(place: Path) -> Iterator[str]:
    text = text_of(place).replace("\\\n", " ")
    for line in lines_of(text):
        if line.strip() and not line.lstrip().startswith(("#", ";")):
            yield line.strip()
