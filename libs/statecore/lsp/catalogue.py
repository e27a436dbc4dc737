"""The functions that an editor offers: those of built-in modules, by the loader, and those of users' modules, by their text.

Built-in modules are imported, one at a time, when their functions are first needed. A user's module is never imported: its
functions, parameters and docstrings are read from its syntax tree, because opening a tree must not run its code.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from statecore.loader import LoadedModule, Loader
from statecore.loader.find import virtual_names
from statecore.model.text_lines import lines_of

#: Kind of modules -> directory of users' modules in a state tree.
USERS: Mapping[str, str] = {"states": "_states", "modules": "_modules"}

#: Matches a line of a docstring that begins the text about one or several arguments: ``source`` or ``pkgs, sources``.
_ABOUT = re.compile(r"^(?::param\s+(?:\w+\s+)?(\w+):\s*(.*)|(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*)$")


@dataclass(frozen=True, slots=True)
class ArgumentDoc:
    """One parameter of a function: its name, its default as text ("" if it is required) and its documentation."""

    name: str
    required: bool
    default: str = ""
    text: str = ""


@dataclass(frozen=True)
class FunctionDoc:
    """One function of a module: its full name such as ``file.managed``, parameters, documentation and origin."""

    full: str
    arguments: tuple[ArgumentDoc, ...] = ()
    doc: str = ""
    #: True if the function has ``**kwargs``.
    takes_any: bool = False
    #: Path of a user's module; "" for a built-in one.
    file: str = ""
    #: Line of the function in that file, from 0.
    line: int = 0

    @property
    def summary(self) -> str:
        """First paragraph of the documentation, on one line."""
        return " ".join(self.doc.partition("\n\n")[0].split())

    @cached_property
    def by_name(self) -> Mapping[str, ArgumentDoc]:
        """Map of parameter name to the parameter."""
        return {each.name: each for each in self.arguments}


@dataclass(slots=True)
class ModuleDoc:
    """One module of functions: its name, documentation and functions."""

    name: str
    doc: str = ""
    functions: dict[str, FunctionDoc] = field(default_factory=dict)


class Catalogue:
    """The state modules and execution modules that an SLS may name."""

    def __init__(self, loader: Loader | None = None) -> None:
        """Create a catalogue of the built-in modules. ``users`` adds those of a tree."""
        self._loader = Loader() if loader is None else loader
        self._built_in: dict[tuple[str, str], ModuleDoc | None] = {}
        #: kind -> module name -> the user's module, by the file that holds it.
        self._users: dict[str, dict[str, dict[str, ModuleDoc]]] = {kind: {} for kind in USERS}
        self._of_file: dict[str, tuple[str, str]] = {}

    def names(self, kind: str) -> list[str]:
        """Return the sorted names of all modules of a kind ("states" or "modules"). Nothing is imported."""
        found = set(self._users[kind])
        for source in self._loader.sources(kind):
            if source.native:
                virtual = virtual_names(source.path)
                found |= virtual or {source.stem}
        return sorted(found)

    def module(self, kind: str, name: str) -> ModuleDoc | None:
        """Return a module with its functions; None if there is none of this name. A user's module comes first."""
        users = self._users[kind].get(name)
        built_in = self._native(kind, name)
        if not users:
            return built_in
        own = next(iter(users.values()))
        if built_in is None:
            return own
        # As in Salt, a user's file of another name adds its functions to the built-in module of this name.
        return ModuleDoc(name, own.doc or built_in.doc, {**built_in.functions, **own.functions})

    def function(self, kind: str, full: str) -> FunctionDoc | None:
        """Return a function by its full name such as ``file.managed``; None if there is none."""
        name, _, function = full.partition(".")
        module = self.module(kind, name)
        return module.functions.get(function) if module is not None else None

    def is_users(self, kind: str, module: str) -> bool:
        """Return whether a user's module has this name."""
        return module in self._users[kind]

    def set_users(self, kind: str, file: str, text: str) -> None:
        """Read a user's module from its text. An unfinished text leaves the functions of the last finished one."""
        found = users_module(file, text)
        if found is None:
            return
        self.remove_users(file)
        self._users[kind].setdefault(found.name, {})[file] = found
        self._of_file[file] = (kind, found.name)

    def remove_users(self, file: str) -> None:
        """Forget a user's module."""
        if file in self._of_file:
            kind, name = self._of_file.pop(file)
            self._users[kind][name].pop(file, None)
            if not self._users[kind][name]:
                del self._users[kind][name]

    def _native(self, kind: str, name: str) -> ModuleDoc | None:
        key = (kind, name)
        if key not in self._built_in:
            served = self._loader.built_in_modules(kind, name)
            self._built_in[key] = _module_doc(name, served) if served else None
        return self._built_in[key]


def _module_doc(name: str, served: Sequence[LoadedModule]) -> ModuleDoc:
    """Return the functions of all files that serve one module name, on whatever host."""
    found = ModuleDoc(name, served[0].module_doc or "")
    for loaded in reversed(served):
        for function in loaded.listed:
            doc = inspect.getdoc(loaded.functions[function]) or ""
            parameters = loaded.signature(function).parameters.values()
            found.functions[function] = FunctionDoc(
                f"{name}.{function}",
                _arguments(
                    [
                        (each.name, _default(each))
                        for each in parameters
                        if each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
                    ],
                    doc,
                ),
                doc,
                any(each.kind is each.VAR_KEYWORD for each in parameters),
            )
    return found


def _default(parameter: inspect.Parameter) -> str | None:
    return None if parameter.default is parameter.empty else repr(parameter.default)


def _arguments(given: Sequence[tuple[str, str | None]], doc: str) -> tuple[ArgumentDoc, ...]:
    texts = argument_texts(doc)
    return tuple(ArgumentDoc(name, default is None, default or "", texts.get(name, "")) for name, default in given)


def argument_texts(doc: str) -> dict[str, str]:
    """Map of argument name to its documentation, from a docstring that has a line with the names above an indented text."""
    found: dict[str, str] = {}
    names: list[str] = []
    text: list[str] = []
    for line in [*lines_of(doc), "."]:
        indented = line.startswith((" ", "\t"))
        if names and (indented or not line.strip()):
            text.append(line.strip())
            continue
        for name in names:
            if any(text):
                found.setdefault(name, " ".join(part for part in text if part))
        about = _ABOUT.match(line)
        names, text = [], []
        if about and about[1]:
            names, text = [about[1]], [about[2]]
        elif about:
            names = [name.strip().lstrip("*") for name in about[3].split(",")]
    return found


# ------------------------------------------------------------------------------------------------------------ users' modules


def users_module(file: str, text: str) -> ModuleDoc | None:
    """Return the module that the text of a user's Python file defines, without running it; None for a syntax error."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Python's parser raises MemoryError for a text that is nested too deeply.
        return None
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    name = constants.get("__virtualname__") or file.rpartition("/")[2].removesuffix(".py")
    aliases = _aliases(tree)
    found = ModuleDoc(name, ast.get_docstring(tree) or "")
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            public = aliases.get(node.name, node.name)
            found.functions[public] = _users_function(f"{name}.{public}", node, file)
    return found


def _aliases(tree: ast.Module) -> dict[str, str]:
    """Return the map ``__func_alias__`` (name in the file -> name for callers); {} if it is not a literal."""
    for node in tree.body:
        named = isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id == "__func_alias__" for each in node.targets
        )
        if named and isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict):
            pairs = zip(node.value.keys, node.value.values, strict=True)
            return {
                str(key.value): str(value.value)
                for key, value in pairs
                if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
            }
    return {}


def _users_function(full: str, node: ast.FunctionDef, file: str) -> FunctionDoc:
    given = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(given) - len(node.args.defaults)) + list(node.args.defaults)
    defaults += node.args.kw_defaults
    pairs = zip([*given, *node.args.kwonlyargs], defaults, strict=True)
    doc = ast.get_docstring(node) or ""
    named = [(each.arg, None if default is None else ast.unparse(default)) for each, default in pairs]
    return FunctionDoc(full, _arguments(named, doc), doc, node.args.kwarg is not None, file, node.lineno - 1)
