"""Writes the pictures of docs/console.md: ``python -m tests.browser.console_screenshots DIRECTORY``. Each is a WebP of one view."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.browser.console_master import TOKEN, MadeUpMaster, served, with_jobs

_WIDE = {"width": 1280, "height": 760}
_PHONE = {"width": 390, "height": 760}


def _plan(page: Page) -> None:
    page.fill("#plan-target", "web-000* or db-000*")
    page.fill("#sls", "nginx")
    page.get_by_role("button", name="Plan for 20 minions").click()
    page.locator("#apply").wait_for()
    page.get_by_role("button", name="Approve all").click()


def _fleet(page: Page) -> None:
    page.fill("#fleet-target", "web* and G@os:Debian")
    page.get_by_text("1,000 minions").wait_for()
    page.keyboard.press("Escape")
    for key in "jjj":
        page.keyboard.press(key)


def _minion(page: Page) -> None:
    page.locator(".graph .box").nth(1).click()
    page.locator(".detail .arguments").wait_for()


def _palette(page: Page) -> None:
    page.locator(".vrow").first.wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.type("web")


def _drawer(page: Page) -> None:
    page.locator(".vrow").first.wait_for()
    page.keyboard.press("c")


def _nothing(page: Page) -> None:
    page.wait_for_timeout(500)


def main(directory: Path) -> None:
    """Write all pictures into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    master = with_jobs(MadeUpMaster())
    job = next(jid for jid in sorted(master.jobs) if master.jobs[jid]["load"]["fun"] == "state.apply")
    #: Name of the picture -> view, colours, size, what is done before.
    pictures: dict[str, tuple[str, str, Any, Any]] = {
        "fleet": ("fleet", "light", _WIDE, _fleet),
        "job": (f"job/{job}", "light", _WIDE, _nothing),
        "job-dark": (f"job/{job}", "dark", _WIDE, _nothing),
        "plan": ("plan", "light", _WIDE, _plan),
        "keys": ("keys", "light", _WIDE, _nothing),
        "topology": ("topology", "dark", _WIDE, _nothing),
        "minion": ("minion/web-0000.example.net", "light", _WIDE, _minion),
        "palette": ("jobs", "dark", _WIDE, _palette),
        "drawer": ("fleet", "light", _WIDE, _drawer),
        "phone": ("fleet", "light", _PHONE, _nothing),
    }
    with served(master) as address, sync_playwright() as started:
        browser = started.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        for name, (view, scheme, size, prepare) in pictures.items():
            context = browser.new_context(base_url=address, color_scheme=scheme, viewport=size)  # type: ignore[arg-type]
            context.add_cookies([{"name": "session_id", "value": TOKEN, "url": address}])
            page = context.new_page()
            page.goto(f"/console/#/{view}")
            page.locator(".rail").wait_for()
            prepare(page)
            page.mouse.move(2, 2)
            page.wait_for_timeout(700)
            session = context.new_cdp_session(page)
            taken = session.send("Page.captureScreenshot", {"format": "webp", "quality": 72})
            (directory / f"{name}.webp").write_bytes(base64.b64decode(taken["data"]))
            context.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
