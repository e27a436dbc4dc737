"""``state.check``, ``state.plan``, ``state.graph``, ``state.explain`` as a minion is asked for them: plain data, exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import MakeMinion

TREE = {
    "top.sls": "base:\n  '*': [web]\n",
    "web.sls": "motd: {file.managed: [{name: /etc/motd}, {contents: {{ pillar.get('text', 'hello') }}}]}\nsame: test.nop\n",
    "bad.sls": "x: {test.fail_without_changes: []}\n",
    "broken.sls": "x: {test.nop: [{require: [{test: y}]}]}\n",
}

#: Function, arguments, keywords -> (exit code, path into the answer, what stands there).
CALLS: dict[str, tuple[str, list[Any], dict[str, Any], int, list[Any], Any]] = {
    "check": ("check", [], {}, 1, ["summary"], {"errors": 1, "warnings": 0, "notes": 0}),
    "check says where": ("check", ["broken"], {}, 1, ["findings", 0, "line"], 1),
    "check of a sound SLS": ("check", ["web"], {}, 0, ["findings"], []),
    "plan": ("plan", [], {}, 0, ["summary"], "1 to change, 1 unchanged"),
    "plan with another pillar": (
        "plan",
        ["web"],
        {"pillar": {"text": "you"}},
        0,
        ["states", 0, "files", 0, "path"],
        "/etc/motd",
    ),
    "plan of what fails": ("plan", ["bad"], {}, 2, ["summary"], "0 to change, 1 would fail, 0 unchanged"),
    "plan of all": ("plan", ["web"], {"all_": True}, 0, ["states", 1, "id"], "same"),
    "graph": ("graph", ["web"], {"format": "json"}, 0, ["states", 0, "function"], "file.managed"),
    "explain": ("explain", ["web", "motd"], {}, 0, ["states", 0, "position"], 1),
    "explain of the top file's run": ("explain", ["highstate", "same"], {}, 0, ["states", 0, "position"], 2),
}


@pytest.mark.parametrize(("function", "args", "kwargs", "code", "path", "value"), CALLS.values(), ids=list(CALLS))
def test_answers(
    minion: MakeMinion, function: str, args: list[Any], kwargs: dict[str, Any], code: int, path: list[Any], value: Any
) -> None:
    returned = minion(TREE).runtime().call(f"state.{function}", args, kwargs)
    found = json.loads(json.dumps(returned.value))
    assert returned.retcode == code, found
    for step in path:
        found = found[step]
    assert found == value


#: Calls that cannot be answered -> (exit code, words of the answer).
WRONG: dict[str, tuple[str, list[Any], dict[str, Any], str]] = {
    "a tree that does not compile": ("plan", ["broken"], {}, "Referenced state does not exist"),
    "an unknown SLS": ("graph", ["wbe"], {}, "the nearest is 'web'"),
    "an unknown ID": ("explain", ["web", "mtod"], {}, "there is no ID 'mtod' in web"),
    "an unknown format": (
        "graph",
        ["web"],
        {"format": "png"},
        "there is no format 'png'; there are dot, json, mermaid, svg",
    ),
    "pillar that is no map": ("plan", ["web"], {"pillar": [1]}, "Pillar data must be formatted as a dictionary"),
}


@pytest.mark.parametrize(("function", "args", "kwargs", "words"), WRONG.values(), ids=list(WRONG))
def test_what_cannot_be_answered(
    minion: MakeMinion, function: str, args: list[Any], kwargs: dict[str, Any], words: str
) -> None:
    returned = minion(TREE).runtime().call(f"state.{function}", args, kwargs)
    assert returned.retcode == 1
    assert words in str(returned.value)


def test_the_words_of_the_command(minion: MakeMinion) -> None:
    runtime = minion(TREE).runtime()
    assert runtime.call("state.plan", ["web"], {"text": True}).value.endswith("1 to change, 1 unchanged")
    assert "runs as 1 of 2" in runtime.call("state.explain", ["web", "motd"], {"text": True}).value
    assert runtime.call("state.check", ["broken"], {"text": True}).value.endswith("1 error")


def test_pictures_are_text(minion: MakeMinion) -> None:
    runtime = minion(TREE).runtime()
    assert runtime.call("state.graph", ["web"]).value.startswith("flowchart TD\n")
    assert runtime.call("state.graph", ["web"], {"format": "svg"}).value.startswith("<svg ")
