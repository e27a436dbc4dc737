"""Fixtures of the console's tests: a made-up master, its address, and a page in which ann is logged in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser.conftest import PATIENCE
from tests.browser.console_master import TOKEN, MadeUpMaster, served, with_jobs

Browser, Page = Any, Any

ANN = {"name": "session_id", "value": TOKEN, "httpOnly": True, "sameSite": "Lax"}


@pytest.fixture(scope="module")
def fleet() -> MadeUpMaster:
    return with_jobs(MadeUpMaster())


@pytest.fixture(scope="module")
def address(fleet: MadeUpMaster) -> Iterator[str]:
    with served(fleet) as found:
        yield found


@pytest.fixture
def master(fleet: MadeUpMaster) -> Iterator[MadeUpMaster]:
    """The made-up master as it is after a day; what a test breaks is mended."""
    fleet.asked.clear()
    yield fleet
    fleet.broken.clear()
    fleet.pause = 0.05


@pytest.fixture
def page(browser: Browser, address: str, master: MadeUpMaster) -> Iterator[Page]:
    """A page of a browser in which ann is logged in. The test fails if a script fails or the page's policy is broken."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE * 1000)
    context.add_cookies([{**ANN, "url": address}])
    made = context.new_page()
    faults: list[str] = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on(
        "console",
        lambda said: faults.append(said.text) if said.type == "error" and "Failed to load" not in said.text else None,
    )
    yield made
    context.close()
    # One test tries to put HTML in, and sees that the browser refuses.
    assert [fault for fault in faults if "TrustedHTML" not in fault] == []


def go(page: Page, where: str) -> None:
    page.goto(f"/console/#/{where}")
    page.locator(".rail").wait_for()


def log_in(page: Page, user: str = "ann", password: str = "pw-ann") -> None:
    """Fill in the form of the login, and send it."""
    page.fill("#username", user)
    page.fill("#password", password)
    page.click("button[type=submit]")


def plan_nginx(page: Page) -> None:
    """Ask for a plan of the SLS nginx on ten minions."""
    go(page, "plan?tgt=web-000*")
    page.fill("#sls", "nginx")
    page.get_by_role("button", name="Plan for 10 minions").click()


def redrawn(page: Page) -> None:
    """Wait until the page has drawn what it knows now."""
    page.wait_for_function("new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(true), 50)))")


def until_asked(page: Page, master: MadeUpMaster, cmd: str, count: int = 1) -> None:
    """Wait until the page has asked the master ``cmd`` so often."""
    for _ in range(600):
        if sum(asked == cmd for asked, _ in master.asked) >= count:
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"the page did not ask {cmd} {count} times")
