"""Runners, as an operator calls them: what the master knows, and what it asks its minions."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.roles.lab import SOON, Lab, until

pytestmark = pytest.mark.roles

BOTH = ["web1", "web2"]


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda value: set(names) <= set(value)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("manage.up",), BOTH),
        (("manage.status",), {"up": BOTH, "down": []}),
        (("manage.down", "tgt=web1"), []),
        (("manage.present",), BOTH),
        (("manage.alived", "subset=web2,web9"), ["web2"]),
        (("manage.joined", "subset=[web1]"), ["web1"]),
        (("manage.not_present",), []),
        (("test.arg", "1", "two", "k=[3]", "__hidden=4"), {"args": [1, "two"], "kwargs": {"k": [3]}}),
        (("test.raw_arg", "__shown=4"), {"args": [], "kwargs": {"__shown": 4}}),
        (("test.sleep", "0.1"), True),
        (("config.get", "id"), "master_master"),
        (("config.get", "no:such", "default=d"), "d"),
        (("salt.execute", "web*", "test.arg", "arg=[1]", "kwarg={k: 2}"), lambda value: value["web1"]["args"] == [1]),
        (("salt.cmd", "test.arg", "1", "k=2"), lambda value: value["kwargs"]["k"] == 2),
        (("fileserver.envs",), ["base"]),
        (("fileserver.envs", "sources=True"), {"roots": ["base"]}),
        (("fileserver.file_list",), _has("top.sls")),
        (("fileserver.dir_list",), _has("landing", "web/files")),
        (("fileserver.update",), True),
        (("cache.grains", "web1"), lambda value: value["web1"]["id"] == "web1"),
        (("cache.grains",), {}),
        (("pillar.show_pillar", "web1"), lambda value: value and "_errors" not in value),
        (("error.error",), {}),
        (("survey.hash", "*", "test.echo", "same"), [{"pool": BOTH, "result": "same"}]),
        (
            ("survey.diff", "*", "grains.get", "id"),
            lambda value: value[1]["diff"].splitlines()[-2:] == ["-web1", "+web2"],
        ),
        (("doc.runner",), _has("jobs.list_jobs", "manage.up")),
        (("jobs.list_jobs_filter", "3"), lambda value: len(value) == 3),
        (("jobs.master",), lambda value: [job["fun"] for job in value] == ["runner.jobs.master"]),
        (("jobs.list_jobs", "search_function=never.called"), {}),
        (("jobs.last_run", "function=never.called"), False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_runners_return(lab: Lab, words: tuple[str, ...], expected: Any) -> None:
    value = lab.runner(*words)
    assert expected(value) if callable(expected) else value == expected, value


def test_the_documentation_of_a_module(lab: Lab) -> None:
    answer = lab.ok("salt-run", "-d", "manage")
    assert "manage.up:" in answer.out
    assert "\njobs." not in answer.out


def test_versions(lab: Lab) -> None:
    found = lab.runner("manage.versions")
    assert sorted(found) == ["Master", "Up to date"]
    assert sorted(found["Up to date"]) == BOTH


def test_the_mine(lab: Lab) -> None:
    lab.salt("*", "mine.send", "test.ping")
    assert lab.runner("mine.get", "*", "test.ping") == dict.fromkeys(BOTH, True)
    assert lab.runner("mine.get", "web1", "test.ping,no.such") == {"test.ping": {"web1": True}}
    assert lab.runner("cache.mine", "web2")["web2"]["test.ping"] is True
    assert lab.runner("cache.clear_mine_func", "web1", "clear_mine_func_flag=test.ping") is True
    assert lab.runner("mine.get", "*", "test.ping") == {"web2": True}
    assert lab.runner("cache.clear_mine", "*") is True
    assert lab.runner("mine.get", "*", "test.ping") == {}
    assert sorted(lab.runner("mine.update", "*")) == BOTH


def test_what_is_kept_of_minions_is_forgotten_and_told_anew(lab: Lab) -> None:
    assert lab.runner("cache.clear_all", "web1") is True
    assert sorted(lab.runner("cache.grains", "*")) == ["web2"]
    lab.salt("*", "saltutil.refresh_pillar")
    lab.salt("*", "pillar.items")
    assert sorted(lab.runner("cache.grains", "*")) == BOTH
    assert lab.runner("cache.clear_grains") is False


def test_no_password_is_shown(lab: Lab) -> None:
    assert "@" not in lab.runner("test.get_opts")["redis_url"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("no.such",), "'no.such' is not available"),
        (("manage.upp",), "The nearest is 'manage.up'"),
        (("manage.present", "show_ip=True"), "not supported: show_ip"),
        (("manage.present", "subset=5"), "subset must be a list of minions, not int"),
        (("error.error", "name=ValueError", "message=bad"), "ValueError: bad"),
        (("survey.hash", "*"), "a target and a function are needed"),
        (("survey.hash", "*", "test.ping", "survey_sort=sideways"), "survey_sort is up or down"),
        (("fileserver.envs", "backend=git"), "the backend 'git' is not in the option fileserver_backend"),
        (("salt.cmd", "no.such"), "'no.such' is not available"),
        (("salt.execute", "(web", "test.ping", "tgt_type=pcre"), "(web"),
        (("cache.clear_mine_func", "*"), "clear_mine_func_flag must name the function"),
        (("event.send", "a/tag", "data=text"), "the data of an event is a map, not str"),
        (("manage.safe_accept", "web1"), "the option roster_file names a file"),
        (("jobs.list_jobs", "ext_source=nosuch"), "'nosuch.get_jids' is not available"),
        (("jobs.list_jobs", "start_time=soon"), "'soon' is not a time"),
        (
            ("test.sleep", "nothing=1"),
            "Passed invalid arguments: sleep() got an unexpected keyword argument 'nothing'\n\nUsage:",
        ),
        (("test.sleep", "soon"), "s_time must be a number of seconds, not 'soon'"),
        (("test.sleep", "-1"), "s_time must be a number of seconds, not -1"),
        (("manage.status", "timeout=soon"), "timeout must be a number of seconds, not 'soon'"),
        (("manage.up", "gather_job_timeout=soon"), "gather_job_timeout must be a number of seconds, not 'soon'"),
        (("salt.execute", "*", "test.ping", "timeout=[1]"), "timeout must be a number of seconds, not [1]"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_runners_refuse(lab: Lab, words: tuple[str, ...], said: str) -> None:
    answer = lab.run("salt-run", *words)
    assert answer.code == 1, answer
    assert said in answer.out + answer.err


@pytest.mark.parametrize("fun", ["survey.hash", "survey.diff", "salt.execute", "mine.update"])
def test_who_asks_nobody_is_told_as_by_salt(lab: Lab, fun: str) -> None:
    words = ["nobody*"] if fun == "mine.update" else ["nobody*", "test.ping"]
    runner, salt = lab.run("salt-run", fun, *words), lab.run("salt", "nobody*", "test.ping")
    assert (runner.code, runner.out) == (salt.code, salt.out)
    assert runner.code == 2


def test_reactions_are_added_to_the_running_reactor_and_taken_away(lab: Lab) -> None:
    before = lab.runner("reactor.list")
    sls = lab.root / "live.sls"
    sls.write_text(
        "note:\n  local.file.write:\n    - tgt: web1\n    - args:\n      - path: /tmp/live\n      - args: {{ data.word }}\n"
    )
    assert lab.runner("reactor.add", "site/live/*", f"reactors={sls}")["status"] is True
    assert lab.runner("reactor.list") == [*before, {"site/live/*": [str(sls)]}]
    assert lab.runner("reactor.set_leader", "False") is False
    lab.runner("event.send", "site/live/1", "data={word: first}")
    assert lab.runner("reactor.set_leader", "True") is True
    assert lab.runner("reactor.is_leader") is True
    lab.runner("event.send", "site/live/1", "data={word: second}")
    place = lab.host("web1") / "tmp/live"
    until(place.exists, SOON, "the reaction")
    assert place.read_text().strip() == "second"
    assert lab.runner("reactor.delete", "site/live/*")["status"] is True
    assert lab.runner("reactor.list") == before


def test_a_long_runner_holds_no_worker(lab: Lab) -> None:
    """The lab has one."""
    waiting = lab.started("salt-run", "test.sleep", "60")
    (jid,) = until(lambda: lab.redis().zrange("salt:runners", 0, -1), SOON, "the runner works")
    where = until(lambda: lab.redis().hget(f"salt:job:{jid}", "where"), SOON, "it gives a sign of life")
    lab.pings()
    assert [job["fun"] for job in lab.runner("jobs.master")] == ["runner.test.sleep", "runner.jobs.master"]
    assert waiting.poll() is None
    os.kill(int(where.split()[1]), signal.SIGTERM)
    assert "was killed by signal 15 (Terminated)" in lab.finished(waiting).out


def test_an_orchestration_hears_that_its_runner_was_killed(lab: Lab) -> None:
    sls = lab.tree / "salt" / "lost.sls"
    sls.write_text("asleep:\n  salt.runner:\n    - name: test.sleep\n    - s_time: 60\n")
    waiting = lab.started("salt-run", "state.orchestrate", "lost", "--out=json")

    def inner() -> list[str]:
        return [job["jid"] for job in lab.runner("jobs.master") if job["fun"] == "runner.test.sleep"]

    (jid,) = until(inner, SOON, "the inner runner works")
    where = until(lambda: lab.redis().hget(f"salt:job:{jid}", "where"), SOON, "it gives a sign of life")
    os.kill(int(where.split()[1]), signal.SIGKILL)
    answer = lab.finished(waiting)
    sls.unlink()
    assert answer.code == 1, answer
    assert "The runner test.sleep has no result" in answer.out
