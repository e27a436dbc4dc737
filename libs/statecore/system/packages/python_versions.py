"""Versions of Python packages: their order, version conditions, and requirements as pip accepts them.

Order and conditions follow PEP 440, names PEP 503, requirements PEP 508 (names and conditions only). For a URL or path,
name and version are unknown until it is installed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_VERSION = re.compile(
    r"""v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
    (?:[-_.]?(?P<pre>alpha|a|beta|b|preview|pre|c|rc)[-_.]?(?P<pre_number>\d*))?
    (?:-(?P<post_bare>\d+)|[-_.]?(?P<post>post|rev|r)[-_.]?(?P<post_number>\d*))?
    (?:[-_.]?(?P<dev>dev)[-_.]?(?P<dev_number>\d*))?
    (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?""",
    re.VERBOSE | re.IGNORECASE,
)

#: Alternative spellings of pre-release kinds -> normal form.
_PRE = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}

_CONDITION = re.compile(r"\s*(===|~=|==|!=|<=|>=|<|>)\s*([^\s,;<>=~]+)\s*$")

_REQUIREMENT = re.compile(
    r"""\s*(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[[^\]]*\])?\s*
    \(?(?P<conditions>[^;@()]*)\)?\s*(?:;.*)?$""",
    re.VERBOSE,
)

#: A wheel's file name: begins with package and version.
_WHEEL = re.compile(r"(?:.*/)?(?P<name>[^-/]+)-(?P<version>[^-/]+)(?:-\d[^-/]*)?-[^-/]+-[^-/]+-[^-/]+\.whl(?:#.*)?$")

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
    #: (operator, version)
    conditions: tuple[tuple[str, str], ...] = ()


def normal_name(name: str) -> str:
    """Return the normalized form of a Python package's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement(text: str) -> Requirement:
    """Parse a requirement of a Python package (``django >= 1.6``, a URL or a path). Raises ValueError with the reason
    if pip would not accept it.
    """
    if text.startswith((*_VCS, ".", "/")) or _URL.match(text) or (text.endswith(_ARCHIVES) and "@" not in text):
        return _located_requirement(text)
    direct = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*@\s*\S", text)
    if direct:
        return Requirement(normal_name(direct[1]))
    found = _REQUIREMENT.match(text)
    if found is None:
        raise ValueError(_unreadable(text))
    conditions = []
    for piece in found["conditions"].split(",") if found["conditions"].strip() else ():
        condition = _CONDITION.match(piece)
        if condition is None:
            raise ValueError(_unreadable(text))
        conditions.append((condition[1], condition[2]))
    return Requirement(normal_name(found["name"]), tuple(conditions))


def requirements_in(text: str) -> tuple[Requirement, ...] | None:
    """Return the requirements in a requirements file, if it holds only names and conditions.

    None if it holds paths, options, hashes or environment markers, which only pip can evaluate. Files that it includes
    (``-r``) are not read.
    """
    found = []
    for line in text.splitlines():
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


def order(version: str) -> tuple[object, ...]:
    """Return the sort key of a Python package version (PEP 440)."""
    found = _VERSION.fullmatch(version.strip())
    if found is None:
        return (0, version)
    local = tuple((1, int(part), "") if part.isdecimal() else (0, 0, part.lower()) for part in _local(found))
    return (1, *_public(found), (1, local) if local else (0, ()))


def pre_release(version: str) -> str:
    """Return the kind of pre-release of a Python package version (``a``, ``b``, ``rc`` or ``dev``), or "" for a final
    release.
    """
    found = _VERSION.fullmatch(version.strip())
    if found is None:
        return ""
    return _kind(found) or ("dev" if found["dev"] else "")


def fulfils(version: str, conditions: Sequence[tuple[str, str]], *, pre: bool = False) -> bool:
    """Return True if a Python package version meets all conditions, given as (operator, version).

    A pre-release counts only if a condition names a pre-release, or with ``pre``.
    """
    if not conditions:
        return True
    asked = pre or any(pre_release(wanted.removesuffix(".*")) for _, wanted in conditions)
    if pre_release(version) and not asked and all(operator != "===" for operator, _ in conditions):
        return False
    return all(_holds(version, operator, wanted) for operator, wanted in conditions)


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


def _located_requirement(text: str) -> Requirement:
    """Return the requirement of a Python package for a URL or path. Its name comes from ``egg=`` or a wheel's file
    name.
    """
    if egg := _EGG.search(text):
        try:
            return requirement(egg["text"])
        except ValueError:
            return Requirement("")
    wheel = _WHEEL.match(text)
    if wheel is None:
        return Requirement("")
    return Requirement(normal_name(wheel["name"]), (("==", wheel["version"]),))


def _holds(version: str, operator: str, wanted: str) -> bool:
    if operator == "===":
        return version.lower() == wanted.lower()
    if operator in ("==", "!="):
        same = _starts(version, wanted[:-2]) if wanted.endswith(".*") else _equal(version, wanted)
        return same is (operator == "==")
    if operator == "~=":
        base = _release(wanted)[:-1]
        return _ordered(version, wanted) >= 0 and _release(version)[: len(base)] == base
    found = _ordered(version, wanted)
    if operator == "<":
        # PEP 440: ``<1.0`` does not match pre-releases of 1.0.
        return found < 0 and not (pre_release(version) and not pre_release(wanted) and _same_base(version, wanted))
    if operator == ">":
        return found > 0 and not _is_post_of(version, wanted)
    return found <= 0 if operator == "<=" else found >= 0


def _ordered(version: str, wanted: str) -> int:
    """Compare two Python package versions without the local part (``+local``) of ``version``. Return -1, 0 or 1."""
    return compare(version.partition("+")[0], wanted)


def _equal(version: str, wanted: str) -> bool:
    return compare(version if "+" in wanted else version.partition("+")[0], wanted) == 0


def _starts(version: str, prefix: str) -> bool:
    found, wanted = _VERSION.fullmatch(version.strip()), _VERSION.fullmatch(prefix.strip())
    if found is None or wanted is None:
        return version.startswith(prefix)
    if int(found["epoch"] or 0) != int(wanted["epoch"] or 0):
        return False
    parts, start = _release(version), _release(prefix)
    parts = (*parts, *(0,) * (len(start) - len(parts)))
    return parts[: len(start)] == start


def _same_base(left: str, right: str) -> bool:
    return _trimmed(_release(left)) == _trimmed(_release(right))


def _is_post_of(version: str, wanted: str) -> bool:
    """Return True if ``version`` is a post-release of ``wanted``, which is not a post-release itself."""
    one, two = _VERSION.fullmatch(version.strip()), _VERSION.fullmatch(wanted.strip())
    if one is None or two is None or two["post"] or two["post_bare"] or not (one["post"] or one["post_bare"]):
        return False
    same = (_kind(one), one["pre_number"]) == (_kind(two), two["pre_number"])
    return same and _same_base(version, wanted)


def _public(found: re.Match[str]) -> tuple[object, ...]:
    """Return the sort key of a Python package version: its epoch, release, pre-release, post-release and development
    release.

    Missing parts sort per PEP 440.
    """
    kind, dev = _kind(found), found["dev"]
    post = found["post_bare"] or (found["post_number"] or "0" if found["post"] else None)
    # A development release of a plain version comes before its pre-releases.
    pre = (kind, int(found["pre_number"] or 0)) if kind else ("", 0) if dev and post is None else ("z", 0)
    release = tuple(int(part) for part in found["release"].split("."))
    return (
        int(found["epoch"] or 0),
        _trimmed(release),
        pre,
        -1 if post is None else int(post),
        int(found["dev_number"] or 0) if dev else float("inf"),
    )


def _kind(found: re.Match[str]) -> str:
    kind = (found["pre"] or "").lower()
    return _PRE.get(kind, kind)


def _local(found: re.Match[str]) -> list[str]:
    return re.split(r"[-_.]", found["local"]) if found["local"] else []


def _release(version: str) -> tuple[int, ...]:
    found = _VERSION.fullmatch(version.strip())
    return tuple(int(part) for part in found["release"].split(".")) if found else ()


def _trimmed(release: tuple[int, ...]) -> tuple[int, ...]:
    end = len(release)
    while end > 1 and release[end - 1] == 0:
        end -= 1
    return release[:end]


def _unreadable(text: str) -> str:
    if "=" in text and "==" not in text and not re.search(r"[<>!~]=", text):
        return f"Invalid version specification in package {text}. '=' is not supported, use '==' instead."
    return f"'{text}' is not a requirement; write a name and conditions, such as pkg>=1.2,<2"
