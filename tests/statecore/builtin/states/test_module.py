"""``module.run`` in both styles: what it tells, and what Salt tells of the same calls."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

#: Calls; what Salt tells of them, ours tell, but for ``OWN``.
CALLS = {
    "new style": {"test.echo": ["hello"]},
    "two, in order": {"test.echo": ["hello"], "test.ping": None},
    "the same twice": {"test.echo:a": ["one"], "test.echo:b": ["two"]},
    "mixed": {"test.arg": ["a", {"b": 2}]},
    "not there": {"test.none": None, "test.ping": None},
    "two not there": {"test.none": None, "test.nothing": None},
    "says no": {"test.false": None},
    "wrong arguments": {"test.echo": [{"txt": "x"}]},
    "too many arguments": {"test.echo": ["a", "b"]},
    "retcode": {"test.echo": [{"text": {"retcode": 3, "comment": "no"}}]},
    "result deep inside": {"test.echo": [{"text": {"a": {"result": False}}}]},
    "nothing": {},
    "old style": {"name": "test.echo", "text": "hello"},
    "old style without arguments": {"name": "test.ping"},
    "old style, not there": {"name": "test.none", "text": "x"},
    "old style, missing": {"name": "test.echo", "other": "x"},
    "old style, by place": {"name": "test.arg", "args": ["a", "b"]},
    "old style, by place, no list": {"name": "test.arg", "args": "a"},
    "old style, by name": {"name": "test.arg", "args": ["a"], "kwargs": {"b": 2}},
    "old style, by name, no map": {"name": "test.arg", "kwargs": "b"},
    "old style, says no": {"name": "test.false"},
    "old style, raises": {"name": "test.exception", "message": "boom"},
}


def told(plain, arguments):
    entries = [plain.state("module.run", test=test, **{"name": "n", **arguments}) for test in (True, False)]
    return [[each["result"], each["changes"], each["comment"]] for each in entries]


#: What Salt says otherwise, and why: its plural, what it tells in test mode of what cannot be called, nothing to call.
OWN = {
    "two, in order": [None, "Functions test.echo, test.ping to be executed."],
    "the same twice": [None, "Functions test.echo, test.echo to be executed."],
    "not there": [False, "Unavailable function: test.none."],
    "two not there": [False, "Unavailable functions: test.none, test.nothing."],
    "wrong arguments": [False, "'test.echo' failed: Missing arguments: text"],
    "too many arguments": [False, "'test.echo' failed: echo() takes 1 positional argument but 2 were given"],
    "nothing": [False, "No function provided."],
    "old style, missing": [False, "The following arguments are missing: text"],
    "old style, by place, no list": [False, "'args' must be a list."],
    "old style, by name, no map": [False, "'kwargs' must be a dict."],
}

#: Of these, Salt's words are others in the run, too.
OWN_WORDS = ("two not there", "nothing")


@pytest.mark.parametrize("name", OWN)
def test_what_is_told_before(name, plain):
    assert told(plain, CALLS[name])[0][::2] == OWN[name]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"test.echo": ["a"], "test.kwarg": ["x", "y"]}, "kwarg() takes 0 positional arguments but 2 were given"),
        ({"test.ping": [], "test.echo": [{"text": "a"}, {"txt": "b"}]}, "test.echo takes no argument txt"),
        ({"name": "test.echo", "text": "a", "txt": "b"}, "Module function test.echo takes no argument txt"),
        ({"name": "test.ping", "returner": "redis"}, "not supported: returner"),
    ],
)
def test_nothing_is_called_where_something_cannot_be(arguments, says, plain):
    for result, changes, comment in told(plain, arguments):
        assert (result, changes) == (False, {})
        assert says in comment


@pytest.mark.oracle
def test_calls_are_salts(plain, oracle, tmp_path):
    asked = {"cachedir": str(tmp_path), "calls": [["module.run", {"name": "n", **each}] for each in CALLS.values()]}
    done = subprocess.run(
        [oracle.venv / "bin/python", Path(__file__).parents[2] / "salt_state_calls.py"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    salts = {name: phases[:2] for name, phases in zip(CALLS, json.loads(done.stdout), strict=True)}
    for name, arguments in CALLS.items():
        ours = json.loads(json.dumps(told(plain, arguments)))
        phases = [1] if name in OWN else [0, 1]
        if name not in OWN_WORDS:
            assert [ours[at] for at in phases] == [salts[name][at] for at in phases], name
