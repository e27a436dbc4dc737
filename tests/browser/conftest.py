"""Real Chromium before a whole lab: two replicas of the API behind one address, which serve SaltGUI's files unmodified.

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
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Response, expect, sync_playwright

from tests.browser.saltgui import SaltGui
from tests.faults.proxy import Link, Network
from tests.roles.api_lab import ALL, ApiLab, api_options
from tests.roles.conftest import NewLab, session_labs
from tests.roles.lab import ROOT, SOON, until

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
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window. It is closed at the end of the run."""
    program = shutil.which("chromium")
    if program is None:
        why = "there is no program chromium: .ci/test-programs installs it"
        if os.environ.get("SALTERN_REQUIRE_BROWSER"):
            pytest.fail(why)
        pytest.skip(why)
    with sync_playwright() as started:
        # Chromium's own sandbox does not work for root; the page is ours.
        chromium = started.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield chromium
        chromium.close()


@dataclass
class Site:
    """A lab, and the address at which its two replicas of the API are reached in turns."""

    lab: ApiLab
    link: Link

    @property
    def url(self) -> str:
        """Return the address, such as ``http://127.0.0.1:25600``."""
        return f"http://127.0.0.1:{self.link.port}"


#: The master's options that SaltGUI shows.
SHOWN = {
    "state_events": True,
    # Who is asked which virtual modules there are, each time when the command box opens on a new page.
    "saltgui_test_providers_target": "web1",
    "nodegroups": {"front": "web1", "all": "web*"},
    "saltgui_templates": {
        "say": {"description": "Say a word", "target": "web1", "command": "test.echo hello-from-a-template"},
    },
}


@pytest.fixture(scope="session")
def site(saltgui_files: Path, session_labs: NewLab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A lab that serves SaltGUI. The key of the minion web2 waits until an operator accepts it."""
    home = tmp_path_factory.mktemp("users")
    api = {
        "host": "127.0.0.1",
        "disable_ssl": True,
        "app": str(saltgui_files / "index.html"),
        "static": str(saltgui_files / "static"),
    }
    lab = session_labs(
        ApiLab,
        options={**api_options(home, ann=ALL), **SHOWN, "auto_accept": False, "timeout": 10, "rest_cherrypy": api},
    )
    lab.start_all(*lab.roles)
    for minion in lab.minions:
        lab.start(minion)
    with Network() as network:
        yield Site(lab, network.link(lab.port["http1"], lab.port["http2"]))


@dataclass
class Faults:
    """What went wrong in a page: errors of scripts, and answers with an error's status."""

    found: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        """Record the faults of a page from now on."""
        page.on("pageerror", lambda error: self.found.append(f"script: {error}"))
        page.on("console", self._console)
        page.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        # Statuses are recorded by _response, which knows the address.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self.found.append(f"console: {message.text}")

    def _response(self, response: Response) -> None:
        if response.status >= 400 and not (response.status == 404 and _OPTIONAL.search(response.url)):
            self.found.append(
                f"{response.status} {response.request.method} {response.url} {response.request.post_data}"
            )


@pytest.fixture
def faults() -> Faults:
    """Faults of the test's page; the test fails if some are left at its end."""
    return Faults()


@pytest.fixture(scope="session")
def profile(browser: Browser, site: Site) -> Iterator[BrowserContext]:
    """The browser's profile: its cache spares each test the hundred files of SaltGUI."""
    context = browser.new_context(base_url=site.url, viewport={"width": 1400, "height": 1000})
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
def fleet(site: Site) -> tuple[str, ...]:
    """Ids of the minions, whose keys are accepted now at the latest, and who answer."""
    lab = site.lab

    def accepted() -> bool:
        lab.run("salt-key", "-y", "-A")
        return len(lab.keys()["minions"]) == len(lab.minions)

    until(accepted, SOON, "all keys are accepted")
    # A minion whose key was rejected has ended, as Salt's does; its service starts it again.
    for minion in lab.dead():
        lab.start(minion)
    lab.await_ready(*lab.minions)
    lab.salt("*", "saltutil.sync_all")
    return lab.minions


@pytest.fixture
def gui(page: Page, fleet: tuple[str, ...]) -> SaltGui:
    """SaltGUI, where ann is logged in, and all minions answer."""
    gui = SaltGui(page)
    gui.log_in("ann", "pw-ann")
    return gui
