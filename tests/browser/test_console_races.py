"""The console while answers are late and events come at a bad moment: what a user does then is neither lost nor done twice."""

from __future__ import annotations

import re
from typing import Any

import pytest

from saltern.kit.links.control import ControlError
from tests.browser.console_master import TOKEN, MadeUpMaster
from tests.browser.console_page import address, fleet, go, log_in, master, page, plan_nginx, redrawn, until_asked

__all__ = ["address", "fleet", "master", "page"]

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect
Page = Any

pytestmark = pytest.mark.browser


def test_keys_that_are_typed_while_a_list_loads_count(page: Page, master: MadeUpMaster) -> None:
    go(page, "jobs")
    page.get_by_text("disk.usage").wait_for()
    with master.holding("fleet"):
        for key in ("g", "f", "j", "j", "j", "k", "Enter"):
            page.keyboard.press(key)
    expect(page.locator("#title")).to_have_text("build-0001.example.net")


@pytest.mark.parametrize(("view", "cmd"), [("fleet?tgt=web*", "fleet"), ("topology", "topology"), ("keys", "wheel")])
def test_an_answer_that_comes_after_its_view_was_left_changes_nothing(
    page: Page, master: MadeUpMaster, view: str, cmd: str
) -> None:
    go(page, "events")
    with master.holding(cmd):
        go(page, view)
        until_asked(page, master, cmd)
        page.keyboard.press("g")
        page.keyboard.press("e")
        expect(page.locator("#title")).to_have_text("Events")
        with page.expect_response(lambda answer: "/events" not in answer.url):
            master.held[cmd].set()
    redrawn(page)
    expect(page.locator("#title")).to_have_text("Events")
    assert page.url.endswith("#/events")


def test_a_matrix_that_comes_late_does_not_take_the_address_back(page: Page, master: MadeUpMaster) -> None:
    jid = master.add_job("test.ping", {"web-0000.example.net": True}, tgt="web-0000*")
    with master.holding("job_matrix"):
        go(page, f"job/{jid}?minion=web-0000.example.net")
        until_asked(page, master, "job_matrix")
        page.keyboard.press("g")
        page.keyboard.press("e")
        with page.expect_response(re.compile("matrix")):
            master.held["job_matrix"].set()
    redrawn(page)
    assert page.url.endswith("#/events")


def test_the_question_before_a_run_is_about_the_target_in_the_field(page: Page, master: MadeUpMaster) -> None:
    go(page, "run?tgt=web-0000*")
    page.fill("#fun", "cmd.run")
    page.fill("#args", "uptime")
    expect(page.get_by_role("button", name="Run on 1 minion")).to_be_visible()
    # At once: the count of the new target is not known yet.
    page.evaluate(
        """() => {
            const target = document.querySelector("#run-target");
            target.value = "web*";
            target.dispatchEvent(new Event("input"));
            document.querySelector("form").requestSubmit();
            document.querySelector("form").requestSubmit();
        }"""
    )
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("on 2,000 minions?")
    expect(dialog).to_contain_text("'web*'")
    assert master.published("cmd.run") == []
    dialog.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#progress")).to_contain_text("of 2,000 minions returned")
    assert len(master.published("cmd.run")) == 1


def test_a_click_during_a_redraw_counts_and_the_focus_stays(page: Page, master: MadeUpMaster) -> None:
    go(page, "jobs")
    page.get_by_text("disk.usage").wait_for()
    page.locator("#live[data-state=live]").wait_for()
    page.get_by_role("button", name="Failed").hover()
    page.mouse.down()
    asked = sum(cmd == "find_jobs" for cmd, _ in master.asked)
    # The list is asked for anew while the button is pressed.
    master.add_return(master.add_job("test.ping", {}, waiting=["a"]), "a", True)
    until_asked(page, master, "find_jobs", asked + 1)
    page.wait_for_timeout(200)
    page.mouse.up()
    expect(page.get_by_role("button", name="Failed", pressed=True)).to_be_focused()
    expect(page.locator(".jrow:visible")).to_have_count(2)


def test_a_live_list_does_not_drop_a_choice_on_its_way(page: Page, master: MadeUpMaster) -> None:
    go(page, "jobs")
    page.get_by_text("disk.usage").wait_for()
    page.locator("#live[data-state=live]").wait_for()
    before = sum(cmd == "find_jobs" for cmd, _ in master.asked)
    with master.holding("find_jobs"):
        page.get_by_role("button", name="Failed").click()
        until_asked(page, master, "find_jobs", before + 1)
        master.add_return(master.add_job("test.ping", {}, waiting=["a"]), "a", True)
        page.wait_for_timeout(1800)
        assert sum(cmd == "find_jobs" for cmd, _ in master.asked) == before + 1
    expect(page.locator(".jrow:visible")).to_have_count(2)


def test_states_that_were_done_before_the_page_looked_are_shown(page: Page, master: MadeUpMaster) -> None:
    master.pause = None
    go(page, "events")
    page.locator("#live[data-state=live]").wait_for()
    jid = master.add_job("state.apply", {}, tgt="cache-0000*", waiting=["cache-0000.example.net"])
    ret = {"__id__": "one", "name": "one", "__run_num__": 0, "result": True, "changes": {}}
    master.fire(f"salt/job/{jid}/prog/cache-0000.example.net/0", {"data": {"ret": ret}})
    page.locator(".erow:visible").first.wait_for()
    go(page, f"job/{jid}")
    expect(page.locator(".matrix .vrow:visible").first).to_contain_text("1 state done")


def test_errors_that_come_together_end_a_session_once(page: Page, master: MadeUpMaster) -> None:
    go(page, "events")
    with master.holding("fleet"):
        go(page, "fleet")
        until_asked(page, master, "fleet", 2)
        page.context.clear_cookies()
        page.keyboard.press("g")
        page.keyboard.press("j")
        expect(page.locator(".said")).to_contain_text("Your session has ended")
        page.fill("#username", "ann")
        master.broken["fleet"] = ControlError("TokenAuthenticationError", "unknown")
        with page.expect_response(re.compile("/v1/session")):
            master.held["fleet"].set()
    assert page.input_value("#username") == "ann"


def test_who_logs_in_next_sees_nothing_of_who_was_before(page: Page, master: MadeUpMaster) -> None:
    go(page, "events")
    page.locator("#live[data-state=live]").wait_for()
    master.fire("site/secret", {"word": "sesame"})
    page.locator(".erow:visible").filter(has_text="site/secret").wait_for()
    page.get_by_role("button", name="Log out").click()
    expect(page.locator(".said")).to_contain_text("logged out")
    log_in(page)
    page.locator(".rail").wait_for()
    go(page, "events")
    expect(page.get_by_role("heading", name="No event yet")).to_be_visible()
    shown = page.evaluate("import('./api.js').then((module) => module.calls.map((call) => call.path))")
    assert "/logout" not in shown
    assert TOKEN not in page.content()


def test_a_session_that_could_not_be_ended_is_not_called_ended(page: Page, master: MadeUpMaster) -> None:
    go(page, "jobs")
    master.broken["logout"] = ControlError("StoreError", "Redis does not answer")
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("dialog")).to_contain_text("You are still logged in")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    expect(page.locator("#title")).to_have_text("Jobs")


def test_stock_minions_apply_what_was_planned_not_what_the_fields_say_later(page: Page, master: MadeUpMaster) -> None:
    plan_nginx(page)
    expect(page.locator(".group-row")).to_have_count(2)
    page.get_by_role("button", name="Approve all").click()
    page.fill("#sls", "other")
    page.locator("#apply").click()
    page.get_by_role("dialog").get_by_role("button", name="Apply").click()
    expect(page.locator("#title")).to_have_text("state.apply_plan")
    assert [each["arg"][0] for each in master.published("state.apply")] == ["nginx", "nginx"]
