"""``saltcheck``: tests of states. The cases are run by real Salt, too."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from statecore.runtime.runtime import Runtime, local_runtime
from tests.conftest import Oracle

#: File -> text of the state tree.
TREE = {
    "top.sls": "base:\n  '*':\n    - web\n    - bare\n",
    "web/init.sls": "include:\n  - web.sub\nweb:\n  test.nop\n",
    "web/sub.sls": "sub:\n  test.nop\n",
    "bare.sls": "bare:\n  test.nop\n",
    "web/saltcheck-tests/init.tst": """
{% set word = "hi" %}
equal: {module_and_function: test.echo, args: [{{ word }}], assertion: assertEqual, expected_return: hi}
unequal: {module_and_function: test.echo, args: [a], assertion: assertEqual, expected_return: b}
hidden: {module_and_function: test.echo, args: [a], assertion: assertEqual, expected_return: b, print_result: false}
not equal: {module_and_function: test.echo, args: [a], assertion: assertNotEqual, expected_return: a}
cast: {module_and_function: test.echo, args: [5], assertion: assertEqual, expected_return: '5'}
false as text: {module_and_function: test.false, assertion: assertEqual, expected_return: 'False'}
'true': {module_and_function: test.true, assertion: assertTrue}
not true: {module_and_function: test.echo, args: [1], assertion: assertTrue}
'false': {module_and_function: test.false, assertion: assertFalse}
empty text is false: {module_and_function: test.echo, args: [''], assertion: assertFalse}
not false: {module_and_function: test.true, assertion: assertFalse}
in: {module_and_function: test.echo, args: [abc], assertion: assertIn, expected_return: b}
not in: {module_and_function: test.echo, args: [abc], assertion: assertIn, expected_return: z}
absent: {module_and_function: test.echo, args: [abc], assertion: assertNotIn, expected_return: z}
present: {module_and_function: test.echo, args: [abc], assertion: assertNotIn, expected_return: a}
greater: {module_and_function: test.echo, args: [5], assertion: assertGreater, expected_return: 6}
not greater: {module_and_function: test.echo, args: [5], assertion: assertGreater, expected_return: 5}
greater equal: {module_and_function: test.echo, args: [5], assertion: assertGreaterEqual, expected_return: 5}
less: {module_and_function: test.echo, args: [5], assertion: assertLess, expected_return: 5}
less equal: {module_and_function: test.echo, args: [5], assertion: assertLessEqual, expected_return: 5}
empty: {module_and_function: test.echo, args: [[]], assertion: assertEmpty}
not empty: {module_and_function: test.echo, args: [[1]], assertion: assertEmpty}
filled: {module_and_function: test.echo, args: [[]], assertion: assertNotEmpty}
section: {module_and_function: test.echo, args: [{a: {b: 7}}], assertion: assertEqual, expected_return: 7, assertion_section: 'a:b'}
delimiter:
  {module_and_function: test.echo, args: [{a: {b: 7}}], assertion: assertEqual, expected_return: 7, assertion_section: a/b,
   assertion_section_delimiter: /, output_details: true}
no section: {module_and_function: test.echo, args: [{a: 1}], assertion: assertFalse, assertion_section: b, output_details: true}
several:
  module_and_function: test.echo
  args: [[1, 2]]
  output_details: true
  assertions:
    - {assertion: assertIn, expected_return: 1}
    - {assertion: assertIn, expected_return: 3}
    - {assertion: assertNotEmpty}
several that hold:
  module_and_function: test.echo
  args: [[1, 2]]
  assertions: [{assertion: assertIn, expected-return: 1}]
old name: {module_and_function: test.echo, args: [x], assertion: assertEqual, expected-return: x}
keywords: {module_and_function: test.kwarg, kwargs: {a: 1}, assertion: assertEqual, expected_return: 1, assertion_section: a}
skipped: {module_and_function: test.echo, args: [x], assertion: assertEqual, expected_return: y, skip: true}
wrong assertion: {module_and_function: test.echo, args: [x], assertion: assertSame, expected_return: y}
wrong function: {module_and_function: test.nosuch, args: [x], assertion: assertTrue}
wrong module: {module_and_function: nosuch.echo, args: [x], assertion: assertTrue}
no function: {assertion: assertTrue}
nothing expected: {module_and_function: test.echo, args: [x], assertion: assertEqual}
""",
    "web/saltcheck-tests/sub.tst": "sub: {module_and_function: test.true, assertion: assertTrue}\n",
    "web/saltcheck-tests/other.tst": "other: {module_and_function: test.true, assertion: assertTrue}\n",
    "alone/saltcheck-tests/init.tst": "alone: {module_and_function: test.true, assertion: assertTrue}\n",
}

#: Function and its arguments.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("run_state_tests", {"state": "web"}),
    ("run_state_tests", {"state": "web", "only_fails": True}),
    ("run_state_tests", {"state": "web", "check_all": True}),
    ("run_state_tests", {"state": "web.sub"}),
    ("run_state_tests", {"state": "alone"}),
    ("run_state_tests", {"state": "bare"}),
    ("run_state_tests", {"state": "nosuch"}),
    ("report_highstate_tests", {}),
    ("run_test", {"test": {"module_and_function": "test.echo", "args": ["x"], "assertion": "assertTrue"}}),
    ("run_test", {"test": "no map"}),
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "tree"


@pytest.fixture
def runtime(tree: Path, tmp_path: Path) -> Runtime:
    opts = {"id": "web1", "file_roots": {"base": [str(tree)]}, "cachedir": str(tmp_path / "cache")}
    return local_runtime({**opts, "conf_file": str(tmp_path / "minion")}, pillar={})


def masked(value: Any) -> Any:
    """A result without times; the rows of SLS files are maps of tests in any order."""
    if isinstance(value, dict):
        return {key: 0 if key in ("duration", "Execution Time") else masked(each) for key, each in value.items()}
    return [masked(each) for each in value] if isinstance(value, list) else value


def ours(runtime: Runtime, function: str, arguments: dict[str, Any]) -> tuple[Any, int]:
    done = runtime.call(f"saltcheck.{function}", [], arguments)
    assert done.error is None
    return masked(json.loads(json.dumps(done.value))), done.retcode


def test_a_run_of_all_kinds_of_assertions(runtime: Runtime) -> None:
    (state, summary), code = ours(runtime, "run_state_tests", {"state": "web"})
    status = {name: result["status"] for name, result in state["web"].items()}
    assert {name for name, word in status.items() if word == "Fail - invalid test"} == {
        *("wrong assertion", "wrong function", "wrong module", "no function", "nothing expected")
    }
    assert {name: word for name, word in status.items() if word.startswith("Fail") and "invalid" not in word} == {
        "unequal": "Fail: b is not equal to a",
        "hidden": "Fail: Result is not equal",
        "not equal": "Fail: a is equal to a",
        "not true": "Fail: 1 not True",
        "not false": "Fail: True not False",
        "not in": "Fail: z not found in abc",
        "present": "Fail: a was found in abc",
        "not greater": "Fail: 5 not False",
        "less": "Fail: 5 not False",
        "not empty": "Fail: [1] is not empty",
        "filled": "Fail: value is empty",
        "several": "Fail",
    }
    assert state["web"]["several"]["assertion2"]["saltcheck assertion"] == "3 IN [1, 2]"
    assert status["sub"] == "Pass"
    assert "other" not in status
    assert (summary["TEST RESULTS"]["Failed"], summary["TEST RESULTS"]["Skipped"], code) == (17, 1, 1)


def test_all_states_of_a_list_and_of_the_top_file_are_tested(runtime: Runtime) -> None:
    *states, summary = ours(runtime, "run_state_tests", {"state": "alone, web.sub"})[0]
    assert [list(each) for each in states] == [["alone"], ["web.sub"]]
    assert summary["TEST RESULTS"]["Passed"] == 2
    *states, summary = ours(runtime, "run_highstate_tests", {"only_fails": True})[0]
    assert [list(each) for each in states] == [[], ["web"]]
    assert summary["TEST RESULTS"]["Missing Tests"] == 1


def test_what_cannot_be_called_or_compared_has_failed(runtime: Runtime) -> None:
    raising = {"module_and_function": "test.exception", "args": ["why"], "assertion": "assertTrue"}
    result, _ = ours(runtime, "run_test", {"test": raising})
    assert result["status"].startswith("Fail: test.exception failed: ")
    number = {"module_and_function": "test.echo", "args": [1], "assertion": "assertIn", "expected_return": 1}
    assert ours(runtime, "run_test", {"test": number})[0]["status"].startswith("Fail: 1 IN 1: ")


def test_a_state_is_applied_before_a_test(runtime: Runtime) -> None:
    prepared = {"module_and_function": "saltcheck.state_apply", "args": ["web"]}
    assert ours(runtime, "run_test", {"test": prepared})[0]["status"] == "Pass"


def test_junit(runtime: Runtime) -> None:
    told = runtime.call("saltcheck.run_state_tests", ["web"], {"junit": True})
    assert isinstance(told.value, str)
    (suite,) = ET.fromstring(told.value)
    assert (suite.get("failures"), suite.get("skipped"), told.retcode) == ("17", "1", 1)
    failures = {case.get("name"): case.find("failure") for case in suite}
    failure = failures["unequal"]
    assert failure is not None
    assert failure.get("message") == "Fail: b is not equal to a"
    assert failures["equal"] is None


@pytest.mark.oracle
@pytest.mark.timeout(600)
def test_as_salt(runtime: Runtime, tree: Path, tmp_path: Path, oracle: Oracle) -> None:
    root = tmp_path / "salt"
    root.mkdir()
    settings = {"file_client": "local", "id": "web1", "root_dir": str(root), "file_roots": {"base": [str(tree)]}}
    (root / "minion").write_text(json.dumps({**settings, "enable_fqdns_grains": False}))
    script = root / "ask.py"
    script.write_text(
        "import json, sys\nimport salt.client, salt.config\n"
        f"opts = salt.config.minion_config({str(root / 'minion')!r})\n"
        "caller = salt.client.Caller(mopts=opts)\n"
        # Salt makes a caller for each test, which takes seconds.
        "salt.client.Caller = lambda **_: caller\n"
        "found = []\n"
        "for function, arguments in json.loads(sys.argv[1]):\n"
        "    context = caller.sminion.functions.pack['__context__']\n"
        "    context.pop('retcode', None)\n"
        "    value = caller.cmd('saltcheck.' + function, **arguments)\n"
        "    found.append([value, context.get('retcode', 0)])\n"
        "print('ANSWER' + json.dumps(found))\n"
    )
    told = oracle.run("python", str(script), json.dumps(CALLS)).partition("ANSWER")[2]
    for (function, arguments), (value, code) in zip(CALLS, json.loads(told), strict=True):
        assert ours(runtime, function, arguments) == (masked(value), code), (function, arguments)
