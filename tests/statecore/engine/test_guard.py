"""onlyif, unless, creates, check_cmd: texts and verdicts as Salt 3008 gives them."""

from __future__ import annotations

import pytest

from statecore.compile.graph import link
from statecore.engine import run

RAN = ("Success!", True)

CASES = [
    ({"onlyif": "true"}, None),
    ({"onlyif": "false"}, "onlyif condition is false"),
    ({"onlyif": ["true", "false"]}, "onlyif condition is false"),
    ({"onlyif": "unstartable"}, "onlyif condition is false"),
    ({"onlyif": [{"fun": "test.true"}]}, None),
    ({"onlyif": [{"fun": "test.false"}]}, "onlyif condition is false"),
    ({"onlyif": [{"fun": "test.echo", "text": {"a": {"b": 0}}, "get_return": "a:b"}]}, "onlyif condition is false"),
    ({"onlyif": [{"fun": "test.retcode", "code": 3}]}, "onlyif condition is false"),
    ({"onlyif": [{"fun": "test.echo", "args": ["x"]}]}, None),
    ({"onlyif": [{"no": "fun"}]}, None),
    ({"onlyif": [7]}, None),
    ({"unless": "true"}, "unless condition is true"),
    ({"unless": "false"}, None),
    ({"unless": ["true", "false"]}, None),
    ({"unless": ["true", "true"]}, "unless condition is true"),
    ({"unless": "unstartable"}, "unless condition is true"),
    ({"unless": [{"fun": "test.true"}]}, "unless condition is true"),
    ({"unless": [{"fun": "test.false"}]}, None),
    ({"creates": "/there"}, "/there exists"),
    ({"creates": ["/there", "/there"]}, "All files in creates exist"),
    ({"creates": ["/there", "/not"]}, None),
    ({"creates": "/not"}, None),
    ({"onlyif": "true", "unless": "true"}, "onlyif condition is true\nunless condition is true"),
    ({"onlyif": "true", "unless": "false"}, None),
]


@pytest.mark.parametrize(("guards", "comment"), CASES)
def test_guards(bench, low, guards, comment):
    bench.port.root.mkdir()
    (bench.port.root / "there").touch()
    (entry,) = bench.run(low("a", "succeed_with_changes", **guards)).values()
    if comment is None:
        assert entry["comment"] == "Success!"
        assert entry["changes"]
    else:
        assert (entry["comment"], entry["result"], entry["changes"], entry["skip_watch"]) == (comment, True, {}, True)


def test_an_unknown_function_in_a_guard_fails_the_state(bench, low):
    (entry,) = bench.run(low("a", onlyif=[{"fun": "no.such"}])).values()
    assert entry["result"] is False
    assert "'no.such' is not available." in entry["comment"]


def test_a_guarded_state_does_not_react_to_a_watch(bench, low):
    running = bench.run(low("a", "succeed_with_changes"), low("b", unless="true", watch=[{"test": "a"}]))
    assert running["test_|-b_|-b_|-nop"]["comment"] == "unless condition is true"


@pytest.mark.parametrize(
    ("command", "fun", "result", "comment"),
    [
        ("true", "fail_without_changes", True, "check_cmd determined the state succeeded"),
        ("false", "succeed_with_changes", False, "check_cmd determined the state failed"),
        (["true", "false"], "nop", False, "check_cmd determined the state failed"),
    ],
)
def test_check_cmd(bench, low, command, fun, result, comment):
    (entry,) = bench.run(low("a", fun, check_cmd=command)).values()
    assert (entry["result"], entry["comment"]) == (result, comment)


def test_check_cmd_is_not_asked_about_what_was_not_done(bench, low):
    (entry,) = bench.run(low("a", "succeed_with_changes", check_cmd="false"), test=True).values()
    assert entry["result"] is None


def test_commands_run_in_a_shell_with_the_states_own_options(bench, low):
    context = bench.context()
    chunk = low("a", onlyif="true", runas="ann", cwd="/tmp", cmd_opts_exclude=["cwd"])
    run(link([chunk]), context, bench.loader)
    ((command, options),) = context.call("cmd.asked")
    assert command == "true"
    assert options == {"ignore_retcode": True, "python_shell": True, "runas": "ann"}
    assert "retcode" not in context.scratch
