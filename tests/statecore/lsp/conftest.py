"""An editor without a window: pygls' own client, which talks to ``statecore lsp`` over its stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lsprotocol import types
from pygls.lsp.client import LanguageClient

ROOT = Path(__file__).parents[3]

#: Marks the cursor in a document.
CURSOR = "█"

_SECONDS = 120.0

#: The tree of most tests: two applications, a pillar tree, a module and a state of its own.
TREE: Mapping[str, str] = {
    "srv/salt/top.sls": "base:\n  '*':\n    - web\n",
    "srv/salt/common/init.sls": (
        "motd:\n  file.managed:\n    - name: /etc/motd\n    - source: salt://common/files/motd\n"
        "base-packages:\n  pkg.installed:\n    - pkgs: [curl]\n"
    ),
    "srv/salt/common/users.sls": "admin:\n  user.present:\n    - uid: 1000\n",
    "srv/salt/common/files/motd": "hello\n",
    "srv/salt/web/init.sls": (
        "include:\n  - common\n\nnginx:\n  pkg.installed: []\n  service.running:\n    - require:\n      - pkg: nginx\n"
        "      - file: motd\n"
    ),
    "srv/salt/web/map.jinja": (
        "{% macro site(name, port=80) %}{{ name }}:{{ port }}{% endmacro %}\n{% set web = {'user': 'www-data'} %}\n"
    ),
    "srv/salt/_modules/stock.py": 'def level(item, unit="kg"):\n    """Return the level of an item."""\n    return 1\n',
    "srv/salt/_states/shelf.py": (
        '__virtualname__ = "rack"\n\n\ndef filled(name, boxes=1):\n    """Fill a rack.\n\n    boxes\n'
        '        number of boxes\n    """\n'
    ),
    "srv/pillar/top.sls": "base:\n  '*':\n    - site\n",
    "srv/pillar/site.sls": "site:\n  port: 8080\n  name: {{ grains['id'] }}.example.org\nsecret-word: x\n",
    "grains.yaml": "id: web1\nos: Debian\nos_family: Debian\nip_interfaces:\n  eth0: [10.0.0.1]\n",
}


class Marked(NamedTuple):
    """A document and the place of its cursor."""

    text: str
    line: int
    character: int

    @classmethod
    def of(cls, text: str) -> Marked:
        before, mark, after = text.partition(CURSOR)
        assert mark, f"no cursor in {text!r}"
        lines = before.split("\n")
        # Editors count UTF-16 code units.
        return cls(before + after, len(lines) - 1, len(lines[-1].encode("utf-16-le")) // 2)

    @property
    def position(self) -> types.Position:
        return types.Position(self.line, self.character)


class Editor:
    """One editor with one workspace. Its methods wait for the answers."""

    def __init__(self, folder: Path, *words: str, settings: Mapping[str, object] | None = None) -> None:
        self.folder = folder
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = LanguageClient("test", "1")
        self._changed = threading.Condition()
        self._found: dict[str, list[types.Diagnostic]] = {}
        self._checked: dict[str, int | None] = {}
        self._versions: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self.messages: list[str] = []
        self._client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: self._publish(params))
        self.log: list[str] = []
        self._client.feature(types.WINDOW_LOG_MESSAGE)(lambda params: self._log(params.message))
        self._client.feature(types.WINDOW_SHOW_MESSAGE)(lambda params: self.messages.append(params.message))
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "libs"), str(ROOT)])}
        code = "from statecore.analysis.commands.main import main; raise SystemExit(main())"
        self._run(self._client.start_io(sys.executable, "-c", code, "lsp", *words, env=environment))
        self.capabilities = self._run(
            self._client.initialize_async(
                types.InitializeParams(
                    capabilities=types.ClientCapabilities(),
                    process_id=os.getpid(),
                    root_uri=folder.as_uri(),
                    initialization_options=settings,
                )
            )
        ).capabilities
        self._client.initialized(types.InitializedParams())

    def _run(self, waited: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(waited, self._loop).result(_SECONDS)

    def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        with self._changed:
            self._found[params.uri] = list(params.diagnostics)
            self._checked[params.uri] = params.version
            self._changed.notify_all()

    def _log(self, message: str) -> None:
        with self._changed:
            self.log.append(message)
            self._changed.notify_all()

    def logged(self, words: str) -> str:
        """The first message of the server's log that has these words."""
        deadline = time.monotonic() + _SECONDS
        with self._changed:
            while not (found := [message for message in self.log if words in message]):
                assert self._changed.wait(deadline - time.monotonic()), f"no {words!r} in the log"
            return found[0]

    def uri(self, path: str) -> str:
        return (self.folder / path).as_uri()

    def open(self, path: str, text: str) -> None:
        """Opens a document, or changes the one that is open."""
        uri = self.uri(path)
        new = path not in self._texts
        # Versions go on when a document is opened again, so that late findings of the earlier one are known as such.
        self._versions[uri] = self._versions.get(uri, 0) + 1
        self._texts[path] = text
        if new:
            item = types.TextDocumentItem(uri, "sls", self._versions[uri], text)
            self._client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        else:
            document = types.VersionedTextDocumentIdentifier(self._versions[uri], uri)
            change = types.TextDocumentContentChangeWholeDocument(text)
            self._client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def close(self, path: str) -> None:
        self._texts.pop(path, None)
        document = types.TextDocumentIdentifier(self.uri(path))
        self._client.text_document_did_close(types.DidCloseTextDocumentParams(document))

    def close_all(self) -> None:
        for path in list(self._texts):
            self.close(path)

    def changed_on_disk(self, path: str) -> None:
        event = types.FileEvent(self.uri(path), types.FileChangeType.Changed)
        self._client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))

    def at(self, path: str, text: str) -> dict[str, Any]:
        """Opens the marked document and returns the parameters of a request at its cursor."""
        marked = Marked.of(text)
        self.open(path, marked.text)
        return {"text_document": types.TextDocumentIdentifier(self.uri(path)), "position": marked.position}

    def labels(self, path: str, text: str) -> list[str]:
        """Labels that completion proposes at the cursor, in their order."""
        return [item.label for item in self.items(path, text)]

    def items(self, path: str, text: str) -> list[types.CompletionItem]:
        answer = self._run(self._client.text_document_completion_async(types.CompletionParams(**self.at(path, text))))
        return sorted(answer.items, key=lambda item: item.sort_text)

    def hover(self, path: str, text: str) -> str:
        answer = self._run(self._client.text_document_hover_async(types.HoverParams(**self.at(path, text))))
        return answer.contents.value if answer else ""

    def definition(self, path: str, text: str) -> list[str]:
        answer = self._run(self._client.text_document_definition_async(types.DefinitionParams(**self.at(path, text))))
        return [self._place(each) for each in answer or []]

    def references(self, path: str, text: str) -> list[str]:
        params = types.ReferenceParams(types.ReferenceContext(True), **self.at(path, text))
        return [self._place(each) for each in self._run(self._client.text_document_references_async(params)) or []]

    def _place(self, location: types.Location) -> str:
        path = location.uri.removeprefix(f"{self.folder.as_uri()}/")
        return f"{path}:{location.range.start.line + 1}:{location.range.start.character + 1}"

    def rename(self, path: str, text: str, new: str) -> dict[str, str]:
        """Path -> its text after the rename, for each file that changes."""
        params = types.RenameParams(new_name=new, **self.at(path, text))
        return self._edited(self._run(self._client.text_document_rename_async(params)))

    def prepare_rename(self, path: str, text: str) -> types.Range:
        found: types.Range = self._run(
            self._client.text_document_prepare_rename_async(types.PrepareRenameParams(**self.at(path, text)))
        )
        return found

    def format(self, path: str, text: str) -> str:
        self.open(path, text)
        params = types.DocumentFormattingParams(
            types.TextDocumentIdentifier(self.uri(path)), types.FormattingOptions(2, True)
        )
        edits = self._run(self._client.text_document_formatting_async(params))
        return _with_edits(text, edits) if edits else text

    def symbols(self, path: str, text: str) -> list[types.DocumentSymbol]:
        self.open(path, text)
        params = types.DocumentSymbolParams(types.TextDocumentIdentifier(self.uri(path)))
        return list(self._run(self._client.text_document_document_symbol_async(params)))

    def actions(self, path: str, text: str) -> dict[str, str]:
        """Title -> the document's text afterwards, of the actions at the cursor, with the findings of its line."""
        marked = Marked.of(text)
        found = self.diagnostics(path, marked.text)
        here = [each for each in found if each.range.start.line == marked.line]
        params = types.CodeActionParams(
            types.TextDocumentIdentifier(self.uri(path)),
            types.Range(marked.position, marked.position),
            types.CodeActionContext(here),
        )
        answer = self._run(self._client.text_document_code_action_async(params))
        made = {each.title: self._edited(each.edit) for each in answer or []}
        return {title: texts[path] for title, texts in made.items()}

    def _edited(self, edit: types.WorkspaceEdit) -> dict[str, str]:
        made = {}
        for uri, edits in (edit.changes or {}).items():
            path = uri.removeprefix(f"{self.folder.as_uri()}/")
            text = self._texts.get(path)
            made[path] = _with_edits((self.folder / path).read_text() if text is None else text, edits)
        return made

    def diagnostics(self, path: str, text: str) -> list[types.Diagnostic]:
        """Findings of a document, after it was checked as it is now."""
        uri = self.uri(path)
        self.open(path, text)
        deadline = time.monotonic() + _SECONDS
        with self._changed:
            while self._checked.get(uri) != self._versions[uri]:
                assert self._changed.wait(deadline - time.monotonic()), f"no findings of {path}"
            return self._found[uri]

    def problems(self, path: str, text: str) -> list[str]:
        """``line:column rule`` of each finding of a document."""
        found = self.diagnostics(path, text)
        return [f"{each.range.start.line + 1}:{each.range.start.character + 1} {each.code}" for each in found]

    def wait_until_known(self, path: str, text: str, wanted: str) -> None:
        """Waits until the trees are read: completion proposes ``wanted``."""
        deadline = time.monotonic() + _SECONDS
        while wanted not in self.labels(path, text):
            assert time.monotonic() < deadline, f"{wanted} is never proposed"
            time.sleep(0.05)

    def end(self) -> None:
        self._run(self._client.shutdown_async(None))
        self._client.exit(None)
        self._run(self._client.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SECONDS)


def _with_edits(text: str, edits: Any) -> str:
    lines = text.split("\n")

    def offset(position: types.Position) -> int:
        if position.line >= len(lines):
            return len(text)
        before = lines[position.line].encode("utf-16-le")[: 2 * position.character].decode("utf-16-le")
        return sum(len(line) + 1 for line in lines[: position.line]) + len(before)

    for edit in sorted(edits, key=lambda each: -offset(each.range.start)):
        text = text[: offset(edit.range.start)] + edit.new_text + text[offset(edit.range.end) :]
    return text


def plant(folder: Path, files: Mapping[str, str]) -> None:
    """Writes files below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="package")
def one_editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """An editor whose workspace is ``TREE``; starting one takes seconds."""
    folder = tmp_path_factory.mktemp("workspace")
    plant(folder, TREE)
    made = Editor(folder, settings={"grains": "grains.yaml"})
    made.wait_until_known("srv/salt/ready.sls", f"include:\n  - {CURSOR}", "web")
    made.wait_until_known("srv/salt/ready.sls", f"x: {{{{ grains['{CURSOR}", "ip_interfaces")
    made.close("srv/salt/ready.sls")
    yield made
    made.end()


@pytest.fixture
def editor(one_editor: Editor) -> Iterator[Editor]:
    """An editor whose workspace is ``TREE``, without open documents."""
    yield one_editor
    one_editor.close_all()
