"""Secret values of pillar: their paths, and their removal from texts and data. Pure.

The option ``secret_pillar`` and the pillar key of the same name list the paths (docs/pillar.md#secret-values). Returns,
events and logs of a run show ``**********`` in place of the values; ``redaction`` decides what else is hidden.

Source: docs/security.md#secrets
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase

from statecore.model.values import MASK

#: Name of the option, and of the pillar key, that lists the paths.
SECRET_PILLAR = "secret_pillar"

#: A text shorter than this is replaced only where it is the whole value: it is part of too many words.
_SHORTEST = 4

#: A line of a longer secret, such as a private key, is a secret by itself from this length on.
_SHORTEST_LINE = 8

#: Levels of nested values that are searched; deeper values are hidden.
_DEPTH = 60


def secret_paths(given: object) -> list[str]:
    """Return the list of paths in the value of ``secret_pillar``: a text, a list of texts, or a map whose keys are the
    paths.

    In a map, each path has the value True, so that several pillar files can add paths to it. Raises ValueError for
    anything else.
    """
    match given:
        case None | False:
            return []
        case str():
            return [given]
        case Mapping():
            return [str(path) for path, wanted in given.items() if wanted]
        case list() | tuple() if all(isinstance(path, str) for path in given):
            return list(given)
    raise ValueError(f"{SECRET_PILLAR} is a list of paths such as 'users:*:password', not {type(given).__name__}")


def values_at(pillar: object, path: str) -> Iterator[object]:
    """Yield the scalar values at a path of the pillar and below it. The path's parts, between colons, are globs of keys
    or list indexes.
    """
    first, colon, rest = path.partition(":")
    for key, value in _items(pillar):
        if fnmatchcase(str(key), first):
            yield from values_at(value, rest) if colon else _scalars(value)


def _items(value: object) -> Iterable[tuple[object, object]]:
    if isinstance(value, Mapping):
        return value.items()
    return enumerate(value) if isinstance(value, list | tuple) else ()


def _scalars(value: object) -> Iterator[object]:
    if isinstance(value, Mapping | list | tuple):
        for _, item in _items(value):
            yield from _scalars(item)
    else:
        yield value


class SecretValues:
    """The secret values that were found so far, and functions that replace them in texts and data. Values are only
    added.
    """

    def __init__(self) -> None:
        #: Texts that are replaced wherever they are, the longest first.
        self._inside: tuple[str, ...] = ()
        #: Texts of whole values that are replaced.
        self._whole: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self._whole)

    def add(self, values: Iterable[object]) -> None:
        """Add secret values. True, False, None and empty values are no secrets."""
        texts = {
            text for value in values if value is not None and not isinstance(value, bool) for text in _forms(value)
        }
        if texts <= self._whole:
            return
        self._whole = self._whole | texts
        inside = [text for text in self._whole if len(text) >= _SHORTEST]
        self._inside = tuple(sorted(inside, key=lambda text: (-len(text), text)))

    def text(self, text: str) -> str:
        """Return a text with ``**********`` in place of each secret."""
        if text in self._whole:
            return MASK
        for secret in self._inside:
            if secret in text:
                text = text.replace(secret, MASK)
        return text

    def hide(self, value: object, depth: int = _DEPTH) -> object:
        """Return a copy of nested data with ``**********`` in place of each secret; the same object if it contains
        none.

        Keys of a map that become equal get a number after the asterisks.
        """
        if not self._whole:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes | bytearray):
            return self._bytes(bytes(value))
        if isinstance(value, int | float) and not isinstance(value, bool):
            return MASK if str(value) in self._whole and len(str(value)) >= _SHORTEST else value
        if not isinstance(value, Mapping | list | tuple):
            return value
        if not depth:
            return MASK
        if not isinstance(value, Mapping):
            return [self.hide(item, depth - 1) for item in value]
        shown: dict[object, object] = {}
        for key, item in value.items():
            shown[self._key(key, shown)] = self.hide(item, depth - 1)
        return shown

    def _key(self, key: object, taken: Mapping[object, object]) -> object:
        if not isinstance(key, str):
            return key
        plain = name = "".join(self.text(key)) if len(key) >= _SHORTEST else key
        number = 1
        while name in taken:
            number += 1
            name = plain.replace(MASK, f"{MASK}{number}", 1)
        return name

    def _bytes(self, value: bytes) -> bytes:
        for secret in self._inside:
            value = value.replace(secret.encode("utf-8", "surrogateescape"), MASK.encode())
        return value


def _forms(value: object) -> Iterator[str]:
    """Yield the texts by which a secret can appear: itself, its lines, and as JSON, Python or the shell quote it."""
    text = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)
    stripped = text.strip()
    if not stripped:
        return
    yield text
    yield stripped
    lines = [line.strip() for line in stripped.splitlines()]
    for one in (stripped, *(line for line in lines if len(line) >= _SHORTEST_LINE)):
        yield one
        yield json.dumps(one)[1:-1]
        yield json.dumps(one, ensure_ascii=False)[1:-1]
        yield repr(one)[1:-1]
        if "'" in one:
            # Inside the single quotes of a shell.
            yield one.replace("'", "'\"'\"'")
