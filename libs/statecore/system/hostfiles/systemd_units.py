"""Unit files of systemd and the links that enable them: read and made as systemctl does where no systemd runs (systemd.unit(5)).

What only a running systemd knows (generated units, presets, specifiers other than the unit's own name) is not here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from statecore.host.rooted_path import walk
from statecore.model.ports import ManagedHost

#: Where unit files are; what comes first wins. Links are made in the first.
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

#: What a mask leads to.
NOTHING = "/dev/null"

#: Option of [Install] -> directory, below that of the links, that stands for it.
_DIRECTORIES: Mapping[str, str] = {"WantedBy": "wants", "RequiredBy": "requires", "UpheldBy": "upholds"}


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit file of the host."""

    #: ``name@instance.service``
    name: str
    #: The host's path.
    path: str
    #: [Install]: option -> words.
    install: Mapping[str, tuple[str, ...]]

    def links(self) -> list[str]:
        """The host's paths that lead to it where it is enabled."""
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
    """``nginx`` means ``nginx.service``."""
    return name if "." in name and name.rpartition(".")[2] in TYPES else f"{name}.service"


def find(host: ManagedHost, name: str) -> Unit | None:
    """A unit by its full name, of an instance by its template's file; None for one that is not there, or masked."""
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
    """Full names of all units that have files."""
    found = set()
    for directory in UNITS:
        place = host.path(directory)
        if place.is_dir():
            found |= {path.name for path in place.iterdir() if path.suffix.removeprefix(".") in TYPES}
    return sorted(found)


def links_to(host: ManagedHost, unit: Unit) -> list[Path]:
    """Our paths of the links that lead to a unit, or bear its name, below the directory of links."""
    top = host.path(UNITS[0])
    # /lib is a link to /usr/lib on hosts of today: both are written.
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
        # Links to directories are among the directories, dangling ones among the files.
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
            # An empty value takes back what was said before.
            found[option.strip()] = (*found.get(option.strip(), ()), *words) if words else ()
    return found


def _lines(place: Path) -> Iterator[str]:
    text = place.read_text("utf-8", "replace").replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith(("#", ";")):
            yield line.strip()
