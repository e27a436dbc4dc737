"""``salt.utils.data``: helpers for nested maps and lists."""

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
    """The differing parts of two structures; {} if there are none."""

    old: object
    new: object


class CaseInsensitiveDict(MutableMapping[object, object]):
    """A map that compares keys without regard to case and shows each key as it was last set."""

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
        """Yield (lower-case key, value)."""
        return ((key, value) for key, (_, value) in self._items.items())

    def copy(self) -> CaseInsensitiveDict:
        """Return a copy with the same entries."""
        return CaseInsensitiveDict(dict(self.items()))


def _lower(key: object) -> object:
    return key.lower() if isinstance(key, str) else key


def _each_text(data: object, change: Callable[[object], object], keep_tuples: bool = False) -> object:
    """Apply ``change`` to every scalar and key of a structure; tuples become lists unless ``keep_tuples`` is true."""
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
    """Return the structure with all text in lower case."""
    return _each_text(data, _lower, keep_tuples=True)


def to_uppercase(data: object, preserve_dict_class: bool = False) -> object:
    """Return the structure with all text in upper case."""
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
    """Return the structure with all bytes decoded to text; with ``keep``, bytes that cannot be decoded stay bytes."""

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
    """Return the structure with all text encoded to bytes; with ``keep``, text that cannot be encoded stays text."""

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
    """Return the value at a path such as ``a:b:0`` through maps and lists; ``default`` if it is missing."""
    return traverse(data, key, default, delimiter)


def traverse_dict(data: object, key: str, default: object = None, delimiter: str = ":") -> object:
    """Return the value at a path such as ``a:b`` through maps only; ``default`` if it is missing."""
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
    """Return whether ``expr`` (``key:subkey:value``) matches the data; the value is a glob, a regular expression or exact text.

    Every split of ``expr`` into path and value is tried. ``*`` in the path matches any key.
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
    """Return whether the text is a substring of an item of the list."""
    return any(string_to_search_for in each for each in list_to_search)


def is_dictlist(data: object) -> bool:
    """Return whether the value is a list of maps with one key each."""
    return isinstance(data, list) and all(isinstance(each, dict) and len(each) == 1 for each in data)


def repack_dictlist(
    data: object,
    strict: bool = False,
    recurse: bool = False,
    key_cb: Callable[[object], object] | None = None,
    val_cb: Callable[[object, object], object] | None = None,
) -> dict[object, object]:
    """Return a list of scalars and one-key maps as one map; {} if the value is not such a list.

    A value that is such a list itself becomes a map too with ``recurse``; otherwise ``strict`` makes the result {}.
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
    """Return whether the value is iterable and not of a type in ``ignore``."""
    return not (ignore and isinstance(thing, ignore)) and hasattr(type(thing), "__iter__")


def sorted_ignorecase(to_sort: Iterable[str]) -> list[str]:
    """Return the texts sorted without regard to case."""
    return sorted(to_sort, key=str.lower)


def is_true(value: object = None) -> bool:
    """Return the boolean meaning of a value: a number above 0, the text "true" in any case, or Python's truth value."""
    # Any value may be passed: what is not a number is a TypeError.
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
    """Return the entry of ``lookup_dict`` whose key (a glob) matches the value, as ``grains.filter_by`` does."""
    return _filter_by(lookup_dict, lookup, traverse, merge, default, base)


def stringify(data: Iterable[object]) -> list[str]:
    """Return each value as text."""
    return [str(each) for each in data]


def simple_types_filter(data: object) -> object:
    """Return the structure with every value that is not plain data replaced by its ``repr``."""
    plain = (str, int, float, bool, type(None))
    if isinstance(data, list | tuple):
        return [simple_types_filter(each) for each in data]
    if isinstance(data, dict):
        return {key if isinstance(key, plain) else repr(key): simple_types_filter(value) for key, value in data.items()}
    return data if isinstance(data, plain) else repr(data)


def filter_falsey(data: object, recurse_depth: int | None = None, ignore_types: Iterable[type] = ()) -> object:
    """Return a map or list without empty values. 0 and False count as empty unless their type is in ``ignore_types``."""
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
    """Return the differences of two structures as ``{"old": ..., "new": ...}``; {} if there are none.

    List items are compared by index; with ``ignore_order`` an item may be anywhere in the other list.
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
    """Return the values at a path as ``[{"value": ..., "name": key}]``. ``{name}`` in the path matches every key."""
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
    """Return the hexadecimal digest of the value's text."""
    return hashlib.new(algorithm, str(value).encode()).hexdigest()


def sample(value: Collection[object], size: int, seed: object = None) -> list[object]:
    """Return ``size`` randomly chosen items of a list."""
    return random.Random(str(seed) if seed is not None else None).sample(list(value), size)


def shuffle(value: Collection[object], seed: object = None) -> list[object]:
    """Return all items of a list in random order."""
    return sample(value, len(value), seed)
