"""Versions of Python packages: their order, version conditions, and requirements as pip accepts them.

The library ``packaging`` (pip's own) decides about versions, conditions and names. This module adds the forms of a
requirement that only pip knows: URLs, paths and version control. Their name and version are unknown until the package is
installed, unless ``egg=`` or a wheel's file name states them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from packaging import requirements as pep508
from packaging.specifiers import SpecifierSet
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from statecore.model.text_lines import lines_of

_EGG = re.compile(r"[#&]egg=(?P<text>[^&]+)")

_OTHER_FILE = re.compile(r"(?:-r|--requirement)[\s=]")

_VCS = ("git+", "svn+", "hg+", "bzr+")

_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)

#: First and last version of pip with --use-wheel and --no-use-wheel; first version with --no-binary.
_WHEEL_OPTIONS, _NO_BINARY = ("1.4", "9.0.3"), "7.0.0"

_ARCHIVES = (".whl", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar")


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement of a Python package, as pip accepts it. ``name`` is normalized, or "" if it is unknown until the
    package is installed.
    """

    name: str
    conditions: SpecifierSet = field(default_factory=SpecifierSet)


def requirement(text: str) -> Requirement:
    """Parse a requirement of a Python package (``django >= 1.6``, a URL or a path) and return it. Raises ValueError
    with the reason if pip would not accept it.
    """
    if text.startswith((*_VCS, ".", "/")) or _URL.match(text) or (text.endswith(_ARCHIVES) and "@" not in text):
        return _located_requirement(text)
    try:
        parsed = pep508.Requirement(text)
    except pep508.InvalidRequirement as error:
        raise ValueError(_unreadable(text)) from error
    return Requirement(canonicalize_name(parsed.name), parsed.specifier)


def requirements_in(text: str) -> tuple[Requirement, ...] | None:
    """Return the requirements in a requirements file, if it holds only names and conditions.

    None if it holds paths, options, hashes or environment markers, which only pip can evaluate. Files that it includes
    (``-r``) are not read.
    """
    found = []
    for line in lines_of(text):
        row = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not row or _OTHER_FILE.match(row):
            continue
        try:
            wanted = requirement(row)
        except ValueError:
            return None
        if not wanted.name or any(sign in row for sign in ";@\\[$"):
            return None
        found.append(wanted)
    return tuple(found)


def compare(left: str, right: str) -> int:
    """Return -1, 0 or 1 if the Python package version ``left`` is older than, equal to or newer than ``right``.

    Invalid versions are older than valid ones.
    """
    one, two = order(left), order(right)
    return (one > two) - (one < two)


def order(version: str) -> tuple[int, Version, str]:
    """Return the sort key of a Python package version (PEP 440). Invalid versions come first, sorted as text."""
    parsed = _parsed(version)
    return (0, Version("0"), version) if parsed is None else (1, parsed, "")


def pre_release(version: str) -> str:
    """Return the kind of pre-release of a Python package version (``a``, ``b``, ``rc`` or ``dev``), or "" for a final
    release.
    """
    parsed = _parsed(version)
    if parsed is None:
        return ""
    return parsed.pre[0] if parsed.pre else "dev" if parsed.is_devrelease else ""


def fulfils(version: str, conditions: SpecifierSet, *, pre: bool = False) -> bool:
    """Return True if a Python package version meets all conditions.

    A pre-release counts only if a condition names a pre-release, or with ``pre``.
    """
    if not conditions:
        return True
    try:
        return conditions.contains(version, prereleases=pre or bool(conditions.prereleases))
    except InvalidVersion:
        return False


def wheel_options_refused(version: str, *, use_wheel: bool, no_use_wheel: bool, no_binary: object) -> str:
    """Return the reason why this version of pip does not support one of the given wheel options, or ""."""
    low, high = _WHEEL_OPTIONS
    for name, given in (("use_wheel", use_wheel), ("no_use_wheel", no_use_wheel)):
        if given and not (compare(low, version) <= 0 and compare(version, high) <= 0):
            return (
                f"The '{name}' option is only supported in pip between {low} and {high}. The version of pip detected "
                f"was {version}."
            )
    if no_binary and compare(version, _NO_BINARY) < 0:
        return (
            f"The 'no_binary' option is only supported in pip {_NO_BINARY} and newer. The version of pip detected was "
            f"{version}."
        )
    return ""


# --------------------------------------------------------------------------------------------------------------- parts


def _parsed(version: str) -> Version | None:
    try:
        return Version(version)
    except InvalidVersion:
        return None


def _located_requirement(text: str) -> Requirement:
    """Return the requirement of a Python package for a URL or path. Its name comes from ``egg=`` or a wheel's file
    name.
    """
    if egg := _EGG.search(text):
        try:
            return requirement(egg["text"])
        except ValueError:
            return Requirement("")
    try:
        name, version, *_ = parse_wheel_filename(PurePosixPath(unquote(urlsplit(text).path)).name)
    except (InvalidWheelFilename, ValueError):
        return Requirement("")
    return Requirement(name, SpecifierSet(f"=={version}"))


def _unreadable(text: str) -> str:
    if "=" in text and "==" not in text and not re.search(r"[<>!~]=", text):
        return f"Invalid version specification in package {text}. '=' is not supported, use '==' instead."
    return f"'{text}' is not a requirement; write a name and conditions, such as pkg>=1.2,<2"
