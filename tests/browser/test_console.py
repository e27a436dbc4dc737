"""The console in real Chromium before a made-up master: what a user does, what a hostile minion tries, how fast it is."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

import pytest

from saltern.kit.links.control import ControlError, ControlTimeout
from tests.browser.conftest import PATIENCE
from tests.browser.console_answers import HOSTILE, state_run
from tests.browser.console_master import TOKEN, MadeUpMaster
from tests.browser.console_page import address, fleet, go, log_in, master, page, plan_nginx

__all__ = ["address", "fleet", "master", "page"]

playwright = pytest.importorskip("playwright.sync_api")
Browser, Page = Any, Any
expect = playwright.expect

pytestmark = pytest.mark.browser


def state_job(master: MadeUpMaster) -> str:
    """Return the JID of the state run with three failures."""
    return next(jid for jid in sorted(master.jobs) if master.jobs[jid]["load"]["fun"] == "state.apply")


# -------------------------------------------------------------------------------------------------------------- session


def test_a_user_logs_in_and_out(browser: Browser, address: str) -> None:
    context = browser.new_context(base_url=address)
    context.set_default_timeout(PATIENCE * 1000)
    page = context.new_page()
    answer = page.goto("/console")
    assert answer.url.endswith("/console/")
    policy = answer.headers["content-security-policy"]
    for rule in (
        "default-src 'none'",
        "script-src 'self'",
        "require-trusted-types-for 'script'",
        "frame-ancestors 'none'",
    ):
        assert rule in policy
    assert "unsafe" not in policy
    for user, password, said in (
        ("ann", "wrong", "User, password or method is wrong."),
        ("bob", "pw-bob", "has no row"),
    ):
        log_in(page, user, password)
        expect(page.locator(".said")).to_contain_text(said)
    page.fill("#username", "ann")
    page.fill("#password", "pw-ann")
    page.keyboard.press("Enter")
    page.locator(".rail").wait_for()
    (cookie,) = context.cookies()
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("session_id", True, "Lax")
    kept = page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie])")
    assert TOKEN not in kept
    page.reload()
    page.locator(".rail").wait_for()
    page.get_by_role("button", name="Log out").click()
    expect(page.locator(".said")).to_contain_text("logged out")
    context.close()


def test_an_ended_session_asks_to_log_in_and_comes_back(page: Page, master: MadeUpMaster) -> None:
    go(page, "jobs")
    page.get_by_text("disk.usage").wait_for()
    page.context.clear_cookies()
    page.get_by_role("button", name="Failed").click()
    expect(page.locator(".said")).to_contain_text("Your session has ended")
    log_in(page)
    page.get_by_text("disk.usage").wait_for()
    assert page.url.endswith("#/jobs")


# ---------------------------------------------------------------------------------------------------------------- fleet


def test_the_fleet_is_filtered_by_a_target(page: Page) -> None:
    go(page, "fleet")
    count = page.locator("#fleet-target-count")
    expect(count).to_have_text("10,000 minions")
    assert page.locator(".vrow").count() < 80
    page.fill("#fleet-target", "web-000* and G@os:Debian")
    expect(count).to_have_text("5 minions")
    assert page.locator(".vrow:visible .c-id").all_inner_texts() == [
        f"web-000{number}.example.net" for number in (0, 3, 4, 7, 8)
    ]
    page.fill("#fleet-target", "web* and (")
    expect(count).to_have_class(re.compile("bad"))
    assert "minions" not in count.inner_text()
    page.fill("#fleet-target", "nobody")
    expect(page.get_by_role("heading", name="No minion matches")).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    page.get_by_role("button", name="Away").click()
    expect(page.get_by_role("button", name="Away 666")).to_be_visible()
    expect(page.locator(".vrow:visible").first).to_have_class(re.compile("away"))


def test_the_keyboard_is_enough(page: Page) -> None:
    go(page, "jobs")
    page.get_by_text("disk.usage").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("f")
    page.locator(".vrow").first.wait_for()
    for key in ("j", "j", "j", "k", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#title")).to_have_text("build-0001.example.net")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Run a function on this minion")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("go to topo")
    page.keyboard.press("Enter")
    expect(page.locator("#title")).to_contain_text("Topology of salt.example.net")
    page.keyboard.press("Control+k")
    page.keyboard.type("colours: dark")
    page.keyboard.press("Enter")
    assert page.evaluate("getComputedStyle(document.body.parentElement).colorScheme") == "dark"


def test_ten_thousand_minions_scroll_within_100_ms_a_frame(page: Page) -> None:
    go(page, "fleet")
    page.get_by_text("build-0000.example.net").wait_for()
    page.wait_for_timeout(500)
    # The processor time of the page's thread: how long a frame takes if no other process has the core.
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def seconds() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(each["value"] for each in metrics if each["name"] == "TaskDuration")

    took = []
    for step in range(60):
        before = seconds()
        top = page.evaluate(
            """(step) => new Promise((done) => {
                const list = document.querySelector(".vlist.fleet");
                // Single rows, pages, and leaps over thousands of minions.
                list.scrollTop = step % 3 ? list.scrollTop + (step % 3) * 300 : (step * 7919) % list.scrollHeight;
                requestAnimationFrame(() => requestAnimationFrame(() => done(list.scrollTop)));
            })""",
            step,
        )
        took.append(seconds() - before)
        if step % 20 == 19:
            shown = page.locator(f'.vrow[data-index="{int(top) // 34 + 3}"] .c-id')
            expect(shown).to_have_text(re.compile("example.net"))
    assert max(took) < 0.1, sorted(took)[-5:]


# ----------------------------------------------------------------------------------------------------------------- jobs


def test_failures_come_first_and_only_they_are_run_again(page: Page, master: MadeUpMaster) -> None:
    go(page, "jobs")
    page.get_by_role("button", name="Failed").click()
    expect(page.locator(".jrow:visible")).to_have_count(2)
    page.locator(".jrow:visible").filter(has_text="state.apply").click()
    expect(page.locator("#progress")).to_have_text("64 of 66 minions returned, 3 failed, 2 away or lost")
    rows = page.locator(".matrix .vrow:visible .m-id")
    assert rows.all_inner_texts()[:4] == [
        "web-0005.example.net",
        "web-0017.example.net",
        "web-0040.example.net",
        "web-0065.example.net",
    ]
    detail = page.locator(".detail")
    expect(detail.locator(".state").first).to_contain_text("Address already in use")
    page.locator(".matrix .vrow:visible").filter(has_text="web-0000").click()
    expect(detail.locator(".diff .add").first).to_have_text("+worker_processes auto;")
    page.get_by_label("Hide states that are as wanted everywhere").uncheck()
    expect(page.locator(".matrix .vrow:visible").first.locator(".cells > span")).to_have_count(25)
    page.locator("#rerun").click()
    expect(page.locator("#progress")).to_have_text("3 of 3 minions returned")
    (call,) = [fields for cmd, fields in master.asked if cmd == "runner"]
    assert (call["fun"], call["kwarg"]["failed"]) == ("jobs.rerun", True)


def test_a_job_fills_while_returns_come(page: Page, master: MadeUpMaster) -> None:
    master.pause = None
    names = [f"cache-{number:04}.example.net" for number in range(3)]
    jid = master.add_job("state.apply", {}, tgt="cache*", waiting=names)
    go(page, f"job/{jid}")
    progress = page.locator("#progress")
    expect(progress).to_have_text("0 of 3 minions returned, 3 to come")
    page.locator("#live[data-state=live]").wait_for()
    for number, name in enumerate(names, 1):
        master.add_return(jid, name, state_run(number, fails=number == 2), retcode=2 * (number == 2))
        expect(progress).to_contain_text(f"{number} of 3 minions returned")
    assert page.locator(".matrix .vrow:visible .m-id").first.inner_text() == names[1]


def test_run_asks_before_it_changes_many(page: Page, master: MadeUpMaster) -> None:
    go(page, "run?tgt=web-000*")
    page.fill("#fun", "cmd.run")
    page.fill("#args", "'systemctl restart nginx' timeout=5 env='{\"A\": 1}'")
    expect(page.get_by_role("button", name="Run on 10 minions")).to_be_enabled()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    assert master.published("cmd.run") == []
    page.get_by_role("button", name="Run on 10 minions").click()
    page.get_by_role("dialog").get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#progress")).to_have_text("10 of 10 minions returned")
    (sent,) = master.published("cmd.run")
    assert sent["arg"][0] == "systemctl restart nginx"
    assert sent["arg"][1]["timeout"] == 5


def test_a_plan_is_approved_and_exactly_it_is_applied(page: Page, master: MadeUpMaster) -> None:
    plan_nginx(page)
    groups = page.locator(".group-row")
    expect(groups).to_have_count(2)
    expect(page.locator(".detail .diff .add").first).to_have_text("+worker_processes auto;")
    expect(page.locator("#apply")).to_be_disabled()
    own = groups.filter(has_not_text="stock minion")
    own.get_by_role("checkbox").check()
    page.locator("#apply").click()
    expect(page.get_by_role("dialog")).to_contain_text("exactly what was shown")
    page.get_by_role("dialog").get_by_role("button", name="Apply").click()
    expect(page.locator("#title")).to_have_text("state.apply_plan")
    (planned,) = master.published("state.plan")
    (applied,) = master.published("state.apply_plan")
    plan = planned["arg"][-1]["keep"]
    assert re.fullmatch("[0-9a-f]{16}", plan)
    assert applied["arg"] == [plan]
    saltern = [name for name in master._matching("web-000*", "glob") if master.minions[name]["saltern"]]
    assert sorted(applied["tgt"]) == sorted(saltern)
    # Nobody approved what stock minions would do.
    assert [each["arg"][-1] for each in master.published("state.apply")] == [{"__kwarg__": True, "test": True}]


# ----------------------------------------------------------------------------------------------------------------- keys


def test_keys_are_accepted_by_key_and_rejected_by_drag(page: Page, master: MadeUpMaster) -> None:
    go(page, "keys")
    pending = page.get_by_role("grid", name="Pending keys")
    pending.get_by_text("db-9000.example.net").wait_for()
    page.keyboard.press("a")
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".finger")).to_have_text(re.compile("^([0-9a-f]{2}:){31}[0-9a-f]{2}$"))
    dialog.get_by_role("button", name="Accept").click()
    expect(pending.locator(".vrow:visible")).to_have_count(2)
    assert "db-9000.example.net" in master.keys["minions"]
    pending.locator(".vrow:visible").first.drag_to(page.get_by_role("region", name="Rejected"))
    dialog.get_by_role("button", name="Reject").click()
    expect(pending.locator(".vrow:visible")).to_have_count(1)
    assert master.keys["minions_rejected"] == ["old-laptop", "web-2000.example.net"]
    changes = [fields["kwarg"]["match"] for cmd, fields in master.asked if cmd == "wheel" and "_dict" in fields["fun"]]
    assert changes == [{"minions_pre": ["db-9000.example.net"]}, {"minions_pre": ["web-2000.example.net"]}]


# --------------------------------------------------------------------------------------------------------------- events


def test_events_are_filtered_and_paused(page: Page, master: MadeUpMaster) -> None:
    go(page, "events")
    page.locator("#live[data-state=live]").wait_for()
    for number in range(4):
        master.fire(f"site/deploy/{number}", {"version": number})
        master.fire("salt/auth", {"id": "x"})
    shown = page.locator(".erow:visible .e-tag")
    expect(shown).to_have_count(8)
    page.fill("input[type=search]", "site/*")
    expect(shown).to_have_count(4)
    assert shown.first.inner_text() == "site/deploy/3"
    page.get_by_role("button", name="Pause").click()
    master.fire("site/deploy/9", {})
    expect(page.get_by_role("status")).to_contain_text("1 came since")
    expect(shown).to_have_count(4)
    page.get_by_role("button", name="Go on").click()
    expect(shown).to_have_count(5)
    page.locator(".erow:visible").nth(1).click()
    expect(page.locator(".detail pre")).to_contain_text("version: 3")


# ------------------------------------------------------------------------------------------------- one minion, topology


def test_the_graph_explains_a_state(page: Page) -> None:
    go(page, "minion/web-0000.example.net")
    boxes = page.locator(".graph .box")
    expect(boxes).to_have_count(8)
    boxes.nth(1).focus()
    page.keyboard.press("Enter")
    expect(page.locator(".detail")).to_contain_text("came in through /srv/salt/web.sls:2")
    expect(page.locator(".detail")).to_contain_text("runs as 2 of 25")
    page.get_by_role("link", name="Grains").click()
    expect(page.locator(".tab-body pre")).to_contain_text("osrelease:")


def test_the_parts_of_the_master(page: Page) -> None:
    go(page, "topology")
    for name in ("publisher", "reqserver", "mworker", "reactor", "maintenance", "Redis"):
        expect(page.get_by_role("region", name=f"{name}: works", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="mworker: works")).to_contain_text("10.1.0.5")


# --------------------------------------------------------------------------------------------------------------- drawer


def test_each_call_is_shown_for_a_shell(page: Page) -> None:
    go(page, "fleet")
    page.fill("#fleet-target", "G@os:Debian and not web*")
    expect(page.locator("#fleet-target-count")).to_contain_text("minions")
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    drawer = page.get_by_role("complementary", name="API calls")
    expect(drawer).to_contain_text("salt-run manage.fleet 'G@os:Debian and not web*' compound")
    expect(drawer).to_contain_text("/v1/fleet?tgt=G%40os%3ADebian+and+not+web*")
    expect(drawer).to_contain_text('-H "X-Auth-Token: $TOKEN"')
    assert TOKEN not in drawer.inner_text()
    drawer.get_by_role("button", name="Copy the salt command").first.click()
    expect(drawer.get_by_role("button", name="Copy the salt command").first).to_have_text(re.compile("Copied|Ctrl"))


WORDS = [
    (
        {"client": "local_async", "tgt": "web*", "tgt_type": "glob", "fun": "test.ping", "arg": []},
        "salt --async 'web*' test.ping",
    ),
    (
        {"client": "local", "tgt": ["a", "b"], "tgt_type": "list", "fun": "x.y", "arg": ["it's", 3, "3", True, "True"]},
        r"""salt -L a,b x.y '"it'\''s"' 3 '"3"' true '"True"'""",
    ),
    (
        {"client": "local_async", "tgt": "*", "tgt_type": "compound", "fun": "f.g", "kwarg": {"a b": [1], "c": "d=e"}},
        "salt --async -C '*' f.g 'a b=[1]' 'c=\"d=e\"'",
    ),
    ({"client": "local", "tgt": "a\n$(id)", "tgt_type": "glob", "fun": "f.g"}, "salt $'a\\x0a$(id)' f.g"),
    (
        {"client": "runner", "fun": "jobs.rerun", "jid": "1", "failed": True},
        "salt-run jobs.rerun 'jid=\"1\"' failed=true",
    ),
    ({"client": "wheel", "fun": "key.accept_dict", "match": {"minions_pre": ["`id`"]}}, "salt-key -a '`id`'"),
]


def test_words_of_a_shell(page: Page) -> None:
    go(page, "run")
    chunks = [chunk for chunk, _ in WORDS]
    found = page.evaluate("async (chunks) => chunks.map((await import('./shell_words.js')).saltOf)", chunks)
    assert found == [command for _, command in WORDS]


# ------------------------------------------------------------------------------------------------------- what goes wrong


def test_errors_say_what_to_do(page: Page, master: MadeUpMaster) -> None:
    master.broken["fleet"] = ControlError("AuthorizationError", "not allowed")
    go(page, "fleet")
    expect(page.locator(".notice.bad")).to_contain_text("@jobs")
    master.broken = {"find_jobs": ControlTimeout("tcp://127.0.0.1:4507", 1.0)}
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page.locator(".notice.bad")).to_contain_text("The master or Redis does not answer")
    master.broken.clear()
    page.get_by_role("button", name="Try again").click()
    page.get_by_text("disk.usage").wait_for()
    go(page, "job/20200101000000000000")
    expect(page.locator(".notice.bad")).to_contain_text("jobs are kept for keep_jobs_seconds")
    go(page, "job/../../x")
    expect(page.locator(".notice")).to_be_visible()
    go(page, "run?tgt=nobody")
    page.locator("#fun").press("Enter")
    expect(page.locator(".notice.bad")).to_contain_text("nothing was published")


def test_nothing_of_a_minion_is_put_in_as_html(page: Page, master: MadeUpMaster) -> None:
    bad = HOSTILE
    master.minions[bad] = {**master.minions["web-0000.example.net"], "id": bad, "os": bad, "address": bad, "salt": bad}
    master.keys["minions_pre"].append(bad)
    run = {
        f"file_|-{bad}_|-{bad}_|-managed": {
            "result": False,
            "changes": {"diff": f"--- a\n+++ {bad}\n"},
            "comment": bad,
            "name": bad,
            "__id__": bad,
            "__sls__": bad,
            "__run_num__": 0,
            "duration": bad,
            "warnings": [bad],
        }
    }
    try:
        ran = master.add_job(bad, {bad: run}, tgt=bad, arg=[bad], user=bad, retcodes={bad: 1})
        said = master.add_job(bad, {bad: bad}, tgt=[bad], arg=[{bad: bad}])
        go(page, "fleet")
        page.fill("#fleet-target", bad)
        page.select_option(".target select", "list")
        page.locator(".vrow:visible").filter(has_text="onerror").wait_for()
        go(page, "jobs")
        page.locator(".jrow:visible").filter(has_text="onerror").first.wait_for()
        for jid in (ran, said):
            go(page, f"job/{jid}?minion={quote(bad)}")
            page.locator(".detail").get_by_text("onerror").first.wait_for()
        go(page, "keys")
        page.locator(".krow:visible").filter(has_text="onerror").first.wait_for()
        go(page, "events")
        page.locator("#live[data-state=live]").wait_for()
        master.fire(f"site/{bad}\nid: 1", {bad: bad})
        row = page.locator(".erow:visible").filter(has_text="onerror")
        row.first.wait_for()
        row.first.click()
        page.locator(".detail pre").filter(has_text="onerror").wait_for()
        page.evaluate(
            "(bad) => { location.hash = `#/minion/${encodeURIComponent(bad)}?sls=${encodeURIComponent(bad)}`; }", bad
        )
        expect(page.locator("#title")).to_have_text(bad)
        page.keyboard.press("c")
        page.locator(".drawer").get_by_text("onerror").first.wait_for()
        assert page.evaluate("window.hacked") is None
        assert page.locator("img, iframe, script:not([src])").count() == 0
        with pytest.raises(playwright.Error, match="TrustedHTML"):
            page.evaluate("document.body.innerHTML = '<b>x</b>'")
    finally:
        del master.minions[bad]
        master.keys["minions_pre"].remove(bad)


def test_a_phone_shows_every_view_without_scrolling_sideways(page: Page, master: MadeUpMaster) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    views = ("fleet", "jobs", f"job/{state_job(master)}", "run", "plan", "keys", "events", "topology")
    for view in views:
        go(page, view)
        page.locator("main > *").first.wait_for()
        page.wait_for_timeout(150)
        wide = page.evaluate("[document.documentElement.scrollWidth, document.querySelector('main').scrollWidth]")
        assert max(wide) <= 360, (view, wide)
