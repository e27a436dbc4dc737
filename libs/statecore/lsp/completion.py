"""Completion: the words that may follow the text before the cursor. Pure: index, catalogue and minion data are passed in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jinja2.defaults import DEFAULT_NAMESPACE
from jinja2.filters import FILTERS as JINJA_FILTERS
from jinja2.tests import TESTS as JINJA_TESTS

from statecore.analysis.sls_text.jinja_regions import Tag, TagKind, tag_at
from statecore.analysis.sls_text.lines import Entry, SlsText, Span
from statecore.lsp.catalogue import Catalogue, FunctionDoc
from statecore.lsp.cursor import in_declaration
from statecore.lsp.facts import REFERRING, RESERVED, FileFacts, StateUse
from statecore.lsp.index import TEMPLATES, IndexedFile, TreeIndex
from statecore.render.filters import FILTERS, GLOBALS, TESTS


class Item(NamedTuple):
    """One proposal: its label, its kind, the text to insert and the part of the line that the text replaces."""

    label: str
    #: "function", "module", "property", "reference", "file", "value", "variable", "keyword" or "snippet".
    kind: str
    span: Span
    #: Text to insert; "" for the label.
    insert: str = ""
    detail: str = ""
    #: Documentation in Markdown; "" if there is none or it is looked up later.
    doc: str = ""
    #: Lower groups are shown first.
    group: int = 5


@dataclass(frozen=True, slots=True)
class MinionData:
    """Grains and pillar of the chosen minion, as far as the server knows them."""

    grains: Mapping[str, object] = field(default_factory=dict)
    pillar: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """One request for completion: the file, the cursor, and where names are looked up."""

    index: TreeIndex
    catalogue: Catalogue
    file: IndexedFile
    path: str
    line: int
    column: int
    minion: MinionData

    @property
    def source(self) -> SlsText:
        """The text of the file."""
        return self.file.facts.source

    @property
    def before(self) -> str:
        """The text of the line before the cursor."""
        return self.source.lines[self.line][: self.column]

    def span(self, typed: str) -> Span:
        """The part of the line that holds ``typed``, which ends at the cursor."""
        return Span(self.line, self.column - len(typed), self.column)


#: Further arguments of each state, with their documentation. The requisites are added.
GLOBAL_ARGUMENTS: Mapping[str, str] = {
    "name": "What the state manages. Default: the ID.",
    "names": "Declare the state once for each name of this list.",
    "order": "Position in the run: a number, `first` or `last`.",
    "onlyif": "Run the state only if these commands or functions succeed.",
    "unless": "Do not run the state if these commands or functions succeed.",
    "creates": "Do not run the state if these paths exist.",
    "check_cmd": "Command that must succeed after the state.",
    "failhard": "True: end the run if this state fails.",
    "retry": "Repeat a failed state: a map of `attempts`, `interval`, `until` and `splay`.",
    "parallel": "True: run the state beside the next ones.",
    "reload_modules": "True: load modules again after this state.",
    "reload_grains": "True: gather grains again after this state.",
    "reload_pillar": "True: compile pillar again after this state.",
    "fire_event": "Fire an event with the state's result: True, or its tag.",
    "no_log": "True: hide arguments and result in output and logs.",
    "aggregate": "True: join similar states in one call.",
}

#: Variables of every SLS template, with their documentation.
VARIABLES: Mapping[str, str] = {
    "grains": "Grains of the minion.",
    "pillar": "Pillar of the minion.",
    "salt": "Execution functions: `salt['module.function'](...)`.",
    "opts": "Options of the minion.",
    "sls": "Reference of this SLS, such as `web.server`.",
    "saltenv": "Environment of the state tree.",
    "env": "Environment of the state tree (older name).",
    "slspath": "Directory of this SLS in the tree.",
    "slsdotpath": "Directory of this SLS, with dots.",
    "slscolonpath": "Directory of this SLS, with colons.",
    "sls_path": "Directory of this SLS, with underscores.",
    "tplfile": "Path of this template in the tree.",
    "tpldir": "Directory of this template in the tree.",
    "tpldot": "Directory of this template, with dots.",
    "tplroot": "First directory of this template's path.",
    "tplpath": "Path of this template on disk.",
}

STATEMENTS = (
    *(
        "if",
        "elif",
        "else",
        "endif",
        "for",
        "endfor",
        "set",
        "endset",
        "macro",
        "endmacro",
        "call",
        "endcall",
        "filter",
    ),
    *("endfilter", "include", "import", "from", "import_yaml", "import_json", "import_text", "load_yaml", "load_json"),
    *(
        "load_text",
        "endload",
        "do",
        "break",
        "continue",
        "block",
        "endblock",
        "extends",
        "raw",
        "endraw",
        "with",
        "endwith",
    ),
    *("profile", "endprofile"),
)

_BOOLEANS = ("True", "False")

#: Most IDs, and most proposals of one answer. A list of so many is marked as incomplete, and the editor asks again.
MOST = 200


def complete(request: Request) -> list[Item]:
    """Return the proposals for the text before the cursor, in no particular order."""
    if request.line >= len(request.source.lines):
        return []
    offset = request.source.offset(request.line, request.column)
    tag = tag_at(request.source.tags, offset)
    if tag is not None:
        return [] if tag.kind is TagKind.COMMENT else list(_in_jinja(request, tag, offset))
    url = _URL.search(request.before)
    if url is not None:
        return list(_files(request, url[1]))
    if _in_comment(request.before):
        return []
    complete_kind = _KINDS.get(request.file.kind)
    return list(complete_kind(request)) if complete_kind else []


_URL = re.compile(r"salt://([^\s'\"#,\]}|{?]*)$")


def _in_comment(before: str) -> bool:
    return bool(re.search(r"(?:^|\s)#", before))


def _files(request: Request, typed: str) -> Iterator[Item]:
    for at in request.index.known.values():
        if at.tree == "states" and not at.path.startswith("_") and at.path.startswith(typed):
            yield Item(at.path, "file", request.span(typed), detail=f"salt://{at.path}")


# --------------------------------------------------------------------------------------------------------------------- YAML

_ITEM = re.compile(r"^(\s*)((?:-\s+|-$)*)(.*)$")
_VALUE = re.compile(r"""^(['"]?)([^\s:#'"][^:#]*?)\1\s*:\s+(['"]?)(.*)$""")


class _Written(NamedTuple):
    """A line up to the cursor: its columns, whether a dash is there, and the key and value as far as they are typed."""

    column: int
    dash: int
    key: str
    #: None before the colon.
    value: str | None


def _written(before: str) -> _Written:
    match = _ITEM.match(before)
    lead, dashes, rest = (match[1], match[2], match[3]) if match else ("", "", before)
    dash = len(lead) + dashes.rstrip().rfind("-") if dashes else -1
    column = len(lead) + len(dashes)
    value = _VALUE.match(rest)
    return _Written(column, dash, value[2], value[4]) if value else _Written(column, dash, rest.lstrip("'\""), None)


def _in_sls(request: Request) -> Iterator[Item]:
    source, written = request.source, _written(request.before)
    above = source.above(request.line, written.column, written.dash)
    if above is None:
        yield from _at_top(request, written)
        return
    line = [above, *source.ancestors(above)]
    top = line[-1]
    if top.key == "include" or (top.key == "exclude" and above is top):
        yield from _sls_names(request, written.key if written.value is None else written.value)
        return
    depth = len(line) - (1 if top.key == "extend" else 0)
    if depth == 0:
        yield from _extended_ids(request, written)
    elif depth == 1 and written.dash < 0:
        yield from _state_names(request, written.key if written.value is None else "")
    elif depth == 2:
        yield from _in_state(request, above, written)
    elif depth == 3 and above.key in REFERRING:
        yield from _requisites(request, written)


def _at_top(request: Request, written: _Written) -> Iterator[Item]:
    if written.dash >= 0:
        return
    if written.value is not None:
        if written.key not in RESERVED:
            yield from _state_names(request, written.value)
        return
    for word in sorted(RESERVED):
        if not any(entry.key == word for entry in request.source.top()):
            yield Item(word, "keyword", request.span(written.key), f"{word}:\n  ")


def _extended_ids(request: Request, written: _Written) -> Iterator[Item]:
    for name, module in _reachable(request, "", written.key):
        yield Item(name, "reference", request.span(written.key), f"{name}:", detail=module)


def _state_names(request: Request, typed: str) -> Iterator[Item]:
    """Proposals for a state: module names, and after the dot the functions of the module."""
    module, dot, _ = typed.partition(".")
    if dot:
        known = request.catalogue.module("states", module)
        for name, function in sorted(known.functions.items()) if known else ():
            if not name.startswith("mod_"):
                yield _function_item(function, request.span(typed), f"{module}.{name}")
        return
    for name in request.catalogue.names("states"):
        yield Item(name, "module", request.span(typed), f"{name}.", group=4)


def _function_item(function: FunctionDoc, span: Span, label: str) -> Item:
    return Item(label, "function", span, detail=function.summary)


def _in_state(request: Request, above: Entry, written: _Written) -> Iterator[Item]:
    state = _state_of(request.file.facts, above)
    if written.dash < 0 or state is None:
        return
    function = request.catalogue.function("states", state.full) if state.function else None
    if written.value is not None:
        yield from _values(request, function, state, written)
        return
    span = request.span(written.key)
    if (
        "." not in above.key
        and state.entry is above
        and (state.function_entry is None or state.function_entry.line == request.line)
    ):
        module = request.catalogue.module("states", state.module)
        for name, one in sorted(module.functions.items()) if module else ():
            if not name.startswith("mod_"):
                yield Item(name, "function", span, detail=one.summary, group=1)
    used = {each.key for each in state.arguments if each.line != request.line}
    if function is None and state.function_entry is not None:
        function = request.catalogue.function("states", f"{state.module}.{state.function_entry.key}")
    for argument in function.arguments if function else ():
        if argument.name not in used:
            detail = "required" if argument.required else f"default: {argument.default}"
            yield Item(argument.name, "property", span, f"{argument.name}: ", detail, argument.text, group=2)
    listed = {argument.name for argument in function.arguments} if function else set()
    for name, text in GLOBAL_ARGUMENTS.items():
        if name not in used | listed:
            yield Item(name, "property", span, f"{name}: ", "every state", text, group=4)
    for name in sorted(REFERRING - used):
        yield Item(name, "keyword", span, f"{name}:\n{' ' * written.column}- ", "requisite", group=3)


def _state_of(facts: FileFacts, above: Entry) -> StateUse | None:
    found = in_declaration(facts, above.line)
    return found.state if found is not None else None


def _values(request: Request, function: FunctionDoc | None, state: StateUse, written: _Written) -> Iterator[Item]:
    typed = written.value or ""
    span = request.span(typed)
    if written.key in REFERRING:
        yield from _requisite_value(request, typed)
        return
    argument = function.by_name.get(written.key) if function else None
    if argument is not None and argument.default in _BOOLEANS:
        for word in _BOOLEANS:
            yield Item(word, "value", span, detail="default" if word == argument.default else "")
    elif written.key in ("source", "sources") or "salt://" in (argument.text if argument else ""):
        yield Item("salt://", "snippet", span)
    elif written.key == "template":
        yield from (Item(word, "value", span) for word in ("jinja", "mako", "py"))
    elif written.key == "order":
        yield from (Item(word, "value", span) for word in ("first", "last"))


def _requisites(request: Request, written: _Written) -> Iterator[Item]:
    if written.value is not None:
        module = "" if written.key == "id" else written.key
        if module == "sls":
            yield from _sls_names(request, written.value)
            return
        for name, found in _reachable(request, module, written.value):
            yield Item(name, "reference", request.span(written.value), detail=found)
        return
    span = request.span(written.key)
    modules = set()
    for name, found in _reachable(request, "", written.key):
        modules.add(found)
        yield Item(f"{found}: {name}", "reference", span, group=2)
    for module in sorted(modules - {""} | {"sls", "id"}):
        yield Item(module, "module", span, f"{module}: ", group=3)


def _requisite_value(request: Request, typed: str) -> Iterator[Item]:
    """Proposals inside brackets: ``require: [pkg: ``."""
    inner = re.search(r"(?:^|[\[{,]\s*)(?:([\w.]+):\s+)?([^\[{,:]*)$", typed)
    if inner is None:
        return
    for name, found in _reachable(request, inner[1] or "", inner[2]):
        label = name if inner[1] else f"{found}: {name}"
        yield Item(label, "reference", request.span(inner[2]), detail=found)


def _reachable(request: Request, module: str, typed: str) -> Iterator[tuple[str, str]]:
    """Yield (ID, state module) whose ID or module contains ``typed``: of this file first, then of those that it includes,
    then of all others of its environment. At most ``MOST`` are yielded.
    """
    index, wanted = request.index, typed.lower()
    included = index.includes_of(request.path)
    near = [request.path, *sorted(included - {request.path})]
    seen: set[tuple[str, str]] = set()
    for file in (*near, *(each for each in index.files if each not in included)):
        indexed = index.files.get(file)
        if indexed is None or indexed.kind != "sls" or indexed.at.env != request.file.at.env:
            continue
        for one in indexed.facts.declared():
            for state in one.states:
                key = (one.id, state.module)
                fits = wanted in one.id.lower() or wanted in f"{state.module}: {one.id}".lower()
                if not fits or key in seen or (module and state.module != module) or _is_own(request, file, one.entry):
                    continue
                seen.add(key)
                yield key
                if len(seen) >= MOST:
                    return


def _is_own(request: Request, file: str, entry: Entry) -> bool:
    return file == request.path and entry.line <= request.line <= entry.last


def _sls_names(request: Request, typed: str) -> Iterator[Item]:
    for name, file in sorted(request.index.sls_names(request.file.at.tree or "states")):
        if file != request.path and request.index.known[file].env == request.file.at.env:
            yield Item(name, "module", request.span(typed), detail=request.index.known[file].path)


def _in_top(request: Request) -> Iterator[Item]:
    written = _written(request.before)
    above = request.source.above(request.line, written.column, written.dash)
    if above is not None and above.parent >= 0 and written.dash >= 0 and written.value is None:
        yield from _sls_names(request, written.key)


def _in_pillar(request: Request) -> Iterator[Item]:
    written = _written(request.before)
    above = request.source.above(request.line, written.column, written.dash)
    if above is not None and above.key == "include" and above.parent < 0:
        yield from _sls_names(request, written.key)


_KINDS: Mapping[str, Callable[[Request], Iterator[Item]]] = {"sls": _in_sls, "top": _in_top, "pillar": _in_pillar}


# --------------------------------------------------------------------------------------------------------------------- Jinja

_Q = r"['\"]"
_KEYS = re.compile(
    rf"(?:salt\[\s*{_Q}(pillar|grains)\.get{_Q}\s*\]|salt\.(pillar|grains)\.get|(?<![\w.])(pillar|grains)\.get)\(\s*{_Q}([^'\"\n]*)$"
)
_STEPS = re.compile(
    rf"(?<![\w.'\"])(pillar|grains)((?:\[\s*{_Q}[^'\"\n]*{_Q}\s*\]|\.\w+(?=[.\[]))*)(?:\[\s*{_Q}([^'\"\n]*)|\.(\w*))$"
)
_ONE_STEP = re.compile(rf"\[\s*{_Q}([^'\"\n]*){_Q}\s*\]|\.(\w+)")
_SALT_ITEM = re.compile(rf"(?<![\w.])salt\[\s*{_Q}([\w.]*)$")
_SALT_DOT = re.compile(r"(?<![\w.])salt\.(\w*(?:\.\w*)?)$")
_FILTER = re.compile(r"\|\s*(\w*)$")
_TEST = re.compile(r"\bis\s+(?:not\s+)?(\w*)$")
_TEMPLATE = re.compile(
    rf"^[-+]?\s*(?:from|import|include|extends|import_yaml|import_json|import_text)\s+{_Q}([^'\"\n]*)$"
)
_FROM = re.compile(rf"^[-+]?\s*from\s+{_Q}([^'\"\n]*){_Q}\s+import\s+(?:.*,\s*)?(\w*)$", re.DOTALL)
_STATEMENT = re.compile(r"^[-+]?\s*(\w*)$")
_NAME = re.compile(r"(?<![\w.'\"\]])([A-Za-z_]?\w*)$")
_URL_IN_QUOTES = re.compile(r"salt://([^\s'\"]*)$")


def _in_jinja(request: Request, tag: Tag, offset: int) -> Iterator[Item]:
    text = request.source.text[tag.start + 2 : offset]
    for pattern, answer in _JINJA:
        match = pattern.search(text)
        if match is not None and (pattern is not _STATEMENT or tag.kind is TagKind.STATEMENT):
            yield from answer(request, match)
            return


def _template_paths(request: Request, match: re.Match[str]) -> Iterator[Item]:
    typed = match[1]
    for file, at in request.index.known.items():
        if (
            at.tree == request.file.at.tree
            and file != request.path
            and at.path.endswith((*TEMPLATES, ".sls", ".yaml", ".yml", ".json"))
        ):
            yield Item(at.path, "file", request.span(typed), group=1 if at.path.endswith(TEMPLATES) else 3)


def _imported(request: Request, match: re.Match[str]) -> Iterator[Item]:
    path = match[1].removeprefix("salt://")
    file = request.index.tree_file(path, request.file.at)
    indexed = request.index.files.get(file) if file else None
    for one in indexed.facts.definitions if indexed else ():
        if one.how in ("macro", "set", "load"):
            yield Item(
                one.name, "function" if one.how == "macro" else "variable", request.span(match[2]), detail=one.text
            )


def _keys(request: Request, match: re.Match[str]) -> Iterator[Item]:
    name = match[1] or match[2] or match[3]
    yield from _key_items(request, name, match[4], request.span(match[4]))


def _steps(request: Request, match: re.Match[str]) -> Iterator[Item]:
    typed = match[3] if match[3] is not None else match[4]
    path = [one[1] if one[1] is not None else one[2] for one in _ONE_STEP.finditer(match[2])]
    found = dict(_children(request, match[1], path))
    if match[4] is not None and not path:
        found |= dict.fromkeys(("get", "items", "keys"), "method")
    for key, detail in sorted(found.items()):
        # ``pillar.a-b`` would be a subtraction.
        if match[4] is None or key.isidentifier():
            yield Item(key, "value", request.span(typed), detail=detail)


def _key_items(request: Request, name: str, typed: str, span: Span) -> Iterator[Item]:
    """Proposals of whole paths such as ``nginx:port``, as ``pillar.get`` takes them."""
    for path, detail in sorted(_paths(request, name)):
        if path.startswith(typed) or not typed:
            yield Item(path, "value", span, detail=detail)


def _paths(request: Request, name: str) -> Iterator[tuple[str, str]]:
    data = request.minion.grains if name == "grains" else request.minion.pillar
    seen: dict[str, str] = {}
    _flatten(data, "", seen, 0)
    if name == "pillar":
        for path, places in request.index.pillar_keys().items():
            seen.setdefault(path, f"in {request.index.known[next(iter(places))].path}" if places else "")
    for path in request.index.used("grain" if name == "grains" else "pillar"):
        seen.setdefault(path, "used in the tree")
    return iter(seen.items())


def _flatten(data: Mapping[str, object], prefix: str, found: dict[str, str], depth: int) -> None:
    for key, value in data.items():
        if str(key).startswith("_"):
            continue
        path = f"{prefix}:{key}" if prefix else str(key)
        found[path] = "a map" if isinstance(value, Mapping) else type(value).__name__
        if isinstance(value, Mapping) and depth < 4:
            _flatten(value, path, found, depth + 1)


def _children(request: Request, name: str, path: Sequence[str]) -> Iterator[tuple[str, str]]:
    prefix = ":".join(path)
    for each, detail in _paths(request, name):
        if not prefix and ":" not in each:
            yield each, detail
        elif prefix and each.startswith(f"{prefix}:") and ":" not in each[len(prefix) + 1 :]:
            yield each[len(prefix) + 1 :], detail


def _salt_functions(request: Request, match: re.Match[str]) -> Iterator[Item]:
    typed = match[1]
    module, dot, _ = typed.partition(".")
    if not dot:
        for name in request.catalogue.names("modules"):
            yield Item(name, "module", request.span(typed), f"{name}.")
        return
    known = request.catalogue.module("modules", module)
    for name, function in sorted(known.functions.items()) if known else ():
        yield _function_item(function, request.span(typed), f"{module}.{name}")


#: Names of Jinja's filters and tests, and of Salt's.
FILTER_NAMES = frozenset({*JINJA_FILTERS, *FILTERS})
TEST_NAMES = frozenset(name for name in (*JINJA_TESTS, *TESTS) if name.isidentifier())


def _filters(request: Request, match: re.Match[str]) -> Iterator[Item]:
    yield from _words(
        request, match[1], FILTER_NAMES, "function", lambda name: "Salt's" if name in FILTERS else "Jinja's"
    )


def _tests(request: Request, match: re.Match[str]) -> Iterator[Item]:
    yield from _words(request, match[1], TEST_NAMES, "function", lambda name: "Salt's" if name in TESTS else "Jinja's")


def _words(
    request: Request, typed: str, words: Iterable[str], kind: str, detail: Callable[[str], str]
) -> Iterator[Item]:
    for word in sorted(words):
        yield Item(word, kind, request.span(typed), detail=detail(word))


def _statements(request: Request, match: re.Match[str]) -> Iterator[Item]:
    yield from _words(request, match[1], STATEMENTS, "keyword", lambda name: "statement")


def _names(request: Request, match: re.Match[str]) -> Iterator[Item]:
    typed = match[1]
    span = request.span(typed)
    seen = set()
    for one in request.file.facts.definitions:
        place = request.source.span(one.start, one.end)
        if one.name not in seen and not place.has(request.line, request.column):
            seen.add(one.name)
            yield Item(one.name, "function" if one.how == "macro" else "variable", span, detail=one.text, group=1)
    for name, text in VARIABLES.items():
        if name not in seen:
            yield Item(name, "variable", span, detail=text, group=2)
    for name in sorted({*DEFAULT_NAMESPACE, *GLOBALS}):
        yield Item(name, "function", span, detail="global function", group=4)


def _url_paths(request: Request, match: re.Match[str]) -> Iterator[Item]:
    yield from _files(request, match[1])


#: Pattern of the tag's text before the cursor -> the proposals. The first match decides.
_JINJA: Sequence[tuple[re.Pattern[str], Callable[[Request, re.Match[str]], Iterator[Item]]]] = (
    (_FROM, _imported),
    (_TEMPLATE, _template_paths),
    (_URL_IN_QUOTES, _url_paths),
    (_KEYS, _keys),
    (_STEPS, _steps),
    (_SALT_ITEM, _salt_functions),
    (_SALT_DOT, _salt_functions),
    (_FILTER, _filters),
    (_TEST, _tests),
    (_STATEMENT, _statements),
    (_NAME, _names),
)
