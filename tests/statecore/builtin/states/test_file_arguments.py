"""Every function and every argument that Salt's file and archive have: here too, or missing for a reason in a table.

An argument that is taken is also used, or it says in a table why it means nothing here.
"""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from statecore.builtin.modules import archive as archive_module
from statecore.builtin.modules import file as file_module
from statecore.builtin.states import archive as archive_state
from statecore.builtin.states import file as file_state

_OURS: Mapping[str, ModuleType] = {
    "salt.states.file": file_state,
    "salt.states.archive": archive_state,
    "salt.modules.file": file_module,
    "salt.modules.archive": archive_module,
}

_INSIDE = "a part of Salt's own states, which nobody calls"

#: Functions of Salt that are not here; an asker is told so.
_LEFT_OUT: Mapping[str, Mapping[str, str]] = {
    "salt.states.file": {
        "mod_beacon": "beacons by mod_beacon are not here (docs/differences.md)",
        "mod_run_check_cmd": _INSIDE,
    },
    "salt.modules.archive": {"rar": "a program that is not free", "unrar": "a program that is not free"},
}

#: Arguments about the comparison of contents, which came with 3008.
_OF_DIFFS = ("ignore_comment_characters", "ignore_ordering", "ignore_whitespace")
_NO_DIFFS = "contents are compared as they are"

#: Arguments of Salt that ours do not take: they are refused by name, as unknown ones are.
_NOT_TAKEN: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("salt.states.file", "shortcut"): dict.fromkeys(
        ("arguments", "working_dir", "description", "icon_location", "force", "backupname", "makedirs", "user"),
        "all are taken: the state says that it is for Windows",
    ),
    **{
        ("salt.modules.file", name): dict.fromkeys(_OF_DIFFS, _NO_DIFFS)
        for name in ("get_managed", "check_file_meta", "check_managed_changes")
    },
    ("salt.modules.file", "manage_file"): {
        **dict.fromkeys(_OF_DIFFS, _NO_DIFFS),
        **dict.fromkeys(
            (
                *(
                    "encoding_errors",
                    "new_file_diff",
                    "serange",
                    "serole",
                    "setype",
                    "seuser",
                    "use_etag",
                    "verify_ssl",
                ),
                *(
                    "signature",
                    "signed_by_all",
                    "signed_by_any",
                    "keyring",
                    "gnupghome",
                    "sig_backend",
                    "source_hash_sig",
                ),
            ),
            "file.managed has it; a user's state that names it here is told",
        ),
    },
}

_WHOLE = "files are read whole, whatever the size of a buffer"
_LINK = "what counts is the link itself in any case"
_PURE = "a name is computed, the host is not asked"

#: Arguments that are taken, and mean nothing here -> why that is right.
_WITHOUT_EFFECT: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("salt.states.file", "replace"): {"bufsize": _WHOLE},
    ("salt.modules.file", "replace"): {
        "bufsize": _WHOLE,
        "preserve_inode": "a file is replaced at once, or not at all",
    },
    ("salt.states.file", "line"): {"quiet": "a file that is not there is a failure of the state, as in Salt"},
    ("salt.modules.file", "search"): {"bufsize": _WHOLE},
    ("salt.modules.file", "remove"): {"kwargs": "they are about Windows"},
    ("salt.modules.file", "chattr"): {"kwargs": "Salt ignores further keywords, too"},
    ("salt.modules.file", "get_managed"): {"kwargs": _NO_DIFFS},
    ("salt.modules.file", "manage_file"): {"template": "a source is rendered by get_managed"},
    ("salt.modules.file", "symlink"): {"follow_symlinks": _LINK},
    ("salt.states.file", "shortcut"): dict.fromkeys(("ctx", "name", "target", "kwargs"), "Windows"),
    ("salt.modules.file", "basename"): {"ctx": _PURE},
    ("salt.modules.file", "dirname"): {"ctx": _PURE},
    ("salt.modules.file", "join"): {"ctx": _PURE},
    ("salt.modules.file", "normpath"): {"ctx": _PURE},
    ("salt.modules.file", "pardir"): {"ctx": _PURE},
    ("salt.modules.file", "is_link"): {"nostat": "it is about Windows"},
}


def _functions(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """The functions that a module, or a package of PARTS, serves."""
    found: dict[str, Callable[..., Any]] = {}
    for part in getattr(module, "PARTS", (module,)):
        names = {own: alias for alias, own in getattr(part, "ALIASES", {}).items()}
        public = {own: one for own, one in vars(part).items() if inspect.isfunction(one) and not own.startswith("_")}
        found |= {names.get(own, own): one for own, one in public.items() if one.__module__ == part.__name__}
    return found


def _unused(function: Callable[..., Any]) -> Iterator[str]:
    """Parameters that the function's body does not name, unless it takes them all at once."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(tree, ast.FunctionDef)
    named = {node.id for statement in tree.body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    whole = set()
    if "locals" in named:
        # By a table of names, in the function's file or in those that it hands them to.
        package = Path(inspect.getsourcefile(function) or "").parent
        files = package.glob("*.py") if package.name == "file" else [Path(inspect.getsourcefile(function) or "")]
        edits = Path(file_state.__file__).parents[3] / "host" / "content" / "edits"
        for file in (*files, *edits.glob("*.py")):
            nodes = ast.walk(ast.parse(file.read_text("utf-8")))
            whole |= {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return (name for name in inspect.signature(function).parameters if name not in named and name not in whole)


@pytest.mark.parametrize("module", _OURS)
def test_an_argument_that_is_taken_means_something(module: str) -> None:
    for name, function in _functions(_OURS[module]).items():
        known = _WITHOUT_EFFECT.get((module, name), {})
        assert sorted(_unused(function)) == sorted(known), f"{module}.{name}"


@pytest.mark.oracle
def test_no_function_and_no_argument_is_forgotten(oracle: Any) -> None:
    script = Path(__file__).parents[2] / "salt_signatures.py"
    theirs = json.loads(oracle.run("python", str(script), *_OURS))
    for module, functions in theirs.items():
        ours = _functions(_OURS[module])
        assert functions.keys() - ours.keys() == set(_LEFT_OUT.get(module, {})), module
        assert ours.keys() - functions.keys() == set(), module
        for name, parameters in functions.items():
            if name in ours:
                missing = set(parameters) - set(inspect.signature(ours[name]).parameters)
                assert missing == set(_NOT_TAKEN.get((module, name), {})), f"{module}.{name}"
