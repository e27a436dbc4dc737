"""A real editor: code-server (VS Code behind a web page) with the extension of examples/editors/vscode, driven by Chromium.

``make editor-test`` installs code-server by the lock beside this file. Nothing of it is shipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.conftest import await_port
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
_EXTENSION = ROOT / "examples/editors/vscode"
_MODULES = Path(__file__).parent / "node_modules"

#: Milliseconds that the editor has for one thing on a busy machine.
PATIENCE = 90_000

#: Arguments of Chromium: its own sandbox does not work for root, and the page is ours.
CHROMIUM = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")

#: A state tree with a pillar tree. ``shop`` is what a reader edits.
TREE: Mapping[str, str] = {
    "srv/salt/top.sls": "base:\n  '*':\n    - shop\n",
    "srv/salt/common/init.sls": (
        "motd:\n  file.managed:\n    - name: /etc/motd\n    - contents: Managed by Salt\n\n"
        "tools:\n  pkg.installed:\n    - pkgs: [curl, git]\n"
    ),
    "srv/salt/shop/init.sls": (
        "include:\n  - common\n\n"
        "shop-config:\n  file.managed:\n    - name: /etc/shop.conf\n    - contents: port = {{ pillar['shop']['port'] }}\n"
        "    - mode: '0644'\n    - require:\n      - pkg: tools\n\n"
        "shop:\n  service.running:\n    - enable: true\n    - watch:\n      - file: shop-config\n"
    ),
    "srv/salt/broken/init.sls": "greeting:\n  file.manged:\n    - name: /etc/greeting\n    - contents: hello\n",
    "srv/pillar/top.sls": "base:\n  '*':\n    - shop\n",
    "srv/pillar/shop.sls": "shop:\n  port: 8080\n  name: {{ grains['id'] }}.example.org\n",
    "web1.yaml": "id: web1\nos: Debian\nos_family: Debian\n",
}

_SETTINGS: Mapping[str, object] = {
    "security.workspace.trust.enabled": False,
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    # In a browser VS Code saves what is typed after a second: the next test would find it.
    "files.autoSave": "off",
    "explorer.compactFolders": False,
    "explorer.autoReveal": False,
    "editor.minimap.enabled": False,
    "editor.fontSize": 15,
    # What is typed is what is there: completion is asked for, nothing is indented or closed.
    "editor.autoIndent": "none",
    "editor.autoClosingBrackets": "never",
    "editor.autoClosingQuotes": "never",
    "editor.quickSuggestions": {"other": False, "comments": False, "strings": False},
    "editor.suggestOnTriggerCharacters": False,
    "editor.hover.delay": 60000,
    "chat.commandCenter.enabled": False,
    "telemetry.telemetryLevel": "off",
    "statecore.fileRoots": ["srv/salt"],
    "statecore.pillar": "srv/pillar",
    "statecore.grains": "web1.yaml",
}


@dataclass(frozen=True)
class Site:
    """A running code-server: the address of its page, and the folder that the page shows."""

    url: str
    folder: Path


@contextlib.contextmanager
def code_server(directory: Path) -> Iterator[Site]:
    """Start code-server on the tree, with the extension, and yield where it is. Skip the test where it is not installed."""
    program = _MODULES / "code-server/out/node/entry.js"
    if not program.is_file():
        why = f"there is no code-server in {_MODULES}: make editor-test installs it"
        if os.environ.get("SALTERN_REQUIRE_BROWSER"):
            pytest.fail(why)
        pytest.skip(why)
    folder = directory / "shop"
    for name, text in TREE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # As `vsce package` would have it: the extension with the library that it names.
    extension = directory / "extensions/saltern.statecore-0.1.0"
    shutil.copytree(_EXTENSION, extension, ignore=shutil.ignore_patterns("node_modules"))
    (extension / "node_modules").symlink_to(_MODULES)
    settings = directory / "data/User/settings.json"
    settings.parent.mkdir(parents=True)
    # The command is taken from here, and from no workspace.
    command = [str(Path(sys.executable).with_name("statecore")), "lsp"]
    settings.write_text(json.dumps({**_SETTINGS, "statecore.command": command}))
    port = free_port()
    words = ["--auth", "none", "--bind-addr", f"127.0.0.1:{port}", "--disable-telemetry", "--disable-update-check"]
    words += ["--user-data-dir", str(directory / "data"), "--extensions-dir", str(directory / "extensions")]
    env = {**os.environ, "HOME": str(directory), "XDG_CONFIG_HOME": str(directory / "config")}
    with (directory / "log").open("wb") as log:
        command = ["node", str(program), *words, str(folder)]
        started = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
        try:
            await_port(port, started, PATIENCE / 1000)
            yield Site(f"http://127.0.0.1:{port}/?folder={folder}", folder)
        finally:
            # Its children, the language server among them, would wait for hours for the page to come back.
            os.killpg(started.pid, signal.SIGTERM)
            started.wait(PATIENCE / 1000)


class Editor:
    """One page of the editor. Its methods do what a user does, with keys and the mouse."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def open(self, name: str) -> None:
        """Open a file of the folder, such as ``srv/salt/shop/init.sls``, and wait for its text and its language."""
        # In the tree of files: the search of names needs a program that npm does not bring.
        parts = name.split("/")
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            # Behind the path of a folder with findings stands " • Contains emphasized items", behind a file's their number.
            named = (
                f'.monaco-icon-label[aria-label$="/shop/{path}"]',
                f'.monaco-icon-label[aria-label*="/shop/{path} •"]',
            )
            label = self.page.locator(", ".join(named))
            row = self.page.locator(".explorer-folders-view .monaco-list-row", has=label)
            if depth == len(parts):
                row.dblclick()
            elif row.get_attribute("aria-expanded") != "true":
                row.click()
                expect(row).to_have_attribute("aria-expanded", "true")
        expect(self.page.locator(".tab.active")).to_have_attribute("data-resource-name", Path(name).name)
        expect(self.page.locator("#status\\.editor\\.mode")).to_contain_text("SLS")
        expect(self.page.locator(".editor-instance .view-line").first).to_be_visible()
        self.page.locator(".editor-instance .view-lines").click(position={"x": 300, "y": 4})

    def go(self, line: int, column: int) -> None:
        """Place the cursor; both count from 1."""
        self.page.keyboard.press("Control+g")
        self.page.locator(".quick-input-widget input").fill(f":{line}:{column}")
        self.page.keyboard.press("Enter")
        expect(self.place).to_contain_text(f"Ln {line}, Col {column}")

    def append(self, text: str) -> None:
        """Type lines at the end of the file."""
        self.page.keyboard.press("Control+End")
        for line in text.split("\n"):
            self.page.keyboard.press("Enter")
            self.page.keyboard.insert_text(line)

    def command(self, title: str) -> None:
        """Run a command of the palette by its title."""
        self.page.keyboard.press("F1")
        self.page.locator(".quick-input-widget input").fill(f">{title}")
        # The list still has the rows of what was typed before.
        first = self.page.locator(".quick-input-list .monaco-list-row").first
        expect(first).to_have_attribute("aria-label", re.compile(f"^{re.escape(title)}(,|$)"))
        self.page.keyboard.press("Enter")
        expect(self.page.locator(".quick-input-widget")).to_be_hidden()

    @property
    def place(self) -> Locator:
        """The status bar's place of the cursor: ``Ln 5, Col 3``."""
        return self.page.locator("#status\\.editor\\.selection")

    @property
    def text(self) -> str:
        """The lines of the active editor that are on the screen."""
        lines = self.page.locator(".editor-instance .view-line").evaluate_all(
            "lines => lines.map(line => [parseInt(line.style.top), line.textContent])"
        )
        return "\n".join(text.replace("\xa0", " ").rstrip() for _, text in sorted(lines))

    def completion(self) -> list[str]:
        """Ask for completion and return the labels that the list shows."""
        self.page.keyboard.press("Control+Space")
        rows = self.page.locator(".suggest-widget.visible .monaco-list-row .label-name")
        rows.first.wait_for()
        return rows.all_inner_texts()

    def hover(self) -> str:
        """Ask for the hover at the cursor and return its text."""
        self.page.keyboard.press("Control+k")
        self.page.keyboard.press("Control+i")
        shown = self.page.locator(".monaco-hover:not(.hidden) .hover-contents").first
        shown.wait_for()
        return self.page.locator(".monaco-hover:not(.hidden)").first.inner_text().replace("\xa0", " ")

    def problems(self) -> Locator:
        """Open the list of findings and return its rows."""
        self.command("Problems: Focus on Problems View")
        return self.page.locator(".markers-panel .monaco-list-row")

    def close_all(self) -> None:
        """Close all files without saving."""
        self.page.keyboard.press("Escape")
        self.command("File: Revert File")
        self.command("View: Close All Editors")
        expect(self.page.locator(".tab")).to_have_count(0)


@contextlib.contextmanager
def editor(browser: Browser, site: Site, width: int = 1200, height: int = 760) -> Iterator[Editor]:
    """Yield the editor in a page of its own, ready to be used."""
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark")
    context.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    page = context.new_page()
    page.goto(site.url)
    page.locator(".monaco-workbench .explorer-folders-view .monaco-list-row").first.wait_for()
    opened = Editor(page)
    # The first answer of the language server: the outline above the text.
    opened.open("srv/salt/shop/init.sls")
    opened.go(5, 8)
    expect(page.locator(".breadcrumbs-control")).to_contain_text("file.managed", timeout=PATIENCE)
    yield opened
    context.close()
