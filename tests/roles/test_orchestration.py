"""Orchestrations: a state run on the master whose states are jobs, functions, runners and wheels."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.stock import Bus
from tests.roles.lab import SOON, Answer, Held, Lab, until

pytestmark = pytest.mark.roles

MASTER = "master_master"

FILES = {
    "orch/both.sls": """\
marked:
  salt.state:
    - tgt: '*'
    - sls: orch.steps.mark
    - pillar:
        note: {{ pillar.get('note', 'none') }}
said:
  salt.function:
    - name: test.arg
    - tgt: 'web1'
    - arg: [1, two]
    - kwarg: {three: 3}
    - require:
      - salt: marked
listed:
  salt.runner:
    - name: jobs.list_jobs
    - search_function: state.sls
keys:
  salt.wheel:
    - name: key.list_all
below:
  salt.runner:
    - name: state.orchestrate
    - mods: orch.inner
at-once:
  salt.parallel_runners:
    - runners:
        first:
          - name: test.arg
          - kwarg: {x: 1}
        second:
          - name: state.orchestrate
          - kwarg:
              mods: orch.inner
""",
    "orch/inner.sls": """\
one-by-one:
  salt.function:
    - name: test.ping
    - tgt: '*'
    - batch: 1
one-of-them:
  salt.function:
    - name: test.ping
    - tgt: '*'
    - subset: 1
""",
    "orch/side.sls": """\
{% for minion in ('web1', 'web2') %}
at-{{ minion }}:
  salt.function:
    - name: test.ping
    - tgt: {{ minion }}
    - parallel: True
{% endfor %}
together:
  test.nop:
    - require:
      - salt: at-web1
      - salt: at-web2
""",
    "orch/failing.sls": """\
broken:
  salt.state:
    - tgt: '*'
    - sls: orch.steps.broken
not-reached:
  salt.function:
    - name: test.ping
    - tgt: '*'
    - require:
      - salt: broken
nobody:
  salt.state:
    - tgt: 'no-such-minion'
    - sls: orch.steps.mark
unknown:
  salt.runner:
    - name: no.such
spared:
  salt.state:
    - tgt: '*'
    - sls: orch.steps.broken
    - allow_fail: 2
""",
    "orch/asked.sls": """\
asked:
  test.configurable_test_state:
    - changes: False
    - comment: >-
        {{ salt['saltutil.runner']('test.arg', kwarg={'x': 1})['kwargs']['x'] }}
        {{ salt['saltutil.cmd']('web1', 'test.ping')['web1']['ret'] }}
        {{ salt['saltutil.wheel']('key.list_all')['return']['minions'] | join(',') }}
""",
    "orch/heard.sls": """\
told:
  salt.function:
    - name: event.send
    - tgt: web2
    - arg: [my/tag]
    - kwarg: {data: {id: web2, who: web2}}
    - parallel: True
heard:
  salt.wait_for_event:
    - name: salt/job/*/ret/web*
    - id_list: [web2]
    - timeout: 30
    - parallel: True
late:
  salt.wait_for_event:
    - name: nobody/sends/this
    - id_list: [web9]
    - timeout: 1
""",
    "orch/steps/mark.sls": "mark:\n  file.managed:\n    - name: /etc/mark\n    - contents: {{ pillar.note }}\n",
    "orch/steps/broken.sls": "bad:\n  test.fail_without_changes: []\n",
}


@pytest.fixture(scope="module", autouse=True)
def planted(lab: Lab) -> Iterator[None]:
    made: list[Path] = []
    for name, text in FILES.items():
        path = lab.tree / "salt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        made.append(path)
    yield
    for path in made:
        path.unlink()


def orchestrated(lab: Lab, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit code, and ID -> result."""
    answer = lab.run("salt-run", "state.orchestrate", *words, "--out=json")
    run = json.loads(answer.out)
    run = run.get("data", run)[MASTER]
    assert isinstance(run, dict), run
    return answer.code, {entry["__id__"]: entry for entry in run.values()}


def test_a_whole_orchestration(lab: Lab) -> None:
    code, run = orchestrated(lab, "orch.both", 'pillar={"note": "hello"}')
    assert {name: entry["result"] for name, entry in run.items()} == dict.fromkeys(run, True), run
    assert code == 0
    assert run["marked"]["comment"] == "States ran successfully. Updating web1, web2."
    changes = run["marked"]["changes"]
    assert changes["out"] == "highstate"
    assert sorted(changes["ret"]) == ["web1", "web2"]
    assert {minion: (lab.host(minion) / "etc/mark").read_text() for minion in ("web1", "web2")} == dict.fromkeys(
        ("web1", "web2"), "hello\n"
    )
    said = run["said"]
    assert said["comment"] == "Function ran successfully. Function test.arg ran on web1."
    assert said["changes"]["ret"]["web1"] == {"args": [1, "two"], "kwargs": {"three": 3}}
    assert run["marked"]["__jid__"] in run["listed"]["changes"]["return"]
    assert run["keys"]["changes"]["return"]["minions"] == ["web1", "web2"]
    inner = run["below"]["changes"]["return"]
    assert inner["retcode"] == 0
    (below,) = inner["data"].values()
    found = {entry["__id__"]: entry for entry in below.values()}
    assert sorted(found["one-by-one"]["changes"]["ret"]) == ["web1", "web2"]
    assert len(found["one-of-them"]["changes"]["ret"]) == 1
    assert run["at-once"]["changes"]["ret"]["first"]["kwargs"] == {"x": 1}


def test_test_mode_changes_nothing_and_tells_what_would_be(lab: Lab) -> None:
    orchestrated(lab, "orch.both", 'pillar={"note": "before"}')
    code, run = orchestrated(lab, "orch.both", 'pillar={"note": "after"}', "test=True")
    assert code == 0
    assert (lab.host("web1") / "etc/mark").read_text() == "before\n"
    assert {name: entry["result"] for name, entry in run.items()} == dict.fromkeys(run)
    assert run["said"]["comment"] == "Function test.arg would be executed on target web1"
    assert sorted(run["marked"]["changes"]["ret"]) == ["web1", "web2"]


def test_states_of_an_orchestration_run_in_parallel(lab: Lab) -> None:
    code, run = orchestrated(lab, "orch.side")
    assert code == 0
    assert {name: entry["result"] for name, entry in run.items()} == dict.fromkeys(run, True), run
    assert [entry.get("__parallel__") for entry in run.values()].count(True) == 2


def test_failures_are_told_and_give_an_exit_code(lab: Lab) -> None:
    code, run = orchestrated(lab, "orch.failing")
    assert code == 1
    assert {name: entry["result"] for name, entry in run.items()} == {
        "broken": False,
        "not-reached": False,
        "nobody": False,
        "unknown": False,
        "spared": True,
    }
    assert run["broken"]["comment"] == "Run failed on minions: web1, web2"
    assert run["not-reached"]["comment"] == "One or more requisite failed: orch.failing.broken"
    assert run["nobody"]["comment"] == "No minions returned"
    assert "'no.such' is not available" in run["unknown"]["changes"]["return"]


def test_events_are_waited_for(lab: Lab) -> None:
    code, run = orchestrated(lab, "orch.heard")
    assert code == 1
    assert {name: entry["result"] for name, entry in run.items()} == {"told": True, "heard": True, "late": False}
    assert run["heard"]["changes"] == {"minions_seen": ["web2"]}
    assert run["late"]["comment"] == "Timeout value reached. Not seen: web9"


def test_templates_ask_the_master_too(lab: Lab) -> None:
    code, run = orchestrated(lab, "orch.asked")
    assert (code, run["asked"]["comment"]) == (0, "1 True web1,web2")
    answer = lab.call("web1", "--local", "saltutil.runner", "test.arg")
    assert answer.code == 1
    assert "call it in an SLS for salt-run state.orchestrate" in answer.out + answer.err


def test_the_job_of_an_orchestration_can_be_asked_for(lab: Lab) -> None:
    jid = lab.ok("salt-run", "--async", "state.orchestrate", "orch.inner").out.split()[-1]
    lab.ok("salt-run", "state.orchestrate", "orch.inner")
    found = lab.runner("jobs.list_job", jid)
    assert found["Function"] == "runner.state.orchestrate"
    assert found["Result"]["master_master"]["return"]["retcode"] == 0
    # Its report is the one that the orchestration itself shows.
    shown = lab.ok("salt-run", "jobs.lookup_jid", jid).out
    assert f"Summary for {MASTER}" in shown
    assert "Total states run:" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("no.such.sls",), "No matching sls found for 'no.such.sls' in env 'base'"),
        (("orch.inner", "pillar=text"), "Pillar data must be formatted as a dictionary"),
    ],
)
def test_what_cannot_be_run_says_why(lab: Lab, words: tuple[str, ...], said: str) -> None:
    answer = lab.run("salt-run", "state.orchestrate", *words)
    assert answer.code == 1
    assert said in answer.out + answer.err


def test_the_report_is_that_of_a_state_run(lab: Lab) -> None:
    answer = lab.ok("salt-run", "state.orchestrate", "orch.inner")
    assert f"{MASTER}:" in answer.out
    assert "Summary for master_master" in answer.out


def test_who_began_an_orchestration_calls_its_wheel_functions(lab: Lab) -> None:
    bus = Bus.of_lab(lab)
    try:
        lab.run("salt-run", "state.orchestrate_single", "fun=salt.wheel", "name=key.list_all")
        began = bus.await_event("salt/run/*/new", lambda data: data["fun"] == "runner.state.orchestrate_single")
        told = bus.await_event("salt/wheel/*/ret", lambda data: data["fun"] == "wheel.key.list_all")
    finally:
        bus.close()
    assert told["user"] == began["user"]


def test_a_single_state_and_what_an_sls_says(lab: Lab) -> None:
    answer = lab.run("salt-run", "state.orchestrate_single", "fun=salt.wheel", "name=key.list_all", "--out=json")
    (entry,) = json.loads(answer.out)["data"][MASTER].values()
    assert entry["result"] is True
    shown = lab.runner("state.orchestrate_show_sls", "orch.inner")
    assert sorted(shown[MASTER]) == ["one-by-one", "one-of-them"]


def told(lab: Lab, *words: str) -> Answer:
    """The answer to an orchestration that was told something while its first state ran."""
    held = Held(lab)
    (lab.tree / "salt" / "orch" / "slow.sls").write_text(
        f"first:\n  salt.function:\n    - name: held.wait\n    - tgt: '*'\n    - arg: [{held.directory}]\n"
        "second:\n  test.nop:\n    - require:\n      - salt: first\n"
    )
    waiting = lab.started("salt-run", "state.orchestrate", "orch.slow", "--out=json")
    held.await_started()
    (jid,) = [job["jid"] for job in lab.runner("jobs.master") if job["fun"] == "runner.state.orchestrate"]
    assert lab.runner(words[0], jid, *words[1:]) is None
    held.let_go()
    if words[0] == "state.pause":
        until(lambda: lab.redis().hlen(f"salt:orders:{jid}"), SOON, "the order is kept")
        assert waiting.poll() is None
        lab.runner("state.resume", jid)
    answer = lab.finished(waiting)
    assert lab.redis().exists(f"salt:orders:{jid}") == 0
    return answer


@pytest.mark.parametrize(
    ("words", "ids"),
    [(("state.pause", "second"), ["first", "second"]), (("state.soft_kill", "second"), ["first"])],
)
def test_an_orchestration_is_paused_and_ended(lab: Lab, words: tuple[str, ...], ids: list[str]) -> None:
    answer = told(lab, *words)
    (run,) = answer.data.get("data", answer.data).values()
    assert [entry["__id__"] for entry in run.values() if entry["result"]] == ids, answer


def test_only_orchestrations_are_told(lab: Lab) -> None:
    answer = lab.run("salt-run", "state.pause", "20260101000000000000")
    assert answer.code == 1
    assert "No orchestration with the job id 20260101000000000000 is in progress; there is none at all" in answer.out
