"""VS Code in a real browser shows what the language server answers: ``make editor-test``."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.editor.code_server import CHROMIUM, PATIENCE, Editor, code_server, editor

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, without a window."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no program chromium: .ci/test-programs installs it")
    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=program, args=list(CHROMIUM))
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def shop(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Editor]:
    """The editor on the tree of the shop, with its language server running."""
    with code_server(tmp_path_factory.mktemp("editor")) as site, editor(browser, site) as opened:
        yield opened


@pytest.fixture
def opened(shop: Editor) -> Iterator[Editor]:
    """The editor with the file ``shop/init.sls``; what a test types is not saved."""
    shop.open("srv/salt/shop/init.sls")
    yield shop
    shop.close_all()


def test_completion_lists_the_functions_of_a_state_module(opened: Editor) -> None:
    opened.append("vault:\n  file.ma")
    assert opened.completion()[0] == "file.managed"


def test_completion_lists_arguments_and_ids(opened: Editor) -> None:
    opened.append("vault:\n  file.managed:\n    - makedi")
    assert opened.completion()[0] == "makedirs"
    opened.page.keyboard.press("Escape")
    opened.append("    - require:\n      - pkg: to")
    assert opened.completion()[0] == "tools"


def test_hover_shows_the_documentation_of_a_state(opened: Editor) -> None:
    opened.go(5, 8)
    text = opened.hover()
    assert "file.managed(name, source=None" in text
    assert "Manage one file" in text


def test_hover_shows_what_an_expression_renders_to(opened: Editor) -> None:
    opened.go(7, 40)
    text = opened.hover()
    assert "renders to" in text
    assert "8080" in text


def test_a_finding_is_shown_at_its_place(opened: Editor) -> None:
    opened.open("srv/salt/broken/init.sls")
    row = opened.problems().filter(has_text="there is no state function 'file.manged'")
    expect(row).to_contain_text("[Ln 2, Col 3]")
    expect(row).to_contain_text("unknown-function")
    expect(row).to_contain_text("the nearest is 'file.managed'")
    underlined = opened.page.locator(".editor-instance .squiggly-error")
    expect(underlined).to_be_visible()


def test_a_finding_goes_when_its_cause_goes(opened: Editor) -> None:
    opened.open("srv/salt/broken/init.sls")
    opened.problems().filter(has_text="file.manged").wait_for()
    opened.open("srv/salt/broken/init.sls")
    opened.go(2, 14)
    for _ in "manged":
        opened.page.keyboard.press("Backspace")
    opened.page.keyboard.type("managed")
    opened.page.keyboard.press("Escape")
    expect(opened.page.locator(".editor-instance .squiggly-error")).to_have_count(0, timeout=PATIENCE)


@pytest.mark.parametrize(
    ("place", "file", "target"),
    [
        pytest.param((16, 20), "init.sls", (4, 1), id="ID of a requisite"),
        pytest.param((10, 16), "init.sls", (6, 1), id="ID in an included file"),
        pytest.param((7, 43), "shop.sls", (2, 3), id="pillar key"),
    ],
)
def test_definition_goes_to_the_place(
    opened: Editor, place: tuple[int, int], file: str, target: tuple[int, int]
) -> None:
    opened.go(*place)
    opened.page.keyboard.press("F12")
    expect(opened.place).to_contain_text(f"Ln {target[0]}, Col {target[1]}")
    expect(opened.page.locator(".tab.active")).to_have_attribute("data-resource-name", file)


def test_rename_changes_an_id_with_its_requisites(opened: Editor) -> None:
    opened.go(4, 3)
    opened.page.keyboard.press("F2")
    name = opened.page.locator(".rename-box input")
    name.fill("shop-settings")
    name.press("Enter")
    expect(opened.page.locator(".editor-instance .view-lines")).to_contain_text("file: shop-settings")
    assert "shop-config" not in opened.text
