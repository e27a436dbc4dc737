"""Wrong names and types of arguments of every built-in state function: a failed state that names the argument, nothing touched.

One generated test over all of them: each argument gets, in turn, values of other types than it takes; each function an argument
that it does not know.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from statecore.engine.arguments import INTERNAL
from statecore.engine.call import call_state
from statecore.loader.ignored_arguments import refuses_unknown
from statecore.loader.loaded_module import LoadedModule
from statecore.model.context import Context
from tests.statecore.conftest import PlainMinion

#: What no argument but those that take anything can be.
_VALUES: Mapping[str, Any] = {
    "map": {"no": {"such": "thing"}},
    "list": ["no", "such"],
    "text": "no such thing\n",
    "number": -1.5,
    "flag": True,
}

#: Functions that wait, or ask over the network.
_SLOW = frozenset({"http.wait_for_successful_query"})


class Functions:
    """The state functions of a minion, and what they were called with."""

    def __init__(self, directory: Path) -> None:
        self.minion = PlainMinion(directory)
        self.minion.ports.managers["schedule"] = lambda _: {"schedule": {}, "unsaved": ""}
        self.minion.ports.managers["beacons"] = lambda _: {"beacons": {}, "unsaved": ""}
        self.ctx: Context = self.minion.context()
        for name in ("etc", "tmp", "srv"):
            (self.minion.root / name).mkdir()
        (self.minion.root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
        (self.minion.root / "etc/group").write_text("root:x:0:\n")

    def names(self) -> list[str]:
        return sorted(
            name for name in self.minion.loader.names("states", self.ctx) if name not in _SLOW and ".mod_" not in name
        )

    def served(self, name: str) -> tuple[LoadedModule, str]:
        return self.minion.loader.function("states", name, self.ctx)

    def tree(self) -> dict[str, Any]:
        return {
            str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else path.lstat().st_mode
            for path in sorted(self.minion.root.rglob("*"))
        }

    def run(self, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        state, fun = name.split(".")
        low = {"state": state, "fun": fun, "__id__": "one", "__sls__": "s", "__env__": "base", "name": "/tmp/x/y"}
        low |= {"order": 1, **arguments}
        environment = dict(os.environ)
        try:
            return call_state(low, self.minion.context(test=False), self.minion.loader, lambda *_: None)
        finally:
            # environ.setenv may clear it.
            os.environ.clear()
            os.environ.update(environment)


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Functions:
    return Functions(tmp_path_factory.mktemp("functions"))


def test_unknown_names(functions: Functions) -> None:
    before = functions.tree()
    functions.minion.opts["state_unknown_arguments"] = "error"
    asked = 0
    for name in functions.names():
        served, fun = functions.served(name)
        parameters = served.parameters(fun)
        if parameters.takes_any:
            continue
        own = sorted(each for each in parameters.named if each not in ("name", *INTERNAL) and len(each) > 4)
        given = f"{own[0]}x" if own else "nosuchargument"
        filled = dict.fromkeys(parameters.required, "x")
        told = functions.run(name, {**filled, given: 1})
        assert told["result"] is False, name
        says = f"'{given}' is an invalid keyword argument for '{name}'"
        assert (f"not valid: {given}=1" if refuses_unknown(name) else says) in told["comment"]
        assert not own or f"Did you mean '{own[0]}' instead of '{given}'?" in told["comment"], (own, told["comment"])
        asked += 1
    assert asked > 90
    assert functions.tree() == before
    del functions.minion.opts["state_unknown_arguments"]


def test_values_of_other_types(functions: Functions) -> None:
    before = functions.tree()
    asked = 0
    for name in functions.names():
        served, fun = functions.served(name)
        parameters = served.parameters(fun)
        filled = {
            each: ["x"] if parameters.plain.get(each, frozenset()) & {"list", "Sequence"} else 1
            for each in parameters.required
        }
        for argument, kinds in parameters.plain.items():
            lists = kinds & {"list", "Sequence"}
            values = ([] if kinds & {"Mapping", "dict"} else [_VALUES["map"]]) + ([] if lists else [_VALUES["list"]])
            values += [] if lists or kinds & {"str", "bool"} else [_VALUES["text"]]
            for value in values:
                if argument in INTERNAL:
                    continue
                told = functions.run(name, {**filled, argument: value})
                assert (told["result"], told["changes"]) == (False, {}), (name, argument, value)
                assert f"'{argument}' of '{name}' is to be " in told["comment"], told["comment"]
                asked += 1
    assert asked > 500
    assert functions.tree() == before


@pytest.mark.parametrize("kind", _VALUES)
def test_no_value_is_an_exception(functions: Functions, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    wrong = []
    for name in functions.names():
        served, fun = functions.served(name)
        parameters = served.parameters(fun)
        filled: dict[str, Any] = dict.fromkeys(parameters.required, "/tmp/x/y")
        for argument in parameters.named:
            if argument in INTERNAL - {"check_cmd", "creates"}:
                continue
            caplog.clear()
            with caplog.at_level(logging.ERROR, logger="statecore.engine"):
                told = functions.run(name, {**filled, argument: _VALUES[kind]})
            # Unexpected ones are logged with their traceback.
            if any(record.exc_info for record in caplog.records):
                wrong.append(f"{name} {argument}: {told['comment'].splitlines()[0]}")
    assert wrong == [], "\n".join(["", *wrong])
