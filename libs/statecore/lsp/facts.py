"""What one file of a tree declares and refers to, read from its text without rendering: IDs, requisites, includes, macros."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from statecore.analysis.sls_text.jinja_regions import Definition, Import, TagKind, definitions, imports
from statecore.analysis.sls_text.lines import Entry, SlsText, Span, read
from statecore.engine.arguments import INTERNAL

#: Keys of the top level of an SLS that are no IDs.
RESERVED = frozenset({"include", "extend", "exclude"})

#: Arguments whose value is a list of references to states.
REFERRING = frozenset(
    name
    for name in (
        *INTERNAL,
        "require_any",
        "watch_any",
        "onchanges_any",
        "onfail_any",
        "onfail_all",
        "prereq",
        "listen_in",
        "use_in",
    )
    if name.partition("_")[0] in ("require", "watch", "onchanges", "onfail", "prereq", "listen", "use")
    and name != "onfail_stop"
)

_IN_BRACKETS = re.compile(r"""([A-Za-z_][\w.]*)\s*:\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^,\]}\n]*[^,\]}\s]))""")
_URL = re.compile(r"salt://([^\s'\"#,\]}|{?]*)")


class Reference(NamedTuple):
    """One use of a name: what it names (module and ID, SLS, ...) and the part of the line with the name."""

    #: "id", "sls", "file", "template", "macro", "pillar" or "grain".
    kind: str
    name: str
    span: Span
    #: State module of a requisite, "" for any.
    module: str = ""


@dataclass(slots=True)
class StateUse:
    """One state of an ID: its full name such as ``file.managed``, its places and its arguments."""

    #: State module, and function or "" while it is not written.
    module: str
    function: str
    entry: Entry
    #: The entry of the list that names the function (``- managed``); None in the short form.
    function_entry: Entry | None
    arguments: list[Entry]

    @property
    def full(self) -> str:
        """Return the name as text: ``module.function``, or ``module`` where no function is written yet."""
        return f"{self.module}.{self.function}" if self.function else self.module

    def value(self, name: str) -> str:
        """The value of an argument on its line; "" if it has none."""
        return next((entry.value for entry in self.arguments if entry.key == name), "")


@dataclass(slots=True)
class Declaration:
    """One ID of an SLS file, or an ID below ``extend``, with its states."""

    id: str
    entry: Entry
    states: list[StateUse]
    extends: bool = False


@dataclass(slots=True)
class FileFacts:
    """All that an editor knows of one file without rendering it."""

    source: SlsText
    declarations: list[Declaration] = field(default_factory=list)
    references: list[Reference] = field(default_factory=list)
    #: Entries of the include list: (SLS as written, its place).
    includes: list[tuple[str, Span]] = field(default_factory=list)
    definitions: list[Definition] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    #: Path of keys joined by ":" -> its place, for pillar files.
    keys: dict[str, Span] = field(default_factory=dict)

    def declared(self) -> Iterator[Declaration]:
        """Yield the IDs that the file declares, without those that it extends."""
        return (one for one in self.declarations if not one.extends)


def facts_of(text: str, kind: str) -> FileFacts:
    """Return the facts of a file. ``kind``: "sls", "top", "pillar" or "template" (all other text with Jinja)."""
    source = read(text)
    found = FileFacts(source)
    found.definitions = list(definitions(text, source.tags))
    found.imports = list(imports(text, source.tags))
    _of_jinja(found)
    if kind == "sls" and not _is_python(text):
        _of_sls(found)
    elif kind == "top":
        _of_top(found)
    elif kind == "pillar":
        _of_pillar(found)
    for match in _URL.finditer(text):
        span = source.span(match.start(), match.end())
        found.references.append(Reference("file", match[1], span))
    return found


def _is_python(text: str) -> bool:
    first = text.partition("\n")[0]
    return first.startswith("#!") and (
        "py" in first.replace("|", " ").split() or "pyobjects" in first or "#!py" in first
    )


# -------------------------------------------------------------------------------------------------------------------- SLS


def _of_sls(found: FileFacts) -> None:
    source = found.source
    for entry in source.top():
        if not entry.colon:
            continue
        if entry.key == "include":
            found.includes += _includes(source, entry)
        elif entry.key == "extend":
            found.declarations += [_declaration(source, each, True) for each in source.below(entry) if each.colon]
        elif entry.key == "exclude":
            found.references += _excluded(source, entry)
        elif "\x00" not in entry.key and not entry.key.startswith("{%"):
            found.declarations.append(_declaration(source, entry, False))
    for sls, span in found.includes:
        found.references.append(Reference("sls", sls, span))
    for one in found.declarations:
        if one.extends:
            found.references.append(Reference("id", one.id, one.entry.key_span))
        for state in one.states:
            for argument in state.arguments:
                if argument.key in REFERRING:
                    found.references += references_of(source, argument)


def _includes(source: SlsText, entry: Entry) -> Iterator[tuple[str, Span]]:
    if entry.value:
        for match in re.finditer(r"[^\s,\[\]]+", entry.value):
            at = source.lines[entry.line].find(match[0], entry.value_span.start)
            yield match[0], Span(entry.line, at, at + len(match[0]))
    for each in source.below(entry):
        # ``- base: common`` names the environment first.
        if each.value and each.colon:
            yield each.value, _inner(source, each.value_span, each.value)
        elif each.key:
            yield each.key, _inner(source, each.key_span, each.key)


def _excluded(source: SlsText, entry: Entry) -> Iterator[Reference]:
    for each in source.below(entry):
        if each.colon and each.value and each.key in ("sls", "id"):
            yield Reference(each.key, each.value, _inner(source, each.value_span, each.value))
        elif each.key and not each.colon:
            yield Reference("sls", each.key, _inner(source, each.key_span, each.key))


def _declaration(source: SlsText, entry: Entry, extends: bool) -> Declaration:
    states = []
    if entry.value and not entry.value.startswith(("{", "[")):
        module, _, function = entry.value.partition(".")
        states.append(StateUse(module, function, entry, None, []))
    for each in source.below(entry):
        if each.dash < 0:
            states.append(_state(source, each))
    return Declaration(entry.key, entry, states, extends)


def _state(source: SlsText, entry: Entry) -> StateUse:
    module, _, function = entry.key.partition(".")
    named: Entry | None = None
    arguments = []
    for each in source.below(entry):
        if each.colon:
            arguments.append(each)
        elif each.dash >= 0 and not function and each.key:
            named, function = each, each.key
    if not function and entry.value:
        function = entry.value.strip("[] ").partition(",")[0].strip()
    return StateUse(module, function, entry, named, arguments)


def references_of(source: SlsText, argument: Entry) -> Iterator[Reference]:
    """Yield the states that a requisite (``require`` and its kind) refers to, as a list of lines or in brackets."""
    if argument.value:
        at = argument.value_span.start
        line = source.lines[argument.line]
        for match in _IN_BRACKETS.finditer(line, at):
            group = next(number for number in (2, 3, 4) if match[number] is not None)
            yield _reference(match[1], match[group], Span(argument.line, match.start(group), match.end(group)))
    for each in source.below(argument):
        if each.colon and each.value:
            yield _reference(each.key, each.value, _inner(source, each.value_span, each.value))
        elif each.key and not each.colon and each.key[0] not in "[{":
            yield Reference("id", each.key, _inner(source, each.key_span, each.key))


def _reference(module: str, name: str, span: Span) -> Reference:
    if module == "sls":
        return Reference("sls", name, span)
    return Reference("id", name, span, "" if module == "id" else module.partition(".")[0])


def _inner(source: SlsText, span: Span, text: str) -> Span:
    """Return the part of a line that a name takes, without quotes."""
    at = source.lines[span.line].find(text, span.start)
    return Span(span.line, at, at + len(text)) if at >= 0 else span


# ------------------------------------------------------------------------------------------------------------- top, pillar


def _of_top(found: FileFacts) -> None:
    for env in found.source.top():
        for target in found.source.below(env):
            for each in found.source.below(target):
                if each.key and not each.colon:
                    span = _inner(found.source, each.key_span, each.key)
                    found.references.append(Reference("sls", each.key, span))


#: Longest path of pillar keys that is kept, in characters.
_LONGEST_PATH = 1000


def _of_pillar(found: FileFacts) -> None:
    source = found.source
    paths: dict[int, str] = {}
    for number, entry in enumerate(source.entries):
        if entry.parent < 0 and entry.key == "include":
            found.includes += _includes(source, entry)
            continue
        if not entry.colon or (entry.parent >= 0 and entry.parent not in paths):
            continue
        path = f"{paths[entry.parent]}:{entry.key}" if entry.parent >= 0 else entry.key
        if len(path) > _LONGEST_PATH:
            # The path of each key below would hold it once more.
            continue
        paths[number] = path
        found.keys.setdefault(path, entry.key_span)
    for sls, span in found.includes:
        found.references.append(Reference("sls", sls, span))


# -------------------------------------------------------------------------------------------------------------------- Jinja

_STEP = (
    r"""(?:\[\s*(?:'[^'\n]*'|"[^"\n]*")\s*\]|\.(?!get\b|items\b|keys\b|values\b|setdefault\b|update\b)[A-Za-z_]\w*)"""
)
#: Most steps of a path that are read: each is a reference of its own, with the text of all steps before it.
_DEEPEST = 64
_CHAIN = {name: re.compile(rf"(?<![\w.'\"]){name}((?:{_STEP}){{1,{_DEEPEST}}})") for name in ("pillar", "grains")}
_GET = re.compile(
    r"""(?:salt\[\s*['"](pillar|grains)\.get['"]\s*\]|salt\.(pillar|grains)\.get|(?<![\w.])(pillar|grains)\.get)\(\s*(['"])([^'"\n]*)\4"""
)
_ONE_STEP = re.compile(r"\[\s*['\"]([^'\"\n]*)['\"]\s*\]|\.([A-Za-z_]\w*)")

#: Name of the template variable -> kind of the reference.
KINDS: Mapping[str, str] = {"pillar": "pillar", "grains": "grain"}


def _of_jinja(found: FileFacts) -> None:
    source = found.source
    for one in found.imports:
        found.references.append(Reference("template", one.path, source.span(one.start, one.end)))
    for tag in source.tags:
        if tag.kind is TagKind.COMMENT:
            continue
        for name, pattern in _CHAIN.items():
            for match in pattern.finditer(source.text, tag.start, tag.end):
                steps = list(_ONE_STEP.finditer(source.text, match.start(1), match.end(1)))
                path = ""
                for step in steps:
                    group = 1 if step[1] is not None else 2
                    path = f"{path}:{step[group]}" if path else step[group]
                    span = source.span(step.start(group), step.end(group))
                    found.references.append(Reference(KINDS[name], path, span))
        for match in _GET.finditer(source.text, tag.start, tag.end):
            name = match[1] or match[2] or match[3]
            span = source.span(match.start(5), match.end(5))
            found.references.append(Reference(KINDS[name], match[5], span))
