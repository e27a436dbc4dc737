"""Arguments that a state function does not know: ignored with a warning where Salt ignores them, else refused."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from statecore.engine import unknown_arguments
from statecore.engine.arguments import complaint
from statecore.engine.call import call_state
from statecore.loader import Loader
from statecore.loader.ignored_arguments import ignores_unknown, refuses_unknown
from statecore.loader.loaded_module import LoadedModule
from statecore.model.errors import Mark
from tests.conftest import Oracle
from tests.statecore.conftest import PlainMinion

_MANAGED = {"state": "file", "fun": "managed", "name": "/etc/motd", "contents": "hello"}
_RUN = {"state": "cmd", "fun": "run", "name": "echo hello"}
_PLACE = "web.sls:7"


@pytest.fixture
def minion(tmp_path: Path) -> PlainMinion:
    minion = PlainMinion(tmp_path)
    (minion.root / "etc").mkdir()
    return minion


def called(minion: PlainMinion, low: dict[str, Any], *, test: bool = False) -> dict[str, Any]:
    whole = {"__id__": "one", "__sls__": "web", "__env__": "base", "order": 1, **low}
    return call_state(whole, minion.context(test=test), minion.loader, lambda _low, _argument: Mark("web.sls", 7))


_ROOTS = "WHICH IS DANGEROUS: the program runs with the rights that it has without this argument, usually root's"
_OPEN = "WHICH IS DANGEROUS: owner, permissions or access stay as they are without this argument"

#: low chunk -> result, warnings
_IGNORED: list[tuple[dict[str, Any], list[str]]] = [
    (
        {**_MANAGED, "content": "x", "force": True},
        [
            f"{_PLACE}: 'content' is not an argument of file.managed and is ignored. The nearest argument is 'contents'",
            f"{_PLACE}: 'force' is not an argument of file.managed and is ignored. The nearest argument is 'source'",
        ],
    ),
    (
        {**_MANAGED, "permissions": "0600"},
        [
            f"{_PLACE}: 'permissions' is not an argument of file.managed and is ignored, {_OPEN}."
            " The nearest argument is 'mode'"
        ],
    ),
    (
        {**_RUN, "user": "nobody"},
        [f"{_PLACE}: 'user' is not an argument of cmd.run and is ignored, {_ROOTS}. The nearest argument is 'runas'"],
    ),
    ({**_RUN, "zzzzzz": 1}, [f"{_PLACE}: 'zzzzzz' is not an argument of cmd.run and is ignored"]),
    (
        {"state": "file", "fun": "directory", "name": "/etc/d", "requires": []},
        [
            f"{_PLACE}: 'requires' is not an argument of file.directory and is ignored. The nearest argument is 'require'"
        ],
    ),
    (
        {"state": "cmd", "fun": "wait", "name": "echo", "zzzzzz": 1},
        [f"{_PLACE}: 'zzzzzz' is not an argument of cmd.wait and is ignored"],
    ),
    (
        {**_RUN, "fun": "mod_watch", "sfun": "run", "zzzzzz": 1, "watch": []},
        [f"{_PLACE}: 'zzzzzz' is not an argument of cmd.run and is ignored"],
    ),
]


@pytest.mark.parametrize(("low", "warnings"), _IGNORED, ids=[f"{low['fun']} {[*low][-1]}" for low, _ in _IGNORED])
@pytest.mark.parametrize("test", [False, True])
def test_a_state_ignores_what_salt_ignores(minion: PlainMinion, low: dict[str, Any], warnings: list[str], test: bool):
    known = {key: value for key, value in low.items() if not any(f"'{key}'" in each for each in warnings)}
    told, without = called(minion, low, test=True), called(minion, known, test=True)
    assert told.pop("warnings") == warnings
    assert told == without
    if not test and low["state"] == "file":
        assert called(minion, low)["result"] is True


def test_salts_other_name_of_user(minion: PlainMinion) -> None:
    (minion.root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    told = called(minion, {**_MANAGED, "owner": "nobody-here"}, test=True)
    assert told["warnings"] == [
        f"{_PLACE}: 'owner' is not an argument of file.managed: it counts as 'user'; write 'user'"
    ]
    applied = called(minion, {**_MANAGED, "owner": "nobody-here"})
    assert "nobody-here" in applied["comment"]
    both = called(minion, {**_MANAGED, "owner": "nobody-here", "user": "root"})
    assert both["warnings"] == [
        f"{_PLACE}: 'owner' is not an argument of file.managed: it is ignored, because 'user' is given"
    ]
    assert "nobody-here" not in both["comment"]


@pytest.mark.parametrize(
    ("low", "comment"),
    [
        (
            {"state": "host", "fun": "present", "name": "x", "ip": "192.0.2.1", "nmae": "y"},
            "'nmae' is an invalid keyword argument for 'host.present'\nDid you mean 'name' instead of 'nmae'?\n    at web.sls:7",
        ),
        (
            {"state": "git", "fun": "config_set", "name": "user.name", "valeu": "x", "global": True},
            "The following keyword arguments are not valid: valeu=x\nDid you mean 'value' instead of 'valeu'?\n    at web.sls:7",
        ),
    ],
)
def test_a_state_refuses_what_salt_refuses(minion: PlainMinion, low: dict[str, Any], comment: str) -> None:
    told = called(minion, low)
    assert (told["result"], told["changes"], told["comment"]) == (False, {}, comment)
    assert "warnings" not in told


def test_the_option_makes_errors_of_them(minion: PlainMinion) -> None:
    minion.opts["state_unknown_arguments"] = "error"
    told = called(minion, {**_MANAGED, "content": "x"})
    assert told["result"] is False
    assert told["comment"].startswith("'content' is an invalid keyword argument for 'file.managed'")
    assert not (minion.root / "etc/motd").exists()


def test_a_users_module_decides_itself(minion: PlainMinion) -> None:
    directory = minion.extension_dir / "states"
    directory.mkdir(parents=True)
    (directory / "mine.py").write_text(
        "def strict(name):\n    return {'name': name, 'result': True, 'changes': {}, 'comment': ''}\n\n"
        "def open(name, **kwargs):\n"
        "    done = __states__['file.managed']('/etc/motd', contents='x', nonsense=1, **kwargs)\n"
        "    return {**done, 'comment': ' '.join(sorted(kwargs))}\n"
    )
    told = called(minion, {"state": "mine", "fun": "strict", "name": "x", "other": 1})
    assert told["result"] is False
    assert told["comment"].startswith("'other' is an invalid keyword argument for 'mine.strict'")
    told = called(minion, {"state": "mine", "fun": "open", "name": "x", "other": 1})
    assert (told["result"], told["comment"]) == (True, "other")
    assert (minion.root / "etc/motd").read_text() == "x\n"


# ------------------------------------------------------------------------------------------------------- the oracle


def salts_functions(directory: Path) -> Iterator[tuple[str, bool]]:
    """Yield each state function of an installed Salt, and whether it has ``**kwargs``."""
    for path in sorted(directory.glob("*.py")):
        virtual, alias, taking = path.stem, {}, {}
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                key, value = node.targets[0].id, node.value
                if key == "__virtualname__":
                    virtual = ast.literal_eval(value)
                elif key == "__func_alias__":
                    alias = ast.literal_eval(value)
                elif isinstance(value, ast.Name) and value.id in taking:
                    taking[key] = taking[value.id]
            if isinstance(node, ast.FunctionDef):
                taking[node.name] = node.args.kwarg is not None
        yield from ((f"{virtual}.{alias.get(name, name)}", takes) for name, takes in taking.items() if name[0] != "_")


def ours(full: str, served: LoadedModule, function: str) -> str:
    """Return "ignored", or what ours says against an argument that the state function does not know."""
    low: dict[str, Any] = {"state": full.partition(".")[0], "fun": function, "name": "x", "zzzunknown": 1}
    low |= dict.fromkeys(served.parameters(function).required, "x")
    arguments = unknown_arguments.bound(low, served, function)
    if not arguments.unknown or unknown_arguments.are_ignored(low, served, {}):
        return "ignored"
    return complaint(arguments._replace(wrong=None), full, low if refuses_unknown(full) else None)


#: Functions where ours refuses an argument that Salt ignores; docs/differences.md says why.
_STRICTER = frozenset({"x509.certificate_managed", "x509.crl_managed", "x509.csr_managed"})


@pytest.mark.oracle
def test_each_state_function_as_salt(oracle: Oracle, tmp_path: Path) -> None:
    built_in = Loader().built_in("states")
    functions = {
        f"{module}.{function}": (served, function)
        for module, serving in built_in.items()
        for served in serving
        for function in served.functions
        if not function.startswith("mod_")
    }
    asked = {"cachedir": str(tmp_path), "functions": sorted(functions)}
    script = Path(__file__).parent / "salt_unknown_arguments.py"
    salts = json.loads(oracle.run("python", str(script), stdin=json.dumps(asked)))
    there = {full: told for full, told in salts.items() if told is not None}
    assert len(there) > 150
    told = {full: ours(full, *functions[full]) for full in there}
    assert {
        full: (told[full], said) for full, said in there.items() if told[full] != said and full not in _STRICTER
    } == {}


@pytest.mark.oracle
def test_the_table_is_salts(oracle: Oracle) -> None:
    (directory,) = oracle.venv.glob("lib/python3*/site-packages/salt/states")
    wrong = {
        name: takes
        for name, takes in salts_functions(directory)
        if takes != (ignores_unknown(name) or refuses_unknown(name))
        and not name.startswith(("win_", "task.", "keychain."))
    }
    assert wrong == {}
