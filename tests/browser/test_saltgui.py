"""SaltGUI 1.35, unmodified, before our API in real Chromium: what its users do, and what its pages then show."""

from __future__ import annotations

import re
from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser.conftest import Faults
from tests.browser.places import MINIONS, STATES, Place
from tests.browser.saltgui import SaltGui
from tests.roles.lab import SOON, until

pytestmark = [pytest.mark.browser, pytest.mark.redis, pytest.mark.own_copy, pytest.mark.timeout(600)]


def test_keys_are_accepted_and_rejected(page: Page, site: Place) -> None:
    """The first test, because both minions wait for an operator until now."""
    until(lambda: len(site.keys()["minions_pre"]) == 2, 2 * SOON, "both minions wait")
    gui = SaltGui(page)
    gui.log_in(site.user, site.password)
    panel = gui.go_to("keys")
    for minion in MINIONS:
        row = gui.row(panel, minion)
        expect(row.locator(".status")).to_have_text("unaccepted")
        expect(row.locator(".fingerprint")).to_have_text(re.compile(r"^[0-9a-f]{2}(:[0-9a-f]{2}){31}$"))

    def change(minion: str, item: str, to: str) -> None:
        gui.choose(gui.row(panel, minion), item)
        expect(gui.run_prepared()).to_contain_text(minion)
        gui.close_box()
        # By the event salt/key.
        expect(gui.row(panel, minion).locator(".status")).to_have_text(to)

    change("web1", "Accept key", "accepted")
    change("web2", "Reject key", "rejected")
    assert site.keys()["minions_rejected"] == ["web2"]
    change("web2", "Accept key", "accepted")
    expect(panel.locator(".msg")).to_contain_text("2 accepted keys")


def test_a_user_logs_in_and_out(page: Page, site: Place, faults: Faults) -> None:
    gui = SaltGui(page)
    page.goto("/")
    gui.try_to_log_in(site.user, "wrong")
    notice = page.locator("#notice-wrapper")
    expect(notice).to_contain_text("Authentication failed")
    assert [one.split()[0] for one in faults.found] == ["401"]
    faults.found.clear()
    gui.try_to_log_in(site.unlisted, site.unlisted_password)
    expect(notice).to_contain_text("No permissions")
    gui.try_to_log_in(site.user, site.password)
    gui.panel("minions").wait_for()
    # SaltGUI hides a page that was left half a second later, and does so even if that page is shown again by then.
    page.locator("#page-login").wait_for(state="hidden")
    token = page.evaluate("sessionStorage.getItem('token')")
    headers = {"X-Auth-Token": token}
    assert httpx.get(f"{site.url}/stats", headers=headers).status_code == 200
    page.locator("#button-logout1").dispatch_event("click")
    page.locator("#page-login.current #login-button").wait_for()
    # The other replica may believe for some seconds what it last heard of the token.
    until(lambda: httpx.get(f"{site.url}/stats", headers=headers).status_code == 401, SOON, "the token is revoked")
    # SaltGUI was still asking for the page of the minions.
    page.close()
    faults.found.clear()


def test_minions_and_their_grains(gui: SaltGui, site: Place) -> None:
    panel = gui.go_to("minions")
    for minion, system in site.systems.items():
        row = gui.row(panel, minion)
        # "accepted", or the address where no other minion has the same one.
        expect(row.locator(".status")).to_have_text(re.compile(r"^(accepted|\d+\.\d+\.\d+\.\d+)"))
        expect(row.locator(".os")).to_contain_text(system)
    expect(panel.locator(".msg")).to_have_text("2 minions")
    grains = gui.go_to("grains")
    expect(gui.row(grains, "web1")).to_contain_text(re.compile(r"\d\d grains"))
    one = gui.open("grains-minion", minionid="web1")
    expect(gui.row(one, "id")).to_contain_text('"web1"')
    expect(one.locator(".msg")).to_contain_text(re.compile(r"\d\d grains"))


def test_pillars(gui: SaltGui) -> None:
    panel = gui.go_to("pillars")
    expect(gui.row(panel, "web1")).to_contain_text("5 pillars")
    one = gui.open("pillars-minion", minionid="web1")
    row = gui.row(one, "web")
    # Values are shown at a click; until then nobody reads over a shoulder.
    expect(row).to_contain_text("●●●")
    row.locator(".pillar-hidden").click()
    expect(row).to_contain_text("{")


def test_a_command(gui: SaltGui) -> None:
    output = gui.run("*", 'test.arg "a word" 1 b=2')
    expect(output).to_contain_text("done, 2 responses")
    expect(output).to_contain_text(re.compile(r'web1:.*"a word",.*"b": 2.*web2:', re.DOTALL))
    expect(gui.run("web1", "test.nosuch")).to_contain_text("'test.nosuch' is not available.")
    expect(gui.run("web1,web2", "test.ping")).to_contain_text(re.compile("web1:true.*web2:true", re.DOTALL))
    expect(gui.run("#front", "test.echo by-nodegroup")).to_contain_text("by-nodegroup")
    expect(gui.run("", "runners.manage.up")).to_contain_text("web2")
    expect(gui.run("web1", "wheel.key.finger")).to_contain_text(":")
    expect(gui.run("ghost", "test.ping")).to_contain_text("No minions matched the target")


def test_a_run_of_states_is_followed_by_events(gui: SaltGui) -> None:
    output = gui.run("*", "state.apply", follow=True)
    for minion in ("web1", "web2"):
        row = output.locator(".task-summary").filter(has_text=minion)
        # A sign for each state that has ended, by events salt/job/JID/prog/MINION/N.
        expect(row.locator(".taskcircle.task-success-changes")).to_have_count(STATES)
        # By the event salt/job/JID/ret/MINION.
        expect(row.locator(".minion-id.host-success")).to_be_visible()
    expect(output.locator("#unresponsive")).to_be_hidden()
    jid = re.search(r"\d{20}", output.inner_text())
    assert jid is not None
    gui.close_box()
    job = gui.open("job", id=jid[0])
    expect(job.locator("#job-title")).to_contain_text("state.apply on *")
    expect(job).to_contain_text("shown.sls")
    expect(job.locator("#summary-jobs-active")).to_have_text("done")
    jobs = gui.go_to("jobs")
    row = gui.row(jobs, jid[0])
    expect(row).to_contain_text("state.apply")
    expect(row).to_contain_text("done")
    latest = gui.go_to("highstate")
    expect(gui.row(latest, "web1")).to_contain_text(jid[0])


def test_schedules(gui: SaltGui) -> None:
    expect(gui.run("web1", "schedule.add ping function=test.ping seconds=3600")).to_contain_text("Added job: ping")
    gui.close_box()
    panel = gui.open("schedules-minion", minionid="web1")
    row = gui.row(panel, "ping")
    expect(row).to_contain_text('"seconds": 3600')
    for item, said in (("Disable job", "Disabled Job ping"), ("Enable job", "Enabled Job ping")):
        gui.choose(row, item)
        expect(gui.run_prepared()).to_contain_text(said)
        gui.close_box()
        value = row.locator(".schedule-value")
        if item.startswith("Disable"):
            expect(value).to_have_class(re.compile("schedule-disabled"))
        else:
            expect(value).not_to_have_class(re.compile("schedule-disabled"))
    gui.choose(row, "Run job")
    expect(gui.run_prepared()).to_contain_text("true")
    gui.close_box()
    expect(gui.row(gui.go_to("schedules"), "web1")).to_contain_text("1 schedule")
    panel = gui.open("schedules-minion", minionid="web1")
    gui.choose(gui.row(panel, "ping"), "Delete job")
    expect(gui.run_prepared()).to_contain_text("Deleted")
    gui.close_box()
    expect(panel.locator(".msg")).to_have_text("No schedules")


def test_beacons(gui: SaltGui) -> None:
    added = gui.run("web1", 'beacons.add load [{"averages":{"1m":[0.0,0.0]}},{"interval":1}]')
    expect(added).to_contain_text("Added beacon: load.")
    gui.close_box()
    panel = gui.open("beacons-minion", minionid="web1")
    row = gui.row(panel, "load")
    expect(row).to_contain_text("averages")
    # By the event salt/beacon/web1/load/.
    expect(row.locator(".beacon-value")).to_contain_text('"1m": ')
    for item, said in (("Disable beacon", "isabled"), ("Enable beacon", "nabled")):
        gui.choose(row, item)
        expect(gui.run_prepared()).to_contain_text(said)
        gui.close_box()
    expect(gui.row(gui.go_to("beacons"), "web1")).to_contain_text("1 beacon")
    panel = gui.open("beacons-minion", minionid="web1")
    gui.choose(gui.row(panel, "load"), "Delete beacon")
    expect(gui.run_prepared()).to_contain_text("eleted")


def test_templates_nodegroups_and_reactors(gui: SaltGui, page: Page) -> None:
    panel = gui.go_to("templates")
    row = gui.row(panel, "say")
    expect(row).to_contain_text("Say a word")
    row.locator("td.command").click()
    expect(page.locator("#command")).to_have_value("test.echo hello-from-a-template")
    expect(gui.run_prepared()).to_contain_text("hello-from-a-template")
    gui.close_box()
    groups = gui.go_to("nodegroups")
    expect(groups).to_contain_text("nodegroup front — 1 minion")
    expect(groups.locator(".msg")).to_have_text("2 nodegroups, 2 minions")
    reactors = gui.go_to("reactors")
    expect(gui.row(reactors, "site/refresh")).to_contain_text("refresh.sls")


def test_events(gui: SaltGui) -> None:
    panel = gui.go_to("events")
    panel.locator(".small-button-for-click").get_by_text("⯈").click()
    expect(gui.run("web1", "test.echo an-event")).to_contain_text("an-event")
    expect(panel.locator("tbody")).to_contain_text(re.compile(r"salt/job/\d{20}/ret/web1"))
    expect(panel.locator("tbody")).to_contain_text("an-event")


#: Listens to events as a browser does: it connects again by itself, and says after which event. Collects tags in `seen`.
LISTEN = """() => new Promise(resolve => {
    window.seen = [];
    window.opened = 0;
    const source = new EventSource("/events");
    source.onmessage = message => window.seen.push(JSON.parse(message.data).tag);
    source.onopen = () => { window.opened += 1; resolve(); };
})"""


def _asks(fun: str) -> Callable[[Request], bool]:
    """Return whether a request calls this function."""
    return lambda request: f'"{fun}"' in (request.post_data or "")


def test_a_followed_job_goes_on_when_a_replica_dies(page: Page, fleet: Place, faults: Faults) -> None:
    held = fleet.hold()
    # Log in, run and listen at one replica; go on at the other.
    fleet.kill_api(2)
    gui = SaltGui(page)
    gui.log_in(fleet.user, fleet.password)
    output = gui.run("*", " ".join(held.words), follow=True)
    held.await_started()
    jid = re.search(r"\d{20}", output.inner_text())
    assert jid is not None
    gui.close_box()
    panel = gui.open("job", id=jid[0])
    expect(panel.locator("#summary-jobs-active")).to_contain_text("2 active")
    page.evaluate(LISTEN)
    panel.locator(".small-button-for-click").get_by_text("⯈").click()
    # SaltGUI asks no more when a request breaks. What the page asks waits here, because the route is called from this thread: while
    # a replica starts, whose port the engine opens before anybody answers there, and while the other one is killed.
    page.route("**/", lambda route: route.continue_())
    fleet.start_api(2)
    # The page asks two things at once, and again five seconds after both were answered.
    with page.expect_request_finished(_asks("jobs.list_job")), page.expect_request_finished(_asks("jobs.active")):
        pass
    fleet.kill_api(1)
    page.unroute("**/")
    held.let_go()
    expect(panel.locator("#summary-jobs-active")).to_have_text("done")
    for minion in MINIONS:
        expect(panel.locator(".minion-id.host-success").get_by_text(minion)).to_be_visible()
    returns = {f"salt/job/{jid[0]}/ret/{minion}" for minion in MINIONS}
    page.wait_for_function("tags => tags.every(tag => window.seen.includes(tag))", arg=sorted(returns))
    seen = page.evaluate("window.seen")
    assert page.evaluate("window.opened") >= 2
    assert [seen.count(tag) for tag in returns] == [1, 1]
    # SaltGUI closes its own stream at the first error, and opens it again when the page is loaded.
    faults.found[:] = [one for one in faults.found if "ERR_" not in one]
    fleet.start_api(1)
    gui.open("minions")
    # SaltGUI does not show a return that is faster than the answer with the JID.
    followed = gui.run("web1", "test.sleep 2", follow=True)
    expect(followed.locator(".task-summary .minion-id.host-success")).to_have_text("web1")
