"""Check the style of low chunks: deprecated forms, empty conditions, and values that YAML reads as another type. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from statecore.analysis.finding import Remark
from statecore.model.types import Low

#: Deprecated function -> its replacement.
_OLD_FUNCTIONS: Mapping[str, str] = {
    "cmd.wait": "cmd.run with onchanges",
    "cmd.wait_script": "cmd.script with onchanges",
    "cmd.wait_call": "cmd.call with onchanges",
    "module.wait": "module.run with onchanges",
}

#: Arguments that hold permission bits.
_MODES = frozenset({"mode", "file_mode", "dir_mode", "sym_mode", "umask"})

_CONDITIONS = ("onlyif", "unless", "creates", "check_cmd")

#: Matches an unquoted octal value such as ``mode: 0644`` at the end of a source line.
_OCTAL = re.compile(r":\s*(0[0-7]+)\s*(?:#.*)?$")

_FLOAT = re.compile(r":\s*(\d+\.\d+)\s*(?:#.*)?$")

#: Arguments of module.run in its old form, which names one function.
_MODULE_RUN = frozenset({"name", "m_name", "func", "args", "kwargs"})

#: Returns the source line of a path of keys of a chunk; "" if it is not found.
LineOf = Callable[[Low, tuple[str, ...]], str]


def remarks(low: Low, line_of: LineOf) -> Iterator[Remark]:
    """Yield a remark for each deprecated form, empty condition, unquoted file mode and unquoted version of the low
    chunk ``low``.

    ``line_of(low, keys)`` returns the source line of an argument.
    """
    keys = (str(low["__id__"]), str(low["state"]))
    yield from _old(low, keys)
    yield from _conditions(low, keys)
    yield from _modes(low, keys, line_of)
    yield from _versions(low, keys, line_of)


def _old(low: Low, keys: tuple[str, ...]) -> Iterator[Remark]:
    full = f"{low['state']}.{low['fun']}"
    if full in _OLD_FUNCTIONS:
        yield Remark("old-form", f"{full} is deprecated", low, keys, f"use {_OLD_FUNCTIONS[full]}")
    if full == "module.run" and not any("." in str(key) for key in low if not str(key).startswith("__")):
        named = low.get("func") or low.get("m_name") or low.get("name")
        if "." in str(named) and (low.get("name") != low["__id__"] or _MODULE_RUN & low.keys() - {"name"}):
            text = f"module.run names its function ('{named}') in the old way"
            yield Remark("old-form", text, low, keys, f"write '- {named}:' with its arguments below it")


def _conditions(low: Low, keys: tuple[str, ...]) -> Iterator[Remark]:
    for name in _CONDITIONS:
        if name in low and low[name] in (None, "", [], {}):
            yield Remark("empty-condition", f"'{name}' is empty, and decides nothing", low, (*keys, name))


def _modes(low: Low, keys: tuple[str, ...], line_of: LineOf) -> Iterator[Remark]:
    for name in sorted(_MODES & low.keys()):
        if isinstance(low[name], int) and (written := _OCTAL.search(line_of(low, (*keys, name)))):
            text = f"the {name} {written[1]} without quotes is a number to YAML, which other tools read as octal"
            yield Remark("unquoted-mode", text, low, (*keys, name), f"write '{written[1]}'")


def _versions(low: Low, keys: tuple[str, ...], line_of: LineOf) -> Iterator[Remark]:
    places = [(name, low[name]) for name in ("version",) if isinstance(low.get(name), float)]
    paths = [((*keys, name), value) for name, value in places]
    for item in low["pkgs"] if isinstance(low.get("pkgs"), list) else ():
        if isinstance(item, Mapping):
            paths += [((*keys, "pkgs", str(name)), value) for name, value in item.items() if isinstance(value, float)]
    for path, value in paths:
        found = _FLOAT.search(line_of(low, path))
        # 1.5 is read as 1.5: only a version whose text changes (1.10 becomes 1.1) is reported.
        if found and found[1] != str(value):
            text = f"the version {found[1]} without quotes is the number {value}"
            yield Remark("unquoted-version", text, low, path, f"write '{found[1]}'")
