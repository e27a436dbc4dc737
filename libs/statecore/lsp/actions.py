"""Code actions: other forms of a state, a missing include, and the corrections that findings of ``check`` propose. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from statecore.analysis.sls_text.lines import SlsText
from statecore.lsp.cursor import in_declaration
from statecore.lsp.facts import Declaration, FileFacts, StateUse
from statecore.lsp.index import IndexedFile, TreeIndex, reference
from statecore.lsp.navigation import Edit


class Action(NamedTuple):
    """One change that an editor offers: its title, the edits, and whether it corrects a finding."""

    title: str
    edits: tuple[Edit, ...]
    #: "quickfix" or "refactor.rewrite".
    kind: str
    #: Index of the finding that it corrects, in the findings given to ``actions``; -1 for none.
    finding: int = -1


class Shown(NamedTuple):
    """A finding that the editor shows at the cursor: its rule, its hint and its place."""

    rule: str
    hint: str
    line: int
    start: int
    end: int


def actions(index: TreeIndex, file: str, first: int, last: int, findings: Sequence[Shown] = ()) -> list[Action]:
    """Return the changes that the editor offers for these lines and for the findings that it shows there."""
    indexed = index.files[file]
    found = [*_includes(index, indexed, file, first, last)]
    for number, finding in enumerate(findings):
        found += [_numbered(action, number) for action in _corrections(indexed.facts.source, file, finding)]
    if (
        indexed.kind == "sls"
        and (inside := in_declaration(indexed.facts, first)) is not None
        and inside.state is not None
    ):
        found += _forms(indexed.facts, file, inside.declaration, inside.state)
    return found


def _numbered(action: Action, number: int) -> Action:
    return action._replace(finding=number)


# ------------------------------------------------------------------------------------------------------------------ include


def _includes(index: TreeIndex, indexed: IndexedFile, file: str, first: int, last: int) -> Iterator[Action]:
    included = index.includes_of(file)
    offered = set()
    for one in indexed.facts.references:
        if one.kind != "id" or not first <= one.span.line <= last:
            continue
        declared = [
            other
            for other, declaration in index.declarations(one.name)
            if not one.module or any(state.module == one.module for state in declaration.states)
        ]
        if any(other in included for other in declared):
            continue
        for other in declared:
            at = index.files[other].at
            sls = reference(at.path)
            if at.env == indexed.at.env and at.tree == "states" and sls not in offered:
                offered.add(sls)
                yield Action(
                    f"Include '{sls}', which declares '{one.name}'",
                    (include_edit(indexed.facts, file, sls),),
                    "quickfix",
                )


def include_edit(facts: FileFacts, file: str, sls: str) -> Edit:
    """Return the edit that adds an SLS to the include list of a file, or adds the list."""
    source = facts.source
    entry = next((each for each in source.top() if each.key == "include" and each.colon), None)
    if entry is None:
        line = _first_line(source)
        return Edit(file, (line, 0), (line, 0), f"include:\n  - {sls}\n\n")
    items = source.below(entry)
    if entry.value.startswith("["):
        end = source.lines[entry.line].rfind("]")
        comma = ", " if entry.value.strip("[] ") else ""
        return Edit(file, (entry.line, end), (entry.line, end), f"{comma}{sls}")
    after = items[-1].line if items else entry.line
    dash = items[-1].dash if items and items[-1].dash >= 0 else 2
    end = len(source.lines[after])
    return Edit(file, (after, end), (after, end), f"\n{' ' * dash}- {sls}")


def _first_line(source: SlsText) -> int:
    """Return the first line after the shebang, comments and Jinja statements at the top of a file."""
    for number, line in enumerate(source.lines):
        stripped = line.strip()
        if (
            stripped
            and not stripped.startswith(("#", "{%", "{#"))
            and all(not (tag.start < source.starts[number] < tag.end) for tag in source.tags)
        ):
            return number
    return len(source.lines) - 1


# -------------------------------------------------------------------------------------------------------------- corrections

_NEAREST = re.compile(r"^the nearest (?:of the tree )?is '([^']+)'")
_WRITE = re.compile(r"^write '([^'\n:]+)'$")

#: Rule -> text before the word in the title of its correction.
_QUOTING: Mapping[str, str] = {"unquoted-mode": "Write", "unquoted-version": "Write"}


def _corrections(source: SlsText, file: str, finding: Shown) -> Iterator[Action]:
    line = source.lines[finding.line] if finding.line < len(source.lines) else ""
    if nearest := _NEAREST.match(finding.hint):
        word = line[finding.start : finding.end]
        if word and word != nearest[1]:
            edit = Edit(file, (finding.line, finding.start), (finding.line, finding.end), nearest[1])
            yield Action(f"Change '{word}' to '{nearest[1]}'", (edit,), "quickfix")
    elif finding.rule in _QUOTING and (written := _WRITE.match(finding.hint)):
        at = line.find(written[1], finding.start)
        if at >= 0:
            edit = Edit(file, (finding.line, at), (finding.line, at + len(written[1])), f"'{written[1]}'")
            yield Action(f"{_QUOTING[finding.rule]} '{written[1]}' with quotes", (edit,), "quickfix")


# -------------------------------------------------------------------------------------------------------------------- forms


def _forms(facts: FileFacts, file: str, declaration: Declaration, state: StateUse) -> Iterator[Action]:
    source = facts.source
    if not state.function or "{{" in state.full:
        return
    if state.entry is declaration.entry:
        yield _opened(source, file, state)
        return
    if state.function_entry is not None:
        yield _joined(source, file, state)
    elif "." in state.entry.key and not state.entry.value and source.below(state.entry):
        yield _split(source, file, state)
    if (
        len(declaration.states) == 1
        and not declaration.extends
        and not state.arguments
        and declaration.entry.last == _last(state)
    ):
        yield _closed(source, file, declaration, state)


def _last(state: StateUse) -> int:
    return state.function_entry.line if state.function_entry is not None else state.entry.line


def _opened(source: SlsText, file: str, state: StateUse) -> Action:
    entry = state.entry
    edit = Edit(
        file, (entry.line, entry.key_span.end), (entry.line, len(source.lines[entry.line])), f":\n  {state.full}: []"
    )
    return Action("Write the state on a line of its own", (edit,), "refactor.rewrite")


def _closed(source: SlsText, file: str, declaration: Declaration, state: StateUse) -> Action:
    last = _last(state)
    start = (declaration.entry.line, declaration.entry.key_span.end)
    edit = Edit(file, start, (last, len(source.lines[last])), f": {state.full}")
    return Action("Write the state on the line of its ID", (edit,), "refactor.rewrite")


def _joined(source: SlsText, file: str, state: StateUse) -> Action:
    """``file:`` with ``- managed`` becomes ``file.managed:``."""
    entry, named = state.entry, state.function_entry
    assert named is not None
    alone = not state.arguments
    end = entry.key_span.end
    edits = (
        Edit(file, (entry.line, end), (entry.line, end), f".{state.function}"),
        Edit(file, (named.line, 0), (named.line + 1, 0), "")
        if not alone
        else Edit(
            file, (entry.line, len(source.lines[entry.line])), (named.line, len(source.lines[named.line])), " []"
        ),
    )
    return Action(f"Write '{state.full}' as the short form", edits, "refactor.rewrite")


def _split(source: SlsText, file: str, state: StateUse) -> Action:
    """``file.managed:`` becomes ``file:`` with ``- managed``."""
    entry = state.entry
    start = entry.key_span.start + len(state.module)
    items = source.below(entry)
    dash = items[0].dash if items and items[0].dash >= 0 else entry.column + 2
    end = len(source.lines[entry.line])
    edits = (
        Edit(file, (entry.line, start), (entry.line, start + 1 + len(state.function)), ""),
        Edit(file, (entry.line, end), (entry.line, end), f"\n{' ' * dash}- {state.function}"),
    )
    return Action(f"Write '{state.full}' as the long form", edits, "refactor.rewrite")
