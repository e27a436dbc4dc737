"""The choice of versions of the documentation, in real Chromium: it leads to the same page, if the other version has that page."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import PATIENCE
from tests.roles.lab import ROOT

playwright = pytest.importorskip("playwright.sync_api")
Browser = Any
expect = playwright.expect

pytestmark = pytest.mark.browser

#: Version -> its pages.
PAGES = {"v0.2.0": ("index.html", "use/keys.html", "new.html"), "v0.1.0": ("index.html", "use/keys.html")}


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of two versions of a site that have the real script."""
    script = (ROOT / "docs/site/static/versions.js").read_text("utf-8")
    (tmp_path / "versions.json").write_text('["v0.2.0", "v0.1.0"]')
    for version, pages in PAGES.items():
        for page in pages:
            path = tmp_path / version / page
            path.parent.mkdir(parents=True, exist_ok=True)
            up = "../" * page.count("/") or "./"
            path.write_text(
                f'<!doctype html><html data-content_root="{up}"><title>{version} {page}</title>'
                f'<a class="sidebar-brand">Saltern</a><script>{script}</script></html>'
            )
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join(PATIENCE)


@pytest.mark.parametrize(
    ("page", "other"),
    [
        ("use/keys.html", "use/keys.html"),
        ("use/keys.html?q=a#accept", "use/keys.html?q=a#accept"),
        ("index.html", "index.html"),
        ("", ""),
        ("new.html#first", "index.html"),
    ],
)
def test_the_choice_leads_to_the_same_page(browser: Browser, address: str, page: str, other: str) -> None:
    tab = browser.new_page()
    tab.goto(f"{address}/v0.2.0/{page}")
    choice = tab.get_by_label("Version")
    expect(choice).to_have_value("v0.2.0")
    choice.select_option("v0.1.0")
    tab.wait_for_url(f"{address}/v0.1.0/{other}", timeout=PATIENCE * 1000)
    assert tab.title().startswith("v0.1.0")
    tab.close()
