"""The release of Salt whose protocol, functions and states Saltern implements, and version texts that contain both
this release and Saltern's version.
"""

from __future__ import annotations

#: State trees compare it (``grains.saltversioninfo``).
SALT_VERSION = "3008.3"

_OURS = "+saltern."


def both_versions(saltern: str) -> str:
    """Return Salt's and Saltern's version in one text, ``3008.3+saltern.0.1.0``; Salt reads it as a build of 3008.3."""
    return f"{SALT_VERSION}{_OURS}{saltern}"


def compared(version: str) -> tuple[list[int], list[int]]:
    """Split a version for comparisons: return (numbers of Salt's release, numbers of Saltern's version). The second
    list is empty for a version of stock Salt.
    """
    salt, _, saltern = version.partition(_OURS)
    return _numbers(salt.partition("+")[0]), _numbers(saltern) if saltern else []


def _numbers(version: str) -> list[int]:
    return [int("".join(char for char in part if char.isdigit()) or 0) for part in version.split(".")]
