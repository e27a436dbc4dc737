"""Invalid pillars: each gives an error that names the cause, and no state is applied."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import local_runtime

_TOP = "base:\n  '*': [a]\n"

#: What is wrong -> (pillar files, options, how the one error begins).
FAULTS: Mapping[str, tuple[Mapping[str, str | bytes], Mapping[str, Any], str]] = {
    "a file that is missing": ({}, {}, "Specified SLS 'a' in environment 'base' is not available on the salt master"),
    "an include that is missing": ({"a.sls": "include: [b]\n"}, {}, "Specified SLS 'b' in environment 'base' is not"),
    "Jinja": (
        {"a.sls": "a: {{ nothing }}\n"},
        {},
        "Rendering SLS 'a' failed. Please see master log for details. (DIR/a.sls:1)",
    ),
    "Jinja without end": (
        {"a.sls": "{% for i in range(99999) %}{% for j in range(99999) %}{{ i }}{% endfor %}{% endfor %}"},
        {"jinja_time_limit": 0.1},
        "Rendering SLS 'a' failed. Please see master log for details. (DIR/a.sls:1)",
    ),
    "YAML": ({"a.sls": "a: [1\n"}, {}, "Rendering SLS 'a' failed. Please see master log for details. (DIR/a.sls:1)"),
    "a key twice": (
        {"a.sls": "a: 1\n\na: 2\n"},
        {},
        "Rendering SLS 'a' failed. Please see master log for details. (DIR/a.sls:3)",
    ),
    "a tag of Python's": ({"a.sls": "a: !!python/object:os.system x\n"}, {}, "Rendering SLS 'a' failed."),
    "aliases without end": (
        {
            "a.sls": "".join(
                ["a0: &a0 [x]\n", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))]
            )
        },
        {},
        "Rendering SLS 'a' failed. Please see master log for details. (DIR/a.sls",
    ),
    "a renderer that is none": ({"a.sls": "#!jnja|yaml\na: 1\n"}, {}, "Rendering SLS 'a' failed."),
    "no text": (
        {"a.sls": b"a: \xff\xfe\n"},
        {},
        "Rendering SLS 'a' failed. Please see master log for details. (DIR/a.sls",
    ),
    "a directory": ({"a.sls/x": ""}, {}, "Specified SLS 'a' in environment 'base' is not available on the salt master"),
    "a list": ({"a.sls": "- 1\n"}, {}, "SLS 'a' does not render to a dictionary (DIR/a.sls:1)"),
    "text": ({"a.sls": "text\n"}, {}, "SLS 'a' does not render to a dictionary (DIR/a.sls:1)"),
    "a module that is missing": ({"a.sls": "a: {{ salt['no.such']() }}\n"}, {}, "Rendering SLS 'a' failed."),
    "a module that fails": ({"a.sls": "a: {{ salt['file.read']('/nothing') }}\n"}, {}, "Rendering SLS 'a' failed."),
    "a Python renderer that raises": (
        {"a.sls": "#!py\ndef run():\n    raise ValueError('x')\n"},
        {},
        "Rendering SLS 'a' failed.",
    ),
    "include is text": ({"a.sls": "include: b\n"}, {}, "Include Declaration in SLS 'a' is not formed as a list"),
    "include is a map": ({"a.sls": "include: {b: {}}\n"}, {}, "Include Declaration in SLS 'a' is not formed as a list"),
    "include of a number": ({"a.sls": "include: [5]\n"}, {}, "Specified SLS '5' in environment 'base' is not"),
    "include of a list": ({"a.sls": "include: [[b]]\n"}, {}, "The include of '['b']' in SLS 'a' must be a name"),
    "include of nothing": ({"a.sls": "include: [null]\n"}, {}, "The include of 'None' in SLS 'a' must be a name"),
    "include of an empty map": (
        {"a.sls": "include: [{}]\n"},
        {},
        "The include of '' in SLS 'a' takes defaults and key",
    ),
    "include with null options": (
        {"a.sls": "include: [{b: }]\n"},
        {},
        "The include of 'b' in SLS 'a' takes defaults and key",
    ),
    "include of two in one": (
        {"a.sls": "include:\n  - b: {key: x}\n    c: {key: y}\n"},
        {},
        "The include of 'b' in SLS 'a' takes defaults and key",
    ),
    "include with an unknown option": (
        {"a.sls": "include: [{b: {keys: x}}]\n", "b.sls": ""},
        {},
        "The include of 'b' in SLS 'a' takes defaults and key, not keys",
    ),
    "defaults that are a list": (
        {"a.sls": "include: [{b: {defaults: [1]}}]\n", "b.sls": ""},
        {},
        "The include of 'b' in SLS 'a': its defaults are not formed as a dictionary",
    ),
    "dots that lead out": ({"a.sls": "include: ['...b']\n"}, {}, "Specified SLS "),
    "the top file's Jinja": ({"top.sls": "{{ nothing }}\n"}, {}, "Rendering Primary Top file failed, render error: "),
    "the top file's YAML": ({"top.sls": "base: [\n"}, {}, "Rendering Primary Top file failed, render error: "),
    "the top file is a list": ({"top.sls": "- a\n"}, {}, "Error encountered while rendering pillar top file. "),
    "the top file is no text": ({"top.sls": b"\xff\n"}, {}, "Rendering Primary Top file failed, render error: "),
    "an environment that is a list": (
        {"top.sls": "base: [a]\n"},
        {},
        "Error encountered while rendering pillar top file. ",
    ),
    "a target that is text": (
        {"top.sls": "base: {'*': a}\n"},
        {},
        "Error encountered while rendering pillar top file. ",
    ),
    "a target without files": (
        {"top.sls": "base: {'*': }\n"},
        {},
        "Error encountered while rendering pillar top file. ",
    ),
    "a reference that YAML reads as false": (
        {"top.sls": "base: {'*': [a, no]}\n", "a.sls": ""},
        {},
        "Error encountered while rendering pillar top file. Environment base contains False, which is not an SLS reference",
    ),
    "a matcher that is none": (
        {"top.sls": "base: {'*': [{match: grian}, a]}\n", "a.sls": ""},
        {},
        "Error encountered while rendering pillar top file. The top file's target '*' cannot be understood: ",
    ),
    "an environment that is none": (
        {"top.sls": "qa: {'*': [a]}\n"},
        {},
        "No matching pillar environment for environment 'qa'",
    ),
    "a strategy that is none": (
        {"a.sls": "a: 1\n"},
        {"pillar_source_merging_strategy": "smrat"},
        "pillar_source_merging_strategy: Unknown merging strategy 'smrat'; there are smart",
    ),
    "an external pillar that is none": (
        {"a.sls": ""},
        {"ext_pillar": [{"cmd_ymal": "true"}]},
        "Failed to load ext_pillar cmd_ymal: there is no such external pillar; there are cmd_json, cmd_yaml",
    ),
    "an external pillar that fails": (
        {"a.sls": ""},
        {"ext_pillar": [{"cmd_yaml": "exit 1"}]},
        "Failed to load ext_pillar cmd_yaml: ",
    ),
    "external pillars that are no list": ({"a.sls": ""}, {"ext_pillar": "x"}, 'The "ext_pillar" option is malformed'),
    "an external pillar that is text": ({"a.sls": ""}, {"ext_pillar": ["x"]}, 'The "ext_pillar" option is malformed'),
}


@pytest.mark.parametrize(("files", "opts", "begins"), FAULTS.values(), ids=FAULTS)
def test_it_stops_a_state_run(
    tmp_path: Path, files: Mapping[str, str | bytes], opts: Mapping[str, Any], begins: str
) -> None:
    returned = _runtime(tmp_path, files, opts).call("state.apply", ["touched"])
    assert returned.retcode == 5
    title, *errors = returned.value
    assert title == "Pillar failed to render with the following messages:"
    assert len(errors) == 1, errors
    told = errors[0].replace(f"{tmp_path}/pillar", "DIR")
    assert told.startswith(begins)
    assert "\n" not in told
    assert not (tmp_path / "touched").exists()


def test_a_run_may_be_forced(tmp_path: Path) -> None:
    runtime = _runtime(tmp_path, {"a.sls": "a: {{ nothing }}\n"}, {})
    assert runtime.call("state.apply", ["touched"], {"force": True}).retcode == 0
    assert (tmp_path / "touched").exists()


#: What is odd, and no fault -> (pillar files, the data).
ODD: Mapping[str, tuple[Mapping[str, str | bytes], dict[Any, Any]]] = {
    "an empty file": ({"a.sls": ""}, {}),
    "white space": ({"a.sls": " \n\t\n"}, {}),
    "no top file": ({"top.sls": ""}, {}),
    "a byte order mark": ({"a.sls": b"\xef\xbb\xbfa: 1\n"}, {"a": 1}),
    "lines of Windows": ({"a.sls": b"a: 1\r\nb: |\r\n  x\r\n  y\r\n"}, {"a": 1, "b": "x\ny\n"}),
    "letters of anybody": ({"a.sls": "schlüssel: 'ß 鍵 🔑'\n"}, {"schlüssel": "ß 鍵 🔑"}),
    "a circle": ({"a.sls": "include: [b]\nx: a\n", "b.sls": "include: [a]\nx: b\n"}, {"x": "a"}),
    "a circle with other defaults at each turn": (
        {
            "a.sls": "{% set n = n | default(0) %}include:\n  - a: {defaults: {n: {{ n + 1 }}}, key: k{{ n }}}\nn: {{ n }}\n"
        },
        {"n": 0, "k0": {"n": 0}},
    ),
    "a chain of a hundred": (
        {f"{'a' if n == 0 else f'a{n}'}.sls": f"include: [a{n + 1}]\n" for n in range(100)} | {"a100.sls": "end: 1\n"},
        {"end": 1},
    ),
    "ten thousand keys": (
        {"a.sls": "".join(f"k{n}: {n}\n" for n in range(10_000))},
        {f"k{n}": n for n in range(10_000)},
    ),
}


@pytest.mark.parametrize(("files", "data"), ODD.values(), ids=ODD)
def test_it_is_no_fault(tmp_path: Path, files: Mapping[str, str | bytes], data: dict[Any, Any]) -> None:
    assert dict(_runtime(tmp_path, files, {}).pillar) == data


def test_a_chain_that_is_too_long_is_told(tmp_path: Path) -> None:
    files = {f"{'a' if n == 0 else f'a{n}'}.sls": f"include: [a{n + 1}]\n" for n in range(2000)} | {"a2000.sls": ""}
    (error,) = _runtime(tmp_path, files, {}).pillar["_errors"]
    assert error == "SLS 'a200' includes more, but is included itself over 200 levels: that is too deep"


def _runtime(tmp_path: Path, files: Mapping[str, str | bytes], opts: Mapping[str, Any]) -> Any:
    marker = tmp_path / "touched"
    states = {"touched.sls": f"touch {marker}:\n  cmd.run\n"}
    for kind, tree in (("pillar", {"top.sls": _TOP, **files}), ("states", states)):
        for name, text in tree.items():
            path = tmp_path / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
    roots = {
        f"{option}_roots": {"base": [str(tmp_path / kind)]}
        for option, kind in (("pillar", "pillar"), ("file", "states"))
    }
    return local_runtime({**roots, "id": "web1", "grains": {}, "cachedir": str(tmp_path / "cache"), **opts})
