"""Writes the pictures of docs/editors.md: ``python -m tests.editor.screenshots DIRECTORY``. Each is a WebP of VS Code."""

from __future__ import annotations

import base64
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.editor.code_server import CHROMIUM, Editor, code_server, editor

_SHOP = "srv/salt/shop/init.sls"


def _completion(opened: Editor) -> None:
    opened.open(_SHOP)
    opened.append("\nvault:\n  file.ma")
    opened.completion()
    opened.page.locator(".suggest-details").or_(opened.page.locator(".suggest-widget.visible")).first.wait_for()


def _hover(opened: Editor) -> None:
    opened.open(_SHOP)
    opened.go(7, 40)
    opened.hover()


def _findings(opened: Editor) -> None:
    opened.open("srv/salt/broken/init.sls")
    opened.problems().filter(has_text="file.manged").wait_for()


#: Name of the picture -> what is done before.
PICTURES: Mapping[str, Callable[[Editor], None]] = {
    "completion": _completion,
    "hover": _hover,
    "findings": _findings,
}


def main(directory: Path) -> None:
    """Write all pictures into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="editor-") as name,
        code_server(Path(name)) as site,
        sync_playwright() as started,
    ):
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=list(CHROMIUM))
        with editor(browser, site, width=1080, height=620) as opened:
            for picture, prepare in PICTURES.items():
                prepare(opened)
                session = opened.page.context.new_cdp_session(opened.page)
                taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": 75})
                (directory / f"{picture}.webp").write_bytes(base64.b64decode(taken["data"]))
                opened.close_all()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
