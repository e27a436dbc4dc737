"""Returns of functions, keys and tables, and the options that they are shown with."""

from __future__ import annotations

import math
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

_SHARED = ["same", "list"]


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for level in range(levels):
        value = [value] if level % 2 else {"level": value}
    return value


#: Name -> a return.
VALUES: Mapping[str, Any] = {
    "true": {"web1": True},
    "false": {"web1": False},
    "none": {"web1": None},
    "number": {"web1": 42},
    "float": {"web1": 0.1 + 0.2},
    "text": {"web1": "hello"},
    "empty text": {"web1": ""},
    "lines": {"web1": "one\n\n  three\n"},
    "unicode": {"wéb1": "naïve ☃ 日本"},
    "escape": {"web1": "\x1b[31mred\x1b[0m"},
    "empty list": {"web1": []},
    "empty dict": {"web1": {}},
    "list": {"web1": ["a", 1, None, True, 2.5, "two\nlines"]},
    "nested lists": {"web1": [["a", ["b", []]], {"k": "v", "l": [1, {"m": None}]}, [], {}]},
    "tuple": {"web1": (1, "a")},
    "args": {"local": {"args": [1, "a"], "kwargs": {"k": "v"}}},
    "mixed names": {"web1": {1: "one", "two": 2, None: "n"}},
    "number names": {"web1": {10: "a", 9: "b"}},
    "bytes": {"web1": b"plain bytes"},
    "deep": {"web1": {"a": {"b": {"c": {"d": [{"e": "f"}]}}}}},
    "unsorted": {"web2": "b", "web1": "a"},
    "no hosts": {},
    "bare text": "just text\nof two lines",
    "bare list": ["a", {"b": 1}],
    "bare number": 7,
    "infinite": {"web1": [math.inf, -math.inf, -0.0, 1e300]},
    "nan": {"web1": {"load": math.nan}},
    "wide numbers": {"web1": [2**70, -(2**63), Decimal("1.10"), 1 + 2j]},
    "ordered": {"web1": OrderedDict([("z", 1), ("a", OrderedDict(k=2))])},
    "counted": {"web1": defaultdict(list, b=[1], a=[])},
    "shared": {"web1": {"one": _SHARED, "two": _SHARED}},
    "true names": {"web1": {True: "yes", False: "no"}},
    "controls": {
        "web1": {"bell": "a\x07b", "back": "a\x08b", "vt": "a\x0bb", "nel": "a\x85b", "csi": "a\x9bb", "del": "\x7f"}
    },
    "crlf": {"web1": "one\r\ntwo\rthree\ttab"},
    "separators": {"web1": "a\u2028b\u2029c\x1cd"},
    "blank lines": {"web1": "\n\n  \n"},
    "trailing blanks": {"web1": "text   \n\n"},
    "very deep": {"web1": deep(60)},
    "long line": {"web1": "x" * 5000},
    "escape in names": {"web1": {"\x1b[31m": ["\x1b]0;title\x07", ("\x1b", {"\x1b": 1})]}},
    "colon names": {"web1": {"a:b": 1, "": 2, " ": 3, "x\ny": 4}},
    "words of functions": {"web1": {"test.ping": True, "test.echo": "hi", "retcode": 0}},
    "yaml words": {"web1": {"a": "yes", "b": "1", "c": "null", "d": "x: y", "e": "#", "f": " lead", "g": "a\nb\n"}},
}

#: Values that Salt's nested leaves out altogether, and that Python shows differently each time or each release.
HIDDEN: Mapping[str, Any] = {
    "date": {"web1": date(2026, 1, 2)},
    "time": {"web1": {"at": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "x": [datetime(2026, 1, 2)]}},
    "set": {"web1": {7}},
    "undecodable": {"web1": b"\xff\x00"},
    "class": {"web1": {"type": int}},
}

KEYS: Mapping[str, Any] = {
    "all states": {
        "minions": ["web2", "web1"],
        "minions_pre": ["new"],
        "minions_denied": [],
        "minions_rejected": ["bad"],
    },
    "local": {"local": ["master.pem", "master.pub"], "minions": []},
    "fingers": {"minions": {"web1": "2c:d5:3a"}, "minions_denied": {"x": ["aa", "bb"]}},
    "empty": {},
    "escape": {"minions": ["\x1b[31mweb"]},
    "unknown state": {"minions_odd": ["a"]},
    "text": "no keys",
}

NO_RETURN: Mapping[str, Any] = {
    "silent": {"ghost": "Minion did not return. [No response]\nline two\n\nsalt-run jobs.lookup_jid 1"},
    "two": {"b": "Minion did not return. [Not connected]", "a": "x"},
    "nested": {"a": {"b": "x"}},
    "bare": "text",
    "other": {"a": 1},
}

_ROWS = [
    {"interface": "eth0", "mac_addr": "40:a6", "up": True, "moves": 0},
    {"interface": "eth1", "mac_addr": "64:16:8d", "up": None, "moves": 12},
]

#: Rows whose cells stay below each other: Salt loses what does not fit (see the samples in test_choice.py).
TABLES: Mapping[str, Any] = {
    "mappings": {"web1": _ROWS},
    "below names": {"web1": {"comment": "", "out": _ROWS, "result": True}},
    "deeper": {"web1": {"a": {"b": {"rows": [["x", "yy"], ["zzz", ""]]}}}},
    "lists": {"web1": [["a", "bb"], ["ccc", "d"]]},
    "tuples": {"web1": [("a", "bb"), ("ccc", "d")]},
    "texts": {"web1": ["one", "two words"]},
    "one long text": {"web1": [" ".join(f"word{n}" for n in range(40))]},
    "long word": {"web1": ["x" * 80 + " y", "z"]},
    "lines": {"web1": ["a\nb", "c"]},
    "numbers": {"web1": [1, 2]},
    "numbers in lists": {"web1": [[1, 2]]},
    "mixed rows": {"web1": ["a", {"b": "c"}]},
    "no rows": {"web1": []},
    "no cells": {"web1": [[], []]},
    "no names": {"web1": [{}, {}]},
    "labels": {"web1": {"labels": {"1": "One", "2": "Two"}, "rows": [["a", "b"]], "other": [["c"]]}},
    "list of labels": {"web1": {"labels": ["One", "Two"], "rows": [["a", "b"]]}},
    "scalar": {"web1": True},
    "bare list": [["a", "b"]],
    "bare text": "text",
    "bytes": {"web1": [[b"a", "b"]]},
    "unicode": {"web1": [{"na\u00efve": "\u2603", "b": "\u65e5\u672c"}]},
    "number names": {"web1": [{1: "a", 2: "b"}]},
    "two hosts": {"web2": [["a"]], "web1": [["b"]]},
}

TABLE_OPTIONS: list[dict[str, Any]] = [
    {},
    {"color": True},
    {"out.table.has_header": False},
    {"out.table.separate_rows": False},
    {"out.table.separate_rows": False, "out.table.has_header": False, "color": True},
    {"out.table.row_delimiter": "=", "out.table.delim": " ", "out.table.prefix": "", "out.table.suffix": "#"},
    {"out.table.justify": "left", "out.table.width": 10},
    {"out.table.justify": "RIGHT", "out.table.nested_indent": 3},
    {"out.table.rows_key": "rows", "out.table.labels_key": "labels"},
    {"out.table.rows_key": "rows", "out.table.title": "Rows", "color": True},
    {"out.table.rows_key": "web1"},
]


PLAIN_OPTIONS: Mapping[str, list[dict[str, Any]]] = {
    "nested": [
        {},
        {"color": True},
        {"color": True, "retcode": 1},
        {"color": "LIGHT_BLUE"},
        {"color": "nosuch"},
        {"strip_colors": False},
    ],
    "json": [{}, {"output_indent": -1}, {"output_indent": 2}, {"output_indent": 0}, {"output_indent": None}],
    "yaml": [{}, {"output_indent": -1}, {"output_indent": 4}],
    "txt": [{}],
    "raw": [{}],
    "pprint": [{}, {"output_indent": 4}],
}
