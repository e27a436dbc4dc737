"""The release of Salt whose protocol, functions and states Saltern implements, Saltern's own version, and version texts that
contain both.

The version of Saltern is written here and nowhere else: the wheels (``[tool.hatch.version]`` of each package), the Debian
packages, the images, the site and ``--version`` read it here. tests/release/test_version.py compares them.
"""

from __future__ import annotations

#: State trees compare it (``grains.saltversioninfo``).
SALT_VERSION = "3008.3"

#: Version of this code, by semantic versioning: of the last release, or of the next one until it is released.
SALTERN_VERSION = "0.1.0"

#: Most characters of a version that are compared.
_CHARACTERS = 200

_OURS = "+saltern."


def both_versions(saltern: str = SALTERN_VERSION) -> str:
    """Return Salt's and Saltern's version in one text, ``3008.3+saltern.0.1.0``; Salt reads it as a build of 3008.3."""
    return f"{SALT_VERSION}{_OURS}{saltern}"


def compared(version: str) -> tuple[list[int], list[int]]:
    """Split a version for comparisons: return (numbers of Salt's release, numbers of Saltern's version). The second
    list is empty for a version of stock Salt.
    """
    salt, _, saltern = version.partition(_OURS)
    return _numbers(salt.partition("+")[0]), _numbers(saltern) if saltern else []


def _numbers(version: str) -> list[int]:
    # A minion's grain: a longer number is none of a version, and Python refuses to convert it.
    parts = ("".join(char for char in part if char.isdecimal()) for part in version[:_CHARACTERS].split("."))
    return [int(part or 0) for part in parts]
