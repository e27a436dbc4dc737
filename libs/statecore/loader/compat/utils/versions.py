"""``salt.utils.versions`` for users' modules: compares versions and warns about deprecated features."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any, TypeAlias

import packaging.version

from statecore.loader.compat.version import SaltStackVersion, __saltstack_version__

#: A date, or its text ``20270131``. A name of its own, because a parameter is called ``date``.
_Day: TypeAlias = str | date


@functools.total_ordering
class LooseVersion:
    """A version of numbers and words that can be compared. If one of two versions has a word, all parts are compared as
    text.
    """

    def __init__(self, vstring: str) -> None:
        self.vstring = vstring
        self.version: list[int | str] = []
        # Only the dots go: "1.2-3" keeps the hyphen as a part of its own.
        for part in re.split(r"(\d+|[a-z]+|\.)", vstring, flags=re.IGNORECASE):
            if part and part != ".":
                self.version.append(int(part) if part.isdecimal() else part)

    def _key(self, other: LooseVersion) -> tuple[list[Any], list[Any]]:
        if all(isinstance(part, int) for part in (*self.version, *other.version)):
            return self.version, other.version
        return self._texts(), other._texts()

    def _texts(self) -> list[str]:
        return [str(part).zfill(8) if isinstance(part, int) else part for part in self.version]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LooseVersion | str):
            return NotImplemented
        mine, theirs = self._key(_loose(other))
        return mine == theirs

    def __lt__(self, other: LooseVersion | str) -> bool:
        mine, theirs = self._key(_loose(other))
        return mine < theirs

    def __hash__(self) -> int:
        return hash(tuple(self.version))

    def __str__(self) -> str:
        return self.vstring

    def __repr__(self) -> str:
        return f"LooseVersion ('{self.vstring}')"


def _loose(version: LooseVersion | str) -> LooseVersion:
    return version if isinstance(version, LooseVersion) else LooseVersion(version)


class Version(packaging.version.Version):
    """A version by PEP 440 that can also be compared with a text. Raise packaging's InvalidVersion for other texts."""

    def __eq__(self, other: object) -> bool:
        return super().__eq__(_strict(other))

    def __lt__(self, other: Any) -> bool:
        return super().__lt__(_strict(other))

    def __le__(self, other: Any) -> bool:
        return super().__le__(_strict(other))

    def __gt__(self, other: Any) -> bool:
        return super().__gt__(_strict(other))

    def __ge__(self, other: Any) -> bool:
        return super().__ge__(_strict(other))

    def __hash__(self) -> int:
        return super().__hash__()


def _strict(other: Any) -> Any:
    return Version(other) if isinstance(other, str) else other


StrictVersion = Version
parse = packaging.version.parse


def version_cmp(pkg1: object, pkg2: object, ignore_epoch: bool = False) -> int | None:
    """Compare two versions: return -1, 0 or 1; None if the versions cannot be compared. ``ignore_epoch``: ignore a
    prefix ``1:``.
    """
    first, second = (LooseVersion(str(each).split(":", 1)[-1] if ignore_epoch else str(each)) for each in (pkg1, pkg2))
    try:
        return (first > second) - (first < second)
    except TypeError:
        return None


_FITS: Mapping[str, Callable[[int], bool]] = {
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    ">=": lambda order: order >= 0,
    ">": lambda order: order > 0,
}


def compare(
    ver1: object = "",
    oper: str = "==",
    ver2: object = "",
    cmp_func: Callable[..., object] | None = None,
    ignore_epoch: bool = False,
) -> bool:
    """Return whether ``ver1 oper ver2`` holds (``oper`` is one of <, <=, ==, !=, >=, >). False for an unknown operator.

    ``cmp_func`` compares two versions in place of ``version_cmp``.
    """
    if oper not in _FITS:
        return False
    order = (cmp_func or version_cmp)(ver1, ver2, ignore_epoch=ignore_epoch)
    return isinstance(order, int) and _FITS[oper](order)


def warn_until(
    version: object,
    message: str,
    category: type[Warning] = DeprecationWarning,
    stacklevel: int | None = None,
    **_: object,
) -> None:
    """Issue a Python warning that a feature will be removed in a version of Salt (number, code name or tuple).
    ``{version}`` in the message is replaced by the version.
    """
    until = _salt_version(version)
    warnings.warn(message.format(version=until.string), category, stacklevel=stacklevel or 2)


def warn_until_date(
    date: _Day, message: str, category: type[Warning] = DeprecationWarning, stacklevel: int | None = None, **_: object
) -> None:
    """Issue a Python warning that a feature will be removed on a date (``20270131``, or a date). ``{date}`` and
    ``{today}`` in the message are replaced by dates.
    """
    day = _day(date)
    text = message.format(date=day.isoformat(), today=datetime.now(UTC).date().isoformat())
    warnings.warn(text, category, stacklevel=stacklevel or 2)


def kwargs_warn_until(
    kwargs: Mapping[str, object],
    version: object,
    category: type[Warning] = DeprecationWarning,
    stacklevel: int | None = None,
    **_: object,
) -> None:
    """Issue a Python warning that the given keyword arguments will be removed in a version of Salt (number, code name
    or tuple).
    """
    until = _salt_version(version)
    if kwargs or __saltstack_version__ >= until:
        names = ", ".join(f"'{name}'" for name in kwargs)
        text = f"The following parameter(s) have been deprecated and will be removed in '{until.string}': {names}."
        warn_until(until, text, category, stacklevel or 3)


def _salt_version(version: object) -> SaltStackVersion:
    if isinstance(version, SaltStackVersion):
        return version
    if isinstance(version, int):
        return SaltStackVersion(version)
    if isinstance(version, tuple):
        return SaltStackVersion(*version)
    if isinstance(version, str):
        return SaltStackVersion.parse(version) if version[:1].isdecimal() else SaltStackVersion.from_name(version)
    raise RuntimeError(
        "The 'version' argument should be passed as a tuple, integer, string or an instance of 'salt.version.SaltStackVersion'."
    )


def _day(given: str | date) -> date:
    if isinstance(given, str):
        return datetime.strptime(given, "%Y%m%d").replace(tzinfo=UTC).date()
    return given.date() if isinstance(given, datetime) else given
