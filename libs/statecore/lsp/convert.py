"""Between the engine's answers and the types of the language server protocol: positions, ranges, items, edits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import PositionCodec

from statecore.analysis.sls_text.lines import Span
from statecore.lsp.completion import Item
from statecore.lsp.findings import Diagnostic
from statecore.lsp.index import Place, TreeIndex
from statecore.lsp.navigation import Edit
from statecore.lsp.outline import Symbol

_KINDS: Mapping[str, types.CompletionItemKind] = {
    "function": types.CompletionItemKind.Function,
    "module": types.CompletionItemKind.Module,
    "property": types.CompletionItemKind.Property,
    "reference": types.CompletionItemKind.Reference,
    "file": types.CompletionItemKind.File,
    "value": types.CompletionItemKind.Value,
    "variable": types.CompletionItemKind.Variable,
    "keyword": types.CompletionItemKind.Keyword,
    "snippet": types.CompletionItemKind.Snippet,
}

_SEVERITIES: Mapping[str, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}

_SYMBOLS: Mapping[str, types.SymbolKind] = {
    "id": types.SymbolKind.Object,
    "state": types.SymbolKind.Method,
    "include": types.SymbolKind.Module,
    "macro": types.SymbolKind.Function,
    "key": types.SymbolKind.Key,
}

#: Name in diagnostics.
SOURCE = "statecore"


class Converter:
    """Converts between columns in characters, which the engine counts, and the editor's code units."""

    def __init__(self, index: TreeIndex, codec: PositionCodec) -> None:
        """Use the lines of ``index``, and the position encoding that was agreed with the editor."""
        self._index = index
        self._codec = codec

    def _line(self, file: str, number: int) -> str:
        indexed = self._index.files.get(file)
        lines = indexed.facts.source.lines if indexed else []
        return lines[number] if number < len(lines) else ""

    def place(self, file: str, position: types.Position) -> tuple[int, int]:
        """Return (line, column in characters) of an editor's position."""
        line = self._line(file, position.line)
        column, units = 0, 0
        for char in line:
            if units >= position.character:
                break
            units += self._codec.client_num_units(char)
            column += 1
        return position.line, column

    def position(self, file: str, line: int, column: int) -> types.Position:
        """Return the editor's position of a line and a column in characters."""
        return types.Position(line, self._codec.client_num_units(self._line(file, line)[:column]))

    def range(self, file: str, span: Span) -> types.Range:
        """Return the editor's range of a part of a line."""
        return types.Range(self.position(file, span.line, span.start), self.position(file, span.line, span.end))

    def location(self, place: Place) -> types.Location:
        """Return the editor's location of a place."""
        return types.Location(uri_of(place.file), self.range(place.file, place.span))

    def edits(self, edits: Iterable[Edit]) -> types.WorkspaceEdit:
        """Return the editor's form of edits of several files."""
        changes: dict[str, list[types.TextEdit]] = {}
        for edit in edits:
            span = types.Range(self.position(edit.file, *edit.start), self.position(edit.file, *edit.end))
            changes.setdefault(uri_of(edit.file), []).append(types.TextEdit(span, edit.text))
        return types.WorkspaceEdit(changes=dict(changes))

    def item(self, file: str, item: Item) -> types.CompletionItem:
        """Return the editor's form of a proposal."""
        return types.CompletionItem(
            label=item.label,
            kind=_KINDS[item.kind],
            detail=item.detail or None,
            documentation=item.doc or None,
            sort_text=f"{item.group}{item.label}",
            filter_text=item.label,
            # The text has its own indentation.
            insert_text_mode=types.InsertTextMode.AsIs,
            text_edit=types.TextEdit(self.range(file, item.span), item.insert or item.label),
        )

    def diagnostic(self, file: str, found: Diagnostic) -> types.Diagnostic:
        """Return the editor's form of a finding. Its hint travels along, for code actions."""
        message = f"{found.message}\n{found.hint}" if found.hint else found.message
        related = (
            [types.DiagnosticRelatedInformation(self.location(found.related), "here")]
            if found.related is not None
            else None
        )
        return types.Diagnostic(
            range=self.range(file, found.span),
            message=message,
            severity=_SEVERITIES[found.severity],
            code=found.rule,
            source=SOURCE,
            related_information=related,
            data={"hint": found.hint},
        )

    def symbol(self, file: str, symbol: Symbol) -> types.DocumentSymbol:
        """Return the editor's form of a line of the outline."""
        start = self.position(file, symbol.span.line, 0)
        end = self.position(file, symbol.last, len(self._line(file, symbol.last)))
        return types.DocumentSymbol(
            name=symbol.name.strip() or "-",
            kind=_SYMBOLS[symbol.kind],
            range=types.Range(start, end),
            selection_range=self.range(file, symbol.span),
            detail=symbol.detail or None,
            children=[self.symbol(file, each) for each in symbol.children],
        )


def path_of(uri: str) -> str:
    """Return the path of a document; the URI itself for a document that is no file."""
    return to_fs_path(uri) or uri


def uri_of(path: str) -> str:
    """Return the URI of a file."""
    return from_fs_path(path) or path


def hint_of(diagnostic: types.Diagnostic) -> str:
    """Return the hint that travels with a finding; "" if there is none."""
    data = diagnostic.data
    return str(data.get("hint", "")) if isinstance(data, Mapping) else ""


def locations(converter: Converter, places: Sequence[Place]) -> list[types.Location]:
    """Return the editor's form of places."""
    return [converter.location(each) for each in places]
