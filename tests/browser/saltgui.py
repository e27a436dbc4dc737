"""Words of a user for SaltGUI's page: log in, go to a page, read a table, run a command."""

from __future__ import annotations

from playwright.sync_api import Locator, Page


class SaltGui:
    """SaltGUI in a page of a browser."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def try_to_log_in(self, user: str, password: str) -> None:
        """Fill in the form and send it; the page must be the login."""
        # The answer that there is no salt-auth.txt sets the choice of the form anew.
        self.page.wait_for_load_state("networkidle")
        self.page.fill("#username", user)
        self.page.fill("#password", password)
        self.page.select_option("#login-panel select", "file")
        # A notice moves the button for a second.
        self.page.press("#password", "Enter")

    def log_in(self, user: str, password: str) -> None:
        """Open SaltGUI, log in, and wait for the page of the minions and for the stream of events."""
        self.page.goto("/")
        with self.page.expect_response("**/events"):
            with self.page.expect_response("**/login") as answer:
                self.try_to_log_in(user, password)
            assert answer.value.ok, answer.value.text()
            self.panel("minions").wait_for()

    def panel(self, name: str) -> Locator:
        """Return the first panel of a page, such as the table of the page "minions"."""
        return self.page.locator(f"#page-{name}.current #{name}-panel")

    def go_to(self, name: str) -> Locator:
        """Go to a page by the menu, and return its first panel."""
        # The menu opens where the mouse is; its items take clicks without that, too.
        self.page.locator(f"#button-{name}1").dispatch_event("click")
        self.panel(name).wait_for()
        return self.panel(name)

    def open(self, name: str, **query: str) -> Locator:
        """Load a page of the logged in user anew by its address, and return its first panel. Events are shown from then on."""
        words = "&".join(f"{key}={value}" for key, value in query.items())
        self.page.goto("about:blank")
        with self.page.expect_response("**/events"):
            self.page.goto(f"/?{words}#{name}")
        self.panel(name).wait_for()
        return self.panel(name)

    def row(self, panel: Locator, text: str) -> Locator:
        """Return the row of a panel's table that has a cell with exactly this text."""
        cell = self.page.locator("td").get_by_text(text, exact=True)
        return panel.locator("tbody tr").filter(has=cell)

    def choose(self, row: Locator, item: str) -> None:
        """Choose an item of a row's menu."""
        # The menu opens where the mouse is; a row that an event draws anew would close it again.
        items = row.locator('.menu-dropdown-content .run-command-button:not([style*="none"])')
        items.filter(has_text=item).dispatch_event("click")

    # ------------------------------------------------------------------------------------------------------ the command box

    def run(self, target: str, command: str, *, follow: bool = False) -> Locator:
        """Open the command box, fill it in, and run the command. Return the box's output. With ``follow`` the command is
        started with SaltGUI's type Async, so that the output shows events.
        """
        if not self.page.locator("#popup-run-command").is_visible():
            self.page.locator("#button-manual-run").dispatch_event("click")
        self.page.fill("#target", target)
        self.page.fill("#command", command)
        kind = "Async" if follow else "Normal"
        # The menu opens under the mouse.
        self.page.locator("#run-block .menu-dropdown-content .run-command-button").filter(
            has_text=kind
        ).first.dispatch_event("click")
        return self.run_prepared()

    def run_prepared(self) -> Locator:
        """Run the command that stands in the command box, and return the box's output."""
        self.page.click("#run-command")
        return self.page.locator("#popup-output")

    def close_box(self) -> None:
        """Close the command box."""
        self.page.click("#cmd-close-button")
