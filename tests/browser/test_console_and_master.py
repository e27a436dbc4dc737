"""The console before a whole master with two replicas of the API: keys, a plan that is applied, a replica that dies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.proxy import Link, Network
from tests.roles.api_lab import ALL, ApiLab, api_options
from tests.roles.conftest import NewLab
from tests.roles.lab import SOON, until

playwright = pytest.importorskip("playwright.sync_api")
expect = playwright.expect

pytestmark = [pytest.mark.browser, pytest.mark.roles, pytest.mark.redis]

#: A job that ends when the test lets it: the module `held` of the lab's tree waits for a file.
HELD_SLS = """\
before:
  file.managed: [{name: /etc/before, contents: one}]
held:
  module.run: [{held.wait: [{directory: %s}]}]
after:
  file.managed: [{name: /etc/after, contents: two}]
"""


@pytest.fixture(scope="module")
def lab(session_labs: NewLab, tmp_path_factory: pytest.TempPathFactory) -> ApiLab:
    """A lab whose minions wait for their keys to be accepted."""
    api = {"host": "127.0.0.1", "disable_ssl": True}
    home = tmp_path_factory.mktemp("users")
    options = {**api_options(home, ann=ALL), "state_events": True, "auto_accept": False, "timeout": 10}
    made = session_labs(ApiLab, options={**options, "rest_cherrypy": api})
    made.start_all(*made.roles)
    for minion in made.minions:
        made.start(minion)
    assert isinstance(made, ApiLab)
    return made


@pytest.fixture(scope="module")
def link(lab: ApiLab) -> Iterator[Link]:
    """One address at which both replicas are reached in turns, as behind a load balancer."""
    with Network() as network:
        yield network.link(lab.port["http1"], lab.port["http2"])


@pytest.fixture(scope="module")
def page(browser: Any, link: Link) -> Iterator[Any]:
    """The console, where ann is logged in."""
    context = browser.new_context(base_url=f"http://127.0.0.1:{link.port}", viewport={"width": 1280, "height": 800})
    context.set_default_timeout(SOON * 1000)
    made = context.new_page()
    faults: list[str] = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.goto("/console/")
    made.fill("#username", "ann")
    made.fill("#password", "pw-ann")
    made.click("button[type=submit]")
    made.locator("#live[data-state=live]").wait_for()
    yield made
    context.close()
    assert faults == []


def test_keys_are_accepted(lab: ApiLab, page: Any) -> None:
    page.goto("/console/#/keys")
    pending = page.get_by_role("grid", name="Pending keys")
    for minion in lab.minions:
        row = pending.locator(".vrow:visible").filter(has_text=minion)
        row.get_by_role("button", name="Accept").click()
        dialog = page.get_by_role("dialog")
        finger = dialog.locator(".finger").inner_text()
        assert finger == lab.ok("salt-key", "-f", minion, "--out", "json").data["minions_pre"][minion]
        dialog.get_by_role("button", name="Accept").click()
        page.get_by_role("grid", name="Accepted keys").get_by_text(minion).wait_for()
    lab.await_ready(*lab.minions)
    # A minion is present when it was heard of; a connection that it closed counts as an absence until then.
    until(lambda: lab.salt("*", "test.ping") == dict.fromkeys(lab.minions, True), SOON, "both minions answer")
    page.goto("/console/#/fleet")
    expect(page.locator(".frow.vrow:visible:not(.away)")).to_have_count(2, timeout=SOON * 1000)
    page.fill("#fleet-target", "web1 or G@id:web2")
    expect(page.locator("#fleet-target-count")).to_have_text("2 minions")


def test_what_was_planned_is_applied_or_refused(lab: ApiLab, page: Any) -> None:
    (lab.tree / "salt" / "note.sls").write_text("note:\n  file.managed: [{name: /etc/note, contents: planned}]\n")
    page.goto("/console/#/plan?tgt=*")
    page.fill("#sls", "note")
    page.get_by_role("button", name="Plan for 2 minions").click()
    expect(page.locator(".group-row")).to_have_count(1)
    expect(page.locator(".detail .diff .add").last).to_have_text("+planned")
    # Somebody writes on one host between the plan and its application.
    (lab.host("web2") / "etc" / "note").write_text("mine\n")
    page.get_by_role("button", name="Approve all").click()
    page.get_by_role("button", name="Apply on 2 minions").click()
    page.get_by_role("dialog").get_by_role("button", name="Apply").click()
    expect(page.locator("#progress")).to_have_text("2 of 2 minions returned, 1 failed")
    assert (lab.host("web1") / "etc" / "note").read_text() == "planned\n"
    assert (lab.host("web2") / "etc" / "note").read_text() == "mine\n"
    expect(page.locator(".detail")).to_contain_text("Nothing was done: this is no longer what the plan")


def test_the_graph_of_a_real_tree_explains_its_states(page: Any) -> None:
    page.goto("/console/#/minion/web1?sls=note")
    page.locator(".graph .box").click()
    expect(page.locator(".detail")).to_contain_text("runs as 1 of 1")
    expect(page.locator(".detail .arguments")).to_contain_text("planned")


def test_the_parts_of_the_master_work(page: Any) -> None:
    page.goto("/console/#/topology")
    for name in ("publisher", "mworker", "reactor", "maintenance", "event publisher", "Redis", "reqserver"):
        expect(page.get_by_role("region", name=f"{name}: works", exact=True)).to_be_visible(timeout=SOON * 1000)


def test_a_followed_state_run_goes_on_when_a_replica_dies(lab: ApiLab, page: Any, tmp_path: Any) -> None:
    (lab.tree / "salt" / "long.sls").write_text(HELD_SLS % tmp_path)
    page.goto("/console/#/run?tgt=*&fun=state.apply")
    page.fill("#args", "long state_events=True")
    page.get_by_role("button", name="Run on 2 minions").click()
    page.get_by_role("dialog").get_by_role("button", name="Run", exact=True).click()
    until(lambda: len(list(tmp_path.glob("started-*"))) == 2, SOON, "both minions are in the middle of the run")
    # The first state is seen before any minion has returned.
    expect(page.locator(".matrix .vrow:visible").first).to_contain_text("state done", timeout=SOON * 1000)
    jid = page.url.rsplit("/", 1)[-1][:20]
    assert re.fullmatch(r"\d{20}", jid)
    # Whichever replica serves the stream: each is replaced once.
    for name in ("api", "api2"):
        lab.kill(name)
        lab.start(name)
        lab.await_ready(name)
    lab.kill("api2")
    (tmp_path / "go").touch()
    expect(page.locator("#progress")).to_have_text("2 of 2 minions returned", timeout=2 * SOON * 1000)
    expect(page.locator(".matrix .vrow:visible").first.locator(".cells .changed")).to_have_count(3)
    page.locator("#live[data-state=live]").wait_for()
    assert page.evaluate("import('./event_stream.js').then((module) => module.events.resumed)") >= 1
    lab.start("api2")
    lab.await_ready("api2")
    # It went on: nobody published the job a second time.
    jobs = lab.runner("jobs.list_jobs", "function=state.apply")
    assert [one for one in jobs if one >= jid] == [jid]
