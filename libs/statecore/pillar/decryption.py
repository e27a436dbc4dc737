"""The option ``decrypt_pillar``: decrypts the values at given paths of the complete pillar, from any source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from statecore.model import values
from statecore.model.errors import SlsError
from statecore.pillar.errors import REPEATED, Errors

#: Function from (encrypted text, renderer) to the decrypted value. Raises SlsError.
Decrypt = Callable[[str, str], object]

_ABSENT = object()


def decrypted(
    data: dict[str, object], opts: Mapping[str, object], decrypt: Decrypt, errors: Errors
) -> dict[str, object]:
    """Return a copy of a minion's pillar with the values at the paths of the option ``decrypt_pillar`` decrypted.

    Options used: decrypt_pillar (paths, or ``path: renderer``), decrypt_pillar_delimiter, decrypt_pillar_default,
    decrypt_pillar_renderers. Paths that do not exist are skipped; failures are added to ``errors``.
    """
    wanted = opts.get("decrypt_pillar")
    if not wanted:
        return data
    delimiter = str(opts.get("decrypt_pillar_delimiter") or values.DELIMITER)
    renderers = opts.get("decrypt_pillar_renderers") or ("gpg",)
    allowed = [str(name) for name in renderers] if isinstance(renderers, Iterable) else []
    for path, named in _paths(wanted, errors):
        value = values.traverse(data, path, _ABSENT, delimiter)
        if value is _ABSENT or value is None:
            continue
        renderer = named or str(opts.get("decrypt_pillar_default") or "gpg")
        try:
            if renderer not in allowed:
                raise ValueError(
                    f"'{renderer}' is not a valid decryption renderer. Valid choices are: {', '.join(allowed)}"
                )
            data = _with_value(data, path.split(delimiter), _plain(value, renderer, decrypt))
        except SlsError as error:
            errors.add(f"Failed to decrypt pillar key '{path}': {REPEATED.sub('', error.faults[0].message)}")
        except (ValueError, IndexError, KeyError) as error:
            errors.add(f"Failed to decrypt pillar key '{path}': {error}")
    return data


def _paths(wanted: object, errors: Errors) -> Iterator[tuple[str, str]]:
    """Yield (path, renderer or "") for each entry of the option ``decrypt_pillar``. A malformed entry is added to
    ``errors``.
    """
    entries = [wanted] if isinstance(wanted, Mapping) else wanted
    for entry in entries if isinstance(entries, list) else [entries]:
        if isinstance(entry, str) and isinstance(entries, list):
            yield entry, ""
        elif isinstance(entry, Mapping):
            yield from ((str(path), str(renderer or "")) for path, renderer in entry.items())
        else:
            errors.add(f"decrypt_pillar config option is malformed: {entry!r} is neither a path nor `path: renderer`")


def _plain(value: object, renderer: str, decrypt: Decrypt) -> object:
    if isinstance(value, str):
        # The renderer returns {} for an empty text, as for an empty SLS.
        return decrypt(value, renderer) or ""
    if isinstance(value, Mapping):
        return {key: _plain(each, renderer, decrypt) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, renderer, decrypt) for each in value]
    return value


def _with_value(data: Mapping[str, object], keys: list[str], value: object) -> dict[str, object]:
    """Return a copy of nested data with ``value`` at a path that exists."""
    key, *rest = keys
    known = next(each for each in data if str(each) == key)
    return {name: _replaced(each, rest, value) if name == known else each for name, each in data.items()}


def _replaced(data: object, keys: list[str], value: object) -> object:
    if isinstance(data, Mapping) and keys:
        return _with_value(data, keys, value)
    if isinstance(data, list) and keys:
        at, rest = int(keys[0]), keys[1:]
        return [_replaced(each, rest, value) if number == at % len(data) else each for number, each in enumerate(data)]
    return value
