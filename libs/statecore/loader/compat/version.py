"""``salt.version`` for users' modules: the version of Salt whose functions Saltern has, in the form that modules
compare.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable

from statecore.loader.compat import __version__

#: Code name of a Salt release -> its version.
_NAMES = {
    "Hydrogen": (2014, 1),
    "Helium": (2014, 7),
    "Lithium": (2015, 5),
    "Beryllium": (2015, 8),
    "Boron": (2016, 3),
    "Carbon": (2016, 11),
    "Nitrogen": (2017, 7),
    "Oxygen": (2018, 3),
    "Fluorine": (2019, 2),
    "Neon": (3000,),
    "Sodium": (3001,),
    "Magnesium": (3002,),
    "Aluminium": (3003,),
    "Silicon": (3004,),
    "Phosphorus": (3005,),
    "Sulfur": (3006,),
    "Chlorine": (3007,),
    "Argon": (3008,),
    "Potassium": (3009,),
    "Calcium": (3010,),
}


@functools.total_ordering
class SaltStackVersion:
    """A version of Salt, such as 3008.3. It can be compared with other versions, texts and tuples, and converted to
    text or a tuple.
    """

    def __init__(self, major: int, minor: int | None = None, bugfix: int | None = None) -> None:
        self.major, self.minor, self.bugfix = major, minor, bugfix

    @classmethod
    def parse(cls, version_string: str) -> SaltStackVersion:
        """Return the version that a text such as ``3008.3`` or ``v3008.3`` names. Raise ValueError for other texts."""
        match = re.match(r"v?(\d{4})(?:\.(\d{1,2}))?(?:\.(\d{1,2}))?", version_string)
        if match is None:
            raise ValueError(f"Unable to parse version string: '{version_string}'")
        return cls(*(int(part) for part in match.groups() if part is not None))

    @classmethod
    def from_name(cls, name: str) -> SaltStackVersion:
        """Return the version of the Salt release with this code name (``Oxygen``). Raise ValueError for an unknown
        name.
        """
        if name.capitalize() not in _NAMES:
            raise ValueError(f"Named version '{name}' is not known")
        return cls(*_NAMES[name.capitalize()])

    from_last_named_version = from_name

    @property
    def info(self) -> tuple[int, ...]:
        """The version's numbers as a tuple, such as (3008, 3)."""
        return tuple(part for part in (self.major, self.minor, self.bugfix) if part is not None)

    @property
    def string(self) -> str:
        """The version as text, such as ``3008.3``."""
        return ".".join(str(part) for part in self.info)

    def _key(self) -> tuple[int, int, int]:
        return self.major, self.minor or 0, self.bugfix or 0

    def __eq__(self, other: object) -> bool:
        return self._key() == _version(other)._key()

    def __lt__(self, other: object) -> bool:
        return self._key() < _version(other)._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return self.string


def _version(other: object) -> SaltStackVersion:
    if isinstance(other, SaltStackVersion):
        return other
    if isinstance(other, str):
        return SaltStackVersion.parse(other)
    if not isinstance(other, Iterable):
        raise TypeError(f"a version of Salt is a text or a tuple of numbers, not {type(other).__name__}")
    return SaltStackVersion(*other)


__saltstack_version__ = SaltStackVersion.parse(__version__)
__version_info__ = __saltstack_version__.info
