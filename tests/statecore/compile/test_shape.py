"""The pass ``shape.check``: malformed high data is reported in Salt's words, with file and line."""

from __future__ import annotations

import pytest

from .conftest import Compile, order, told

FAULTS = {
    "trailing colon": (
        "x:\n  test.nop:\n",
        [
            "a.sls:2 ID 'x' in SLS 'a' contains a short declaration (test.nop) with a trailing colon. When not passing any"
            " arguments to a state, the colon must be omitted."
        ],
    ),
    "a map of arguments": ("x:\n  test.nop:\n    name: y\n", ["a.sls:2 State 'x' in SLS 'a' is not formed as a list"]),
    "no function": ("x:\n  test:\n    - name: y\n", ["a.sls:2 No function declared in state 'x' in SLS 'a'"]),
    "two functions": (
        "x:\n  test:\n    - nop\n    - ping\n",
        ["a.sls:2 Too many functions declared in state 'x' in SLS 'a'. Please choose one of the following: nop, ping"],
    ),
    "a forgotten colon": (
        "x:\n  test.nop:\n    - order: 1\n    - name y\n",
        [
            'a.sls:4 The function "name y" in state "x" in SLS "a" has whitespace, a function with whitespace is not supported,'
            ' perhaps this is an argument that is missing a ":"',
            "a.sls:2 Too many functions declared in state 'x' in SLS 'a'. Please choose one of the following: name y, nop",
        ],
    ),
    "names that are no list": (
        "x:\n  test.nop:\n    - order: 1\n    - names: y\n",
        ["a.sls:4 The 'names' argument in state 'x' in SLS 'a' needs to be formed as a list"],
    ),
    "a requisite that is no list": (
        "x:\n  test.nop:\n    - require: y\ny: test.nop\n",
        ["a.sls:3 The require statement in state 'x' in SLS 'a' needs to be formed as a list"],
    ),
    "two requisites in one entry": (
        "x:\n  test.nop:\n    - watch: [{test: y}]\n      onfail: [{test: y}]\ny: test.nop\n",
        ["a.sls:3 Multiple dictionaries defined in argument of state 'x' in SLS 'a'"],
    ),
    "two references in one entry": (
        "x:\n  test.nop:\n    - onchanges:\n      - test: y\n        cmd: z\n",
        [
            "a.sls:3 Requisite declaration {'test': 'y', 'cmd': 'z'} in state x in SLS a is not formed as a single key"
            " dictionary"
        ],
    ),
    "a reference that is a number": (
        "x:\n  test.nop:\n    - onchanges:\n      - 5\n",
        ["a.sls:3 Requisite declaration 5 in state x in SLS a is not formed as a single key dictionary"],
    ),
    "a reference with a function": (
        "x:\n  test.nop:\n    - require:\n      - test.nop: y\n",
        [
            "a.sls:4 Invalid requisite type 'test.nop' in state 'x', in SLS 'a'. Requisite types must not contain dots, did"
            " you mean 'test'?"
        ],
    ),
    "a reference to a list": (
        "x:\n  test.nop:\n    - require:\n      - test: [y]\n",
        ['a.sls:4 Illegal requisite "[\'y\']" in SLS "a", please check your syntax.'],
    ),
    "a reference to a number": (
        "x:\n  test.nop:\n    - require:\n      - test: 5\n",
        ["a.sls:4 Requisite [require: test] in state [x] in SLS [a] must have a string as the value"],
    ),
    "every dangling requisite": (
        "x:\n  test.nop:\n    - require:\n      - test: y\n      - test: z\n",
        [
            "a.sls:3 Referenced state does not exist for requisite [require: (test: y)] in state [x] in SLS [a]",
            "a.sls:3 Referenced state does not exist for requisite [require: (test: z)] in state [x] in SLS [a]",
        ],
    ),
    "an empty reference": (
        "x:\n  test.nop:\n    - require: ['']\n",
        ["a.sls:3 Referenced state does not exist for requisite [require: (id: )] in state [x] in SLS [a]"],
    ),
    "a number as state module": (
        "x:\n  7: []\n",
        ["a.sls:2 State '7' of ID 'x' in SLS 'a' is not formed as a string, but is type int."],
    ),
    "a number as argument": (
        "x:\n  test.nop:\n    - name: y\n    - 5: z\n",
        ["a.sls:4 Argument '5' of state 'x' in SLS 'a' is not formed as a string, but is type int."],
    ),
    "an ID that is none": (
        "x:\n  test.nop:\n    - __id__: [y]\n",
        ["a.sls:3 The __id__ argument of state 'x' in SLS 'a' must have a string as the value"],
    ),
    "nothing among names": (
        "x:\n  test.nop:\n    - names: [y, null]\n",
        ["a.sls:3 Name None of state 'x' in SLS 'a' is not a string, or one with a list of arguments"],
    ),
    "two names in one entry": (
        "x:\n  test.nop:\n    - names:\n      - y: []\n        z: []\n",
        [
            "a.sls:3 Name {'y': [], 'z': []} of state 'x' in SLS 'a' is not a string, or one with a list of arguments",
        ],
    ),
    "a name overrides with a text": (
        "x:\n  test.nop:\n    - names:\n      - y: text\n",
        ["a.sls:3 Name y of state 'x' in SLS 'a' overrides with what is not a list of arguments"],
    ),
    "a name overrides a requisite with a text": (
        "x:\n  test.nop:\n    - names:\n      - y: [{require: z}]\n",
        ["a.sls:2 The require statement in state 'x' in SLS 'a' needs to be formed as a list"],
    ),
    "a form that is wrong beside what cannot be gathered": (
        "include: [nob]\nx:\n  test.nop: {}\n",
        [
            "a.sls:1 Specified SLS nob in saltenv base is not available on the salt master or through a configured fileserver",
            "a.sls:3 State 'x' in SLS 'a' is not formed as a list",
        ],
    ),
    "a number as ID": (
        "x: test.nop\n8080:\n  test.nop: []\n",
        ["a.sls:2 ID '8080' in SLS 'a' is not formed as a string, but is type int. It may need to be quoted."],
    ),
}

SOUND = {
    "a text as reference": "x:\n  test.nop:\n    - require: [y]\ny: test.nop\n",
    "no reference at all": "x:\n  test.nop:\n    - require: [{test: null}]\n",
    "an empty entry": "x:\n  test.nop:\n    - {}\n    - name: z\n",
    "arguments of any form": "x:\n  test.nop:\n    - list: [1, {a: b}]\n    - map: {a: 1}\n    - nothing: null\n",
}


@pytest.mark.parametrize(("text", "faults"), FAULTS.values(), ids=FAULTS)
def test_faults(compiled: Compile, text: str, faults: list[str]) -> None:
    assert told(compiled({"a.sls": text}).faults) == faults


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_sound(compiled: Compile, text: str) -> None:
    found = compiled({"a.sls": text})
    assert told(found.faults) == []
    assert "x" in order(found)


def test_all_of_them_at_once(compiled: Compile) -> None:
    found = compiled(
        {"a.sls": "include: [b]\nx:\n  test.nop:\n    - require: y\n", "b.sls": "z:\n  test.nop:\n\n\nw:\n  test: []\n"}
    )
    assert [each.split(" ")[0] for each in told(found.faults)] == ["a.sls:4", "b.sls:2", "b.sls:6"]
