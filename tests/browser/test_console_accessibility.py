"""The console by axe-core: WCAG 2.2 A and AA in every view, light and dark, with dialogs, the drawer and errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import PATIENCE
from tests.browser.console_master import TOKEN, MadeUpMaster, served, with_jobs

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.browser

AXE = Path(__file__).with_name("node_modules") / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="module")
def axe() -> str:
    """The text of axe-core, which ``npm ci`` puts beside this file."""
    if not AXE.is_file():
        why = f"{AXE} is missing: npm ci --prefix {AXE.parents[2]}"
        if os.environ.get("SALTERN_REQUIRE_BROWSER"):
            pytest.fail(why)
        pytest.skip(why)
    return AXE.read_text("utf-8")


@pytest.fixture(scope="module")
def master() -> MadeUpMaster:
    return with_jobs(MadeUpMaster(500))


@pytest.fixture(scope="module")
def address(master: MadeUpMaster) -> Iterator[str]:
    with served(master) as found:
        yield found


def _faults(page: Any, axe: str, where: str, what: list[str]) -> list[str]:
    """Return a line for each fault that axe finds in the page. ``what``: tags or ids of axe's rules."""
    # The page's policy lets no text become a script, so axe is evaluated by the browser's debugger.
    page.evaluate(axe)
    options = {"runOnly": what, "resultTypes": ["violations"]}
    found = page.evaluate("(options) => axe.run(document, options)", options)
    return [
        f"{where}: {fault['id']}: {node['target']} {node['failureSummary']}"
        for fault in found["violations"]
        for node in fault["nodes"]
    ]


def _plan(page: Any) -> None:
    page.fill("#plan-target", "web-000*")
    page.get_by_role("button", name="Plan for 10 minions").click()
    page.locator(".detail .diff").first.wait_for()


#: Colours -> rules of axe; those that do not depend on colours are asked once.
SCHEMES = {"light": TAGS, "dark": ["color-contrast", "link-in-text-block"]}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_view(browser: Any, address: str, master: MadeUpMaster, axe: str, scheme: str) -> None:
    context = browser.new_context(base_url=address, color_scheme=scheme, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    page.goto("/console/")
    page.locator("#username").wait_for()
    faults = _faults(page, axe, "login", SCHEMES[scheme])
    context.add_cookies([{"name": "session_id", "value": TOKEN, "url": address}])
    job = next(jid for jid in sorted(master.jobs) if master.jobs[jid]["load"]["fun"] == "state.apply")
    views = {
        "fleet": ".vrow",
        "jobs": ".vrow",
        f"job/{job}": ".detail .state",
        "run": "form",
        "plan": "form",
        "keys": ".vrow",
        "events": "main .bar",
        "topology": ".part",
        "minion/web-0000.example.net": ".graph .box",
        "job/20200101000000000000": ".notice",
    }
    page.reload()
    for view, sign in views.items():
        page.goto(f"/console/#/{view}")
        page.locator(sign).first.wait_for()
        if view == "plan":
            _plan(page)
        if view == "events":
            master.fire("site/deploy", {"version": 1})
            page.locator(".erow").first.click()
        faults += _faults(page, axe, view, SCHEMES[scheme])
    page.keyboard.press("Control+k")
    faults += _faults(page, axe, "palette", SCHEMES[scheme])
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    faults += _faults(page, axe, "keys of the page", SCHEMES[scheme])
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    page.locator(".calls li").first.wait_for()
    faults += _faults(page, axe, "drawer", SCHEMES[scheme])
    context.close()
    assert faults == []
