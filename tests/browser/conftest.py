"""Real Chromium before a whole master: two replicas of the API behind one address, which serve SaltGUI's files unmodified.

Tests are skipped without SaltGUI's files (SALTGUI_DIR, by default shared/peers/saltgui beside the checkout or its parent), and
without Debian's chromium. SALTERN_REQUIRE_BROWSER=1 makes a missing browser a failure.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Playwright,
    Request,
    Response,
    expect,
    sync_playwright,
)

from tests.browser.places import Place, compose_place, lab_place
from tests.browser.saltgui import SaltGui
from tests.container.compose_lab import require_engine
from tests.roles.conftest import NewLab, session_labs
from tests.roles.lab import ROOT

__all__ = ["session_labs"]

#: Seconds that a page waits for an element on a busy machine.
PATIENCE = 60.0

expect.set_options(timeout=PATIENCE * 1000)

#: Files that SaltGUI asks for though nobody needs to have them.
_OPTIONAL = re.compile(r"/static/(minions|salt-auth|salt-motd)\.(txt|html)$")


@pytest.fixture(scope="session")
def saltgui_files() -> Path:
    """Return the directory of SaltGUI's files, as its project publishes them."""
    named = os.environ.get("SALTGUI_DIR")
    places = [Path(named)] if named else [up / "shared" / "peers" / "saltgui" for up in ROOT.parents[:2]]
    for place in places:
        if (place / "static" / "scripts" / "Api.js").is_file():
            return place
    pytest.skip(f"SaltGUI is not in {' or '.join(map(str, places))}: name its directory in SALTGUI_DIR")


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright's driver, of which a process has one."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium_program() -> str:
    """Return the path of Debian's Chromium."""
    program = shutil.which("chromium")
    if program is None:
        why = "there is no program chromium: .ci/test-programs installs it"
        if os.environ.get("SALTERN_REQUIRE_BROWSER"):
            pytest.fail(why)
        pytest.skip(why)
    return program


def _chromium(playwright: Playwright, program: str | Path) -> Browser:
    # Chromium's own sandbox does not work for root; the page is ours.
    return playwright.chromium.launch(
        executable_path=program, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    )


@pytest.fixture(scope="session")
def browser(playwright: Playwright, chromium_program: str) -> Iterator[Browser]:
    """Debian's Chromium, without a window. It is closed at the end of the run."""
    with _chromium(playwright, chromium_program) as chromium:
        yield chromium


@pytest.fixture(
    scope="session",
    params=[pytest.param("compose", marks=pytest.mark.container), pytest.param("lab", marks=pytest.mark.roles)],
)
def site(
    request: pytest.FixtureRequest,
    saltgui_files: Path,
    session_labs: NewLab,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Place]:
    """A master that serves SaltGUI, whose minions' keys wait until an operator accepts them: the containers of compose.yaml
    (these tests have the mark ``container``), and a lab of processes.
    """
    home = tmp_path_factory.mktemp("site")
    if request.param == "compose":
        require_engine()
        with compose_place(saltgui_files, home) as place:
            yield place
    else:
        with lab_place(saltgui_files, session_labs, home) as place:
            yield place


@dataclass
class Faults:
    """What went wrong in a page: errors of scripts, answers with an error's status, and requests without an answer."""

    found: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Record the faults of a page from now on."""
        page.on("pageerror", lambda error: self.found.append(f"script: {error}"))
        page.on("console", self._console)
        page.on("response", self._response)
        page.on("requestfailed", self._failed)

    def _console(self, message: ConsoleMessage) -> None:
        # Statuses are recorded by _response, which knows the address.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.found.append(f"console: {message.text}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and not (response.status == 404 and _OPTIONAL.search(response.url)):
            self.found.append(
                f"{response.status} {response.request.method} {response.url} {response.request.post_data}"
            )

    def _failed(self, request: Request) -> None:
        # What a page asked for is given up where the page is left.
        if request.failure != "net::ERR_ABORTED":
            self.found.append(f"{request.failure} {request.method} {request.url} {request.post_data}")


@pytest.fixture
def faults() -> Faults:
    """Faults of the test's page; the test fails if some are left at its end."""
    return Faults()


@pytest.fixture(scope="session")
def profile(
    playwright: Playwright, chromium_program: str, site: Place, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrowserContext]:
    """A profile of Chromium in the site's network: its cache spares each test the hundred files of SaltGUI."""
    home = tmp_path_factory.mktemp("browser")
    program = site.network.program(chromium_program, home) if site.network else chromium_program
    with _chromium(playwright, program) as chromium:
        context = chromium.new_context(base_url=site.page_url, viewport={"width": 1400, "height": 1000})
        context.set_default_timeout(PATIENCE * 1000)
        yield context
        context.close()


@pytest.fixture
def page(profile: BrowserContext, faults: Faults) -> Iterator[Page]:
    """A new page without cookies, where nobody is logged in."""
    profile.clear_cookies()
    made = profile.new_page()
    faults.watch(made)
    yield made
    made.close()
    assert not faults.found


@pytest.fixture(scope="session")
def fleet(site: Place) -> Place:
    """The site, where all keys are accepted now at the latest, and both minions answer."""
    site.settle()
    return site


@pytest.fixture
def gui(page: Page, fleet: Place) -> SaltGui:
    """SaltGUI, where a user who may do everything is logged in, and all minions answer."""
    gui = SaltGui(page)
    gui.log_in(fleet.user, fleet.password)
    return gui
