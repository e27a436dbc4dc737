"""The edge of the language server: each request of the protocol is handed to a pure function, and its answer converted.

Only this module and ``convert`` import pygls. Requests run in the server's thread and answer from the index; only a hover
that asks for a rendered value runs in a thread of its own.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from statecore.analysis.sls_text.formatting import formatted
from statecore.analysis.sls_text.jinja_regions import TagKind
from statecore.lsp import actions, navigation
from statecore.lsp.completion import MOST, Request, complete
from statecore.lsp.confinement import Confinement
from statecore.lsp.convert import Converter, hint_of, locations, path_of, uri_of
from statecore.lsp.cursor import subject_at, tag_text
from statecore.lsp.findings import Diagnostic
from statecore.lsp.hover import code, hover
from statecore.lsp.index import IndexedFile
from statecore.lsp.outline import outline
from statecore.lsp.settings import Settings, with_editor
from statecore.lsp.worker import WorkerFailed
from statecore.lsp.workspace import Workspace
from statecore.model.salt_version import SALTERN_VERSION

log = logging.getLogger(__name__)

#: Characters after which an editor asks for completion by itself.
_TRIGGERS = [".", ":", " ", "/", "'", '"', "[", "|", "-"]

#: Files whose changes on disk the editor reports.
_WATCHED = "**/*.{sls,jinja,jinja2,j2,yaml,yml,json,py}"


class SlsServer(LanguageServer):
    """The language server of one editor, and its workspace."""

    def __init__(self, settings: Settings) -> None:
        """Prepare a server with the settings of the command line. The editor's come with its first request."""
        super().__init__("statecore", SALTERN_VERSION)
        self._given = settings
        self._workspace: Workspace | None = None
        self.problems: list[str] = []

    @property
    def state(self) -> Workspace:
        """The workspace. Raise JsonRpcException before the editor's first request."""
        if self._workspace is None:
            raise JsonRpcException("the server is not initialized")
        return self._workspace

    def begin(self, params: types.InitializeParams) -> None:
        """Create the workspace from the editor's folder and settings."""
        folders = params.workspace_folders or []
        uri = folders[0].uri if folders else params.root_uri or ""
        settings, self.problems = with_editor(self._given, params.initialization_options, path_of(uri) if uri else "")
        self._workspace = Workspace(settings, self.publish, self.report)

    def end(self) -> None:
        """End the workspace's threads and its child process."""
        if self._workspace is not None:
            self._workspace.stop()

    def converter(self) -> Converter:
        """Return the converter for the encoding that was agreed with the editor."""
        return Converter(self.state.index, self.workspace.position_codec)

    def publish(self, file: str, found: Sequence[Diagnostic]) -> None:
        """Send the findings of a file to the editor."""
        with self.state.lock:
            converted = [self.converter().diagnostic(file, each) for each in found]
        uri = uri_of(file)
        document = self.workspace.text_documents.get(uri)
        version = document.version if document is not None else None
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, converted, version))

    def report(self, confinement: Confinement) -> None:
        """Write into the editor's log of this server how the process that renders is confined: a warning if it is not."""
        kind = types.MessageType.Info if confinement.held and not confinement.missing else types.MessageType.Warning
        self.window_log_message(types.LogMessageParams(kind, f"statecore: {confinement.text()}"))

    def indexed(self, uri: str) -> tuple[str, IndexedFile] | None:
        """Return (path, facts) of a document; None if it is not open and no file of the trees."""
        file = path_of(uri)
        found = self.state.index.files.get(file)
        return (file, found) if found is not None else None


def make_server(settings: Settings) -> SlsServer:
    """Return a server that answers with these settings of the command line."""
    server = SlsServer(settings)
    for name, (handler, options) in _FEATURES.items():
        server.feature(name, options)(handler)
    # The only request that may wait, for a rendered value.
    server.thread()(_hover)
    return server


# ------------------------------------------------------------------------------------------------------------------ lifetime


def _initialize(ls: SlsServer, params: types.InitializeParams) -> None:
    ls.begin(params)


def _initialized(ls: SlsServer, params: types.InitializedParams) -> None:
    for problem in ls.problems:
        ls.window_show_message(types.ShowMessageParams(types.MessageType.Warning, f"statecore: {problem}"))
    ls.state.start()
    watched = ls.client_capabilities.workspace and ls.client_capabilities.workspace.did_change_watched_files
    if watched and watched.dynamic_registration:
        options = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(_WATCHED)])
        registration = types.Registration("files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
        ls.client_register_capability(types.RegistrationParams([registration]))


def _shutdown(ls: SlsServer, params: None) -> None:
    ls.end()


def _opened(ls: SlsServer, params: types.DidOpenTextDocumentParams) -> None:
    ls.state.opened(path_of(params.text_document.uri), _text(ls, params.text_document.uri))


def _changed(ls: SlsServer, params: types.DidChangeTextDocumentParams) -> None:
    ls.state.opened(path_of(params.text_document.uri), _text(ls, params.text_document.uri))


def _text(ls: SlsServer, uri: str) -> str:
    return ls.workspace.get_text_document(uri).source.replace("\r\n", "\n")


def _closed(ls: SlsServer, params: types.DidCloseTextDocumentParams) -> None:
    ls.state.closed(path_of(params.text_document.uri))


def _watched(ls: SlsServer, params: types.DidChangeWatchedFilesParams) -> None:
    files = [path_of(each.uri) for each in params.changes]
    ls.thread_pool.submit(ls.state.changed_on_disk, files)


# ------------------------------------------------------------------------------------------------------------------- answers


def _completion(ls: SlsServer, params: types.CompletionParams) -> types.CompletionList:
    state, found = ls.state, ls.indexed(params.text_document.uri)
    if found is None:
        return types.CompletionList(False, [])
    file, indexed = found
    with state.lock:
        converter = ls.converter()
        line, column = converter.place(file, params.position)
        request = Request(state.index, state.catalogue, indexed, file, line, column, state.minion)
        items = complete(request)
        typed = {item.span: indexed.facts.source.lines[line][item.span.start : column].lower() for item in items}
        fitting = [item for item in items if typed[item.span] in item.label.lower()] if len(items) > MOST else items
        fitting.sort(key=lambda item: (item.group, not item.label.lower().startswith(typed[item.span]), item.label))
        shown = [converter.item(file, item) for item in fitting[:MOST]]
    return types.CompletionList(len(items) >= MOST, shown)


def _hover(ls: SlsServer, params: types.HoverParams) -> types.Hover | None:
    state, found = ls.state, ls.indexed(params.text_document.uri)
    if found is None:
        return None
    file, indexed = found
    with state.lock:
        converter = ls.converter()
        line, column = converter.place(file, params.position)
        subject = subject_at(indexed.facts, line, column)
        text = hover(state.index, state.catalogue, file, subject, state.minion) if subject else ""
        shown = converter.range(file, subject.span) if subject else None
    values = _values(ls, indexed, line, column)
    whole = "\n\n".join(part for part in (text, values) if part)
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, whole), shown) if whole else None


def _values(ls: SlsServer, indexed: IndexedFile, line: int, column: int) -> str:
    """Return what the expression or line under the cursor renders to for the minion, as Markdown; "" for nothing."""
    at = indexed.at
    if not at.tree or not at.path.endswith(".sls") or indexed.kind == "top":
        return ""
    tagged = tag_text(indexed, line, column)
    try:
        if tagged is not None:
            tag, text = tagged
            source = indexed.facts.source
            if tag.kind is TagKind.COMMENT or not tag.closed:
                return ""
            if tag.kind is TagKind.STATEMENT:
                subject = subject_at(indexed.facts, line, column)
                if subject is None or subject.kind not in ("variable",):
                    return ""
                text = subject.name
            listed = ls.state.expression_values(
                at, text.strip("-+ \n"), source.offset(*source.place(tag.start)), tag.end
            )
            shown = [code(value) for value in dict.fromkeys(listed)]
        elif indexed.facts.source.entry_at(line) is not None:
            found = ls.state.line_values(at, line)
            shown = [code(value if len(found) == 1 else f"{keys} = {value}", "python") for keys, value in found]
        else:
            return ""
    except WorkerFailed as error:
        return f"*not rendered:*\n\n{code(str(error))}"
    if not shown:
        return "*not reached for this minion*" if tagged is not None else ""
    rest = f"\n\n*and {len(shown) - 5} more*" if len(shown) > 5 else ""
    return "*renders to*\n\n" + "\n\n".join(shown[:5]) + rest


def _definition(ls: SlsServer, params: types.DefinitionParams) -> list[types.Location]:
    state, found = ls.state, ls.indexed(params.text_document.uri)
    if found is None:
        return []
    with state.lock:
        converter = ls.converter()
        line, column = converter.place(found[0], params.position)
        return locations(converter, navigation.definition(state.index, state.catalogue, found[0], line, column))


def _references(ls: SlsServer, params: types.ReferenceParams) -> list[types.Location]:
    state, found = ls.state, ls.indexed(params.text_document.uri)
    if found is None:
        return []
    with state.lock:
        converter = ls.converter()
        line, column = converter.place(found[0], params.position)
        wanted = params.context.include_declaration
        return locations(converter, navigation.references(state.index, found[0], line, column, declaration=wanted))


def _prepare_rename(ls: SlsServer, params: types.PrepareRenameParams) -> types.Range:
    state, found = ls.state, ls.indexed(params.text_document.uri)
    if found is None:
        raise _refused("this file belongs to no state tree")
    with state.lock:
        converter = ls.converter()
        line, column = converter.place(found[0], params.position)
        try:
            return converter.range(found[0], navigation.renamable(state.index, found[0], line, column))
        except navigation.CannotRename as error:
            raise _refused(str(error)) from error


def _rename(ls: SlsServer, params: types.RenameParams) -> types.WorkspaceEdit:
    state, found = ls.state, ls.indexed(params.text_document.uri)
    if found is None:
        raise _refused("this file belongs to no state tree")
    with state.lock:
        converter = ls.converter()
        line, column = converter.place(found[0], params.position)
        try:
            return converter.edits(navigation.rename(state.index, found[0], line, column, params.new_name))
        except navigation.CannotRename as error:
            raise _refused(str(error)) from error


def _refused(text: str) -> JsonRpcException:
    return JsonRpcException(text, types.LSPErrorCodes.RequestFailed)


def _formatting(ls: SlsServer, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
    found = ls.indexed(params.text_document.uri)
    if found is None or not found[1].at.path.endswith(".sls"):
        return []
    text = found[1].text
    made = formatted(text)
    if made == text:
        return []
    lines = text.split("\n")
    return [types.TextEdit(types.Range(types.Position(0, 0), types.Position(len(lines), 0)), made)]


def _symbols(ls: SlsServer, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    found = ls.indexed(params.text_document.uri)
    if found is None:
        return []
    file, indexed = found
    with ls.state.lock:
        converter = ls.converter()
        return [converter.symbol(file, each) for each in outline(indexed)]


def _actions(ls: SlsServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    state, found = ls.state, ls.indexed(params.text_document.uri)
    if found is None:
        return []
    file = found[0]
    with state.lock:
        converter = ls.converter()
        given = list(params.context.diagnostics)
        shown = []
        for each in given:
            line, start = converter.place(file, each.range.start)
            end = converter.place(file, each.range.end)[1]
            shown.append(actions.Shown(str(each.code), hint_of(each), line, start, end))
        listed = actions.actions(state.index, file, params.range.start.line, params.range.end.line, shown)
        return [
            types.CodeAction(
                title=one.title,
                kind=types.CodeActionKind.QuickFix if one.kind == "quickfix" else types.CodeActionKind.RefactorRewrite,
                diagnostics=[given[one.finding]] if one.finding >= 0 else None,
                edit=converter.edits(one.edits),
            )
            for one in listed
        ]


#: Request or notification -> its handler and the options that are told to the editor.
_FEATURES: Mapping[str, tuple[Callable[..., object], object]] = {
    types.INITIALIZE: (_initialize, None),
    types.INITIALIZED: (_initialized, None),
    types.SHUTDOWN: (_shutdown, None),
    types.TEXT_DOCUMENT_DID_OPEN: (_opened, None),
    types.TEXT_DOCUMENT_DID_CHANGE: (_changed, None),
    types.TEXT_DOCUMENT_DID_CLOSE: (_closed, None),
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: (_watched, None),
    types.TEXT_DOCUMENT_COMPLETION: (_completion, types.CompletionOptions(trigger_characters=_TRIGGERS)),
    types.TEXT_DOCUMENT_HOVER: (_hover, None),
    types.TEXT_DOCUMENT_DEFINITION: (_definition, None),
    types.TEXT_DOCUMENT_REFERENCES: (_references, None),
    types.TEXT_DOCUMENT_PREPARE_RENAME: (_prepare_rename, None),
    types.TEXT_DOCUMENT_RENAME: (_rename, types.RenameOptions(prepare_provider=True)),
    types.TEXT_DOCUMENT_FORMATTING: (_formatting, None),
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (_symbols, None),
    types.TEXT_DOCUMENT_CODE_ACTION: (
        _actions,
        types.CodeActionOptions([types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite]),
    ),
}


def serve(settings: Settings) -> None:
    """Answer an editor on stdin and stdout until it ends."""
    server = make_server(settings)
    try:
        server.start_io()
    finally:
        server.end()
