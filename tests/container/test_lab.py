"""What an operator does with `docker compose up`, from accepted keys to a changed pillar; and what a host sees of it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.container.compose_lab import RUN, Lab

pytestmark = [pytest.mark.container, pytest.mark.timeout(1200)]

MINIONS = ("web1", "web2")
TITLES = {"web1": "The shop", "web2": "The blog"}
SITE = "/etc/nginx/sites-available/default"


def changed(run: RUN) -> set[str]:
    """Ids of the states that changed something, or would."""
    return {name for name, result in run.items() if result["changes"] or result["result"] is None}


def failed(run: RUN) -> dict[str, str]:
    """id -> comment of the states that failed."""
    return {name: result["comment"] for name, result in run.items() if result["result"] is False}


def host_state(lab: Lab, minion: str) -> tuple[str, str, str]:
    """What a pillar change may touch: the site's bytes, its time, and the server's process."""
    return (
        lab.on_host(minion, "cat", SITE),
        lab.on_host(minion, "stat", "-c", "%y", SITE),
        lab.on_host(minion, "cat", "/run/nginx.pid").strip(),
    )


def test_every_service_is_healthy(lab: Lab) -> None:
    assert lab.unhealthy() == []
    # Two workers in each (SALTERN_WORKER_PROCESSES).
    assert len(lab.containers("mworker")) == 2


@pytest.mark.parametrize("service", ["mworker", "reactor", "web1"])
def test_what_renders_has_every_renderer(lab: Lab, service: str) -> None:
    said = lab.compose("exec", "-T", service, "python3", "-c", "import jmespath, mako; print(mako.__name__)")
    assert said.strip() == "mako"
    assert "libgcrypt" in lab.compose("exec", "-T", service, "gpg", "--version")
    assert "gpg-agent" in lab.compose("exec", "-T", service, "gpgconf", "--list-components")


def test_keygen_keeps_what_it_made(lab: Lab) -> None:
    """A second `docker compose up` must not turn a running master into a stranger."""
    said = lab.compose("run", "--rm", "-T", "keygen")
    assert "made " not in said


def test_operators_have_completion(lab: Lab) -> None:
    for program in ("salt", "salt-key", "saltern"):
        script = lab.cli("cat", f"/usr/share/bash-completion/completions/{program}")
        assert "complete -o default -F _saltern salt" in script
    assert "bash_completion" in lab.cli("cat", "/etc/bash.bashrc")


def test_both_minions_are_accepted(accepted: Lab) -> None:
    keys = json.loads(accepted.cli("salt-key", "-L", "--out", "json"))
    assert sorted(keys["minions"]) == list(MINIONS)
    assert keys["minions_pre"] == []


def test_the_first_apply_brings_both_hosts_to_their_state(accepted: Lab, first_apply: dict[str, RUN]) -> None:
    assert sorted(first_apply) == list(MINIONS)
    for minion, run in first_apply.items():
        assert failed(run) == {}, minion
        assert {"motd", "sysctl", "cron-tidy", "user-deploy", "nginx.pkg", "site", "page"} <= changed(run)


@pytest.mark.usefixtures("first_apply")
@pytest.mark.parametrize("minion", MINIONS)
def test_apt_installed_the_server_on_the_host(accepted: Lab, minion: str) -> None:
    status = accepted.on_host(minion, "dpkg-query", "-W", "-f", "${db:Status-Status}", "nginx-light")
    assert status == "installed"
    # On the host, not in the minion's own image.
    assert "nginx" not in accepted.inside(minion, "dpkg-query", "-W")


@pytest.mark.usefixtures("first_apply")
@pytest.mark.parametrize("minion", MINIONS)
def test_the_host_has_its_users_and_files(accepted: Lab, minion: str) -> None:
    assert accepted.on_host(minion, "id", "-u", "deploy").strip() == "2001"
    assert accepted.on_host(minion, "cat", "/etc/motd").startswith(f"{minion} belongs to the ")
    assert "vm.swappiness = 10" in accepted.on_host(minion, "cat", "/etc/sysctl.d/60-managed.conf")
    assert "-mtime +14" in accepted.on_host(minion, "cat", "/etc/cron.d/tidy")


@pytest.mark.usefixtures("first_apply")
@pytest.mark.parametrize("minion", MINIONS)
def test_each_host_serves_its_own_page(accepted: Lab, minion: str) -> None:
    body, headers = accepted.page(minion)
    assert f"<h1>{TITLES[minion]}</h1>" in body
    assert f"This is {minion}, a Debian-12" in body
    assert headers["Cache-Control"] == "max-age=60"


@pytest.mark.usefixtures("first_apply")
def test_the_second_apply_changes_nothing(accepted: Lab) -> None:
    for minion, run in accepted.apply().items():
        assert failed(run) == {}, minion
        assert changed(run) == set(), minion


@pytest.mark.usefixtures("first_apply")
def test_a_pillar_change_is_predicted_then_made_and_nothing_else(accepted: Lab) -> None:
    untouched = {minion: host_state(accepted, minion) for minion in MINIONS}
    pillar = accepted.tree / "pillar" / "web1.sls"
    pillar.write_text(re.sub(r"(?m)^  title: .*$", r"\g<0>\n  cache_seconds: 300", pillar.read_text()))

    predicted = accepted.apply("*", "test=True")
    assert changed(predicted["web1"]) == {"site", "nginx.service"}
    assert {predicted["web1"][name]["result"] for name in ("site", "nginx.service")} == {None}
    assert changed(predicted["web2"]) == set()
    assert {minion: host_state(accepted, minion) for minion in MINIONS} == untouched
    assert accepted.page("web1")[1]["Cache-Control"] == "max-age=60"

    made = accepted.apply()
    assert failed(made["web1"]) == {}
    assert changed(made["web1"]) == {"site", "nginx.service"}
    assert "+    expires 300s;" in made["web1"]["site"]["changes"]["diff"]
    assert changed(made["web2"]) == set()
    site, _, process = host_state(accepted, "web1")
    assert "expires 300s;" in site
    assert process != untouched["web1"][2], "the server was not restarted"
    assert host_state(accepted, "web2") == untouched["web2"]
    assert accepted.page("web1")[1]["Cache-Control"] == "max-age=300"

    assert changed(accepted.apply()["web1"]) == set()


@pytest.mark.usefixtures("first_apply")
def test_an_event_of_a_host_makes_the_reactor_put_it_right(accepted: Lab) -> None:
    page = "/var/www/html/index.html"
    accepted.on_host("web2", "rm", page)
    assert accepted.salt("web2", "event.send", "site/refresh") == {"web2": True}

    def is_back() -> bool:
        return TITLES["web2"] in accepted.on_host("web2", "cat", page, check=False)

    accepted.until(is_back, 60, "the page put back by the reactor")


@pytest.mark.usefixtures("first_apply")
def test_a_restarted_minion_is_the_same_minion_and_its_host_boots(accepted: Lab) -> None:
    accepted.compose("restart", "web1")

    def answers() -> bool:
        # Until it has signed in again, `salt` says that it did not return, with exit code 1.
        return '"web1": true' in accepted.cli("salt", "--out", "json", "--static", "web1", "test.ping", check=False)

    accepted.until(answers, 60, "web1 answers again")
    keys = json.loads(accepted.cli("salt-key", "-L", "--out", "json"))
    assert keys["minions_pre"] == []
    # nginx is enabled there (service.running with enable), so the host's start started it.
    assert TITLES["web1"] in accepted.page("web1")[0]
