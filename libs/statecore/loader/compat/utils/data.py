"""``salt.utils.data`` for users' modules: helper functions for nested maps and lists."""

from __future__ import annotations

import contextlib
import copy
import fnmatch
import functools
import hashlib
import random
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping
from typing import Any, TypedDict, TypeGuard

from statecore.loader.compat.filter_aliases import filter_getattr
from statecore.loader.compat.utils import stringutils
from statecore.loader.compat.utils import yaml as _yaml
from statecore.model.values import filter_by as _filter_by
from statecore.model.values import traverse
from statecore.targeting.nested import nested_match

__getattr__ = filter_getattr(
    __name__,
    {
        "compare_dicts": "lists.compare_dicts",
        "compare_lists": "lists.compare_lists",
        "exactly_n": "lists.exactly",
        "exactly_one": "lists.exactly",
        "flatten": "lists.flatten",
        "from_entries": "lists.from_entries",
        "json_query": "lists.json_query",
        "mysql_to_dict": "lists.mysql_rows",
        "to_entries": "lists.to_entries",
    },
)


class Differences(TypedDict, total=False):
    """The differing parts of two data structures, as "old" and "new"; {} if the structures are equal."""

    old: object
    new: object


class CaseInsensitiveDict(MutableMapping[object, object]):
    """A map that ignores the case of its keys. Each key is listed with the case in which it was last set."""

    def __init__(
        self, init: Mapping[object, object] | Iterable[tuple[object, object]] | None = None, **kwargs: object
    ) -> None:
        self._items: dict[object, tuple[object, object]] = {}
        self.update(init or {}, **kwargs)

    def __getitem__(self, key: object) -> object:
        return self._items[_lower(key)][1]

    def __setitem__(self, key: object, value: object) -> None:
        self._items[_lower(key)] = (key, value)

    def __delitem__(self, key: object) -> None:
        del self._items[_lower(key)]

    def __iter__(self) -> Iterator[object]:
        return iter([key for key, _ in self._items.values()])

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return repr(dict(self.items()))

    def items_lower(self) -> Iterator[tuple[object, object]]:
        """Yield (key in lower case, value) for each entry of the map."""
        return ((key, value) for key, (_, value) in self._items.items())

    def copy(self) -> CaseInsensitiveDict:
        """Return a copy of the map with the same keys and values."""
        return CaseInsensitiveDict(dict(self.items()))


def _lower(key: object) -> object:
    return key.lower() if isinstance(key, str) else key


def _each_text(data: object, change: Callable[[object], object], keep_tuples: bool = False) -> object:
    """Return a copy of nested maps and lists with ``change`` applied to every key and every value that is not a
    container.

    Tuples become lists unless ``keep_tuples`` is true.
    """
    if isinstance(data, Mapping):
        return {
            _each_text(key, change, keep_tuples=True): _each_text(value, change, keep_tuples)
            for key, value in data.items()
        }
    if isinstance(data, list | tuple):
        changed = [_each_text(item, change, keep_tuples) for item in data]
        return tuple(changed) if isinstance(data, tuple) and keep_tuples else changed
    return change(data)


def to_lowercase(data: object, preserve_dict_class: bool = False) -> object:
    """Return a copy of nested maps and lists with all texts, keys included, in lower case."""
    return _each_text(data, _lower, keep_tuples=True)


def to_uppercase(data: object, preserve_dict_class: bool = False) -> object:
    """Return a copy of nested maps and lists with all texts, keys included, in upper case."""
    return _each_text(data, lambda value: value.upper() if isinstance(value, str) else value, keep_tuples=True)


def decode(
    data: object,
    encoding: object = None,
    errors: str = "strict",
    keep: bool = False,
    normalize: bool = False,
    preserve_dict_class: bool = False,
    preserve_tuples: bool = False,
    to_str: bool = False,
) -> object:
    """Return a copy of nested maps and lists with all bytes, keys included, decoded to text (UTF-8 by default).

    Raise UnicodeDecodeError for invalid bytes; with ``keep`` these stay bytes.
    """

    def change(value: object) -> object:
        if not isinstance(value, str | bytes | bytearray):
            return value.isoformat() if hasattr(value, "isoformat") and hasattr(value, "hour") else value
        try:
            return stringutils.to_unicode(value, encoding, errors, normalize)
        except UnicodeDecodeError:
            if keep:
                return value
            raise

    return _each_text(data, change, preserve_tuples)


decode_dict = decode_list = decode_tuple = decode


def encode(
    data: object,
    encoding: object = None,
    errors: str = "strict",
    keep: bool = False,
    preserve_dict_class: bool = False,
    preserve_tuples: bool = False,
) -> object:
    """Return a copy of nested maps and lists with all texts, keys included, encoded to bytes (UTF-8 by default).

    Raise UnicodeEncodeError for text that cannot be encoded; with ``keep`` it stays text.
    """

    def change(value: object) -> object:
        try:
            return stringutils.to_bytes(value, encoding, errors) if isinstance(value, str) else value
        except UnicodeEncodeError:
            if keep:
                return value
            raise

    return _each_text(data, change, preserve_tuples)


encode_dict = encode_list = encode_tuple = encode


def traverse_dict_and_list(data: object, key: str | int, default: object = None, delimiter: str = ":") -> object:
    """Return the value at a path such as ``a:b:0`` in nested maps and lists; ``default`` if there is none."""
    return traverse(data, key, default, delimiter)


def traverse_dict(data: object, key: str, default: object = None, delimiter: str = ":") -> object:
    """Return the value at a path such as ``a:b`` in nested maps; ``default`` if there is none."""
    found: Any = data
    for each in key.split(delimiter):
        try:
            found = found[each]
        except (KeyError, IndexError, TypeError):
            return default
    return found


def subdict_match(
    data: object, expr: str, delimiter: str = ":", regex_match: bool = False, exact_match: bool = False
) -> bool:
    """Return whether nested data has a value that ``expr`` (``key:subkey:value``) matches.

    The value in ``expr`` is a glob; with ``regex_match`` a regular expression, with ``exact_match`` exact text. Every
    split of ``expr`` into path and value is tried. ``*`` in the path matches any key.
    """
    return nested_match(data, expr, functools.partial(_fits, regex=regex_match, exact=exact_match), delimiter)


def _fits(value: object, pattern: str, *, regex: bool, exact: bool) -> bool:
    text, wanted = str(value).lower(), str(pattern).lower()
    if not regex:
        return text == wanted if exact else fnmatch.fnmatch(text, wanted)
    try:
        return re.match(wanted, text) is not None
    except re.error:
        return False


def substr_in_list(string_to_search_for: str, list_to_search: Iterable[str]) -> bool:
    """Return whether the text ``string_to_search_for`` is part of any text in the list."""
    return any(string_to_search_for in each for each in list_to_search)


def is_dictlist(data: object) -> bool:
    """Return whether the value is a list of maps with one key each, such as the arguments of a state."""
    return isinstance(data, list) and all(isinstance(each, dict) and len(each) == 1 for each in data)


def repack_dictlist(
    data: object,
    strict: bool = False,
    recurse: bool = False,
    key_cb: Callable[[object], object] | None = None,
    val_cb: Callable[[object, object], object] | None = None,
) -> dict[object, object]:
    """Return a list of one-key maps and plain values as one map; a plain value becomes a key with the value None.

    Return {} if ``data`` is not such a list. With ``recurse``, values that are such lists become maps as well; else
    with ``strict`` they make the result {}. ``key_cb`` and ``val_cb`` change each key and value.
    """
    if isinstance(data, str):
        try:
            data = _yaml.safe_load(data)
        except _yaml.YAMLError:
            return {}
    if not isinstance(data, list):
        return {}
    key_of, value_of = key_cb or (lambda key: key), val_cb or (lambda _, value: value)
    found: dict[object, object] = {}
    for element in data:
        if isinstance(element, str | int | float):
            found[key_of(element)] = None
            continue
        if not isinstance(element, dict) or len(element) != 1:
            return {}
        ((key, value),) = element.items()
        if is_dictlist(value) and recurse:
            found[key_of(key)] = repack_dictlist(value, recurse=recurse)
        elif is_dictlist(value) and strict:
            return {}
        else:
            found[key_of(key)] = value_of(key, value)
    return found


def is_list(value: object) -> bool:
    """Return whether the value is a list."""
    return isinstance(value, list)


def is_iter(thing: object, ignore: type | tuple[type, ...] = (str,)) -> TypeGuard[Iterable[Any]]:
    """Return whether the value can be iterated and its type is not in ``ignore`` (by default text)."""
    return not (ignore and isinstance(thing, ignore)) and hasattr(type(thing), "__iter__")


def sorted_ignorecase(to_sort: Iterable[str]) -> list[str]:
    """Return the texts as a list, sorted without regard to case."""
    return sorted(to_sort, key=str.lower)


def is_true(value: object = None) -> bool:
    """Return Salt's truth value of a value.

    True for a number above 0 (also as text) and for the text "true" in any case; False for other texts. Other values
    have Python's truth value.
    """
    # int and float raise TypeError for values that are neither numbers nor text.
    numbers: tuple[Callable[[Any], object], ...] = (int, float)
    for number in numbers:
        with contextlib.suppress(ValueError, TypeError):
            value = number(value)
    if isinstance(value, int | float):
        return value > 0
    if isinstance(value, str):
        return value.lower() == "true"
    return bool(value)


def filter_by(
    lookup_dict: Mapping[object, object],
    lookup: str,
    traverse: Mapping[str, object],
    merge: Mapping[str, object] | None = None,
    default: str = "default",
    base: str | None = None,
) -> object:
    """Return the entry of ``lookup_dict`` whose key, a glob, matches the value at the path ``lookup`` in ``traverse``.

    Without a match the entry ``default`` is returned. ``merge`` is merged over the entry, and the entry over the entry
    ``base``, as by ``grains.filter_by``.
    """
    return _filter_by(lookup_dict, lookup, traverse, merge, default, base)


def stringify(data: Iterable[object]) -> list[str]:
    """Return each value of the iterable as text, in a list."""
    return [str(each) for each in data]


def simple_types_filter(data: object) -> object:
    """Return a copy of nested maps and lists with every other object (not text, number, bool, None) replaced by its
    ``repr``.
    """
    plain = (str, int, float, bool, type(None))
    if isinstance(data, list | tuple):
        return [simple_types_filter(each) for each in data]
    if isinstance(data, dict):
        return {key if isinstance(key, plain) else repr(key): simple_types_filter(value) for key, value in data.items()}
    return data if isinstance(data, plain) else repr(data)


def filter_falsey(data: object, recurse_depth: int | None = None, ignore_types: Iterable[type] = ()) -> object:
    """Return a map or list without its empty values, down to ``recurse_depth`` levels below the first.

    0 and False count as empty, unless their type is in ``ignore_types``.
    """
    ignored = tuple(ignore_types)

    def inner(value: object) -> object:
        return filter_falsey(value, recurse_depth - 1, ignored) if recurse_depth else value

    def kept(value: object) -> bool:
        return bool(value) or type(value) in ignored

    # The result has the class of the data: OrderedDict, tuple, set.
    make: Callable[[list[object]], object] = type(data)
    if isinstance(data, dict):
        found = [(key, inner(value)) for key, value in data.items()]
        return make([(key, value) for key, value in found if kept(value)])
    if is_iter(data):
        return make([value for value in map(inner, data) if kept(value)])
    return data


def recursive_diff(
    old: object,
    new: object,
    ignore_keys: Collection[object] | None = None,
    ignore_order: bool = False,
    ignore_missing_keys: bool = False,
) -> Differences:
    """Return the differing parts of two data structures as {"old": ..., "new": ...}; {} if they are equal.

    Items of lists are compared by index; with ``ignore_order`` an item may be anywhere in the other list. Keys in
    ``ignore_keys`` are not compared. With ``ignore_missing_keys``, keys that only the old map has are not reported.
    """
    again = functools.partial(
        recursive_diff, ignore_keys=ignore_keys, ignore_order=ignore_order, ignore_missing_keys=ignore_missing_keys
    )
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return _differing_maps(old, new, ignore_keys or (), ignore_missing_keys, again)
    if isinstance(old, set) and isinstance(new, set):
        return {"old": old - new, "new": new - old} if old != new else {}
    if is_iter(old) and is_iter(new):
        return _differing_lists(old, new, ignore_order, again)
    return {} if old == new else {"old": copy.deepcopy(old), "new": copy.deepcopy(new)}


def _differing_maps(
    old: Mapping[Any, Any],
    new: Mapping[Any, Any],
    ignored: Collection[object],
    may_miss: bool,
    again: Callable[..., Differences],
) -> Differences:
    left, right = copy.deepcopy(dict(old)), copy.deepcopy(dict(new))
    for key in {*old, *new}:
        if key in ignored:
            left.pop(key, None)
            right.pop(key, None)
        elif may_miss and key in old and key not in new:
            del left[key]
        elif key in old and key in new:
            differing = again(old[key], new[key])
            if differing:
                left[key], right[key] = differing["old"], differing["new"]
            else:
                del left[key], right[key]
    return {"old": left, "new": right} if left or right else {}


def _differing_lists(
    old: Iterable[Any], new: Iterable[Any], ignore_order: bool, again: Callable[..., Differences]
) -> Differences:
    left, right = list(old), list(new)
    if ignore_order:
        for first in old:
            for second in new:
                if not again(first, second) and first in left and second in right:
                    left.remove(first)
                    right.remove(second)
    else:
        pairs = [again(first, second) for first, second in zip(old, new, strict=False)]
        left = [each["old"] for each in pairs if each] + left[len(pairs) :]
        right = [each["new"] for each in pairs if each] + right[len(pairs) :]
    # The result has the class of the data: a tuple stays a tuple.
    old_class: Callable[[list[object]], object] = type(old)
    new_class: Callable[[list[object]], object] = type(new)
    return {"old": old_class(left), "new": new_class(right)} if left or right else {}


def get_value(obj: object, path: str, default: object = None) -> list[dict[str, object]]:
    """Return the values at a path such as ``a:{name}:b`` in nested data, as a list of {"value": value, "name": key}.

    ``{name}`` matches every key or index of its level; the matched key is returned under ``name``. ``default`` is the
    value of a missing path.
    """
    if not path:
        return [{"value": obj}]
    key, _, rest = path.partition(":")
    if key.startswith("{") and key.endswith("}"):
        if obj is None:
            return [{"value": obj}]
        items = obj.items() if isinstance(obj, dict) else enumerate(obj) if isinstance(obj, list) else ()
        return [{**found, key[1:-1]: each} for each, value in items for found in get_value(value, rest, default)]
    if isinstance(obj, dict):
        return get_value(obj[key], rest, default) if key in obj else [{"value": default}]
    return [{"value": default if obj is not None else None}]


def hash(value: object, algorithm: str = "sha512") -> str:
    """Return the hexadecimal digest of a value's text, by the hash algorithm ``algorithm``. Raise ValueError if there
    is no such algorithm.
    """
    return hashlib.new(algorithm, str(value).encode()).hexdigest()


def sample(value: Collection[object], size: int, seed: object = None) -> list[object]:
    """Return ``size`` randomly chosen items of a list. The same seed chooses the same items."""
    return random.Random(str(seed) if seed is not None else None).sample(list(value), size)


def shuffle(value: Collection[object], seed: object = None) -> list[object]:
    """Return all items of a list in random order. The same seed gives the same order."""
    return sample(value, len(value), seed)
